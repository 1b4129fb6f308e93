// What a trace makes of what it is told: tracks without overlaps, waits folded, links in bins,
// everything within bounds.
#include "server/trace.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "node/hardware/profile.h"
#include "tests/trace_checks.h"

namespace allranks::server {
namespace {

using node::Ns;
using node::OperationEvent;
using node::Us;

class TraceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto profile = node::LoadProfile(ALLRANKS_SOURCE_DIR "/profiles/h100x8.toml");
    ASSERT_TRUE(profile) << profile.error().message;
    profile_ = *profile;
    trace_.Attach(profile_);
  }
  OperationEvent Kernel(node::OpId op, node::Time at, node::StreamId stream = 1) const {
    OperationEvent event;
    event.op = op;
    event.process = 1;
    event.stream = stream;
    event.time = at;
    event.name = "_Z4Workv";
    return event;
  }
  node::WaitEvent At(node::OpId op, node::Time time) const {
    node::WaitEvent event;
    event.op = op;
    event.place = 7;
    event.time = time;
    event.file = &file_;
    event.line = 12;
    event.what = &what_;
    event.object = &object_;
    return event;
  }
  CheckedTrace Written(Trace& trace, node::Time end) {
    trace.Finish(end);
    std::string text;
    trace.Write({{1, 5}}, [&](std::string_view piece) { text += piece; });
    return CheckTrace(text);
  }
  CheckedTrace Written(node::Time end) { return Written(trace_, end); }

  node::Profile profile_;
  Trace trace_;
  std::string file_ = "a \"quoted\" path\n.cu", what_ = "ld.acquire.sys.u32", object_ = "flag";
};

TEST_F(TraceTest, NothingIsATraceToo) { EXPECT_TRUE(Written(0).slices.empty()); }

TEST_F(TraceTest, AKernelHasItsNameItsStreamAndItsFigures) {
  OperationEvent event = Kernel(1, Us(2));
  event.grid = {4, 2, 1};
  event.block = {32, 1, 1};
  trace_.OnBegin(event);
  node::KernelRecord record;
  record.bytes_read = 77;
  trace_.OnEnd(1, Us(5), &record);
  const CheckedTrace trace = Written(Us(9));
  ASSERT_EQ(trace.slices.size(), 1u);
  ASSERT_TRUE(trace.slices.contains("gpu0/rank 5 stream 1"));
  const auto& slice = trace.slices.at("gpu0/rank 5 stream 1").at(0);
  EXPECT_EQ(slice["name"], "Work()");
  EXPECT_EQ(slice["ts"], 2.0);
  EXPECT_EQ(slice["dur"], 3.0);
  EXPECT_EQ(slice["args"]["grid"], "4x2x1");
  EXPECT_EQ(slice["args"]["bytes_read"], 77);
}

TEST_F(TraceTest, WhatOverlapsGetsALaneOfItsOwn) {
  trace_.OnBegin(Kernel(1, Us(0)));
  trace_.OnBegin(Kernel(2, Us(2)));
  trace_.OnEnd(1, Us(3), nullptr);
  trace_.OnBegin(Kernel(3, Us(3)));
  trace_.OnEnd(2, Us(4), nullptr);
  trace_.OnEnd(3, Us(5), nullptr);
  const CheckedTrace trace = Written(Us(9));
  EXPECT_EQ(trace.slices.at("gpu0/rank 5 stream 1").size(), 2u);
  EXPECT_EQ(trace.slices.at("gpu0/rank 5 stream 1 (2)").size(), 1u);
}

