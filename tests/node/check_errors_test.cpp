// Errors of synchronisation that the checker reports, each beside a program that does the same
// without the error: barriers, mbarriers, masks, spins. Expectations are of the PTX ISA and the
// CUDA programming guide; what counts is listed in node/check/errors.h. Errors of memory:
// check_errors_memory_test.cpp.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "check_errors.h"

namespace allranks::node {
namespace {

using Kind = Finding::Kind;

// --- barriers ------------------------------------------------------------------------------------

TEST_F(CheckErrorsTest, BarrierInBothWaysOfABranch) {
  const auto body = [](const std::string& condition) {
    return condition + "@%p1 bra ODD;\nbar.sync 0;\nbra DONE;\nODD:\nbar.sync 0;\nDONE:\n";
  };
  // Lanes of one warp take different ways.
  ExpectOne(Check(body("and.b32 %r1, %t, 1;\nsetp.eq.u32 %p1, %r1, 1;\n"), Block(64)),
            Kind::kBarrier, 2, "at different places");
  // Whole warps do: bar counts warps wherever they come from.
  EXPECT_SILENT(Check(body("setp.ge.u32 %p1, %t, 32;\n"), Block(64)));
  // barrier.sync without .aligned may be executed so.
  EXPECT_SILENT(
      Check("and.b32 %r1, %t, 1;\nsetp.eq.u32 %p1, %r1, 1;\n@%p1 bra ODD;\nbarrier.sync 0;\n"
            "bra DONE;\nODD:\nbarrier.sync 0;\nDONE:\n",
            Block(64)));
}

TEST_F(CheckErrorsTest, ThreadsThatHaveReturnedAreNotWaitedFor) {
  EXPECT_SILENT(Check("setp.ge.u32 %p1, %t, 40;\n@%p1 ret;\nbar.sync 0;\n", Block(64)));
}

TEST_F(CheckErrorsTest, CountsOfABarrier) {
  EXPECT_SILENT(Check("bar.sync 1, 64;\n", Block(64)));
  const auto odd = Check("bar.sync 1, 48;\n", Block(64));
  ASSERT_FALSE(odd.empty());
  EXPECT_EQ(odd[0].kind, Kind::kBarrier);
  EXPECT_NE(odd[0].text.find("not a multiple"), std::string::npos) << Show(odd);
  const std::string differ =
      "setp.lt.u32 %p1, %t, 32;\nmov.u32 %r1, 96;\n@%p1 mov.u32 %r1, 64;\n"
      "setp.ge.u32 %p2, %t, 64;\n@%p2 ret;\nbar.sync 1, %r1;\n";
  const auto findings = Check(differ, Block(96));
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].kind, Kind::kBarrier);
  EXPECT_NE(findings[0].text.find("by one participant"), std::string::npos) << Show(findings);
}

TEST_F(CheckErrorsTest, WarpsThatWaitAtDifferentBarriers) {
  const std::string body =
      "setp.lt.u32 %p1, %t, 32;\n@%p1 bra FIRST;\nbar.sync 2, 64;\nbra DONE;\n"
      "FIRST:\nbar.sync 1, 64;\nDONE:\n";
  const auto findings = Check(body, Block(64));
  EXPECT_FALSE(finished_);
  ASSERT_EQ(findings.size(), 2u) << Show(findings);
  for (const Finding& finding : findings) {
    EXPECT_EQ(finding.kind, Kind::kBarrier);
    EXPECT_EQ(finding.accesses.size(), 2u);
    EXPECT_NE(finding.text.find("all other threads of the block wait elsewhere"),
              std::string::npos);
  }
}

TEST_F(CheckErrorsTest, BarrierThatCountsThreadsWhichHaveLeft) {
  const auto findings = Check("setp.ge.u32 %p1, %t, 32;\n@%p1 ret;\nbar.sync 1, 64;\n", Block(64));
  EXPECT_FALSE(finished_);
  ExpectOne(findings, Kind::kBarrier, 1, "no other thread of the block is left");
}

