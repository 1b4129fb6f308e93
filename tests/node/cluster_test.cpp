// Clusters: residency on one GPC, special registers, the cluster barrier and shared memory of other
// CTAs.
#include <gtest/gtest.h>

#include <numeric>

#include "ptx_machine.h"

namespace allranks::node {
namespace {

using U32 = std::uint32_t;

class ClusterTest : public PtxMachineTest {
 protected:
  static Options Of(Dim3 grid, Dim3 cluster, U32 threads = 32) {
    Options options;
    options.grid = grid;
    options.cluster = cluster;
    options.block = {threads, 1, 1};
    return options;
  }
};

// Thread 0 of every CTA stores eight registers at its linear CTA number.
constexpr const char* kStoreAll = R"(
      setp.ne.u32 %p0, %t, 0;
      @%p0 ret;
      mov.u32 %r1, %ctaid.x;
      mov.u32 %r2, %ctaid.y;
      mov.u32 %r3, %nctaid.x;
      mad.lo.u32 %r4, %r2, %r3, %r1;
      mul.wide.u32 %rd1, %r4, 32;
      add.u64 %rd2, %out, %rd1;
)";

TEST_F(ClusterTest, SpecialRegisters) {
  const auto out = Run<U32>(std::string(kStoreAll) + R"(
      mov.u32 %r10, %cluster_ctarank;
      mov.u32 %r11, %cluster_nctarank;
      mov.u32 %r12, %cluster_ctaid.x;
      mov.u32 %r13, %cluster_ctaid.y;
      mov.u32 %r14, %clusterid.x;
      mov.u32 %r15, %clusterid.y;
      mov.u32 %r16, %nclusterid.x;
      mov.pred %p1, %is_explicit_cluster;
      selp.u32 %r17, 1, 0, %p1;
      st.global.v4.u32 [%rd2], {%r10, %r11, %r12, %r13};
      st.global.v4.u32 [%rd2+16], {%r14, %r15, %r16, %r17};
  )",
                            6 * 4 * 8, std::vector<U32>{}, Of({6, 4, 1}, {3, 2, 1}));
  ASSERT_EQ(status_, Status::kSuccess);
  ASSERT_EQ(fault_, "");
  ASSERT_EQ(out.size(), 6u * 4 * 8);
  for (U32 y = 0; y < 4; ++y) {
    for (U32 x = 0; x < 6; ++x) {
      const U32* at = out.data() + (y * 6 + x) * 8;
      const std::vector<U32> expected = {x % 3 + y % 2 * 3, 6, x % 3, y % 2, x / 3, y / 2, 2, 1};
      EXPECT_EQ(std::vector<U32>(at, at + 8), expected) << x << "," << y;
    }
  }
}

