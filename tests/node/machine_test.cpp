// The machine as a whole, driven without sockets: kernels/basics.ptx on one or more devices.
#include "node/machine.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "test_machine.h"

namespace allranks::node {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

class MachineTest : public ::testing::Test {
 protected:
  void SetUp() override { Make({}); }

  void Make(MachineOptions options) {
    machine_ = MakeTestMachine(options);
    ASSERT_NE(machine_, nullptr);
    process_ = machine_->AddProcess(0, 0);
    text_ = ReadFile(std::string(ALLRANKS_SOURCE_DIR "/tests/node/kernels/basics.ptx"));
    ASSERT_FALSE(text_.empty());
  }

  ModuleId Load(int device) {
    auto& module = modules_[device];
    if (module == 0) {
      Status status;
      auto loaded =
          machine_->LoadModule(process_, device, std::as_bytes(std::span(text_)), &status);
      EXPECT_TRUE(loaded) << loaded.error().message;
      module = loaded ? *loaded : 0;
    }
    return module;
  }

  Address Alloc(int device, std::uint64_t bytes) {
    Address address = 0;
    EXPECT_EQ(machine_->Allocate(process_, device, bytes, &address), Status::kSuccess);
    std::vector<std::byte> zero(bytes);
    Write(device, address, zero.data(), bytes);
    return address;
  }

  void Write(int device, Address to, const void* from, std::uint64_t bytes) {
    auto copy = std::make_shared<CopyRequest>();
    copy->dst = to;
    copy->size = bytes;
    copy->bytes.resize(bytes);
    std::memcpy(copy->bytes.data(), from, bytes);
    OpId op = 0;
    ASSERT_EQ(machine_->Copy(process_, machine_->DefaultStream(process_, device), copy,
                             machine_->now(), &op),
              Status::kSuccess);
    Wait(op);
  }

  template <class T>
  std::vector<T> Read(int device, Address from, std::size_t count) {
    auto copy = std::make_shared<CopyRequest>();
    copy->src = from;
    copy->size = count * sizeof(T);
    OpId op = 0;
    EXPECT_EQ(machine_->Copy(process_, machine_->DefaultStream(process_, device), copy,
                             machine_->now(), &op),
              Status::kSuccess);
    Wait(op);
    std::vector<T> out(count);
    std::memcpy(out.data(), copy->bytes.data(), count * sizeof(T));
    return out;
  }

  bool Wait(OpId op) { return WaitFor(*machine_, op); }

  template <class... Args>
  OpId Launch(int device, const std::string& name, Dim3 grid, Dim3 block, bool cooperative,
              Args... args) {
    KernelInfo info;
    EXPECT_EQ(machine_->GetKernel(Load(device), name, &info), Status::kSuccess) << name;
    LaunchRequest request;
    request.kernel = info.id;
    request.grid = grid;
    request.block = block;
    request.cooperative = cooperative;
    request.params.resize(info.param_bytes);
    std::size_t i = 0;
    const auto put = [&](const auto& value) {
      EXPECT_EQ(sizeof(value), info.param_sizes[i]);
      std::memcpy(request.params.data() + info.param_offsets[i], &value, sizeof(value));
      ++i;
    };
    (put(args), ...);
    OpId op = 0;
    status_ = machine_->Launch(process_, Stream(device), request, machine_->now(), &op);
    return op;
  }

  // A stream of its own for each launch, so that kernels of one device run side by side.
  StreamId Stream(int device) {
    StreamId stream = 0;
    EXPECT_EQ(machine_->CreateStream(process_, device, true, 0, &stream), Status::kSuccess);
    return stream;
  }

  void Peers() {
    for (int a = 0; a < machine_->DeviceCount(process_); ++a) {
      for (int b = 0; b < machine_->DeviceCount(process_); ++b) {
        if (a != b) machine_->EnablePeer(process_, a, b);
      }
    }
  }

