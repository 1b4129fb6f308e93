// Nobody sees bytes of another device or block before they have arrived, whatever he looks with;
// and atomics stay atomic while something is on its way.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "node/checking.h"
#include "ptx_machine.h"

namespace allranks::node {
namespace {

using U32 = std::uint32_t;

class ArrivalTest : public PtxMachineTest {
 protected:
  void SetUp() override { Begin(false); }
  void Begin(bool check, const std::string& profile = "h100x8") {
    MachineOptions options;
    options.devices = 2;
    options.check = check;
    Start(options, profile);
    ASSERT_EQ(machine_->EnablePeer(process_, 0, 1), Status::kSuccess);
    ASSERT_EQ(machine_->EnablePeer(process_, 1, 0), Status::kSuccess);
    for (int d = 0; d < 2; ++d) {
      ASSERT_EQ(machine_->Allocate(process_, d, kBytes, &memory_[d]), Status::kSuccess);
      const std::vector<std::byte> zero(kBytes);
      Write(memory_[d], zero.data(), kBytes);
    }
  }

  // The same kernel on both devices at once: %out is the own memory, %in the peer's, %rank the
  // device.
  void RunBoth(const std::string& body, std::uint32_t threads = 1) {
    std::array<OpId, 2> ops{};
    for (int d = 0; d < 2; ++d) {
      const std::string text = Kernel(fmt::format("mov.u32 %rank, {};\n", d) + body);
      Status status = Status::kSuccess;
      auto module = machine_->LoadModule(process_, d, std::as_bytes(std::span(text)), &status);
      ASSERT_TRUE(module) << module.error().message;
      KernelInfo info;
      ASSERT_EQ(machine_->GetKernel(*module, "k", &info), Status::kSuccess);
      LaunchRequest request;
      request.kernel = info.id;
      request.block.x = threads;
      request.params.resize(info.param_bytes);
      std::memcpy(request.params.data() + info.param_offsets[0], &memory_[d], 8);
      std::memcpy(request.params.data() + info.param_offsets[1], &memory_[1 - d], 8);
      ASSERT_EQ(machine_->Launch(process_, machine_->DefaultStream(process_, d), request,
                                 machine_->now(), &ops[static_cast<std::size_t>(d)]),
                Status::kSuccess);
    }
    for (const OpId op : ops) ASSERT_TRUE(Wait(op));
    ASSERT_TRUE(machine_->TakeFaults().empty());
  }

  // Nanoseconds of 16 rounds in which the devices send each other a number in turn; `look` puts
  // what is at [%out] into %r4.
  std::uint64_t PingPong(const std::string& send, const std::string& look, bool check = false) {
    Begin(check);
    RunBoth(R"(
      mov.u32 %r1, %rank;                        // the number to be waited for
      mov.u64 %rd1, %globaltimer;
    ROUND:
)" + look + R"(
      setp.ne.u32 %p1, %r4, %r1;
      @%p1 bra ROUND;
      add.u32 %r2, %r1, 1;
)" + send + R"(
      add.u32 %r1, %r1, 2;
      setp.lt.u32 %p2, %r1, 32;
      @%p2 bra ROUND;
      mov.u64 %rd2, %globaltimer;
      sub.u64 %rd2, %rd2, %rd1;
      st.global.u64 [%out+128], %rd2;
)");
    return Read<std::uint64_t>(memory_[0] + 128, 1).front();
  }

