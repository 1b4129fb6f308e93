// mbarrier.* and cp.async as the PTX ISA describes them, on kernels of a few lines.
#include "node/exec/mbarrier.h"

#include <gtest/gtest.h>

#include <numeric>

#include "ptx_machine.h"

namespace allranks::node {
namespace {

using ::testing::Test;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

class MbarrierTest : public PtxMachineTest {
 protected:
  // Threads may use the mbarrier behind it.
  static std::string Init(int count) {
    return R"(
      .shared .align 8 .b64 bar;
      mov.u32 %r0, bar;
      setp.eq.u32 %p0, %t, 0;
      @%p0 mbarrier.init.shared.b64 [bar], )" +
           std::to_string(count) + ";\n      bar.sync 0;\n";
  }
};

TEST(MbarrierLayout, KeepsItsFields) {
  Mbarrier m;
  m.pending = 0xabcde;
  m.expected = 0xfffff;
  m.phase = 1;
  for (const std::int64_t tx : {std::int64_t{0}, kMbarrierMaxTx, -kMbarrierMaxTx}) {
    m.tx = tx;
    const Mbarrier back = Mbarrier::Unpack(m.Pack());
    EXPECT_EQ(back.pending, m.pending);
    EXPECT_EQ(back.expected, m.expected);
    EXPECT_EQ(back.tx, tx);
    EXPECT_EQ(back.phase, 1u);
  }
}

// Every thread of 64 arrives and waits for the phase that its own arrival belongs to.
TEST_F(MbarrierTest, ArriveReturnsAStateToWaitFor) {
  Options options;
  options.block = {64, 1, 1};
  const auto out = Run<U32>(Init(64) + R"(
      .shared .align 4 .b32 sum;
      @%p0 st.shared.u32 [sum], 0;
      bar.sync 0;
      atom.shared.add.u32 %r1, [sum], %t;
      mbarrier.arrive.shared.b64 %rd1, [%r0];
    WAIT:
      mbarrier.test_wait.shared.b64 %p1, [%r0], %rd1;
      @!%p1 bra WAIT;
      ld.shared.u32 %r2, [sum];
      mul.wide.u32 %rd2, %t, 4;
      add.u64 %rd3, %out, %rd2;
      st.global.u32 [%rd3], %r2;
  )",
                            64, std::vector<U32>{}, options);
  ASSERT_EQ(fault_, "");
  ASSERT_TRUE(finished_);
  EXPECT_EQ(out, std::vector<U32>(64, 64 * 63 / 2));
}

// PTX ISA: a fresh mbarrier is in phase 0, so the phase of parity 1 counts as completed.
TEST_F(MbarrierTest, ParityOfPhases) {
  const auto out = Run<U32>(Init(1) + R"(
      @!%p0 bra END;
      mbarrier.test_wait.parity.shared.b64 %p1, [bar], 0;
      selp.u32 %r1, 1, 0, %p1;
      mbarrier.test_wait.parity.shared.b64 %p1, [bar], 1;
      selp.u32 %r2, 1, 0, %p1;
      mbarrier.arrive.shared.b64 _, [bar];
      mbarrier.test_wait.parity.shared.b64 %p1, [bar], 0;
      selp.u32 %r3, 1, 0, %p1;
      mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 1, 10;
      selp.u32 %r4, 1, 0, %p1;
      st.global.v4.u32 [%out], {%r1, %r2, %r3, %r4};
    END:
  )",
                            4);
  ASSERT_EQ(fault_, "");
  EXPECT_EQ(out, (std::vector<U32>{0, 1, 1, 0}));
}