TEST_F(TraceTest, CopiesAreOnTheirEngineAndRecordsAreInstants) {
  OperationEvent copy = Kernel(1, Us(1));
  copy.kind = OperationEvent::Kind::kCopy;
  copy.from = 0;
  copy.to = 3;
  copy.bytes = 4096;
  copy.engine = 2;
  trace_.OnBegin(copy);
  trace_.OnEnd(1, Us(2), nullptr);
  OperationEvent record = Kernel(2, Us(2));
  record.kind = OperationEvent::Kind::kRecord;
  record.legacy = true;
  record.stream = 9;
  trace_.OnBegin(record);
  trace_.OnEnd(2, Us(2), nullptr);
  const CheckedTrace trace = Written(Us(9));
  const auto& slice = trace.slices.at("gpu0/copy engine 2").at(0);
  EXPECT_EQ(slice["name"], "copy gpu0 > gpu3");
  EXPECT_EQ(slice["args"]["bytes"], 4096);
  ASSERT_EQ(trace.instants.size(), 1u);
  EXPECT_EQ(trace.instants[0]["name"], "event record");
}

TEST_F(TraceTest, WaitsOfOneLoopAreOneWhileAnybodyWaits) {
  trace_.OnBegin(Kernel(1, Us(0)));
  for (int warp = 0; warp < 4; ++warp) trace_.OnPark(At(1, Us(1) + Ns(warp)));
  for (int warp = 0; warp < 4; ++warp) trace_.OnWake(At(1, Us(4) + Ns(warp)));
  trace_.OnPark(At(1, Us(4) + Ns(100)));  // next to nothing after the last
  trace_.OnWake(At(1, Us(6)));
  trace_.OnPark(At(1, Us(8)));  // another wait
  trace_.OnWake(At(1, Us(9)));
  trace_.OnEnd(1, Us(10), nullptr);
  const CheckedTrace trace = Written(Us(20));
  const auto& waits = trace.slices.at("gpu0/rank 5 stream 1: waits");
  ASSERT_EQ(waits.size(), 2u);
  EXPECT_EQ(waits[0]["ts"], 1.0);
  EXPECT_EQ(waits[0]["dur"], 5.0);
  EXPECT_EQ(waits[0]["args"]["warps"], 4);
  EXPECT_EQ(waits[0]["args"]["in"], "ld.acquire.sys.u32");
  EXPECT_EQ(waits[0]["args"]["for"], "flag + 0x0");
  EXPECT_EQ(waits[1]["ts"], 8.0);
}

TEST_F(TraceTest, WhatHasNotEndedEndsWithTheRun) {
  trace_.OnBegin(Kernel(1, Us(1)));
  trace_.OnPark(At(1, Us(2)));
  const CheckedTrace trace = Written(Us(7));
  EXPECT_EQ(trace.slices.at("gpu0/rank 5 stream 1").at(0)["dur"], 6.0);
  EXPECT_EQ(trace.slices.at("gpu0/rank 5 stream 1").at(0)["args"]["ended"], false);
  EXPECT_EQ(trace.slices.at("gpu0/rank 5 stream 1: waits").at(0)["dur"], 5.0);
  trace_.OnWake(At(1, Us(8)));  // the machine's end tells more, which nobody hears
  trace_.OnEnd(1, Us(8), nullptr);
}

TEST_F(TraceTest, CallsOfHostThreads) {
  trace_.OnCall({3, 1}, "cudaMalloc", R"("bytes":64)", Us(1), Us(2));
  trace_.OnCall({3, 1}, "cuInit", "", Us(2), Us(2));  // takes no time: nothing to see
  const CheckedTrace trace = Written(Us(7));
  ASSERT_EQ(trace.slices.at("rank 3/thread 1").size(), 1u);
  EXPECT_EQ(trace.slices.at("rank 3/thread 1")[0]["name"], "cudaMalloc");
  EXPECT_EQ(trace.slices.at("rank 3/thread 1")[0]["args"]["bytes"], 64);
}