  static constexpr const char* kSend = "st.relaxed.sys.global.u32 [%in], %r2;\n";
  static constexpr const char* kLoad = "ld.relaxed.sys.global.u32 %r4, [%out];\n";
  static constexpr std::uint64_t kBytes = 1 << 20;
  Address memory_[2] = {};
};

// A megabyte of packets is on a slow link when the receiver begins to look for the last of them. A
// loop that only looks is parked until they arrive; one that also counts its rounds in memory is
// executed. Both see them at the same time.
TEST_F(ArrivalTest, WaitsForPacketsUnderWayAreParked) {
  constexpr double kRound = 64;  // two ticks of the timer
  const auto received =
      [&](const std::string& look, const std::string& round, bool check, std::uint64_t* skipped) {
        Begin(check, "l40s-pcie8");
        RunBoth(R"(
      mul.wide.u32 %rd1, %t, 16;
      add.u64 %rd2, %out, %rd1;
      add.u64 %rd3, %in, %rd1;
      setp.ne.u32 %p1, %rank, 0;
      @%p1 bra RECEIVE;
      mov.u32 %r1, 1;
    SEND:
      st.relaxed.sys.global.v4.u32 [%rd3], {%r1, %r1, %r1, %r1};
      add.u64 %rd3, %rd3, 512;
      add.u32 %r1, %r1, 1;
      setp.le.u32 %p2, %r1, 2000;
      @%p2 bra SEND;
      bra DONE;
    RECEIVE:
      mov.u64 %rd4, %globaltimer;
      add.u64 %rd4, %rd4, 20000;
    SLEEP:
      nanosleep.u32 100;
      mov.u64 %rd5, %globaltimer;
      setp.lt.u64 %p3, %rd5, %rd4;
      @%p3 bra SLEEP;
      mov.u32 %r6, 0;
      add.u64 %rd7, %rd2, 1023488;
    LOOK:
)" + look + round + R"(
      setp.eq.u32 %p4, %r5, 0;
      @%p4 bra LOOK;
      mov.u64 %rd6, %globaltimer;
      sub.u64 %rd6, %rd6, %rd4;
      st.global.u64 [%out+1048064], %rd6;
    DONE:
)",
                32);
        *skipped = machine_->stats().skipped_iterations;
        return Read<std::uint64_t>(memory_[1] + 1048064, 1).front();
      };
  const char* vector = "ld.relaxed.sys.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd7];\n";
  const char* word = "ld.relaxed.sys.global.u32 %r5, [%rd7];\n";
  const char* atomic = "atom.relaxed.sys.global.or.b32 %r5, [%rd7], 0;\n";
  for (const char* look : {vector, word, atomic}) {
    for (const bool check : {false, true}) {
      std::uint64_t parked = 0, executed = 0;
      const std::uint64_t soon = received(look, "", check, &parked);
      const std::uint64_t counted = received(
          look, "add.u32 %r6, %r6, 1;\nst.global.u32 [%rd2+1047552], %r6;\n", check, &executed);
      EXPECT_GT(soon, 5000u) << look;
      EXPECT_NEAR(static_cast<double>(soon), static_cast<double>(counted), kRound) << look << check;
      EXPECT_GT(parked, executed + 10) << look << check;
    }
  }
}

TEST_F(ArrivalTest, AtomicsSeeAStoreNoEarlierThanLoads) {
  for (const bool check : {false, true}) {
    const std::uint64_t loads = PingPong(kSend, kLoad, check);
    EXPECT_GT(loads, 16u * 2 * 500);
    for (const char* look : {"atom.relaxed.sys.global.or.b32 %r4, [%out], 0;\n",
                             "atom.relaxed.sys.global.add.u32 %r4, [%out], 0;\n",
                             "atom.relaxed.sys.global.max.u32 %r4, [%out], 0;\n",
                             "atom.relaxed.sys.global.cas.b32 %r4, [%out], 77777, 5;\n",
                             "nanosleep.u32 40;\natom.relaxed.sys.global.or.b32 %r4, [%out], 0;\n",
                             "ld.volatile.global.u32 %r4, [%out];\n",
                             "ld.relaxed.sys.global.v2.u32 {%r4, %r5}, [%out];\n"}) {
      EXPECT_GT(PingPong(kSend, look, check), loads * 9 / 10) << look << check;
    }
  }
}

// The same number stays in the low half; the high half is changed, so the atomics cannot come
// before the store, and what is loaded behind them is not there earlier.
TEST_F(ArrivalTest, ChangingAtomicsWaitForAStoreUnderWay) {
  const std::uint64_t loads = PingPong(kSend, kLoad);
  const char* change = R"(
      atom.relaxed.sys.global.add.u32 %r4, [%out], 65536;
      and.b32 %r4, %r4, 65535;
)";
  EXPECT_GT(PingPong(kSend, change), loads * 9 / 10);
  const char* behind = R"(
      red.relaxed.sys.global.add.u32 [%out], 65536;
      ld.relaxed.sys.global.u32 %r4, [%out];
      and.b32 %r4, %r4, 65535;
)";
  EXPECT_GT(PingPong(kSend, behind), loads * 9 / 10);
}

// An arrival counter to which its owner adds, too.
TEST_F(ArrivalTest, ReductionsUnderWayAreNotSeen) {
  const char* send = "red.relaxed.sys.global.add.u32 [%in], 2;\n";
  const auto look = [&](const char* with) {
    // Rank 0 waits for 0, 2, 4 and so on, rank 1 for 2, 4, 6.
    return std::string(with) + "and.b32 %r4, %r4, 65535;\nsub.u32 %r4, %r4, %rank;\n";
  };
  const std::uint64_t loads = PingPong(send, look(kLoad));
  EXPECT_GT(loads, 16u * 2 * 500);
  EXPECT_GT(PingPong(send, look("red.relaxed.sys.global.add.u32 [%out], 65536;\n"
                                "ld.relaxed.sys.global.u32 %r4, [%out];\n")),
            loads * 9 / 10);
  EXPECT_GT(PingPong(send, look("atom.relaxed.sys.global.or.b32 %r4, [%out], 0;\n")),
            loads * 9 / 10);
}