TEST_F(MbarrierTest, PendingCountDropAndTransactions) {
  const auto out = Run<U32>(Init(5) + R"(
      @!%p0 bra END;
      mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %rd1, [bar], 2;
      mbarrier.pending_count.b64 %r1, %rd1;
      mbarrier.arrive_drop.shared.b64 %rd2, [bar], 1;
      mbarrier.pending_count.b64 %r2, %rd2;
      mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %rd3, [bar], 64;
      mbarrier.pending_count.b64 %r3, %rd3;
      mbarrier.arrive.shared.b64 _, [bar];
      mbarrier.test_wait.shared.b64 %p1, [bar], %rd3;   // bytes are missing
      selp.u32 %r4, 1, 0, %p1;
      mbarrier.complete_tx.relaxed.cluster.shared::cta.b64 [bar], 64;
      mbarrier.test_wait.shared.b64 %p1, [bar], %rd3;
      selp.u32 %r5, 1, 0, %p1;
      mbarrier.arrive.shared.b64 %rd4, [bar];
      mbarrier.pending_count.b64 %r6, %rd4;             // one was dropped
      mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 1048575;
      mbarrier.complete_tx.shared::cta.b64 [bar], 1048575;
      mbarrier.inval.shared.b64 [bar];
      st.global.v4.u32 [%out], {%r1, %r2, %r3, %r4};
      st.global.v2.u32 [%out+16], {%r5, %r6};
    END:
  )",
                            6);
  ASSERT_EQ(fault_, "");
  EXPECT_EQ(out, (std::vector<U32>{5, 3, 2, 0, 1, 4}));
}

// A consumer that waits for three milliseconds costs a few instructions, and sees the end of the
// phase at once.
TEST_F(MbarrierTest, TryWaitBlocks) {
  Options options;
  options.block = {64, 1, 1};
  const auto out = Run<U64>(Init(1) + R"(
      setp.lt.u32 %p2, %t, 32;
      @%p2 bra CONSUMER;
      mov.u32 %r5, 0;
    LATER:
      nanosleep.u32 1000000;
      add.u32 %r5, %r5, 1;
      setp.lt.u32 %p3, %r5, 3;
      @%p3 bra LATER;
      setp.eq.u32 %p3, %t, 32;
      mov.u64 %rd5, %globaltimer;
      @%p3 mbarrier.arrive.shared.b64 _, [bar];
      @%p3 st.global.u64 [%out], %rd5;
      bra.uni END;
    CONSUMER:
      mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p1, [bar], 0;
      @!%p1 bra CONSUMER;
      mov.u64 %rd5, %globaltimer;
      @%p0 st.global.u64 [%out+8], %rd5;
    END:
  )",
                            2, std::vector<U32>{}, options);
  ASSERT_EQ(fault_, "");
  ASSERT_TRUE(finished_);
  EXPECT_GE(out[1], out[0]);
  EXPECT_LE(out[1], out[0] + 200);
  EXPECT_LT(machine_->stats().warp_instructions, 200u);
}

TEST_F(MbarrierTest, TryWaitHonoursItsLimit) {
  const auto out = Run<U64>(Init(2) + R"(
      mov.u64 %rd5, %globaltimer;
      mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0, 50000;
      mov.u64 %rd6, %globaltimer;
      sub.u64 %rd7, %rd6, %rd5;
      selp.u64 %rd8, 1, 0, %p1;
      @%p0 st.global.v2.u64 [%out], {%rd7, %rd8};
  )",
                            2);
  ASSERT_EQ(fault_, "");
  EXPECT_GE(out[0], 49900u);
  EXPECT_LE(out[0], 51000u);
  EXPECT_EQ(out[1], 0u);
}

TEST_F(MbarrierTest, DeadlockNamesTheWait) {
  Run<U32>(Init(2) + R"(
    WAIT:
      mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0;
      @!%p1 bra WAIT;
  )",
           1);
  ASSERT_FALSE(finished_);
  EXPECT_TRUE(machine_->Stuck());
  const auto waiters = machine_->Waiters();
  ASSERT_FALSE(waiters.empty());
  EXPECT_EQ(waiters[0].what,
            "mbarrier.try_wait.parity.shared::cta.b64 (a phase that waits for 2 more arrivals of 2 "
            "and for 0 more bytes (0 expected, 0 arrived))");
  EXPECT_EQ(waiters[0].object, "shared memory");
  EXPECT_LT(machine_->stats().warp_instructions, 200u);
}

