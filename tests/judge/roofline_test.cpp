// Rooflines against the charges of the node: figures by hand from a profile, and the fabric driven
// as hard as it can be, which must never be quicker than LeastNs and come near RooflineNs.
#include "judge/roofline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "judge/score.h"
#include "node/hardware/fabric.h"

namespace allranks::judge {
namespace {

using node::Mover;
using node::Packet;
using node::Time;

node::Profile Load(const char* name) {
  auto profile = node::LoadProfile(std::string(ALLRANKS_SOURCE_DIR "/profiles/") + name + ".toml");
  EXPECT_TRUE(profile) << profile.error().message;
  return *profile;
}

problem::Problem GraphProblem() {
  problem::Problem problem;
  problem.window = problem::Window::kGraph;
  problem.links = {"nvlink"};
  problem.allow = {"kernel"};
  return problem;
}

TEST(Roofline, ByHandOnH100) {
  const node::Profile profile = Load("h100x8");
  problem::Problem problem = GraphProblem();
  // graph_ns + between_ns, which a graph's first kernel is charged
  const double start = 2500 + 1500;
  EXPECT_NEAR(RooflineNs(profile, problem, 8, {}), start, 1e-6);
  // Two links of 380 ns and half of 270 cycles; whoever waits there takes the other half. The last
  // store is acknowledged.
  const double cycle = 1000.0 / static_cast<double>(profile.device.clock_mhz);
  const double read = 270 * cycle, back = 760 + read / 2, hop = back + read / 2;
  EXPECT_NEAR(RooflineNs(profile, problem, 8, {.hops = 3}), start + 3 * hop + back, 1);
  // In one direction, answers of 128 bytes with 28 beside them over 450 GB/s. Little data goes by
  // packets that are half flags; much is told of by a flag behind its acknowledgement and a fence.
  const double megabyte = 1 << 20, little = 1 << 16;
  EXPECT_NEAR(RooflineNs(profile, problem, 8, {.ingress = little, .hops = 1}),
              start + read + 2 * little * 156 / 128 / 450 + hop + back, 1);
  EXPECT_NEAR(RooflineNs(profile, problem, 8, {.ingress = megabyte, .hops = 1}),
              start + read + megabyte * 156 / 128 / 450 + back + back + 2560 * cycle + hop, 1);
  // In both, writes with 35: a read's request would share the way with the others' answers.
  EXPECT_NEAR(RooflineNs(profile, problem, 8, {.ingress = megabyte, .egress = megabyte}),
              start + read + megabyte * 163 / 128 / 450, 1);
  // The busiest rank decides, and hops hide behind a long transfer but for one.
  EXPECT_NEAR(RooflineNs(profile, problem, 8, {.ingress = 1, .busiest = megabyte, .hops = 2}),
              start + read + 2 * megabyte * 156 / 128 / 450 + hop + back, 1);
  problem.allow.push_back("memcpy");
  EXPECT_NEAR(RooflineNs(profile, problem, 8, {.ingress = megabyte}),
              start + megabyte * 284 / 256 / 450, 1);
  problem.allow = {"kernel", "multicast"};
  EXPECT_NEAR(RooflineNs(profile, problem, 8, {.ingress = megabyte}),
              start + read + megabyte * 156 / 128 / 450 / 0.92, 1);
  // A white paper's 989 TFLOP/s are at the boost clock.
  const double seconds = 1e-9 * (RooflineNs(profile, problem, 8, {.flops = 1e12}) - start);
  EXPECT_NEAR(1 / seconds, 4096.0 * 132 / 1e6 * static_cast<double>(profile.device.clock_mhz), 1);
}

TEST(Roofline, OnlyGrantedLinksToTheWorldCount) {
  const node::Profile mesh = Load("h100x4-mesh");
  const problem::Problem problem = GraphProblem();
  const FloorValues floor{.ingress = 1 << 20};
  const double start = RooflineNs(mesh, problem, 2, {.hbm = 1});
  const double two = RooflineNs(mesh, problem, 2, floor) - start;
  const double four = RooflineNs(mesh, problem, 4, floor) - start;
  EXPECT_NEAR(two / four, 3, 0.01);  // one link to the peer, or three to three
  problem::Problem pcie = GraphProblem();
  pcie.links = {"pcie"};
  EXPECT_GT(RooflineNs(mesh, pcie, 4, floor) - start, 2 * two);
}

// Everything that is sent is sent at `begin`, in pieces; when the last byte is there.
struct Drive {
  explicit Drive(const node::Profile& p)
      : profile(p), fabric(profile, profile.CyclesToTime(profile.time.bucket_cycles)) {}

