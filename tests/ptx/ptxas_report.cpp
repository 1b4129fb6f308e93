// Reading the report of ptxas (ptxas_report.h).
#include "ptx/ptxas_report.h"

#include <gtest/gtest.h>

#include <regex>
#include <sstream>

namespace allranks::ptx {

std::map<std::string, KernelResources> ParsePtxasReport(const std::string& report) {
  static const std::regex kEntry("Compiling entry function '([^']+)'");
  static const std::regex kProperties("Function properties for (\\S+)");
  static const std::regex kFrame("(\\d+) bytes stack frame");
  static const std::regex kRegisters("Used (\\d+) registers");
  static const std::regex kBarriers("used (\\d+) barriers");
  static const std::regex kShared("(\\d+) bytes smem");
  static const std::regex kStack("(\\d+) bytes cumulative stack");
  std::map<std::string, KernelResources> kernels;
  KernelResources* kernel = nullptr;
  bool own_properties = false;
  std::istringstream lines(report);
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_search(line, match, kEntry)) kernel = &kernels[match[1]];
    if (kernel == nullptr) continue;
    if (std::regex_search(line, match, kProperties)) {
      own_properties = kernels.contains(match[1]) && &kernels[match[1]] == kernel;
    }
    if (own_properties && std::regex_search(line, match, kFrame)) {
      kernel->local_bytes = std::stoull(match[1]);
    }
    if (!std::regex_search(line, match, kRegisters)) continue;
    kernel->registers = static_cast<std::uint32_t>(std::stoul(match[1]));
    if (std::regex_search(line, match, kBarriers)) {
      kernel->barriers = static_cast<std::uint32_t>(std::stoul(match[1]));
    }
    if (std::regex_search(line, match, kShared)) kernel->shared_bytes = std::stoull(match[1]);
    if (std::regex_search(line, match, kStack)) kernel->local_bytes = std::stoull(match[1]);
  }
  return kernels;
}

void ExpectSameResources(const std::map<std::string, KernelResources>& cubin,
                         const std::map<std::string, KernelResources>& report) {
  EXPECT_EQ(cubin.size(), report.size());
  for (const auto& [name, expected] : report) {
    const auto found = cubin.find(name);
    if (found == cubin.end()) {
      ADD_FAILURE() << "the cubin lacks " << name;
      continue;
    }
    EXPECT_EQ(found->second.registers, expected.registers) << name;
    EXPECT_EQ(found->second.barriers, expected.barriers) << name;
    EXPECT_EQ(found->second.shared_bytes, expected.shared_bytes) << name;
    EXPECT_EQ(found->second.local_bytes, expected.local_bytes) << name;
  }
}

}  // namespace allranks::ptx
