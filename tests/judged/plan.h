// The plan, the inputs and the expected outputs of tests/judged/candidate.cu.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tests/judged/session.h"

namespace allranks::candidate {

inline constexpr int kWorld = 2;
inline constexpr std::int64_t kCount = 1'000;
inline constexpr std::size_t kBytes = kCount * sizeof(float);
inline constexpr std::uint32_t kPoison = 0xffc0dead;

// As in candidate.cu.
struct Args {
  std::int32_t rank, world;
  std::int64_t n, mode;
  std::uint64_t in, out, scratch, scratch_peers[kWorld], box, told;
};
enum Mode {
  kGood,
  kHostNode,
  kMemset,
  kWide,
  kSilent,
  kHang,
  kFault,
  kMalloc,
  kCopyOut,
  kTalk,
  kTalkAlone,
  kTalkToNobody,
  kTalkTold,
  kTalkWell,
  kTalkPeeks,
  kHostAlone,
  kRelaxed,
  kObserve,
};
enum Tensor { kIn, kOut, kScratch, kBox, kTold };
inline constexpr std::size_t kToldBytes = 404;

inline wire::JudgePlan PlanOf(Mode mode, wire::JudgeWindow window = wire::JudgeWindow::kGraph) {
  wire::JudgePlan plan;
  plan.window = window;
  plan.world = kWorld;
  plan.rules.max_ctas = 32;
  wire::JudgeCase& one = plan.cases.emplace_back();
  Args args{};
  args.world = kWorld;
  args.n = kCount;
  args.mode = mode;
  one.args.resize(sizeof args);
  std::memcpy(one.args.data(), &args, sizeof args);
  one.tensors.resize(3);
  one.tensors[kIn].bytes = one.tensors[kOut].bytes = kBytes;
  one.tensors[kScratch].bytes = 64 + 2 * kBytes;
  one.tensors[kScratch].peers = true;
  using Field = wire::JudgeField;
  one.fields = {{Field::Pointer::kOwn, offsetof(Args, in), kIn, 0},
                {Field::Pointer::kOwn, offsetof(Args, out), kOut, 0},
                {Field::Pointer::kOwn, offsetof(Args, scratch), kScratch, 0},
                {Field::Pointer::kPeer, offsetof(Args, scratch_peers), kScratch, 0},
                {Field::Pointer::kPeer, offsetof(Args, scratch_peers) + 8, kScratch, 1}};
  if (window == wire::JudgeWindow::kHost) {
    plan.host_threads = 1;
    one.tensors.resize(5);
    one.tensors[kBox].bytes = 64;
    one.tensors[kTold].bytes = kToldBytes;
    one.tensors[kBox].host = one.tensors[kTold].host = true;
    one.tensors[kTold].device = false;
    one.fields.push_back({Field::Pointer::kOwn, offsetof(Args, box), kBox, 0});
    one.fields.push_back({Field::Pointer::kOwn, offsetof(Args, told), kTold, 0});
  }
  return plan;
}

inline float Value(std::uint32_t call, int rank, std::int64_t i) {
  return static_cast<float>(call * 100'000 + static_cast<std::uint32_t>(rank) * 5'000) +
         static_cast<float>(i);
}

// Adds a rank's call: its inputs, `count` values at `place`, and where its outputs go.
inline void AddCall(Session& session, std::uint32_t call, int rank, std::uint64_t place,
                    std::int64_t count, wire::JudgeRun* run) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = Value(call, rank, i);
    std::memcpy(session.in.data() + place + static_cast<std::uint64_t>(i) * 4, &value, 4);
  }
  const std::uint64_t bytes = static_cast<std::uint64_t>(count) * sizeof(float);
  wire::JudgeCall& one = run->by_rank.emplace_back();
  one.draw.push_back({kIn, place, bytes});
  one.poison.push_back({kOut, kPoison});
  one.keep.push_back({kOut, place, bytes});
}

// Inputs by call and rank, and where their outputs go.
inline wire::JudgeRun RunOf(Session& session, std::uint32_t calls) {
  wire::JudgeRun run;
  run.calls = calls;
  run.fuel = 10'000'000;
  for (std::uint32_t call = 0; call < calls; ++call)
    for (int r = 0; r < kWorld; ++r)
      AddCall(session, call, r, (call * kWorld + static_cast<std::uint32_t>(r)) * kBytes, kCount,
              &run);
  return run;
}

inline void ExpectSums(const Session& session, std::uint32_t calls) {
  for (std::uint32_t call = 0; call < calls; ++call) {
    for (int r = 0; r < kWorld; ++r) {
      for (std::int64_t i = 0; i < kCount; ++i) {
        float value = 0;
        const std::uint64_t place = (call * kWorld + static_cast<std::uint32_t>(r)) * kBytes;
        std::memcpy(&value, session.out.data() + place + static_cast<std::uint64_t>(i) * 4, 4);
        ASSERT_EQ(value, Value(call, 0, i) + Value(call, 1, i))
            << "call " << call << ", rank " << r << ", element " << i;
      }
    }
  }
}

inline void Prepare(Session& session, const wire::JudgePlan& plan) {
  std::int32_t status = -1;
  ASSERT_TRUE(session.Call(plan, &status).has_value());
  ASSERT_EQ(status, 0);
  session.StartRanks();
}

inline wire::JudgeRunReply Burst(Session& session, std::uint32_t calls, bool drain = false) {
  wire::JudgeRun run = RunOf(session, calls);
  run.drain = drain;
  std::int32_t status = -1;
  const auto reply = session.Call(run, &status);
  EXPECT_TRUE(reply.has_value());
  EXPECT_EQ(status, 0);
  return reply.value_or(wire::JudgeRunReply{});
}

}  // namespace allranks::candidate
