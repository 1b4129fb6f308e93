// NVTX ranges of a program: in statistics and traces, without any virtual time.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/trace_checks.h"

namespace allranks {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class NvtxTest : public ::testing::Test {
 protected:
  NvtxTest() {
    std::string pattern = (fs::temp_directory_path() / "allranks-nvtx-XXXXXX").string();
    folder = mkdtemp(pattern.data());
  }
  ~NvtxTest() override { fs::remove_all(folder); }

  std::string Contents(const std::string& name) const {
    std::ifstream file(folder + "/" + name);
    return std::string((std::istreambuf_iterator<char>(file)), {});
  }
  // `environment`: in front of the command. What it prints.
  std::string Run(const std::string& options, const std::string& environment = "") const {
    const std::string command = environment + " " ALLRANKS_COMMAND " exec " + options +
                                " -- " ALLRANKS_BINARY_DIR "/programs/runtime/nvtx_ranges 300 >" +
                                folder + "/output 2>&1";
    EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 0) << Contents("output");
    return Contents("output");
  }

  std::string folder;
};

const json* Range(const json& stats, const std::string& name, const std::string& domain = "") {
  for (const json& range : stats["ranges"])
    if (range["name"] == name && range["domain"] == domain) return &range;
  return nullptr;
}

TEST_F(NvtxTest, StatisticsCountCallsAndVirtualTime) {
  const std::string output = Run("--stats --stats-json " + folder + "/s.json");
  EXPECT_NE(output.find("PASS nvtx_ranges: heard"), std::string::npos) << output;
  EXPECT_NE(output.find("library: phase"), std::string::npos) << output;
  const json stats = json::parse(Contents("s.json"));
  const auto expect = [&](const json* range, int calls, std::int64_t least, std::int64_t most) {
    ASSERT_NE(range, nullptr) << stats["ranges"].dump(1);
    EXPECT_EQ((*range)["calls"], calls) << *range;
    EXPECT_GE((*range)["total_ns"].get<std::int64_t>(), least) << *range;
    EXPECT_LE((*range)["total_ns"].get<std::int64_t>(), most) << *range;
  };
  // Three sleeps of 100 us in pushed ranges, and one in a started one that another thread ends.
  expect(Range(stats, "phase", "library"), 4, 400'000, 405'000);
  expect(Range(stats, "inner \u00e9"), 1, 5'000, 20'000);  // a launch, a kernel, a wait
  expect(Range(stats, "outer"), 1, 105'000, 121'000);
  expect(Range(stats, "by attributes"), 1, 0, 0);
  expect(Range(stats, "first"), 1, 0, 0);
  expect(Range(stats, "short"), 300, 0, 0);
  expect(Range(stats, "after the last call"), 1, 0, 0);
  // Its thread ends right behind.
  expect(Range(stats, "left open"), 1, 0, 1'000);
  EXPECT_EQ(Range(stats, "tick"), nullptr) << "a mark is no range";
}

TEST_F(NvtxTest, TakesNoVirtualTime) {
  Run("--stats-json " + folder + "/heard.json");
  // What the user has set stays: here a library that is not there.
  const std::string output =
      Run("--stats-json " + folder + "/unheard.json", "NVTX_INJECTION64_PATH=/nonexistent/x.so");
  EXPECT_NE(output.find("not heard"), std::string::npos) << output;
  json heard = json::parse(Contents("heard.json")), unheard = json::parse(Contents("unheard.json"));
  EXPECT_FALSE(heard["ranges"].empty());
  EXPECT_TRUE(unheard["ranges"].empty());
  heard.erase("ranges");
  unheard.erase("ranges");
  EXPECT_EQ(heard, unheard);
  EXPECT_EQ(heard["deterministic"], true);
}

TEST_F(NvtxTest, NobodyListensWithoutStatistics) {
  EXPECT_NE(Run("").find("not heard"), std::string::npos);
}

TEST_F(NvtxTest, TheTraceHasThemAroundTheirCalls) {
  Run("--trace " + folder + "/t.json");
  const CheckedTrace trace = CheckTrace(Contents("t.json"));
  ASSERT_TRUE(trace.slices.contains("rank 0/thread 1 (driver)"));
  const auto find = [&](const std::string& name) {
    for (const json& slice : trace.slices.at("rank 0/thread 1 (driver)"))
      if (slice["name"] == name) return slice;
    ADD_FAILURE() << name;
    return json::object({{"ts", 0.0}, {"dur", 0.0}});
  };
  const auto contains = [](const json& outer, const json& inner) {
    return outer["ts"].get<double>() <= inner["ts"].get<double>() + 1e-6 &&
           outer["ts"].get<double>() + outer["dur"].get<double>() >=
               inner["ts"].get<double>() + inner["dur"].get<double>() - 1e-6;
  };
  const json outer = find("outer"), inner = find("inner \u00e9");
  EXPECT_TRUE(contains(outer, inner));
  EXPECT_TRUE(contains(inner, find("cudaLaunchKernel")));
  EXPECT_TRUE(contains(inner, find("cudaStreamSynchronize")));
  EXPECT_FALSE(contains(outer, find("library: phase")));
  EXPECT_EQ(trace.Count("thread 1 (driver)", "short"), 300u);
  EXPECT_EQ(trace.Count("thread 1 (driver): ranges", "first"), 1u);
  EXPECT_EQ(trace.Count("thread 1 (driver): ranges", "library: phase"), 1u);
  EXPECT_TRUE(trace.slices.contains("gpu0/rank 0 stream 1 (compute 2)"));
  EXPECT_EQ(std::count_if(trace.instants.begin(), trace.instants.end(),
                          [](const json& mark) { return mark["name"] == "tick"; }),
            1);
}

}  // namespace
}  // namespace allranks
