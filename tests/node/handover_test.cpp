// Stores that one block makes and another one tells a peer of: however the first hands them over,
// the second's release comes no earlier than if the first had released them itself.
#include <gtest/gtest.h>

#include "ptx_machine.h"

namespace allranks::node {
namespace {

using U64 = std::uint64_t;

// What the first block does: 256 KiB to the peer's memory, which its port needs microseconds for.
constexpr const char* kStore = R"(
      mul.wide.u32 %rd1, %t, 16;
      add.u64 %rd1, %in, %rd1;
      mov.u32 %r1, 0;
    STORE:
      st.global.v4.u32 [%rd1], {%t, %t, %t, %t};
      add.u64 %rd1, %rd1, 4096;
      add.u32 %r1, %r1, 1;
      setp.lt.u32 %p1, %r1, 64;
      @%p1 bra STORE;
)";

// Thread 0 of the second block; out[1] is when its release is over.
constexpr const char* kTell = R"(
      setp.ne.u32 %p2, %t, 0;
      @%p2 bra OVER;
      st.release.sys.global.u32 [%out], 1;
      mov.u64 %rd2, %globaltimer;
      st.global.u64 [%out+8], %rd2;
    OVER:
)";

class HandoverTest : public PtxMachineTest {
 protected:
  void SetUp() override {
    MachineOptions options;
    options.devices = 2;
    Start(options);
    ASSERT_EQ(machine_->EnablePeer(process_, 0, 1), Status::kSuccess);
    ASSERT_EQ(machine_->Allocate(process_, 1, 1 << 20, &input_), Status::kSuccess);
  }

  // Nanoseconds from the first block's start to the end of the second one's release. Both begin
  // with `before` and a cluster barrier; `give` is what the first does behind its stores.
  U64 Took(const std::string& before, const std::string& give, const std::string& take,
           const std::string& stores = kStore) {
    return Run(R"(
      .shared .align 8 .b64 bar;
      .shared .align 4 .b32 flag;
      .shared .align 128 .b8 tile[32768];
      setp.eq.u32 %p3, %t, 0;
      mov.u32 %r2, bar;
      mov.u32 %r3, flag;
      mapa.shared::cluster.u32 %r4, %r2, 1;
      mapa.shared::cluster.u32 %r5, %r3, 1;
      st.shared.u32 [flag], 0;
)" + before + R"(
      barrier.cluster.arrive;
      barrier.cluster.wait;
      setp.eq.u32 %p0, %rank, 1;
      @%p0 bra SECOND;
      mov.u64 %rd3, %globaltimer;
      @%p3 st.global.u64 [%out+16], %rd3;
)" + stores + give +
                   "\nret;\nSECOND:\n" + take + kTell,
               2);
  }

  // The same by one block alone.
  U64 Alone(const std::string& stores = kStore) {
    return Run(R"(
      .shared .align 128 .b8 tile[32768];
      setp.eq.u32 %p3, %t, 0;
      mov.u64 %rd3, %globaltimer;
      @%p3 st.global.u64 [%out+16], %rd3;
)" + stores + "bar.sync 0;\n" +
                   kTell,
               1);
  }

  void Expect(const std::string& before, const std::string& give, const std::string& take) {
    const U64 alone = Alone();
    EXPECT_GT(alone, 2500u);  // or there is nothing to see
    EXPECT_GE(Took(before, give, take) + kTick, alone);
  }

  static constexpr U64 kTick = 32;  // of the timer

 private:
  U64 Run(const std::string& body, std::uint32_t blocks) {
    Address out = 0;
    EXPECT_EQ(machine_->Allocate(process_, 0, 4096, &out), Status::kSuccess);
    const std::vector<U64> zero(512);
    Write(out, zero.data(), 4096);
    Options options;
    options.grid = options.cluster = {blocks, 1, 1};
    options.block = {256, 1, 1};
    const auto result = RunAt<U64>(body, out, 3, options);
    EXPECT_TRUE(finished_) << fault_;
    return result.size() == 3 ? result[1] - result[2] : 0;
  }
};

TEST_F(HandoverTest, ClusterBarrier) {
  Expect("", "barrier.cluster.arrive.release; barrier.cluster.wait.acquire;",
         "barrier.cluster.arrive.release; barrier.cluster.wait.acquire;");
}

TEST_F(HandoverTest, FenceAndRelaxedClusterBarrier) {
  Expect("", "fence.acq_rel.cluster; barrier.cluster.arrive.relaxed; barrier.cluster.wait;",
         "barrier.cluster.arrive.relaxed; barrier.cluster.wait.acquire; fence.acq_rel.cluster;");
}

