// For tests of the errors that the checker reports: a machine that checks, and what is expected of
// its findings.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "node/checking.h"
#include "node/finding.h"
#include "ptx_machine.h"

namespace allranks::node {

class CheckErrorsTest : public PtxMachineTest {
 protected:
  void SetUp() override {
    MachineOptions options;
    options.check = true;
    ASSERT_NO_FATAL_FAILURE(Start(options));
    machine_->checking()->SetChecking(true);
  }

  // The input is `in` as it is, unless `bytes` says how much of it is left unwritten.
  std::vector<Finding> Check(const std::string& body, const Options& options = {}) {
    Run<std::uint32_t>(body, 256, std::vector<std::uint32_t>(256, 7), options);
    return Take();
  }
  std::vector<Finding> Take() { return machine_->checking()->TakeFindings(); }

  // The output is cleared; the input is `bytes` of new memory.
  std::vector<Finding> CheckUnwritten(const std::string& body, std::uint64_t bytes = 1024,
                                      const Options& options = {}) {
    Address out = 0;
    EXPECT_EQ(machine_->Allocate(process_, 0, 1024, &out), Status::kSuccess);
    const std::vector<std::uint32_t> zero(256);
    Write(out, zero.data(), 1024);
    EXPECT_EQ(machine_->Allocate(process_, 0, bytes, &input_), Status::kSuccess);
    RunAt<std::uint32_t>(body, out, 256, options);
    return Take();
  }

  static Options Block(std::uint32_t threads) {
    Options options;
    options.block = {threads, 1, 1};
    return options;
  }
};

inline std::string Show(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) text += Describe(finding);
  return text;
}

#define EXPECT_SILENT(expression)        \
  do {                                   \
    const auto findings_ = (expression); \
    EXPECT_EQ(Show(findings_), "");      \
  } while (false)

// Exactly one finding of that kind, with `accesses` accesses and `part` in its text.
inline void ExpectOne(const std::vector<Finding>& findings, Finding::Kind kind,
                      std::size_t accesses, const std::string& part) {
  ASSERT_EQ(findings.size(), 1u) << Show(findings);
  EXPECT_EQ(findings[0].kind, kind) << Show(findings);
  EXPECT_EQ(findings[0].accesses.size(), accesses) << Show(findings);
  EXPECT_NE(findings[0].text.find(part), std::string::npos) << Show(findings);
}

}  // namespace allranks::node