  // The target's ingress by the mover's packets, from all others in turn.
  Time Push(int to, int world, std::uint64_t bytes, Mover mover, std::uint64_t piece, Time begin) {
    Time last = begin;
    for (std::uint64_t sent = 0, turn = 0; sent < bytes; sent += piece, ++turn) {
      const int from =
          (to + 1 + static_cast<int>(turn % static_cast<std::uint64_t>(world - 1))) % world;
      const node::Route& way = fabric.Way(from, to);
      const std::uint64_t size = std::min(piece, bytes - sent);
      last = std::max(last, fabric.Send(way, Packet::kWrite, size, fabric.Packets(way, mover, size),
                                        begin, mover));
    }
    return last + profile.CyclesToTime(profile.latency.l2) / 2;  // as timing.cpp charges stores
  }
  Time Pull(int to, int world, std::uint64_t bytes, Mover mover, std::uint64_t piece, Time begin) {
    Time last = begin;
    for (std::uint64_t sent = 0, turn = 0; sent < bytes; sent += piece, ++turn) {
      const int from =
          (to + 1 + static_cast<int>(turn % static_cast<std::uint64_t>(world - 1))) % world;
      const std::uint64_t size = std::min(piece, bytes - sent);
      const node::Route& way = fabric.Way(from, to);
      const std::uint32_t packets = fabric.Packets(way, mover, size);
      const Time asked =
          fabric.Send(fabric.Way(to, from), Packet::kRequest, 0, packets, begin, mover);
      last = std::max(last, fabric.Send(way, Packet::kAnswer, size, packets, asked, mover));
    }
    return last;
  }