TEST_F(CheckErrorsTest, WarpThatArrivesTwice) {
  const std::string produce = "setp.ge.u32 %p1, %t, 32;\n@%p1 bra WAIT;\nbar.arrive 1, 64;\n";
  const std::string consume = "bra DONE;\nWAIT:\nnanosleep.u32 5000;\nbar.sync 1, 64;\n";
  EXPECT_SILENT(Check(produce + consume + "DONE:\n", Block(64)));
  const auto findings = Check(produce + "bar.arrive 1, 64;\n" + consume + "DONE:\n", Block(64));
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].kind, Kind::kBarrier);
  EXPECT_NE(findings[0].text.find("a second time"), std::string::npos) << Show(findings);
}

// --- mbarriers -----------------------------------------------------------------------------------

const std::string kMbarrier =
    ".shared .align 8 .b64 m;\nmov.u32 %r1, m;\n"
    "setp.ne.u32 %p1, %t, 0;\n"
    "@!%p1 mbarrier.init.shared.b64 [%r1], COUNT;\nbar.sync 0;\n";

std::string WithCount(const std::string& count) {
  std::string text = kMbarrier;
  return text.replace(text.find("COUNT"), 5, count);
}

TEST_F(CheckErrorsTest, MbarrierArrivals) {
  const std::string wait =
      "WAIT:\nmbarrier.try_wait.parity.shared.b64 %p2, [%r1], 0;\n"
      "@!%p2 bra WAIT;\n";
  const std::string arrive = "mbarrier.arrive.shared.b64 _, [%r1];\n";
  EXPECT_SILENT(Check(WithCount("32") + arrive + wait));
  // One arrival too few: the phase never ends.
  const auto few = Check(WithCount("33") + arrive + wait);
  EXPECT_FALSE(finished_);
  ExpectOne(few, Kind::kMbarrier, 1, "waits for 1 more arrivals");
}

TEST_F(CheckErrorsTest, MbarrierFaults) {
  const std::string count = "mov.u32 %r2, 2;\nmbarrier.arrive.shared.b64 _, [%r1], %r2;\n";
  ExpectOne(Check(WithCount("33") + count), Kind::kMbarrier, 1, "arrives 2 times");
}

TEST_F(CheckErrorsTest, MbarrierBeforeItsInit) {
  ExpectOne(
      Check(".shared .align 8 .b64 m;\nmov.u32 %r1, m;\nmbarrier.arrive.shared.b64 _, [%r1];\n"),
      Kind::kMbarrier, 1, "not initialised");
}

TEST_F(CheckErrorsTest, WaitThatMissesItsPhase) {
  // Warp 1 polls for the first phase, slowly; warp 0 goes through two phases meanwhile, or waits
  // for warp 1 in between.
  const auto body = [](const std::string& between) {
    return WithCount("1") +
           "setp.ge.u32 %p3, %t, 32;\n@%p3 bra POLL;\n@%p1 bra DONE;\nnanosleep.u32 3000;\n"
           "mbarrier.arrive.shared.b64 _, [%r1];\n" +
           between +
           "mbarrier.arrive.shared.b64 _, [%r1];\nbra DONE;\n"
           "POLL:\nsetp.ne.u32 %p4, %t, 32;\n@%p4 bra DONE;\n"
           "TRY:\nmbarrier.test_wait.parity.shared.b64 %p2, [%r1], 0;\n@%p2 bra SEEN;\n"
           "nanosleep.u32 2000;\nbra TRY;\nSEEN:\nred.global.add.u32 [%out], 1;\nDONE:\n";
  };
  const std::string wait =
      "SPIN:\nld.relaxed.gpu.global.u32 %r5, [%out];\nsetp.eq.u32 %p5, %r5, 0;\n"
      "@%p5 bra SPIN;\n";
  EXPECT_SILENT(Check(body(wait), Block(64)));
  const auto findings = Check(body(""), Block(64));
  EXPECT_FALSE(finished_);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].kind, Kind::kMbarrier);
  EXPECT_NE(findings[0].text.find("two phases later"), std::string::npos) << Show(findings);
}

