// Bulk copies, their groups and mbarriers, multicast, reductions, st.async, red.async and st.bulk.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "node/checking.h"
#include "node/finding.h"
#include "ptx_machine.h"

namespace allranks::node {
namespace {

using U32 = std::uint32_t;

class BulkTest : public PtxMachineTest {
 protected:
  static std::vector<U32> Count(std::size_t n, U32 from) {
    std::vector<U32> v(n);
    std::iota(v.begin(), v.end(), from);
    return v;
  }
  static constexpr const char* kInit = R"(
      .shared .align 128 .b8 buffer[2048];
      .shared .align 8 .b64 bar;
      mov.u32 %r0, buffer;
      mov.u32 %r9, bar;
      setp.eq.u32 %p0, %t, 0;
      @%p0 mbarrier.init.shared.b64 [bar], 1;
      fence.mbarrier_init.release.cluster;
      fence.proxy.async;
      barrier.cluster.arrive;
      barrier.cluster.wait;
)";
  static constexpr const char* kWait = R"(
    WAIT:
      mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0;
      @!%p1 bra WAIT;
)";
};

// Global to shared, plus one, and back.
TEST_F(BulkTest, ThereAndBack) {
  const auto out = Run<U32>(std::string(kInit) + R"(
      @!%p0 bra WAIT;
      mbarrier.arrive.expect_tx.shared.b64 _, [bar], 512;
      cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%in], 256, [%r9];
      cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r0+256], [%in+256], 256, [%r9], %rd9;
)" + kWait + R"(
      mad.lo.u32 %r1, %t, 16, %r0;
      ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [%r1];
      add.u32 %r2, %r2, 1;
      add.u32 %r3, %r3, 1;
      add.u32 %r4, %r4, 1;
      add.u32 %r5, %r5, 1;
      st.shared.v4.u32 [%r1], {%r2, %r3, %r4, %r5};
      fence.proxy.async.shared::cta;
      bar.sync 0;
      @!%p0 ret;
      cp.async.bulk.prefetch.L2.global [%in], 256;
      cp.async.bulk.global.shared::cta.bulk_group [%out], [%r0], 256;
      cp.async.bulk.commit_group;
      cp.async.bulk.global.shared::cta.bulk_group [%out+256], [%r0+256], 256;
      cp.async.bulk.commit_group;
      cp.async.bulk.wait_group.read 1;
      st.shared.u32 [%r0], 77;             // has been read already
      cp.async.bulk.wait_group 0;
  )",
                            128, Count(128, 5), Options{});
  ASSERT_EQ(fault_, "");
  ASSERT_TRUE(finished_);
  EXPECT_EQ(out, Count(128, 6));
}

// A source that is changed before wait_group.read is copied as it is then.
TEST_F(BulkTest, ReadsWhenItReads) {
  const auto out = Run<U32>(std::string(kInit) + R"(
      mad.lo.u32 %r1, %t, 4, %r0;
      st.shared.u32 [%r1], 1;
      bar.sync 0;
      @!%p0 ret;
      cp.async.bulk.global.shared::cta.bulk_group [%out], [%r0], 64;
      st.shared.u32 [%r0], 2;
      cp.async.bulk.commit_group;
      cp.async.bulk.wait_group 0;
      ld.global.u32 %r2, [%out+4];
      st.global.u32 [%out+64], %r2;
  )",
                            17);
  ASSERT_EQ(fault_, "");
  ASSERT_EQ(out.size(), 17u);
  EXPECT_EQ(out[0], 2u);
  EXPECT_EQ(out[1], 1u);
  EXPECT_EQ(out[16], 1u);
}