  const node::Profile& profile;
  node::Fabric fabric;
};

TEST(Roofline, NothingTheFabricDoesIsQuicker) {
  for (const char* name : {"h100x8", "b300x8", "h100x4-mesh"}) {
    const node::Profile profile = Load(name);
    const int world = static_cast<int>(std::min<std::int64_t>(profile.DeviceCount(), 8));
    const problem::Problem problem = GraphProblem();
    problem::Problem copying = GraphProblem();
    copying.allow.push_back("memcpy");
    const auto start = static_cast<Time>(RooflineNs(profile, problem, world, {}) * 1000);
    for (const std::uint64_t bytes :
         {std::uint64_t{128}, std::uint64_t{65536}, std::uint64_t{8} << 20}) {
      const FloorValues in{.ingress = static_cast<double>(bytes), .hops = 1};
      const FloorValues both{.ingress = in.ingress, .egress = in.ingress, .hops = 1};
      const bool large = bytes > 1 << 20;
      const auto check = [&](Time end, const problem::Problem& p, const FloorValues& floor,
                             double near, const char* what) {
        const double ns = static_cast<double>(end) / 1000.0;
        EXPECT_GE(ns, LeastNs(profile, p, world, floor, 1)) << name << " " << what << " " << bytes;
        if (!large) return;
        EXPECT_GE(RooflineNs(profile, p, world, floor) / ns, near) << name << " " << what;
      };
      check(Drive(profile).Pull(0, world, bytes, Mover::kTma, 2048, start), problem, in, 0.95,
            "pull");
      check(Drive(profile).Push(0, world, bytes, Mover::kTma, 2048, start), problem, in, 0.93,
            "push");
      check(Drive(profile).Push(0, world, bytes, Mover::kSm, 512, start), problem, in, 0.75,
            "stores");
      check(Drive(profile).Pull(0, world, bytes, Mover::kCopyEngine, 65536, start), copying, in,
            0.94, "copy");
      // All ranks push to all others.
      Drive all(profile);
      Time end = 0;
      for (std::uint64_t sent = 0; sent < bytes; sent += 4096) {
        for (int to = 0; to < world; ++to) {
          end = std::max(end, all.Push(to, world, std::min<std::uint64_t>(4096, bytes - sent),
                                       Mover::kTma, 512, start));
        }
      }
      check(end, problem, both, 0.9, "all push");
      // Reading both ways is worse than writing both ways.
      Drive reading(profile);
      end = 0;
      for (std::uint64_t sent = 0; sent < bytes; sent += 4096) {
        for (int to = 0; to < world; ++to) {
          end = std::max(end, reading.Pull(to, world, std::min<std::uint64_t>(4096, bytes - sent),
                                           Mover::kTma, 512, start));
        }
      }
      check(end, problem, both, 0.8, "all pull");
    }
  }
}

TEST(Roofline, BurstsMayHideStartsOrTransfersButNotBoth) {
  const node::Profile profile = Load("h100x8");
  const problem::Problem problem = GraphProblem();
  for (const double bytes : {0.0, 4096.0, 1e5, 1e6, 1e8}) {
    const FloorValues floor{.ingress = bytes, .egress = bytes, .hbm = bytes, .hops = 2};
    const double roofline = RooflineNs(profile, problem, 8, floor);
    const double alone = LeastNs(profile, problem, 8, floor, 1);
    const double burst = LeastNs(profile, problem, 8, floor, 6);
    EXPECT_LE(alone, roofline);
    EXPECT_LE(burst, alone);
    EXPECT_GE(burst, 4000);
    EXPECT_GE(burst, bytes * 163 / 128 / 450 - 100);
  }
}

CaseResult Timed(const char* name, double roofline, double call, double reference) {
  CaseResult one;
  one.what.name = name;
  one.ran = true;
  one.roofline_ns = roofline;
  one.call_ns = call;
  one.reference_ns = reference;
  return one;
}

TEST(Score, IsTheGeometricMeanOfFractions) {
  std::vector<CaseResult> cases = {Timed("a", 100, 200, 100), Timed("b", 100, 800, 3200)};
  EXPECT_DOUBLE_EQ(Score({}, cases), 0.25);
  EXPECT_DOUBLE_EQ(SpeedupOverReference(cases).value(), std::sqrt(0.5 * 4));
  EXPECT_FALSE(SpeedupOverBaseline(cases));
  cases.push_back(Timed("c", 300, 200, 0));  // quicker than the roofline: no more than all of it
  EXPECT_DOUBLE_EQ(Score({}, cases), std::cbrt(1.0 / 16));
  cases[2].what.kind = problem::Case::Kind::kVisible;  // is not timed
  EXPECT_DOUBLE_EQ(Score({}, cases), 0.25);
  cases[1].verdict = Verdict::kWrongResult;
  EXPECT_EQ(Score({}, cases), 0);
  EXPECT_EQ(Score({}, {}), 0);
}

// One small case counts as much as two large ones.
TEST(Score, WeighsClassesOfSizesAlike) {
  const auto parsed = problem::Parse(R"(
schema = 1
title = "A problem for tests"
category = "collective"
level = "easy"
library = "cuda"
family = "test"
[run]
window = "graph"
links = ["nvlink"]
allow = ["kernel"]
[tensors]
in = { dir = "in", type = "u8", shape = ["n"], draw = "bits" }
out = { dir = "out", type = "u8", shape = ["2*n"] }
[cases]
timed = { world = 2, n = 1 }
[floor]
ingress = "n"
)",
                                     "collective/test");
  ASSERT_TRUE(parsed) << parsed.error().message;
  const problem::Problem& problem = *parsed;
  const auto timed = [](std::int64_t n, double call) {
    CaseResult one = Timed("", 100, call, 0);
    one.what.params = {n};
    return one;
  };
  const auto size = [&](std::int64_t n) { return SizeClassOf(problem, timed(n, 1).what); };
  EXPECT_EQ(size((32 << 10) - 1), SizeClass::kSmall);
  EXPECT_EQ(size(32 << 10), SizeClass::kMedium);
  EXPECT_EQ(size((2 << 20) - 1), SizeClass::kMedium);
  EXPECT_EQ(size(2 << 20), SizeClass::kLarge);
  EXPECT_DOUBLE_EQ(
      Score(problem, std::vector{timed(1, 400), timed(4 << 20, 100), timed(8 << 20, 100)}), 0.5);
}

TEST(Score, ComparesCasesThatBothRan) {
  Judgement a, b;
  a.cases = {Timed("a", 1, 200, 0), Timed("b", 1, 300, 0), Timed("c", 1, 100, 0)};
  b.cases = {Timed("c", 1, 400, 0), Timed("a", 1, 50, 0), Timed("b", 1, 100, 0)};
  b.cases[2].ran = false;
  const Comparison comparison = Compare(a, b);
  ASSERT_EQ(comparison.rows.size(), 2u);
  EXPECT_EQ(comparison.rows[0].name, "a");
  EXPECT_DOUBLE_EQ(comparison.rows[0].speedup, 4);
  EXPECT_DOUBLE_EQ(comparison.rows[1].speedup, 0.25);
  EXPECT_DOUBLE_EQ(comparison.speedup.value(), 1);
}

}  // namespace
}  // namespace allranks::judge