  std::string text_;
  std::unique_ptr<Machine> machine_;
  ProcessId process_ = 0;
  std::map<int, ModuleId> modules_;
  Status status_ = Status::kSuccess;
};

TEST_F(MachineTest, Float4Add) {
  const int n = 5000;
  std::vector<float> a(n * 4), b(n * 4);
  for (int i = 0; i < n * 4; ++i) {
    a[static_cast<std::size_t>(i)] = static_cast<float>(i);
    b[static_cast<std::size_t>(i)] = 0.5f;
  }
  const Address pa = Alloc(0, n * 16), pb = Alloc(0, n * 16), pc = Alloc(0, n * 16);
  Write(0, pa, a.data(), n * 16);
  Write(0, pb, b.data(), n * 16);
  EXPECT_TRUE(Wait(Launch(0, "add4", {(n + 255) / 256}, {256}, false, pa, pb, pc, n)));
  const auto c = Read<float>(0, pc, n * 4);
  for (int i = 0; i < n * 4; ++i)
    ASSERT_EQ(c[static_cast<std::size_t>(i)], static_cast<float>(i) + 0.5f);
  const KernelRecord& record = machine_->stats().kernels.back();
  EXPECT_EQ(record.bytes_read, n * 32u);
  EXPECT_EQ(record.bytes_written, n * 16u);
  EXPECT_GT(record.end, record.start);
}

TEST_F(MachineTest, DivergentLoops) {
  const int n = 200;
  std::vector<unsigned> in(n), want(n);
  for (unsigned i = 0; i < n; ++i) {
    in[i] = i + 1;
    for (unsigned v = i + 1; v != 1; ++want[i]) v = v % 2 != 0 ? 3 * v + 1 : v / 2;
  }
  const Address p = Alloc(0, n * 4), q = Alloc(0, n * 4);
  Write(0, p, in.data(), n * 4);
  EXPECT_TRUE(Wait(Launch(0, "collatz", {2}, {128}, false, p, q, n)));
  EXPECT_EQ(Read<unsigned>(0, q, n), want);
}

TEST_F(MachineTest, BarriersAndAtomics) {
  std::vector<int> in(1024);
  int sum = 0;
  for (int i = 0; i < 1024; ++i) sum += in[static_cast<std::size_t>(i)] = i * 7 % 101;
  const Address p = Alloc(0, 4096), q = Alloc(0, 4);
  Write(0, p, in.data(), 4096);
  EXPECT_TRUE(Wait(Launch(0, "block_sum", {4}, {256}, false, p, q)));
  EXPECT_EQ(Read<int>(0, q, 1)[0], sum);
}

TEST_F(MachineTest, ShuffleAndBallot) {
  std::vector<int> in(32);
  int sum = 0;
  unsigned odd = 0;
  for (int i = 0; i < 32; ++i) {
    in[static_cast<std::size_t>(i)] = i * i + i / 3;
    sum += in[static_cast<std::size_t>(i)];
    odd |= static_cast<unsigned>(in[static_cast<std::size_t>(i)] & 1) << i;
  }
  const Address p = Alloc(0, 128), q = Alloc(0, 8);
  Write(0, p, in.data(), 128);
  EXPECT_TRUE(Wait(Launch(0, "warp_sum", {1}, {32}, false, p, q)));
  const auto out = Read<int>(0, q, 2);
  EXPECT_EQ(out[0], sum);
  EXPECT_EQ(static_cast<unsigned>(out[1]), odd);
}

TEST_F(MachineTest, GridSync) {
  std::vector<int> in(64);
  int sum = 0;
  for (int i = 0; i < 64; ++i) sum += in[static_cast<std::size_t>(i)] = i + 3;
  const Address p = Alloc(0, 256), q = Alloc(0, 256), r = Alloc(0, 4);
  Write(0, p, in.data(), 256);
  EXPECT_TRUE(Wait(Launch(0, "grid_sum", {64}, {32}, true, p, q, r)));
  EXPECT_EQ(Read<int>(0, r, 1)[0], sum);
}

TEST_F(MachineTest, GridSyncNeedsACooperativeLaunch) {
  const Address p = Alloc(0, 256);
  Wait(Launch(0, "grid_sum", {2}, {32}, false, p, p, p));
  EXPECT_EQ(machine_->StickyError(process_, 0), Status::kLaunchFailed);  // trap, as on hardware
}

TEST_F(MachineTest, CooperativeLaunchTooLarge) {
  const Address p = Alloc(0, 256);
  Launch(0, "grid_sum", {1 << 20}, {32}, true, p, p, p);
  EXPECT_EQ(status_, Status::kCooperativeLaunchTooLarge);
}

TEST_F(MachineTest, PingPongBetweenDevices) {
  Peers();
  const Address a = Alloc(0, 4), b = Alloc(1, 4);
  const OpId x = Launch(0, "pingpong", {1}, {1}, false, a, b, 100, 1);
  const OpId y = Launch(1, "pingpong", {1}, {1}, false, b, a, 100, 0);
  EXPECT_TRUE(Wait(x));
  EXPECT_TRUE(Wait(y));
  EXPECT_EQ(Read<unsigned>(0, a, 1)[0], 100u);
  const KernelRecord& record = machine_->stats().kernels[0];
  // 200 flags, each one way over the link and a poll: between half a microsecond and two.
  EXPECT_GT(record.end - record.start, Ns(200 * 400));
  EXPECT_LT(record.end - record.start, Ns(200 * 2500));
}

TEST_F(MachineTest, WithoutPeerAccessItIsAnIllegalAddress) {
  const Address a = Alloc(0, 4), b = Alloc(1, 4);
  Wait(Launch(0, "pingpong", {1}, {1}, false, a, b, 1, 1));
  EXPECT_EQ(machine_->StickyError(process_, 0), Status::kIllegalAddress);
  EXPECT_EQ(machine_->StickyError(process_, 1), Status::kSuccess);
  ASSERT_EQ(machine_->TakeFaults().size(), 1u);
}

TEST_F(MachineTest, OutOfBoundsNamesTheAllocation) {
  const Address a = Alloc(0, 64);
  Wait(Launch(0, "out_of_bounds", {1}, {1}, false, a, 16));
  const auto faults = machine_->TakeFaults();
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].status, Status::kIllegalAddress);
  EXPECT_NE(faults[0].message.find("allocation #1"), std::string::npos) << faults[0].message;
  EXPECT_NE(faults[0].message.find("basics.cu:"), std::string::npos) << faults[0].message;
}

