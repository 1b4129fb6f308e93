// The statistics' JSON: kernels by name.
#include "server/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace allranks::server {
namespace {

using node::Us;

node::KernelRecord Kernel(const char* name, node::Time start, node::Time end, node::Time link = 0,
                          node::Time hbm = 0) {
  node::KernelRecord kernel;
  kernel.name = name;
  kernel.start = start;
  kernel.end = end;
  kernel.link_busy = link;
  kernel.hbm_busy = hbm;
  kernel.bytes_read = 10;
  kernel.bytes_written = 20;
  kernel.remote_bytes = 5;
  return kernel;
}

TEST(Report, KernelsByNameTheSlowestFirst) {
  node::Stats stats;
  stats.kernels = {Kernel("_Z4Fastv", Us(0), Us(1)),
                   Kernel("_Z4Slowv", Us(0), Us(10), Us(5), Us(1)),
                   Kernel("_Z4Slowv", Us(10), Us(40), Us(5), Us(3)),
                   Kernel("_Z4Slowv", Us(50), Us(60), Us(0), Us(1)),
                   Kernel("_Z4Slowv", Us(60), Us(62), Us(0), Us(0))};
  RunReport report;
  report.virtual_time = Us(100);
  report.stats = &stats;
  const auto all = nlohmann::json::parse(ToJson(report));
  ASSERT_EQ(all["by_kernel"].size(), 2u);
  const auto& slow = all["by_kernel"][0];
  EXPECT_EQ(slow["name"], "Slow()");
  EXPECT_EQ(slow["calls"], 4);
  EXPECT_EQ(slow["unfinished"], 0);
  EXPECT_EQ(slow["total_ns"], 52'000);
  EXPECT_EQ(slow["median_ns"], 10'000);
  EXPECT_EQ(slow["bytes_read"], 40);
  EXPECT_EQ(slow["bytes_written"], 80);
  EXPECT_EQ(slow["remote_bytes"], 20);
  EXPECT_DOUBLE_EQ(slow["link_share"].get<double>(), 0.1923) << "10 of 52 us";
  EXPECT_DOUBLE_EQ(slow["hbm_share"].get<double>(), 0.0962) << "5 of 52 us";
  EXPECT_EQ(all["by_kernel"][1]["name"], "Fast()");
  EXPECT_DOUBLE_EQ(all["kernels"][1]["link_share"].get<double>(), 0.5);
  EXPECT_DOUBLE_EQ(all["kernels"][2]["hbm_share"].get<double>(), 0.1);
}

TEST(Report, AKernelThatHasNotEndedCountsUntilNow) {
  node::Stats stats;
  stats.kernels = {Kernel("_Z4Fastv", Us(0), Us(30)), Kernel("_Z5Stuckv", Us(10), -1)};
  RunReport report;
  report.virtual_time = Us(100);
  report.stats = &stats;
  const auto all = nlohmann::json::parse(ToJson(report));
  EXPECT_EQ(all["by_kernel"][0]["name"], "Stuck()");
  EXPECT_EQ(all["by_kernel"][0]["unfinished"], 1);
  EXPECT_EQ(all["by_kernel"][0]["total_ns"], 90'000);
}

TEST(Report, RangesOfTheProgram) {
  RunReport report;
  report.ranges = {{"NCCL", "ncclAllReduce", 3, Us(7), Us(5)}};
  const auto all = nlohmann::json::parse(ToJson(report));
  ASSERT_EQ(all["ranges"].size(), 1u);
  EXPECT_EQ(all["ranges"][0]["domain"], "NCCL");
  EXPECT_EQ(all["ranges"][0]["name"], "ncclAllReduce");
  EXPECT_EQ(all["ranges"][0]["calls"], 3);
  EXPECT_EQ(all["ranges"][0]["total_ns"], 7'000);
  EXPECT_EQ(all["ranges"][0]["longest_ns"], 5'000);
}

}  // namespace
}  // namespace allranks::server