TEST_F(BulkTest, Reductions) {
  struct Case {
    const char* form;
    U32 old, value, expected;
  };
  const std::vector<Case> cases = {
      {"add.u32", 7, 5, 12},
      {"add.s32", 7, 0xfffffffe, 5},
      {"min.s32", 7, 0xfffffffe, 0xfffffffe},
      {"min.u32", 7, 0xfffffffe, 7},
      {"max.s32", 7, 0xfffffffe, 7},
      {"inc.u32", 7, 7, 0},
      {"inc.u32", 7, 9, 8},
      {"dec.u32", 0, 9, 9},
      {"and.b32", 12, 10, 8},
      {"or.b32", 12, 10, 14},
      {"xor.b32", 12, 10, 6},
      {"add.f32", 0x3f800000, 0x40000000, 0x40400000},
      {"add.noftz.f16", 0x3c003c00, 0x40003c00, 0x42004000},
      {"max.bf16", 0x3f80c000, 0x40003f80, 0x40003f80},
  };
  for (const Case& c : cases) {
    // To global memory (filled from the input first) and to shared memory.
    const std::string form = c.form;
    SetUp();
    const auto out =
        Run<U32>(std::string(kInit) + R"(
      mad.lo.u32 %r1, %t, 4, %r0;
      mul.wide.u32 %rd1, %t, 4;
      add.u64 %rd2, %out, %rd1;
      ld.global.u32 %r2, [%in];
      ld.global.u32 %r3, [%in+4];
      st.global.u32 [%rd2], %r2;
      st.shared.u32 [%r1], %r3;
      st.shared.u32 [%r1+1024], %r2;
      bar.sync 0;
      @!%p0 bra WAIT;
      cp.reduce.async.bulk.global.shared::cta.bulk_group.)" +
                     form + R"( [%out], [%r0], 128;
      cp.async.bulk.commit_group;
      cp.async.bulk.wait_group 0;
)" +
                     (form.find("f32") == std::string::npos && form.find("f16") == std::string::npos
                          ? "mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128;\n"
                            "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_"
                            "tx::bytes." +
                                form + " [%r0+1024], [%r0], 128, [%r9];\n"
                          : "st.shared.u32 [%r0+1024], " + std::to_string(c.expected) +
                                ";\nmbarrier.arrive.shared.b64 _, [bar];\n") +
                     kWait + R"(
      ld.shared.u32 %r4, [buffer+1024];
      st.global.u32 [%out+128], %r4;
  )",
                 33, std::vector<U32>{c.old, c.value}, Options{});
    ASSERT_EQ(fault_, "") << form;
    ASSERT_EQ(out.size(), 33u);
    EXPECT_EQ(out[0], c.expected) << form;
    EXPECT_EQ(out[31], c.expected) << form;
    EXPECT_EQ(out[32], c.expected) << form;
  }
}

// CTA 0 of a cluster of 4 sends to 1 and 3; the others get nothing.
TEST_F(BulkTest, Multicast) {
  Options options;
  options.grid = options.cluster = {4, 1, 1};
  const auto out = Run<U32>(std::string(kInit) + R"(
      mad.lo.u32 %r1, %t, 4, %r0;
      st.shared.u32 [%r1], 1;
      and.b32 %r2, %rank, 1;
      setp.eq.u32 %p2, %r2, 1;
      and.pred %p3, %p2, %p0;
      @%p3 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128;
      barrier.cluster.arrive;
      barrier.cluster.wait;
      setp.eq.u32 %p4, %rank, 0;
      and.pred %p4, %p4, %p0;
      mov.b16 %h1, 10;
      @%p4 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r0], [%in], 128, [%r9], %h1;
      @!%p2 bra DONE;
)" + std::string(kWait) + R"(
    DONE:
      ld.shared.u32 %r3, [%r1];
      mad.lo.u32 %r4, %rank, 32, %t;
      mul.wide.u32 %rd1, %r4, 4;
      add.u64 %rd2, %out, %rd1;
      st.global.u32 [%rd2], %r3;
      barrier.cluster.arrive;
      barrier.cluster.wait;
  )",
                            128, Count(32, 50), options);
  ASSERT_EQ(fault_, "");
  ASSERT_EQ(out.size(), 128u);
  for (U32 i = 0; i < 128; ++i) EXPECT_EQ(out[i], i / 32 % 2 == 1 ? 50 + i % 32 : 1) << i;
}

// Shared to another CTA's shared memory; st.async and red.async.
TEST_F(BulkTest, ToAnotherBlock) {
  Options options;
  options.grid = options.cluster = {2, 1, 1};
  const auto out = Run<U32>(std::string(kInit) + R"(
      mad.lo.u32 %r1, %t, 4, %r0;
      mad.lo.u32 %r2, %rank, 100, %t;
      st.shared.u32 [%r1], %r2;
      st.shared.u32 [%r1+512], %r2;
      @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 1024;
      barrier.cluster.arrive;
      barrier.cluster.wait;
      xor.b32 %r3, %rank, 1;
      mapa.shared::cluster.u32 %r4, %r0, %r3;
      mapa.shared::cluster.u32 %r5, %r9, %r3;
      @%p0 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r4+256], [%r0], 128, [%r5];
      mad.lo.u32 %r6, %t, 4, %r4;
      red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r6+512], 1000, [%r5];
      mad.lo.u32 %r7, %t, 8, %r4;
      cvt.u64.u32 %rd5, %r2;
      st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%r7+1024], %rd5, [%r5];
      mad.lo.u32 %r8, %t, 16, %r4;
      st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r8+1536], {1, 2, 3, %r2}, [%r5];
)" + std::string(kWait) + R"(
      ld.shared.u32 %r10, [%r1+256];
      ld.shared.u32 %r11, [%r1+512];
      mad.lo.u32 %r12, %t, 8, %r0;
      ld.shared.u32 %r12, [%r12+1024];
      mad.lo.u32 %r13, %t, 16, %r0;
      ld.shared.u32 %r13, [%r13+1548];
      mad.lo.u32 %r14, %rank, 32, %t;
      mul.wide.u32 %rd1, %r14, 16;
      add.u64 %rd2, %out, %rd1;
      st.global.v4.u32 [%rd2], {%r10, %r11, %r12, %r13};
      barrier.cluster.arrive;
      barrier.cluster.wait;
  )",
                            256, std::vector<U32>{}, options);
  ASSERT_EQ(fault_, "");
  ASSERT_TRUE(finished_);
  for (U32 i = 0; i < 64; ++i) {
    const U32 other = (i / 32 ^ 1) * 100 + i % 32, own = i / 32 * 100 + i % 32;
    EXPECT_EQ(out[i * 4], other);
    EXPECT_EQ(out[i * 4 + 1], own + 1000);
    EXPECT_EQ(out[i * 4 + 2], other);
    EXPECT_EQ(out[i * 4 + 3], other);
  }
}