TEST_F(MachineTest, ParkedWaitsCostNothing) {
  Peers();
  const Address flag = Alloc(1, 4), seen = Alloc(1, 8), spins = Alloc(1, 8), waited = Alloc(1, 8);
  std::vector<OpId> ops;
  ops.push_back(Launch(1, "wait_flag", {1}, {32}, false, flag, seen));
  ops.push_back(Launch(1, "wait_counting", {1}, {1}, false, flag, spins, 4000000000u));
  ops.push_back(Launch(1, "wait_clock", {1}, {1}, false, flag, waited, 1ll << 40));
  ops.push_back(Launch(0, "delay_then_set", {1}, {1}, false, flag, 100'000'000ull));
  for (const OpId op : ops) EXPECT_TRUE(Wait(op));
  EXPECT_EQ(Read<int>(1, seen, 1)[0], 1);
  EXPECT_LT(machine_->stats().warp_instructions, 20000u);
  // 100 ms at 1755 MHz, as seen by the one who waited.
  EXPECT_NEAR(static_cast<double>(Read<long long>(1, waited, 1)[0]), 175.5e6, 1e5);
  // Polls at the latency of its own L2, some 160 ns each.
  EXPECT_GT(Read<unsigned>(1, spins, 1)[0], 200'000u);
}

TEST_F(MachineTest, SkippedCountsEndAtTheBound) {
  const Address flag = Alloc(0, 4), spins = Alloc(0, 4);
  EXPECT_TRUE(Wait(Launch(0, "wait_counting", {1}, {1}, false, flag, spins, 123'456'789u)));
  EXPECT_EQ(Read<unsigned>(0, spins, 1)[0], 123'456'789u);
  EXPECT_LT(machine_->stats().warp_instructions, 5000u);
}

TEST_F(MachineTest, AtomicWait) {
  Peers();
  const Address flag = Alloc(1, 4), seen = Alloc(1, 4);
  const OpId w = Launch(1, "wait_atomic", {1}, {1}, false, flag, seen);
  const OpId d = Launch(0, "delay_then_set", {1}, {1}, false, flag, 100'000'000ull);
  EXPECT_TRUE(Wait(d));
  EXPECT_TRUE(Wait(w));
  EXPECT_EQ(Read<int>(1, seen, 1)[0], 1);
  EXPECT_LT(machine_->stats().warp_instructions, 20000u);
}

TEST_F(MachineTest, Lock) {
  const Address lock = Alloc(0, 4), value = Alloc(0, 4);
  EXPECT_TRUE(Wait(Launch(0, "lock_add", {20}, {1}, false, lock, value, 5)));
  EXPECT_EQ(Read<int>(0, value, 1)[0], 100);
}

TEST_F(MachineTest, LanesOfOneWarpWaitForEachOther) {
  const Address flag = Alloc(0, 4), out = Alloc(0, 8);
  EXPECT_TRUE(Wait(Launch(0, "lanes", {1}, {32}, false, flag, out)));
  EXPECT_EQ(Read<int>(0, out, 2), (std::vector<int>{7, 8}));
}

TEST_F(MachineTest, DeadlockIsFoundAndNamed) {
  const Address flag = Alloc(0, 16), seen = Alloc(0, 4);
  EXPECT_FALSE(Wait(Launch(0, "wait_flag", {2}, {64}, false, flag + 8, seen)));
  EXPECT_TRUE(machine_->Stuck());
  const auto waiters = machine_->Waiters();
  ASSERT_EQ(waiters.size(), 1u);
  EXPECT_EQ(waiters[0].kernel, "wait_flag");
  EXPECT_EQ(waiters[0].offset, 8u);
  EXPECT_EQ(waiters[0].seen, 0u);
  EXPECT_EQ(waiters[0].others, 3);
  EXPECT_NE(waiters[0].file.find("basics.cu"), std::string::npos);
  EXPECT_GT(waiters[0].line, 0);
}

TEST_F(MachineTest, HoistedSpinWaitsForNothingAndForEver) {
  const Address flag = Alloc(0, 4);
  EXPECT_FALSE(Wait(Launch(0, "hoisted", {1}, {1}, false, flag)));
  EXPECT_TRUE(machine_->Stuck());
  ASSERT_EQ(machine_->Waiters().size(), 1u);
  EXPECT_FALSE(machine_->Waiters()[0].has_object);
}

TEST_F(MachineTest, PointersInAStructByValue) {
  Peers();
  struct {
    Address p[8];
  } pointers{};
  for (int d = 0; d < 8; ++d) pointers.p[d] = Alloc(d, 128);
  EXPECT_TRUE(Wait(Launch(3, "by_struct", {1}, {32}, false, pointers, 8, 40)));
  for (int d = 0; d < 8; ++d)
    EXPECT_EQ(Read<int>(d, pointers.p[d], 32), std::vector<int>(32, 40 + d));
}

TEST_F(MachineTest, ModuleVariables) {
  const Address out = Alloc(0, 4);
  EXPECT_TRUE(Wait(Launch(0, "globals", {1}, {1}, false, out)));
  EXPECT_EQ(Read<int>(0, out, 1)[0], 15);
  EXPECT_TRUE(Wait(Launch(0, "globals", {1}, {1}, false, out)));
  EXPECT_EQ(Read<int>(0, out, 1)[0], 18);
}

TEST_F(MachineTest, RemovingAProcessReturnsItsMemory) {
  const std::uint64_t before = machine_->FreeMemory(process_, 0);
  const Address flag = Alloc(0, 1 << 20), seen = Alloc(0, 4);
  Launch(0, "wait_flag", {4}, {32}, false, flag, seen);
  machine_->RunUntil(machine_->now() + Us(100));
  const ProcessId other = machine_->AddProcess(1, 0);
  machine_->RemoveProcess(process_);
  EXPECT_EQ(machine_->FreeMemory(other, 0), before);
  machine_->RunUntil(machine_->now() + Us(100));
  EXPECT_FALSE(machine_->Busy());
}

TEST_F(MachineTest, AModuleMayBeUnloadedBehindItsLaunch) {
  const Address out = Alloc(0, 128);
  struct {
    Address p[8];
  } pointers{{out}};
  const OpId op = Launch(0, "by_struct", {1}, {32}, false, pointers, 1, 7);
  EXPECT_EQ(machine_->UnloadModule(process_, modules_[0]), Status::kSuccess);
  modules_.clear();
  EXPECT_TRUE(Wait(op));
  EXPECT_EQ(Read<int>(0, out, 32), std::vector<int>(32, 7));
}

TEST_F(MachineTest, FreedUnderAPollingKernelItIsAFaultOfThatKernel) {
  const Address seen = Alloc(0, 4);
  for (const Time after : {Us(3), Us(8), Us(100)}) {  // before it runs, while it runs, parked
    const Address doomed = Alloc(0, 4);
    const OpId op = Launch(0, "wait_flag", {1}, {32}, false, doomed, seen);
    machine_->RunUntil(machine_->now() + after);
    EXPECT_EQ(machine_->Free(process_, doomed), Status::kSuccess);
    Wait(op);
    EXPECT_EQ(machine_->StickyError(process_, 0), Status::kIllegalAddress);
    machine_->ResetDevice(process_, 0);
    EXPECT_EQ(machine_->StickyError(process_, 0), Status::kSuccess);
  }
}

TEST_F(MachineTest, AResetDropsWhatIsQueued) {
  const Address flag = Alloc(0, 4), seen = Alloc(0, 4);
  KernelInfo info;
  ASSERT_EQ(machine_->GetKernel(Load(0), "wait_flag", &info), Status::kSuccess);
  LaunchRequest request;
  request.kernel = info.id;
  request.params.resize(info.param_bytes);
  std::memcpy(request.params.data(), &flag, 8);
  std::memcpy(request.params.data() + 8, &seen, 8);
  const StreamId stream = Stream(0);
  OpId first = 0, second = 0;
  ASSERT_EQ(machine_->Launch(process_, stream, request, machine_->now(), &first), Status::kSuccess);
  ASSERT_EQ(machine_->Launch(process_, stream, request, machine_->now(), &second),
            Status::kSuccess);
  machine_->RunUntil(machine_->now() + Us(50));
  machine_->ResetDevice(process_, 0);
  EXPECT_TRUE(Wait(second));
  EXPECT_EQ(machine_->StickyError(process_, 0), Status::kSuccess);
  EXPECT_FALSE(machine_->Busy());
}

TEST_F(MachineTest, ADestroyedStreamsWorkStillOrdersTheDefaultStream) {
  const Address flag = Alloc(0, 4);
  StreamId stream = 0;
  ASSERT_EQ(machine_->CreateStream(process_, 0, false, 0, &stream), Status::kSuccess);
  KernelInfo info;
  ASSERT_EQ(machine_->GetKernel(Load(0), "delay_then_set", &info), Status::kSuccess);
  LaunchRequest request;
  request.kernel = info.id;
  request.params.resize(info.param_bytes);
  const std::uint64_t delay = 50'000;
  std::memcpy(request.params.data(), &flag, 8);
  std::memcpy(request.params.data() + 8, &delay, 8);
  OpId op = 0;
  ASSERT_EQ(machine_->Launch(process_, stream, request, machine_->now(), &op), Status::kSuccess);
  ASSERT_EQ(machine_->DestroyStream(process_, stream), Status::kSuccess);
  EXPECT_EQ(machine_->DestroyStream(process_, stream), Status::kInvalidHandle);
  EXPECT_EQ(Read<int>(0, flag, 1)[0], 1);  // on the default stream
}

TEST_F(MachineTest, OccupancyOfTheImpossibleIsZero) {
  KernelInfo info;
  ASSERT_EQ(machine_->GetKernel(Load(0), "add4", &info), Status::kSuccess);
  for (const std::uint32_t shared : {0xFFFFFC00u, 0xFFFFFFFFu, 1u << 30}) {
    int ctas = -1;
    EXPECT_EQ(machine_->Occupancy(info.id, 128, shared, &ctas), Status::kSuccess);
    EXPECT_EQ(ctas, 0);
  }
}

TEST_F(MachineTest, AnIpcHandleOpenedTwiceIsOneMapping) {
  const Address memory = Alloc(0, 64);
  IpcHandle handle;
  ASSERT_EQ(machine_->IpcExport(process_, memory, &handle), Status::kSuccess);
  const ProcessId other = machine_->AddProcess(1, 0);
  Address a = 0, b = 0;
  ASSERT_EQ(machine_->IpcOpen(other, 0, handle, &a), Status::kSuccess);
  ASSERT_EQ(machine_->IpcOpen(other, 0, handle, &b), Status::kSuccess);
  EXPECT_EQ(a, b);
  EXPECT_NE(a, memory);  // the exporter's address means nothing there
  EXPECT_EQ(machine_->Describe(other, memory).kind, PointerInfo::Kind::kUnknown);
  EXPECT_EQ(machine_->IpcClose(other, a), Status::kSuccess);
  EXPECT_EQ(machine_->Describe(other, a).kind, PointerInfo::Kind::kDevice);
  EXPECT_EQ(machine_->IpcClose(other, a), Status::kSuccess);
  EXPECT_EQ(machine_->Describe(other, a).kind, PointerInfo::Kind::kUnknown);
  EXPECT_EQ(machine_->IpcOpen(process_, 0, handle, &a), Status::kInvalidContext);
  handle.bytes[9] ^= 1;
  EXPECT_EQ(machine_->IpcOpen(other, 0, handle, &a), Status::kInvalidValue);
}

TEST_F(MachineTest, CheckedAccessesAreCounted) {
  MachineOptions options;
  options.check = true;
  modules_.clear();
  Make(options);
  const Address a = Alloc(0, 64 * 16), b = Alloc(0, 64 * 16), c = Alloc(0, 64 * 16);
  EXPECT_TRUE(Wait(Launch(0, "add4", {1}, {64}, false, a, b, c, 64)));
  EXPECT_EQ(machine_->stats().checked_accesses, 6u);  // two warps, two loads and a store
  EXPECT_EQ(machine_->stats().checked_bytes, 3u * 64 * 16);
}

// Loads that often return an older, permitted value: the protocol retries and ends right.
TEST_F(MachineTest, OlderValuesAreBorne) {
  Peers();
  const auto play = [&] {
    const Address a = Alloc(0, 4), b = Alloc(1, 4);
    const OpId x = Launch(0, "pingpong", {1}, {1}, false, a, b, 20, 1);
    const OpId y = Launch(1, "pingpong", {1}, {1}, false, b, a, 20, 0);
    EXPECT_TRUE(Wait(x));
    EXPECT_TRUE(Wait(y));
    EXPECT_EQ(Read<unsigned>(1, b, 1)[0], 20u);
    return machine_->stats().kernels[0].end - machine_->stats().kernels[0].start;
  };
  const Time plain = play();
  MachineOptions options;
  options.check = true;
  options.seed = 1;
  modules_.clear();
  Make(options);
  Peers();
  const Time reluctant = play();
  EXPECT_GE(machine_->stats().chosen_loads, 10u);
  EXPECT_GT(reluctant, plain);
}

}  // namespace
}  // namespace allranks::node