// --- masks ---------------------------------------------------------------------------------------

TEST_F(CheckErrorsTest, MaskThatLeavesOutItsLane) {
  EXPECT_SILENT(Check("bar.warp.sync 0xffffffff;\n"));
  const auto findings = Check("bar.warp.sync 0x7fffffff;\n");
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].kind, Kind::kWarpMask);
  EXPECT_NE(findings[0].text.find("does not include it"), std::string::npos) << Show(findings);
}

TEST_F(CheckErrorsTest, MasksThatDiffer) {
  const auto body = [](const std::string& low, const std::string& high) {
    return "setp.lt.u32 %p1, %t, 16;\nmov.u32 %r1, " + high + ";\n@%p1 mov.u32 %r1, " + low +
           ";\nbar.warp.sync %r1;\n";
  };
  // Halves of a warp by themselves; then each names lanes of the other.
  EXPECT_SILENT(Check(body("0x0000ffff", "0xffff0000")));
  ExpectOne(Check(body("0x0001ffff", "0xffff8000")), Kind::kWarpMask, 2, "wait with the mask");
}

TEST_F(CheckErrorsTest, DifferentOperationsOfOneMask) {
  const std::string begin = "and.b32 %r1, %t, 1;\nsetp.eq.u32 %p1, %r1, 1;\n@%p1 bra ODD;\n";
  EXPECT_SILENT(Check(begin + "bar.warp.sync -1;\nbra DONE;\nODD:\nbar.warp.sync -1;\nDONE:\n"));
  ExpectOne(Check(begin + "bar.warp.sync -1;\nbra DONE;\n"
                          "ODD:\nshfl.sync.idx.b32 %r2, %r1, 0, 31, -1;\nDONE:\n"),
            Kind::kWarpMask, 2, "different operations");
}

TEST_F(CheckErrorsTest, LanesThatHaveReturnedMayBeNamed) {
  EXPECT_SILENT(Check("setp.ge.u32 %p1, %t, 16;\n@%p1 ret;\nbar.warp.sync -1;\n"));
}

// --- spins ---------------------------------------------------------------------------------------

TEST_F(CheckErrorsTest, LoopThatWaitsByWeakLoads) {
  const auto body = [](const std::string& load) {
    return "setp.ge.u32 %p1, %t, 32;\n@%p1 bra WRITE;\n"
           "SPIN:\n" +
           load +
           " %r1, [%out];\nsetp.eq.u32 %p2, %r1, 0;\n@%p2 bra SPIN;\nbra DONE;\n"
           "WRITE:\nnanosleep.u32 20000;\nst.relaxed.gpu.global.u32 [%out], 1;\nDONE:\n";
  };
  EXPECT_SILENT(Check(body("ld.relaxed.gpu.global.u32"), Block(64)));
  EXPECT_SILENT(Check(body("ld.volatile.global.u32"), Block(64)));
  // The weak load may be a race as well.
  const auto findings = Check(body("ld.global.u32"), Block(64));
  ASSERT_FALSE(findings.empty());
  bool weak = false;
  for (const Finding& finding : findings) weak |= finding.kind == Kind::kWeakSpin;
  EXPECT_TRUE(weak) << Show(findings);
}

TEST_F(CheckErrorsTest, LoopThatHasLostItsLoad) {
  ExpectOne(Check("ld.global.u32 %r1, [%in];\nsetp.eq.u32 %p1, %r1, 7;\nSELF:\n@%p1 bra SELF;\n"),
            Kind::kWeakSpin, 1, "never ends");
  EXPECT_FALSE(finished_);
}

TEST_F(CheckErrorsTest, LoopThatWaitsForTime) {
  EXPECT_SILENT(
      Check("mov.u64 %rd5, %globaltimer;\nadd.u64 %rd5, %rd5, 50000;\n"
            "SPIN:\nmov.u64 %rd6, %globaltimer;\nsetp.lt.u64 %p1, %rd6, %rd5;\n"
            "@%p1 bra SPIN;\n"));
}

}  // namespace
}  // namespace allranks::node