TEST_F(BulkTest, SizesAndAlignmentsAreChecked) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%in], 24, [%r9];",
       "multiple of 16"},
      {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r0+8], [%in], 32, "
       "[%r9];",
       "multiple of 16"},
      {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%in+4], 32, "
       "[%r9];",
       "multiple of 16"},
      {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%in], 4096, "
       "[%r9];",
       "of shared memory"},
      {"cp.async.bulk.global.shared::cta.bulk_group [%out+16], [%r0], 16;", "not mapped"},
  };
  for (const auto& [text, message] : cases) {
    SetUp();
    Run<U32>(std::string(kInit) + "@!%p0 ret;\n" + text, 4, Count(16, 0), Options{});
    EXPECT_NE(fault_.find(message), std::string::npos) << text << "\n" << fault_;
  }
}

// 1024 bytes of ones, `store`, then word %t of each 128 bytes to the output.
std::string Filled(const std::string& store) {
  std::string text = R"(
      .shared .align 16 .b8 tile[1024];
      mov.u32 %r0, tile;
      mad.lo.u32 %r1, %t, 4, %r0;
      mul.wide.u32 %rd1, %t, 4;
      add.u64 %rd2, %out, %rd1;
      cvt.u64.u32 %rd3, %r0;
      cvta.shared.u64 %rd4, %rd3;
)";
  for (int i = 0; i < 1024; i += 128) text += fmt::format("st.shared.u32 [%r1+{}], -1;\n", i);
  text += "bar.sync 0;\n" + store + "\nbar.sync 0;\n";
  for (int i = 0; i < 1024; i += 128) {
    text += fmt::format("ld.shared.u32 %r2, [%r1+{}];\nst.global.u32 [%rd2+{}], %r2;\n", i, i);
  }
  return text;
}

TEST_F(BulkTest, StoresZeros) {
  struct Case {
    std::string store;
    std::vector<std::pair<U32, U32>> zeros;  // words: begin, end
  };
  const std::string lanes =
      "mul.wide.u32 %rd5, %t, 8;\nand.b64 %rd5, %rd5, 24;\nmad.lo.u32 %r3, %t, 32, %r0;\n";
  std::vector<std::pair<U32, U32>> of_lanes, of_odd;
  for (U32 l = 0; l < 32; ++l) {
    of_lanes.push_back({l * 8, l * 8 + l % 4 * 2});
    if (l % 2 == 1) of_odd.push_back(of_lanes.back());
  }
  const std::string odd = "and.b32 %r4, %t, 1;\nsetp.eq.u32 %p1, %r4, 1;\n";
  const std::vector<Case> cases = {
      {"st.bulk.weak.shared::cta [%r0], 1024, 0;", {{0, 256}}},
      {"st.bulk [%rd4+8], 24, 0;", {{2, 8}}},
      {"mov.u64 %rd5, 128;\nst.bulk.weak [%rd4+120], %rd5, 0;", {{30, 62}}},
      {"st.bulk.shared::cta.weak [%r0+1016], 8, 0;", {{254, 256}}},
      {"st.bulk.shared::cta [tile+4], 8, 0;", {{1, 3}}},
      {"st.bulk.shared::cta [%r0], 0, 0;", {}},
      {lanes + "st.bulk.shared::cta [%r3], %rd5, 0;", of_lanes},
      {lanes + odd + "@%p1 st.bulk.shared::cta [%r3], %rd5, 0;", of_odd},
      {lanes + odd + "@!%p1 bra OVER;\nst.bulk.shared::cta [%r3], %rd5, 0;\nOVER:", of_odd},
  };
  for (const Case& c : cases) {
    SetUp();
    const auto out = Run<U32>(Filled(c.store), 256);
    ASSERT_EQ(fault_, "") << c.store;
    std::vector<U32> expected(256, ~0u);
    for (const auto& [begin, end] : c.zeros) std::fill_n(expected.begin() + begin, end - begin, 0u);
    EXPECT_EQ(out, expected) << c.store;
  }
}