// Each device swaps numbers of its own into one word: none is lost, none is got twice.
TEST_F(ArrivalTest, ExchangesLoseNothing) {
  RunBoth(R"(
      mov.u64 %rd1, %out;
      setp.eq.u32 %p0, %rank, 1;
      @%p0 mov.u64 %rd1, %in;                    // device 0's word
      mad.lo.u32 %r1, %rank, 1000, 1;
      add.u32 %r2, %r1, 100;
      add.u64 %rd2, %out, 256;
    SWAP:
      atom.relaxed.sys.global.exch.b32 %r3, [%rd1], %r1;
      st.global.u32 [%rd2], %r3;
      add.u64 %rd2, %rd2, 4;
      add.u32 %r1, %r1, 1;
      setp.lt.u32 %p1, %r1, %r2;
      @%p1 bra SWAP;
)");
  std::vector<U32> seen = Read<U32>(memory_[0], 1);
  for (const Address memory : memory_) {
    const auto got = Read<U32>(memory + 256, 100);
    seen.insert(seen.end(), got.begin(), got.end());
  }
  std::sort(seen.begin(), seen.end());
  std::vector<U32> expected(201);
  std::iota(expected.begin(), expected.begin() + 101, 0u);
  std::iota(expected.begin() + 101, expected.end(), 1001u);
  EXPECT_EQ(seen, expected);
}

// A lock that is taken by compare-and-swap and given back by a store.
TEST_F(ArrivalTest, ALockHolds) {
  for (const bool check : {false, true}) {
    Begin(check);
    RunBoth(R"(
      mov.u64 %rd1, %out;
      setp.eq.u32 %p0, %rank, 1;
      @%p0 mov.u64 %rd1, %in;                    // device 0's lock, and its count
      mov.u32 %r1, 0;
    TAKE:
      atom.acquire.sys.global.cas.b32 %r2, [%rd1], 0, 1;
      setp.ne.u32 %p1, %r2, 0;
      @%p1 bra TAKE;
      ld.global.u32 %r3, [%rd1+128];
      add.u32 %r3, %r3, 1;
      st.global.u32 [%rd1+128], %r3;
      st.release.sys.global.u32 [%rd1], 0;
      add.u32 %r1, %r1, 1;
      setp.lt.u32 %p2, %r1, 40;
      @%p2 bra TAKE;
)");
    EXPECT_EQ(Read<U32>(memory_[0] + 128, 1).front(), 80u);
    if (!check) continue;
    for (const Finding& finding : machine_->checking()->TakeFindings()) {
      ADD_FAILURE() << Describe(finding);
    }
  }
}

// A store to another block's shared memory has its way to go.
TEST_F(ArrivalTest, FlagsInSharedMemoryOfAnotherBlock) {
  Options options;
  options.grid = options.cluster = {2, 1, 1};
  options.block = {1, 1, 1};
  for (const char* look : {"ld.relaxed.cluster.shared::cta.u32 %r4, [flag];",
                           "atom.relaxed.cluster.shared::cta.or.b32 %r4, [flag], 0;"}) {
    const auto took = RunAt<std::uint64_t>(std::string(R"(
      .shared .align 4 .b32 flag;
      st.shared.u32 [flag], 0;
      mov.u32 %r2, flag;
      xor.b32 %r3, %rank, 1;
      mapa.shared::cluster.u32 %r3, %r2, %r3;
      barrier.cluster.arrive;
      barrier.cluster.wait;
      mov.u32 %r1, %rank;
      mov.u64 %rd1, %clock64;
    ROUND:
)") + look + R"(
      setp.ne.u32 %p1, %r4, %r1;
      @%p1 bra ROUND;
      add.u32 %r5, %r1, 1;
      st.relaxed.cluster.shared::cluster.u32 [%r3], %r5;
      add.u32 %r1, %r1, 2;
      setp.lt.u32 %p2, %r1, 32;
      @%p2 bra ROUND;
      mov.u64 %rd2, %clock64;
      sub.u64 %rd2, %rd2, %rd1;
      setp.eq.u32 %p3, %rank, 0;
      @%p3 st.global.u64 [%out], %rd2;
      barrier.cluster.arrive;
      barrier.cluster.wait;
)",
                                           memory_[0], 1, options);
    ASSERT_EQ(took.size(), 1u) << fault_;
    EXPECT_GT(took.front(), 30u * 180) << look;
  }
}

}  // namespace
}  // namespace allranks::node