TEST_F(TraceTest, PushedRangesContainCallsAndEachOther) {
  trace_.OnCall({3, 1}, "cudaMalloc", "", Us(1), Us(2));
  trace_.OnRange({3, 1}, "", "inner", true, Us(1), Us(2));  // around this call alone
  trace_.OnRange({3, 1}, "", "middle", true, Us(1), Us(2));
  trace_.OnCall({3, 1}, "cudaFree", "", Us(3), Us(4));
  trace_.OnRange({3, 1}, "mine", "outer", true, Us(0), Us(5));
  trace_.OnRange({3, 1}, "", "started", false, Us(1), Us(9));  // ends after what is around it
  trace_.OnMark({3, 1}, "", "here", Us(2));
  const CheckedTrace trace = Written(Us(9));
  std::vector<std::string> names;
  for (const auto& event : trace.all["traceEvents"])
    if (event["ph"] == "X" && event["name"] != "started") names.push_back(event["name"]);
  EXPECT_EQ(names,
            (std::vector<std::string>{"mine: outer", "middle", "inner", "cudaMalloc", "cudaFree"}))
      << "what contains others comes first, and all are on one track";
  EXPECT_EQ(trace.slices.at("rank 3/thread 1").size(), 5u);
  EXPECT_EQ(trace.slices.at("rank 3/thread 1: ranges").size(), 1u);
  ASSERT_EQ(trace.instants.size(), 1u);
  EXPECT_EQ(trace.instants[0]["name"], "here");
}

TEST_F(TraceTest, TracksHaveTheNamesThatTheProgramGives) {
  trace_.OnBegin(Kernel(1, Us(0)));
  trace_.OnEnd(1, Us(3), nullptr);
  trace_.OnCall({3, 1}, "cudaMalloc", "", Us(1), Us(2));
  trace_.NameThread({3, 1}, "feeder");
  trace_.NameStream(1, 1, "compute");
  const CheckedTrace trace = Written(Us(9));
  EXPECT_TRUE(trace.slices.contains("rank 3/thread 1 (feeder)"));
  EXPECT_TRUE(trace.slices.contains("gpu0/rank 5 stream 1 (compute)"));
}

TEST_F(TraceTest, AnArrowLeadsFromACallToWhatItStarts) {
  trace_.EnterCall({3, 1});
  trace_.OnQueued(1);
  trace_.OnQueued(2);
  trace_.OnCall({3, 1}, "cudaGraphLaunch", "", Us(1), Us(2));
  trace_.LeaveCall();
  trace_.OnQueued(3);  // by nobody's call
  for (node::OpId op = 1; op <= 3; ++op) {
    trace_.OnBegin(Kernel(op, Us(3 * static_cast<std::int64_t>(op))));
    trace_.OnEnd(op, Us(3 * static_cast<std::int64_t>(op) + 2), nullptr);
  }
  const CheckedTrace trace = Written(Us(20));
  ASSERT_EQ(trace.flows.size(), 2u);
  for (const auto& flow : trace.flows) {
    EXPECT_EQ(flow.name, "launch");
    EXPECT_EQ(flow.from_track, "rank 3/thread 1");
    EXPECT_EQ(flow.from["name"], "cudaGraphLaunch");
    EXPECT_EQ(flow.from["args"]["starts"], "Work() and 1 more");
    EXPECT_EQ(flow.to_track, "gpu0/rank 5 stream 1");
    EXPECT_EQ(flow.end["ts"], flow.to["ts"]);
  }
  EXPECT_EQ(trace.flows[0].to["ts"], 3.0);
  EXPECT_EQ(trace.flows[1].to["ts"], 6.0);
}