// Every CTA reads what its neighbour has put into its own shared memory, by mapa in both forms.
TEST_F(ClusterTest, SharedMemoryOfOthers) {
  const auto out = Run<U32>(R"(
      .shared .align 4 .b32 mine[32];
      mov.u32 %r0, mine;
      mad.lo.u32 %r1, %t, 4, %r0;
      mad.lo.u32 %r2, %rank, 1000, %t;
      st.shared.u32 [%r1], %r2;
      barrier.cluster.arrive.release.aligned;
      barrier.cluster.wait.acquire.aligned;
      add.u32 %r3, %rank, 1;
      mov.u32 %r4, %cluster_nctarank;
      rem.u32 %r3, %r3, %r4;
      mapa.shared::cluster.u32 %r5, %r1, %r3;
      ld.shared::cluster.u32 %r6, [%r5];
      getctarank.shared::cluster.u32 %r7, %r5;
      cvt.u64.u32 %rd1, %r1;
      cvta.shared.u64 %rd2, %rd1;
      mapa.u64 %rd3, %rd2, %r3;
      ld.u32 %r8, [%rd3];                        // generic
      getctarank.u64 %r9, %rd3;
      isspacep.shared::cluster %p1, %rd3;
      isspacep.shared::cta %p2, %rd2;
      and.pred %p1, %p1, %p2;
      selp.u32 %r11, 1, 0, %p1;
      // Another thread of the neighbour's gets something added.
      atom.add.shared::cluster.u32 %r10, [%r5], 1000000;
      barrier.cluster.arrive.relaxed;
      barrier.cluster.wait;
      ld.shared.u32 %r12, [%r1];
      mov.u32 %r13, %ctaid.x;
      mad.lo.u32 %r13, %r13, 32, %t;
      mul.wide.u32 %rd4, %r13, 32;
      add.u64 %rd5, %out, %rd4;
      st.global.v4.u32 [%rd5], {%r6, %r7, %r8, %r9};
      st.global.v4.u32 [%rd5+16], {%r10, %r11, %r12, 0};
  )",
                            8 * 32 * 8, std::vector<U32>{}, Of({8, 1, 1}, {4, 1, 1}));
  ASSERT_EQ(status_, Status::kSuccess);
  ASSERT_EQ(fault_, "");
  ASSERT_TRUE(finished_);
  for (U32 b = 0; b < 8; ++b) {
    for (U32 t = 0; t < 32; ++t) {
      const U32 next = (b % 4 + 1) % 4;
      const U32* at = out.data() + (b * 32 + t) * 8;
      const std::vector<U32> expected = {next * 1000 + t,
                                         next,
                                         next * 1000 + t,
                                         next,
                                         next * 1000 + t,
                                         1,
                                         b % 4 * 1000 + t + 1000000,
                                         0};
      EXPECT_EQ(std::vector<U32>(at, at + 8), expected) << b << " " << t;
    }
  }
}

TEST_F(ClusterTest, CompiledSizeIsUsed) {
  Options options = Of({4, 1, 1}, {1, 1, 1});
  options.before = ".explicitcluster\n.reqnctapercluster 2, 1, 1\n";
  const auto out = Run<U32>(R"(
      mov.u32 %r1, %cluster_nctarank;
      st.global.u32 [%out], %r1;
  )",
                            1, std::vector<U32>{}, options);
  ASSERT_EQ(fault_, "");
  EXPECT_EQ(out, std::vector<U32>{2});
  options.cluster = {4, 1, 1};
  Run<U32>("", 1, std::vector<U32>{}, options);
  EXPECT_NE(status_, Status::kSuccess);
}

TEST_F(ClusterTest, SizesThatCannotBe) {
  Run<U32>("", 1, std::vector<U32>{}, Of({3, 1, 1}, {2, 1, 1}));
  EXPECT_EQ(status_, Status::kInvalidValue);
  Run<U32>("", 1, std::vector<U32>{}, Of({32, 1, 1}, {32, 1, 1}));
  EXPECT_EQ(status_, Status::kInvalidClusterSize);
  Run<U32>("", 1, std::vector<U32>{}, Of({32, 1, 1}, {16, 1, 1}));
  EXPECT_EQ(status_, Status::kSuccess);
}

// More clusters than fit at once: all run, and all CTAs of one are on SMs of one GPC (the first two
// of the profile's have 18, the others 16).
TEST_F(ClusterTest, StayWithinOneGpc) {
  Options options = Of({640, 1, 1}, {8, 1, 1}, 1024);
  const auto out = Run<U32>(R"(
      mov.u32 %r1, %ctaid.x;
      mov.u32 %r2, %smid;
      mul.wide.u32 %rd1, %r1, 4;
      add.u64 %rd2, %out, %rd1;
      barrier.cluster.arrive;
      barrier.cluster.wait;
      st.global.u32 [%rd2], %r2;
  )",
                            640, std::vector<U32>{}, options);
  ASSERT_EQ(fault_, "");
  ASSERT_EQ(out.size(), 640u);
  const auto gpc = [](U32 sm) { return sm < 36 ? sm / 18 : 2 + (sm - 36) / 16; };
  for (U32 b = 0; b < 640; ++b) {
    ASSERT_LT(out[b], 132u);
    EXPECT_EQ(gpc(out[b]), gpc(out[b / 8 * 8])) << b;
  }
}

