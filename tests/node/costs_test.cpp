// What careless code costs: banks of shared memory, narrow pipes, lanes that part, atomics that
// collide. Each test compares two kernels that differ in nothing else; docs/trust.md has the table.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernel_runner.h"
#include "node/code/banks.h"
#include "node/code/op.h"

namespace allranks::node {
namespace {

std::uint32_t Passes(std::uint32_t bytes, std::uint64_t stride, bool serial = false,
                     std::uint32_t lanes = kAllLanes) {
  std::uint64_t offset[kLanes];
  for (std::uint64_t l = 0; l < kLanes; ++l) offset[l] = l * stride;
  return BankPasses(lanes, offset, bytes, serial);
}

TEST(BankPasses, NeighboursTakeOnePassPer128Bytes) {
  EXPECT_EQ(Passes(1, 1), 1u);
  EXPECT_EQ(Passes(4, 4), 1u);
  EXPECT_EQ(Passes(8, 8), 2u);
  EXPECT_EQ(Passes(16, 16), 4u);
  EXPECT_EQ(Passes(32, 32), 8u);
}

TEST(BankPasses, WordsOfOneBankTakeTurns) {
  EXPECT_EQ(Passes(4, 8), 2u);
  EXPECT_EQ(Passes(4, 64), 16u);
  EXPECT_EQ(Passes(4, 128), 32u);
  EXPECT_EQ(Passes(4, 132), 1u);  // one word of padding
}

TEST(BankPasses, OneWordIsForAllWhoAskForIt) {
  EXPECT_EQ(Passes(4, 0), 1u);
  EXPECT_EQ(Passes(2, 2), 1u);
  EXPECT_EQ(Passes(4, 0, true), 32u);  // but not for atomics
}

TEST(BankPasses, RowsOfAMatrixNeedPadding) {
  // ldmatrix: eight rows of 16 bytes at a time, 128 or 144 bytes apart.
  EXPECT_EQ(Passes(16, 128), 32u);
  EXPECT_EQ(Passes(16, 144), 4u);
}

TEST(BankPasses, OnlyLanesThatTakePartCount) {
  EXPECT_EQ(Passes(4, 128, false, 0x0000000f), 4u);
  EXPECT_EQ(Passes(16, 128, false, 0x000000ff), 8u);
}

// Picoseconds of 2 * rounds beyond those of `rounds`: neither launch nor start are in it.
Time Rounds(const std::string& body, std::uint32_t threads, int rounds = 64) {
  const auto took = [&](int n) {
    KernelRunner runner;
    const std::string loop = "mov.u32 %r60, 0;\nLOOP:\n" + body +
                             "\nadd.u32 %r60, %r60, 1;\nsetp.lt.u32 %p60, %r60, " +
                             std::to_string(n) + ";\n@%p60 bra LOOP;\n";
    runner.Run(KernelRunner::Text(".shared .align 16 .b8 s[16384];\n" + loop),
               std::vector<std::byte>(1 << 14), threads);
    EXPECT_EQ(runner.status, Status::kSuccess) << runner.message;
    return runner.took;
  };
  return took(2 * rounds) - took(rounds);
}

double Ratio(const std::string& bad, const std::string& good, std::uint32_t threads) {
  return static_cast<double>(Rounds(bad, threads)) / static_cast<double>(Rounds(good, threads));
}

std::string SharedLoad(int stride) {
  return "mov.u32 %r2, s; and.b32 %r3, %r0, 31; mad.lo.u32 %r2, %r3, " + std::to_string(stride) +
         ", %r2;\nld.shared.u32 %r4, [%r2]; ld.shared.u32 %r5, [%r2]; ld.shared.u32 %r6, [%r2];"
         "ld.shared.u32 %r7, [%r2];\nadd.u32 %r8, %r4, %r5; add.u32 %r8, %r6, %r7;";
}

TEST(Costs, BankConflictsHoldUpAllWarps) {
  EXPECT_NEAR(Ratio(SharedLoad(128), SharedLoad(4), 1024), 32, 8);
  EXPECT_NEAR(Ratio(SharedLoad(0), SharedLoad(4), 1024), 1, 0.05);
}

TEST(Costs, BankConflictsHoldUpOneWarp) {
  // 4 loads of 32 passes each: 128 cycles of 570 ps, in which nothing else has to be waited for.
  EXPECT_NEAR(static_cast<double>(Rounds(SharedLoad(128), 32)) / 64 / 570, 128, 13);
}

TEST(Costs, NarrowPipesAreShared) {
  const std::string add = "add.f32 %f1, %f1, 0f3F800000;", four = add + add + add + add;
  const auto repeat = [](const std::string& op) { return op + op + op + op; };
  EXPECT_NEAR(Ratio(repeat("ex2.approx.f32 %f1, %f1;"), four, 1024), 5, 2);
  EXPECT_NEAR(Ratio(repeat("shfl.sync.bfly.b32 %r4, %r4, 1, 31, -1;"), four, 1024), 2.7, 1);
  EXPECT_GT(Ratio(repeat("fma.rn.f64 %fd1, %fd1, %fd1, %fd1;"), four, 1024), 1.3);
}

TEST(Costs, LanesThatPartTakeTurns) {
  // Eight ways through a jump table, each with the same work, and all lanes on one way.
  std::string work;
  for (int i = 0; i < 32; ++i) work += "add.f32 %f1, %f1, 0f3F800000;\n";
  const auto ways = [&](const std::string& mask) {
    std::string text = "and.b32 %r2, %r0, " + mask + ";\n{\nT: .branchtargets ";
    for (int w = 0; w < 8; ++w) text += (w == 0 ? "W" : ", W") + std::to_string(w);
    text += ";\nbrx.idx %r2, T;\n";
    for (int w = 0; w < 8; ++w) {
      text += "W" + std::to_string(w) + ":\n" + work + "bra DONE;\n";
    }
    return text + "DONE:\n}\n";
  };
  EXPECT_NEAR(Ratio(ways("7"), ways("0"), 32), 7, 2.5);
}

TEST(Costs, AtomicsOnOneAddressTakeTurnsWhateverOthersDo) {
  const auto on = [](int addresses) {
    return "and.b32 %r2, %r0, " + std::to_string(addresses - 1) +
           "; mul.wide.u32 %rd2, %r2, 128; add.u64 %rd2, %rd0, %rd2;\n"
           "atom.global.add.u32 %r3, [%rd2], 1; add.u32 %r4, %r4, %r3;";
  };
  const double one = Ratio(on(1), on(32), 1024), two = Ratio(on(2), on(32), 1024);
  EXPECT_GT(one, 4);
  EXPECT_NEAR(two, one / 2, one / 8);
}

}  // namespace
}  // namespace allranks::node