TEST_F(TraceTest, AnArrowLeadsFromAWriteToTheWaitThatItEnds) {
  const std::string source = "producer.cu";
  trace_.OnBegin(Kernel(1, Us(0)));
  trace_.OnBegin(Kernel(2, Us(0), 2));
  for (int warp = 0; warp < 2; ++warp) trace_.OnPark(At(2, Us(1)));
  for (int warp = 0; warp < 2; ++warp) {
    node::WaitEvent wake = At(2, Us(5) + Ns(warp));
    wake.by = 1;
    wake.written = Us(4);
    wake.by_file = &source;
    wake.by_line = 9;
    trace_.OnWake(wake);
  }
  trace_.OnPark(At(2, Us(6)));
  trace_.OnWake(At(2, Us(7)));  // nobody knows by what
  trace_.OnEnd(1, Us(8), nullptr);
  trace_.OnEnd(2, Us(8), nullptr);
  const CheckedTrace trace = Written(Us(9));
  ASSERT_EQ(trace.flows.size(), 1u);
  const auto& flow = trace.flows[0];
  EXPECT_EQ(flow.name, "write");
  EXPECT_EQ(flow.from_track, "gpu0/rank 5 stream 1");
  EXPECT_EQ(flow.start["ts"], 4.0);
  EXPECT_EQ(flow.to_track, "gpu0/rank 5 stream 2: waits");
  EXPECT_EQ(flow.to["ts"], 1.0);
  EXPECT_EQ(flow.to["args"]["ended_by"], "producer.cu:9");
}

TEST_F(TraceTest, LinksAreCountersInGigabytesPerSecond) {
  trace_.OnPort(0, Us(10), Us(20), 1'000'000);  // 100 GB/s for ten microseconds
  const CheckedTrace trace = Written(Us(30));
  ASSERT_EQ(trace.counters.size(), 1u);
  const auto& values = trace.counters.at("gpu0 > nvswitch GB/s");
  double most = 0, bytes = 0;
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    most = std::max(most, values[i].second);
    bytes += values[i].second * (values[i + 1].first - values[i].first) * 1e3;
  }
  EXPECT_NEAR(most, 100, 0.1);
  EXPECT_NEAR(bytes, 1e6, 1e6 * 0.01) << "the area under the curve is what was carried";
}

TEST_F(TraceTest, FaultsAreShownIfTheyCame) {
  trace_.Plan("link:gpu0-nvswitch=dead@3us", Us(3));
  trace_.Plan("link:gpu1-nvswitch=dead@9us", Us(9));
  const CheckedTrace trace = Written(Us(7));
  ASSERT_EQ(trace.instants.size(), 1u);
  EXPECT_EQ(trace.instants[0]["name"], "fault link:gpu0-nvswitch=dead@3us");
  EXPECT_EQ(trace.instants[0]["ts"], 3.0);
}

TEST_F(TraceTest, NoMoreThanTheLimitIsKept) {
  Trace small(3);
  small.Attach(profile_);
  for (node::OpId op = 1; op <= 5; ++op) {
    small.OnBegin(Kernel(op, Us(static_cast<std::int64_t>(op))));
    small.OnEnd(op, Us(static_cast<std::int64_t>(op)) + Ns(10), nullptr);
  }
  const CheckedTrace trace = Written(small, Us(9));
  EXPECT_EQ(trace.slices.at("gpu0/rank 5 stream 1").size(), 3u);
  EXPECT_EQ(small.dropped(), 2u);
  EXPECT_EQ(trace.all["otherData"]["slices_left_out"], 2);
}

TEST(Bins, NothingIsLostWhenTheyWiden) {
  Bins bins;
  std::uint64_t total = 0;
  for (int i = 0; i < 5000; ++i) {
    bins.Add(Us(7 * i), Us(7 * i + 5), 1000 + static_cast<std::uint64_t>(i));
    total += 1000 + static_cast<std::uint64_t>(i);
  }
  EXPECT_LE(bins.bytes().size(), Bins::kMost);
  EXPECT_EQ(std::accumulate(bins.bytes().begin(), bins.bytes().end(), std::uint64_t{0}), total);
  EXPECT_GE(static_cast<node::Time>(bins.bytes().size()) * bins.width(), Us(7 * 4999 + 5));
}

}  // namespace
}  // namespace allranks::server