TEST_F(MbarrierTest, MisuseFaults) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {".shared .align 8 .b64 bar;\nmbarrier.arrive.shared.b64 _, [bar];", "not initialised"},
      {".shared .align 8 .b64 bar;\nmbarrier.test_wait.parity.shared.b64 %p1, [bar], 0;",
       "not initialised"},
      {".shared .align 8 .b64 bar;\nmbarrier.init.shared.b64 [bar], 0;", "count of 0"},
      {".shared .align 8 .b64 bar[2];\nmbarrier.init.shared.b64 [bar+4], 1;", "multiple of 8"},
      {".shared .align 8 .b64 bar;\nmbarrier.init.shared.b64 [bar+1024], 1;", "of shared memory"},
      {"mbarrier.init.b64 [%out], 1;", "not in shared memory"},
      {".shared .align 8 .b64 bar;\nmbarrier.init.shared.b64 [bar], 3;\n"
       "mbarrier.arrive.shared.b64 _, [bar], 4;",
       "waits for 3 more"},
      {".shared .align 8 .b64 bar;\nmbarrier.init.shared.b64 [bar], 1;\n"
       "mbarrier.expect_tx.shared.b64 [bar], 1048576;",
       "transaction count"},
  };
  for (const auto& [body, message] : cases) {
    SetUp();
    Run<U32>("setp.ne.u32 %p0, %t, 0;\n@%p0 ret;\n" + body, 1);
    EXPECT_NE(fault_.find(message), std::string::npos) << body << "\n" << fault_;
  }
}

std::vector<U32> Count(std::size_t n) {
  std::vector<U32> v(n);
  std::iota(v.begin(), v.end(), 100);
  return v;
}

// Each thread copies 16, 8 and 4 bytes and waits; what is beyond the source's size is zero.
TEST_F(MbarrierTest, CopyAsyncSizesAndZeroFill) {
  const auto out = Run<U32>(R"(
      .shared .align 16 .b8 buffer[1024];
      mov.u32 %r0, buffer;
      mad.lo.u32 %r1, %t, 32, %r0;
      mul.wide.u32 %rd1, %t, 32;
      add.u64 %rd2, %in, %rd1;
      add.u64 %rd3, %out, %rd1;
      and.b32 %r2, %t, 3;
      shl.b32 %r2, %r2, 2;                                     // 0, 4, 8 or 12 bytes
      cp.async.cg.shared.global [%r1], [%rd2], 16, %r2;
      setp.ge.u32 %p1, %t, 16;
      cp.async.ca.shared.global [%r1+16], [%rd2+16], 8, %p1;   // nothing from thread 16 on
      cp.async.ca.shared.global.L2::128B [%r1+24], [%rd2+24], 4;
      cp.async.ca.shared.global [%r1+28], [%rd2+28], 4, !%p1;  // nothing below 16
      cp.async.commit_group;
      cp.async.wait_group 0;
      ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [%r1];
      st.global.v4.u32 [%rd3], {%r3, %r4, %r5, %r6};
      ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [%r1+16];
      st.global.v4.u32 [%rd3+16], {%r3, %r4, %r5, %r6};
  )",
                            256, Count(256), Options{});
  ASSERT_EQ(fault_, "");
  ASSERT_EQ(out.size(), 256u);
  for (U32 t = 0; t < 32; ++t) {
    for (U32 i = 0; i < 8; ++i) {
      bool there = true;
      if (i < 4) there = i < t % 4;
      if (i == 4 || i == 5) there = t < 16;
      if (i == 7) there = t >= 16;
      EXPECT_EQ(out[t * 8 + i], there ? 100 + t * 8 + i : 0) << t << " " << i;
    }
  }
}