TEST_F(BulkTest, StoresOfZerosAreChecked) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"mov.u64 %rd5, 12;\nst.bulk.shared::cta [%r0], %rd5, 0;",
       "of 12 bytes, which is not a multiple of 8, thread 0"},
      {"mov.u64 %rd5, 16777224;\nst.bulk.shared::cta [%r0], %rd5, 0;", "more than 16777216"},
      {"mov.u64 %rd5, -8;\nst.bulk.shared::cta [%r0], %rd5, 0;", "more than 16777216"},
      {"st.bulk.shared::cta [%r0+8], 1024, 0;",
       "accesses 1024 bytes at offset 8 of shared memory (1024 bytes), thread 0"},
      {"st.bulk.shared::cta [%r0], 16777216, 0;", "accesses 16777216 bytes at offset 0"},
      {"st.bulk [%out], 8, 0;", "which is not in shared memory"},
      {"st.bulk [%rd3], 8, 0;", "which is not in shared memory"},
      // Only the last lane's end is beyond.
      {"mad.lo.u32 %r3, %t, 32, %r0;\nst.bulk.shared::cta [%r3], 40, 0;", "thread 31"},
  };
  for (const auto& [store, message] : cases) {
    SetUp();
    Run<U32>(Filled(store), 256);
    EXPECT_NE(fault_.find(message), std::string::npos) << store << "\n" << fault_;
  }
  SetUp();
  Options options;
  options.grid = options.cluster = {2, 1, 1};
  Run<U32>(Filled("xor.b32 %r3, %rank, 1;\nmapa.shared::cluster.u32 %r4, %r0, %r3;\n"
                  "st.bulk.shared::cta [%r4], 8, 0;"),
           256, std::vector<U32>{}, options);
  EXPECT_NE(fault_.find("in the shared memory of another block"), std::string::npos) << fault_;
}

// A pass over the banks per 128 bytes, and the warp waits for them.
TEST_F(BulkTest, StoresOfZerosTakeTime) {
  const auto cycles = [&](std::uint64_t bytes) {
    const auto out = Run<std::uint64_t>(fmt::format(R"(
      .shared .align 16 .b8 tile[32768];
      mov.u32 %r0, tile;
      setp.ne.u32 %p1, %t, 0;
      @%p1 ret;
      mov.u64 %rd1, %clock64;
      st.bulk.weak.shared::cta [%r0], {}, 0;
      mov.u64 %rd2, %clock64;
      sub.u64 %rd3, %rd2, %rd1;
      st.global.u64 [%out], %rd3;
    )",
                                                    bytes),
                                        1);
    return out.empty() ? 0 : out[0];
  };
  const std::uint64_t little = cycles(128), much = cycles(32768);
  EXPECT_EQ(fault_, "");
  EXPECT_LT(little, 32u);
  EXPECT_GE(much, little + 255);
  EXPECT_LT(much, little + 600);
}

// Another block of the cluster reads what a thread clears. The load is strong, but the store has no
// strong form that could be advised.
TEST_F(BulkTest, StoresOfZerosRace) {
  MachineOptions checked;
  checked.check = true;
  Start(checked);
  machine_->checking()->SetChecking(true);
  Options options;
  options.grid = options.cluster = {2, 1, 1};
  Run<U32>(R"(
      .shared .align 16 .b8 tile[1024];
      mov.u32 %r0, tile;
      barrier.cluster.arrive;
      barrier.cluster.wait;
      setp.ne.u32 %p1, %t, 0;
      setp.eq.or.u32 %p2, %rank, 0, %p1;
      setp.ne.or.u32 %p1, %rank, 0, %p1;
      @!%p1 st.bulk.weak.shared::cta [%r0], 1024, 0;
      mapa.shared::cluster.u32 %r1, %r0, 0;
      @!%p2 ld.relaxed.cluster.shared::cluster.u32 %r2, [%r1+512];
      barrier.cluster.arrive;
      barrier.cluster.wait;
  )",
           1, std::vector<U32>{}, options);
  ASSERT_EQ(fault_, "");
  const std::vector<Finding> findings = machine_->checking()->TakeFindings();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].kind, Finding::Kind::kRace);
  ASSERT_EQ(findings[0].accesses.size(), 2u);
  for (const FindingAccess& access : findings[0].accesses) {
    const bool store = access.form == "st.bulk.weak.shared::cta";
    EXPECT_EQ(access.write, store) << access.form;
    EXPECT_EQ(access.block.x, store ? 0u : 1u);
  }
  EXPECT_NE(findings[0].advice.find("cluster"), std::string::npos) << findings[0].advice;
}

}  // namespace
}  // namespace allranks::node