TEST_F(ClusterTest, MemoryOfABlockThatIsOverFaults) {
  Run<U32>(R"(
      .shared .align 4 .b32 x;
      setp.eq.u32 %p0, %rank, 1;
      @%p0 ret;
      nanosleep.u32 100000;
      mov.u32 %r0, x;
      mapa.shared::cluster.u32 %r1, %r0, 1;
      ld.shared::cluster.u32 %r2, [%r1];
      st.global.u32 [%out], %r2;
  )",
           1, std::vector<U32>{}, Of({2, 1, 1}, {2, 1, 1}));
  EXPECT_NE(fault_.find("or it is over"), std::string::npos) << fault_;
  SetUp();
  // Also when it was waited for.
  Run<U32>(R"(
      .shared .align 4 .b32 x;
      mov.u32 %r0, x;
      st.shared.u32 [x], 0;
      barrier.cluster.arrive;
      barrier.cluster.wait;
      setp.eq.u32 %p0, %rank, 1;
      @!%p0 bra FIRST;
      nanosleep.u32 100000;
      ret;
    FIRST:
      mapa.shared::cluster.u32 %r1, %r0, 1;
    WAIT:
      ld.relaxed.cluster.shared::cluster.u32 %r2, [%r1];
      setp.eq.u32 %p1, %r2, 0;
      @%p1 bra WAIT;
  )",
           1, std::vector<U32>{}, Of({2, 1, 1}, {2, 1, 1}));
  EXPECT_NE(fault_.find("or it is over"), std::string::npos) << fault_;
}

TEST_F(ClusterTest, BarrierThatNotAllReachIsADeadlock) {
  Run<U32>(R"(
      setp.eq.u32 %p0, %rank, 1;
      @%p0 bra SPIN;
      barrier.cluster.arrive;
      barrier.cluster.wait;
      ret;
    SPIN:
      bra SPIN;
  )",
           1, std::vector<U32>{}, Of({2, 1, 1}, {2, 1, 1}));
  EXPECT_FALSE(finished_);
  bool named = false;
  for (const Waiter& waiter : machine_->Waiters()) named |= waiter.what == "barrier.cluster.wait";
  EXPECT_TRUE(named);
}

// One CTA's threads arrive at another's mbarrier.
TEST_F(ClusterTest, RemoteArrivals) {
  const auto out = Run<U32>(R"(
      .shared .align 8 .b64 bar;
      .shared .align 4 .b32 box[32];
      mov.u32 %r0, bar;
      mov.u32 %r1, box;
      setp.eq.u32 %p0, %t, 0;
      @%p0 mbarrier.init.shared.b64 [bar], 32;
      fence.mbarrier_init.release.cluster;
      barrier.cluster.arrive;
      barrier.cluster.wait;
      xor.b32 %r2, %rank, 1;
      mapa.shared::cluster.u32 %r3, %r0, %r2;
      mapa.shared::cluster.u32 %r4, %r1, %r2;
      mad.lo.u32 %r5, %t, 4, %r4;
      mad.lo.u32 %r6, %rank, 100, %t;
      st.shared::cluster.u32 [%r5], %r6;
      mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r3];
    WAIT:
      mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [bar], 0;
      @!%p1 bra WAIT;
      mad.lo.u32 %r7, %t, 4, %r1;
      ld.shared.u32 %r8, [%r7];
      mad.lo.u32 %r9, %rank, 32, %t;
      mul.wide.u32 %rd1, %r9, 4;
      add.u64 %rd2, %out, %rd1;
      st.global.u32 [%rd2], %r8;
      barrier.cluster.arrive;
      barrier.cluster.wait;
  )",
                            64, std::vector<U32>{}, Of({2, 1, 1}, {2, 1, 1}));
  ASSERT_EQ(fault_, "");
  ASSERT_TRUE(finished_);
  for (U32 t = 0; t < 32; ++t) {
    EXPECT_EQ(out[t], 100 + t);
    EXPECT_EQ(out[32 + t], t);
  }
}

}  // namespace
}  // namespace allranks::node