TEST_F(HandoverTest, ArrivalAtAnotherBlocksMbarrier) {
  Expect("@%p3 mbarrier.init.shared.b64 [bar], 256;\nfence.mbarrier_init.release.cluster;",
         "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r4];", R"(
    WAIT:
      mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p4, [bar], 0;
      @!%p4 bra WAIT;
)");
}

// The phase is over when all arrivals are there, not when the one that came last is.
TEST_F(HandoverTest, ArrivalThatIsNotTheLast) {
  Expect("@%p3 mbarrier.init.shared.b64 [bar], 512;\nfence.mbarrier_init.release.cluster;",
         "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r4];", R"(
      nanosleep.u32 1000;
      mbarrier.arrive.shared::cta.b64 _, [bar];
    WAIT:
      mbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 %p4, [bar], 0;
      @!%p4 bra WAIT;
)");
}

TEST_F(HandoverTest, FlagInAnotherBlocksSharedMemory) {
  Expect("", "bar.sync 0;\n@%p3 st.release.cluster.shared::cluster.u32 [%r5], 1;", R"(
    WAIT:
      ld.acquire.cluster.shared::cta.u32 %r6, [flag];
      setp.eq.u32 %p4, %r6, 0;
      @%p4 bra WAIT;
)");
}

TEST_F(HandoverTest, FenceAndRelaxedFlagInSharedMemory) {
  Expect("", R"(
      bar.sync 0;
      fence.acq_rel.cluster;
      @%p3 st.relaxed.cluster.shared::cluster.u32 [%r5], 1;
)",
         R"(
    WAIT:
      ld.relaxed.cluster.shared::cta.u32 %r6, [flag];
      setp.eq.u32 %p4, %r6, 0;
      @%p4 bra WAIT;
      fence.acq_rel.cluster;
)");
}

TEST_F(HandoverTest, ReductionInSharedMemory) {
  Expect("", "red.release.cluster.shared::cluster.add.u32 [%r5], 1;", R"(
    WAIT:
      atom.acquire.cluster.shared::cta.or.b32 %r6, [flag], 0;
      setp.lt.u32 %p4, %r6, 256;
      @%p4 bra WAIT;
)");
}

TEST_F(HandoverTest, FlagOfTheClusterInGlobalMemory) {
  Expect("", "bar.sync 0;\n@%p3 st.release.cluster.global.u32 [%out+64], 1;", R"(
    WAIT:
      ld.acquire.cluster.global.u32 %r6, [%out+64];
      setp.eq.u32 %p4, %r6, 0;
      @%p4 bra WAIT;
)");
}

TEST_F(HandoverTest, FlagOfTheDevice) {
  Expect("", "bar.sync 0;\n@%p3 st.release.gpu.global.u32 [%out+64], 1;", R"(
    WAIT:
      ld.acquire.gpu.global.u32 %r6, [%out+64];
      setp.eq.u32 %p4, %r6, 0;
      @%p4 bra WAIT;
)");
}

TEST_F(HandoverTest, TicketOfTheDevice) {
  Expect("", "fence.acq_rel.gpu;\nred.relaxed.gpu.global.add.u32 [%out+64], 1;", R"(
    WAIT:
      atom.relaxed.gpu.global.add.u32 %r6, [%out+64], 0;
      setp.lt.u32 %p4, %r6, 256;
      @%p4 bra WAIT;
      fence.acq_rel.gpu;
)");
}

TEST_F(HandoverTest, BulkCopyThatWasWaitedFor) {
  const std::string copy = R"(
      @!%p3 bra COPIED;
      mov.u32 %r7, tile;
      mov.u32 %r8, 0;
      mov.u64 %rd4, %in;
    COPY:
      cp.async.bulk.global.shared::cta.bulk_group [%rd4], [%r7], 32768;
      add.u64 %rd4, %rd4, 32768;
      add.u32 %r8, %r8, 1;
      setp.lt.u32 %p5, %r8, 16;
      @%p5 bra COPY;
      cp.async.bulk.commit_group;
      cp.async.bulk.wait_group 0;
    COPIED:
)";
  const U64 alone = Alone(copy);
  EXPECT_GT(alone, 2500u);
  EXPECT_GE(Took("", "barrier.cluster.arrive; barrier.cluster.wait;",
                 "barrier.cluster.arrive; barrier.cluster.wait;", copy) +
                kTick,
            alone);
}

// An arrival that publishes nothing waits for nothing.
TEST_F(HandoverTest, RelaxedArrivalsDoNotWait) {
  EXPECT_LT(Took("", "barrier.cluster.arrive.relaxed; barrier.cluster.wait;",
                 "barrier.cluster.arrive.relaxed; barrier.cluster.wait;"),
            Alone() - 500);
}

}  // namespace
}  // namespace allranks::node