// Before the wait nothing has arrived; after wait_group 1 only the older group has.
TEST_F(MbarrierTest, CopyAsyncGroupsCompleteInOrder) {
  const auto out = Run<U32>(R"(
      .shared .align 16 .b8 buffer[256];
      mov.u32 %r0, buffer;
      mad.lo.u32 %r1, %t, 8, %r0;
      mul.wide.u32 %rd1, %t, 4;
      add.u64 %rd2, %in, %rd1;
      st.shared.v2.u32 [%r1], {7, 7};
      cp.async.ca.shared.global [%r1], [%rd2], 4;
      cp.async.commit_group;
      ld.shared.u32 %r2, [%r1];
      cp.async.ca.shared.global [%r1+4], [%rd2], 4;
      cp.async.commit_group;
      cp.async.wait_group 1;
      ld.shared.u32 %r3, [%r1];
      cp.async.wait_all;
      ld.shared.u32 %r4, [%r1+4];
      mul.wide.u32 %rd1, %t, 16;
      add.u64 %rd3, %out, %rd1;
      st.global.v4.u32 [%rd3], {%r2, %r3, %r4, 0};
  )",
                            128, Count(32), Options{});
  ASSERT_EQ(fault_, "");
  ASSERT_EQ(out.size(), 128u);
  for (U32 t = 0; t < 32; ++t) {
    EXPECT_EQ(out[t * 4], 7u);
    EXPECT_EQ(out[t * 4 + 1], 100 + t);
    EXPECT_EQ(out[t * 4 + 2], 100 + t);
  }
}

// With .noinc the arrivals count against the expected 32; without it the pending count is raised
// first, and the phase needs the threads' own arrivals.
TEST_F(MbarrierTest, CopyAsyncArrives) {
  for (const bool noinc : {true, false}) {
    const std::string own = noinc ? "" : "mbarrier.arrive.shared.b64 _, [bar];\n";
    const auto out = Run<U32>(Init(32) + R"(
      .shared .align 16 .b8 buffer[128];
      mov.u32 %r7, buffer;
      mad.lo.u32 %r1, %t, 4, %r7;
      mul.wide.u32 %rd1, %t, 4;
      add.u64 %rd2, %in, %rd1;
      cp.async.ca.shared.global [%r1], [%rd2], 4;
      cp.async.mbarrier.arrive)" + std::string(noinc ? ".noinc" : "") +
                                  R"(.shared.b64 [bar];
    )" + own + R"(
    WAIT:
      mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0;
      @!%p1 bra WAIT;
      xor.b32 %r2, %t, 31;
      mad.lo.u32 %r2, %r2, 4, %r7;
      ld.shared.u32 %r3, [%r2];
      add.u64 %rd3, %out, %rd1;
      st.global.u32 [%rd3], %r3;
  )",
                              32, Count(32), Options{});
    ASSERT_EQ(fault_, "");
    ASSERT_TRUE(finished_);
    for (U32 t = 0; t < 32; ++t) EXPECT_EQ(out[t], 100 + (t ^ 31));
  }
}

TEST_F(MbarrierTest, CopyAsyncChecksAddresses) {
  Run<U32>(".shared .align 16 .b8 b[16];\ncp.async.cg.shared.global [b], [%in+8], 16;", 1,
           Count(32), Options{});
  EXPECT_NE(fault_.find("multiple of 16"), std::string::npos) << fault_;
  SetUp();
  Run<U32>(".shared .align 16 .b8 b[16];\ncp.async.ca.shared.global [b], [%in+128], 8;", 1,
           Count(32), Options{});
  EXPECT_NE(fault_.find("mapped"), std::string::npos) << fault_;
  SetUp();
  // Nothing is read, so nothing is checked.
  Run<U32>(".shared .align 16 .b8 b[16];\ncp.async.ca.shared.global [b], [%in+128], 8, 0;", 1,
           Count(32), Options{});
  EXPECT_EQ(fault_, "");
}

}  // namespace
}  // namespace allranks::node
