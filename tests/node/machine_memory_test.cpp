// Memory of the machine: copies and sets of regions against plain loops on the host; pools,
// registered and managed memory.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstring>
#include <numeric>

#include "node/machine.h"
#include "test_machine.h"

namespace allranks::node {
namespace {

class MachineMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    machine_ = MakeTestMachine();
    ASSERT_NE(machine_, nullptr);
    process_ = machine_->AddProcess(0, 0);
  }

  StreamId Default(int device = 0) { return machine_->DefaultStream(process_, device); }

  void Wait(OpId op) {
    bool done = false;
    machine_->WhenDone({op}, [&](Time) {
      done = true;
      machine_->Stop();
    });
    while (!done && machine_->RunUntil(kTimeNever)) {
    }
    ASSERT_TRUE(done);
  }

  Address Alloc(int device, std::uint64_t bytes) {
    Address address = 0;
    EXPECT_EQ(machine_->Allocate(process_, device, bytes, &address), Status::kSuccess);
    return address;
  }

  Status Do(std::shared_ptr<CopyRequest> copy) {
    OpId op = 0;
    const Status status = machine_->Copy(process_, Default(), copy, machine_->now(), &op);
    if (status == Status::kSuccess) Wait(op);
    return status;
  }
  Status Do(const MemsetRequest& set) {
    OpId op = 0;
    const Status status = machine_->Memset(process_, Default(), set, machine_->now(), &op);
    if (status == Status::kSuccess) Wait(op);
    return status;
  }

  void Write(Address to, const std::vector<std::uint8_t>& bytes) {
    auto copy = std::make_shared<CopyRequest>();
    copy->dst = to;
    copy->size = bytes.size();
    copy->bytes.resize(bytes.size());
    std::memcpy(copy->bytes.data(), bytes.data(), bytes.size());
    ASSERT_EQ(Do(copy), Status::kSuccess);
  }
  std::vector<std::uint8_t> Read(Address from, std::uint64_t size) {
    auto copy = std::make_shared<CopyRequest>();
    copy->src = from;
    copy->size = size;
    EXPECT_EQ(Do(copy), Status::kSuccess);
    std::vector<std::uint8_t> bytes(size);
    std::memcpy(bytes.data(), copy->bytes.data(), size);
    return bytes;
  }

  std::unique_ptr<Machine> machine_;
  ProcessId process_ = 0;
};

std::vector<std::uint8_t> Pattern(std::size_t size, unsigned seed) {
  std::vector<std::uint8_t> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 + seed);
  return bytes;
}

TEST_F(MachineMemoryTest, RegionsAreCopiedAsByLoops) {
  const std::uint64_t kBytes = 4096;
  const Address a = Alloc(0, kBytes), b = Alloc(1, kBytes);
  EXPECT_TRUE(rc::check([&] {
    const auto in = [](std::uint64_t least, std::uint64_t bound) {
      return *rc::gen::inRange<std::uint64_t>(least, bound);
    };
    auto copy = std::make_shared<CopyRequest>();
    copy->size = in(1, 40);
    Rows& rows = copy->rows;
    rows.height = in(1, 6);
    rows.depth = in(1, 4);
    rows.src_pitch = copy->size + in(0, 9);
    rows.dst_pitch = copy->size + in(0, 9);
    rows.src_slice = rows.src_pitch * rows.height + in(0, 9);
    rows.dst_slice = rows.dst_pitch * rows.height + in(0, 9);
    const std::uint64_t from = in(0, 64), to = in(0, 64);
    const auto source = Pattern(kBytes, 1);
    auto expected = Pattern(kBytes, 90);
    Write(a, source);
    Write(b, expected);
    const bool in_bytes = *rc::gen::arbitrary<bool>();
    if (in_bytes) {
      copy->bytes.resize(copy->size * rows.height * rows.depth);
      std::memcpy(copy->bytes.data(), source.data(), copy->bytes.size());
    } else {
      copy->src = a + from;
    }
    copy->dst = b + to;
    std::size_t packed = 0;
    for (std::uint64_t z = 0; z < rows.depth; ++z) {
      for (std::uint64_t y = 0; y < rows.height; ++y) {
        for (std::uint64_t x = 0; x < copy->size; ++x, ++packed) {
          expected[to + z * rows.dst_slice + y * rows.dst_pitch + x] =
              source[in_bytes ? packed : from + z * rows.src_slice + y * rows.src_pitch + x];
        }
      }
    }
    RC_ASSERT(Do(copy) == Status::kSuccess);
    RC_ASSERT(Read(b, kBytes) == expected);
  }));
}

TEST_F(MachineMemoryTest, RegionsComeOutPacked) {
  const Address a = Alloc(0, 256);
  const auto source = Pattern(256, 3);
  Write(a, source);
  auto copy = std::make_shared<CopyRequest>();
  copy->src = a + 5;
  copy->size = 3;
  copy->rows.height = 2;
  copy->rows.depth = 2;
  copy->rows.src_pitch = 10;
  copy->rows.src_slice = 100;
  ASSERT_EQ(Do(copy), Status::kSuccess);
  ASSERT_EQ(copy->bytes.size(), 12u);
  for (std::size_t i = 0; i < 12; ++i) {
    const std::size_t at = 5 + i / 6 * 100 + i / 3 % 2 * 10 + i % 3;
    EXPECT_EQ(static_cast<std::uint8_t>(copy->bytes[i]), source[at]) << i;
  }
}

// A row longer than a piece of the copy engine, and pieces that end within rows.
TEST_F(MachineMemoryTest, LargeRowsCrossPieces) {
  const std::uint64_t kRow = (1 << 20) + 12345, kPitch = kRow + 77;
  const Address a = Alloc(0, 3 * kPitch), b = Alloc(1, 3 * kPitch);
  const auto source = Pattern(3 * kPitch, 9);
  Write(a, source);
  MemsetRequest set;
  set.dst = b;
  set.count = 3 * kPitch;
  ASSERT_EQ(Do(set), Status::kSuccess);
  auto copy = std::make_shared<CopyRequest>();
  copy->dst = b;
  copy->src = a;
  copy->size = kRow;
  copy->rows.height = 3;
  copy->rows.src_pitch = copy->rows.dst_pitch = kPitch;
  ASSERT_EQ(Do(copy), Status::kSuccess);
  auto expected = source;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (i % kPitch >= kRow) expected[i] = 0;
  }
  EXPECT_TRUE(Read(b, 3 * kPitch) == expected);
}

TEST_F(MachineMemoryTest, SetsOfRegionsLeaveGapsAlone) {
  const Address a = Alloc(0, 1024);
  auto expected = Pattern(1024, 5);
  Write(a, expected);
  MemsetRequest set;
  set.dst = a + 8;
  set.value = 0x11223344;
  set.width = 4;
  set.count = 3;
  set.rows.height = 4;
  set.rows.dst_pitch = 20;
  set.rows.depth = 2;
  set.rows.dst_slice = 400;
  ASSERT_EQ(Do(set), Status::kSuccess);
  for (std::size_t z = 0; z < 2; ++z) {
    for (std::size_t y = 0; y < 4; ++y) {
      for (std::size_t x = 0; x < 3; ++x) {
        std::memcpy(&expected[8 + z * 400 + y * 20 + x * 4], &set.value, 4);
      }
    }
  }
  EXPECT_EQ(Read(a, 1024), expected);
}

TEST_F(MachineMemoryTest, HostileRegionsAreRefused) {
  const Address a = Alloc(0, 1000), b = Alloc(0, 1000);
  const std::uint64_t kHuge = ~std::uint64_t{0};
  const auto refused = [&](std::uint64_t size, Rows rows) {
    auto copy = std::make_shared<CopyRequest>();
    copy->dst = b;
    copy->src = a;
    copy->size = size;
    copy->rows = rows;
    OpId op = 0;
    EXPECT_EQ(machine_->Copy(process_, Default(), copy, machine_->now(), &op),
              Status::kInvalidValue);
    MemsetRequest set;
    set.dst = b;
    set.count = size;
    set.rows = rows;
    EXPECT_EQ(machine_->Memset(process_, Default(), set, machine_->now(), &op),
              Status::kInvalidValue);
  };
  refused(1001, {});
  refused(kHuge, {});
  refused(10, {101, 1, 10, 0, 10, 0});     // beyond the end
  refused(10, {kHuge, 1, 0, 0, 0, 0});     // the same bytes for ever
  refused(10, {2, 1, 5, 0, 5, 0});         // rows overlap
  refused(10, {2, 2, 10, 15, 10, 15});     // planes overlap
  refused(1, {2, 1, kHuge, 0, kHuge, 0});  // wraps around
  refused(1, {1, 3, 0, kHuge / 2 + 1, 0, kHuge / 2 + 1});
  refused(16, {kHuge / 16 + 2, 1, 16, 0, 16, 0});  // the total wraps around
  auto copy = std::make_shared<CopyRequest>();     // fewer bytes than rows need
  copy->dst = a;
  copy->size = 10;
  copy->rows = {2, 1, 10, 0, 0, 0};
  copy->bytes.resize(19);
  EXPECT_EQ(Do(copy), Status::kInvalidValue);
  copy->rows = {0, 1, 10, 0, 0, 0};
  OpId op = 1;
  EXPECT_EQ(machine_->Copy(process_, Default(), copy, machine_->now(), &op), Status::kSuccess);
  EXPECT_EQ(op, 0u);
}

TEST_F(MachineMemoryTest, AFreeTakesEffectInStreamOrder) {
  const PoolId pool = machine_->DefaultPool(process_, 0);
  ASSERT_NE(pool, 0u);
  EXPECT_EQ(machine_->DefaultPool(process_, 0), pool);
  const std::uint64_t before = machine_->FreeMemory(process_, 0);
  Address a = 0, b = 0, c = 0;
  ASSERT_EQ(machine_->AllocateAsync(process_, Default(), pool, 1000, &a), Status::kSuccess);
  OpId set = 0, freed = 0, void_free = 0;
  MemsetRequest request;
  request.dst = a;
  request.count = 1000;
  ASSERT_EQ(machine_->Memset(process_, Default(), request, machine_->now(), &set),
            Status::kSuccess);
  ASSERT_EQ(machine_->FreeAsync(process_, Default(), a, machine_->now(), &void_free),
            Status::kSuccess);
  EXPECT_EQ(machine_->FreeAsync(process_, Default(), a, machine_->now(), &freed),
            Status::kInvalidValue);
  EXPECT_EQ(machine_->Free(process_, a), Status::kInvalidValue);
  // Another size or another stream gets other memory, the same of both takes over.
  StreamId other = 0;
  ASSERT_EQ(machine_->CreateStream(process_, 0, true, 0, &other), Status::kSuccess);
  ASSERT_EQ(machine_->AllocateAsync(process_, other, pool, 1000, &b), Status::kSuccess);
  EXPECT_NE(a, b);
  ASSERT_EQ(machine_->AllocateAsync(process_, Default(), pool, 1000, &c), Status::kSuccess);
  EXPECT_EQ(a, c);
  Wait(void_free);
  EXPECT_EQ(machine_->Describe(process_, a).kind, PointerInfo::Kind::kDevice);
  ASSERT_EQ(machine_->FreeAsync(process_, other, a, machine_->now(), &freed), Status::kSuccess);
  EXPECT_EQ(machine_->Describe(process_, a).kind, PointerInfo::Kind::kDevice);
  Wait(freed);
  EXPECT_EQ(machine_->Describe(process_, a).kind, PointerInfo::Kind::kUnknown);
  ASSERT_EQ(machine_->Free(process_, b), Status::kSuccess);
  EXPECT_EQ(machine_->FreeMemory(process_, 0), before);
}

TEST_F(MachineMemoryTest, PoolsAreAccountedFor) {
  const std::uint64_t before = machine_->FreeMemory(process_, 1);
  PoolId pool = 0;
  ASSERT_EQ(machine_->CreatePool(process_, 1, 0, 0, &pool), Status::kSuccess);
  ASSERT_EQ(machine_->SetPoolAttribute(process_, pool, PoolAttribute::kReleaseThreshold, 5000),
            Status::kSuccess);
  Address a = 0;
  ASSERT_EQ(machine_->AllocateAsync(process_, Default(1), pool, 100'000, &a), Status::kSuccess);
  const auto get = [&](PoolAttribute attribute) {
    std::uint64_t value = 0;
    EXPECT_EQ(machine_->GetPoolAttribute(process_, pool, attribute, &value), Status::kSuccess);
    return value;
  };
  EXPECT_EQ(get(PoolAttribute::kUsedCurrent), 100'000u);
  EXPECT_EQ(before - machine_->FreeMemory(process_, 1), get(PoolAttribute::kReservedCurrent));
  OpId freed = 0;
  ASSERT_EQ(machine_->FreeAsync(process_, Default(1), a, machine_->now(), &freed),
            Status::kSuccess);
  Wait(freed);
  EXPECT_EQ(get(PoolAttribute::kUsedCurrent), 0u);
  EXPECT_EQ(get(PoolAttribute::kReservedCurrent), 5000u);
  EXPECT_EQ(before - machine_->FreeMemory(process_, 1), 5000u);
  const ProcessId stranger = machine_->AddProcess(1, 0);
  EXPECT_EQ(machine_->DestroyPool(stranger, pool), Status::kInvalidValue);
  EXPECT_EQ(machine_->AllocateAsync(stranger, machine_->DefaultStream(stranger, 0), pool, 8, &a),
            Status::kInvalidValue);
  EXPECT_EQ(machine_->DestroyPool(process_, pool), Status::kSuccess);
  EXPECT_EQ(machine_->FreeMemory(process_, 1), before);
  EXPECT_EQ(machine_->DestroyPool(process_, pool), Status::kInvalidValue);
}

// A reset takes pools and their memory, and a free under way must not meet what is not there.
TEST_F(MachineMemoryTest, ResetsAndEndsTakePools) {
  const std::uint64_t before = machine_->FreeMemory(process_, 0);
  for (const bool reset : {true, false}) {
    PoolId pool = 0;
    ASSERT_EQ(machine_->CreatePool(process_, 0, 0, 0, &pool), Status::kSuccess);
    Address a = 0, b = 0;
    ASSERT_EQ(machine_->AllocateAsync(process_, Default(), pool, 4096, &a), Status::kSuccess);
    ASSERT_EQ(
        machine_->AllocateAsync(process_, Default(), machine_->DefaultPool(process_, 0), 4096, &b),
        Status::kSuccess);
    OpId freed = 0;
    ASSERT_EQ(machine_->FreeAsync(process_, Default(), a, machine_->now(), &freed),
              Status::kSuccess);
    if (reset) {
      machine_->ResetDevice(process_, 0);
      EXPECT_EQ(machine_->DestroyPool(process_, pool), Status::kInvalidValue);
    } else {
      machine_->RemoveProcess(process_);
      process_ = machine_->AddProcess(0, 0);
    }
    machine_->RunUntil(machine_->now() + Ms(1));
    EXPECT_EQ(machine_->FreeMemory(process_, 0), before);
  }
}

TEST_F(MachineMemoryTest, RegisteredMemoryLiesWhereTheProcessHasIt) {
  const Address at = 0x5555'5555'6000;
  PinnedMemory memory;
  ASSERT_EQ(machine_->RegisterHost(process_, at, 8192, {}, &memory), Status::kSuccess);
  EXPECT_EQ(memory.address, at);
  EXPECT_GE(memory.fd, 0);
  EXPECT_EQ(machine_->Describe(process_, at + 8191).kind, PointerInfo::Kind::kPinned);
  const auto bytes = Pattern(8192, 4);
  Write(at, bytes);
  EXPECT_EQ(Read(at, 8192), bytes);
  EXPECT_EQ(machine_->RegisterHost(process_, at + 4096, 8192, {}, &memory),
            Status::kHostMemoryAlreadyRegistered);
  EXPECT_EQ(machine_->FreePinned(process_, at + 4096), Status::kInvalidValue);
  EXPECT_EQ(machine_->FreePinned(process_, at), Status::kSuccess);
  EXPECT_EQ(machine_->Describe(process_, at).kind, PointerInfo::Kind::kUnknown);
  EXPECT_EQ(machine_->RegisterHost(process_, at, 8192, {}, &memory), Status::kSuccess);
}

TEST_F(MachineMemoryTest, RegistrationsOfAFileShareItsMemory) {
  const Address one = 0x5555'5555'6000, two = 0x6666'6666'6000;
  const HostFile file = {3, 77, 4096};
  PinnedMemory memory;
  ASSERT_EQ(machine_->RegisterHost(process_, one, 8192, file, &memory), Status::kSuccess);
  EXPECT_FALSE(memory.shared);
  ASSERT_EQ(machine_->RegisterHost(process_, two, 8192, file, &memory), Status::kSuccess);
  EXPECT_TRUE(memory.shared);
  const auto bytes = Pattern(8192, 4);
  Write(one, bytes);
  EXPECT_EQ(Read(two, 8192), bytes);
  // Of another file, or of another part; a part of the same is refused.
  const Address other = 0x7777'7777'6000;
  EXPECT_EQ(machine_->RegisterHost(process_, other, 4096, {3, 77, 8192}, &memory),
            Status::kNotSupported);
  EXPECT_EQ(machine_->RegisterHost(process_, other, 16384, file, &memory), Status::kNotSupported);
  ASSERT_EQ(machine_->RegisterHost(process_, other, 4096, {3, 77, 0}, &memory), Status::kSuccess);
  EXPECT_FALSE(memory.shared);
  ASSERT_EQ(machine_->RegisterHost(process_, other + 4096, 8192, {4, 77, 4096}, &memory),
            Status::kSuccess);
  EXPECT_FALSE(memory.shared);
  // It stays as long as anybody has it.
  EXPECT_EQ(machine_->FreePinned(process_, one), Status::kSuccess);
  EXPECT_EQ(Read(two, 8192), bytes);
  EXPECT_EQ(machine_->FreePinned(process_, two), Status::kSuccess);
  ASSERT_EQ(machine_->RegisterHost(process_, one, 8192, file, &memory), Status::kSuccess);
  EXPECT_FALSE(memory.shared);
}

TEST_F(MachineMemoryTest, HostileRegistrationsAreRefused) {
  const std::uint64_t kPage = 4096;
  PinnedMemory memory;
  const auto refused = [&](Address address, std::uint64_t size) {
    EXPECT_EQ(machine_->RegisterHost(process_, address, size, {}, &memory), Status::kInvalidValue)
        << std::hex << address << " " << size;
  };
  refused(0, kPage);
  refused(kPage, 0);
  refused(kPage + 1, kPage);
  refused(kPage, 100);
  refused(~std::uint64_t{0} / kPage * kPage, kPage);
  refused(kPage, ~std::uint64_t{0} / kPage * kPage);
  refused(0x2000'0000'0000, kPage);              // pinned memory's place
  refused(0x3000'0000'0000 - kPage, 2 * kPage);  // device memory's
  refused(0x6000'0000'0000, kPage);              // shared memory's window
  refused(0x62ff'ffff'f000, 2 * kPage);          // parameters' window
  EXPECT_EQ(machine_->RegisterHost(process_, kPage, std::uint64_t{1} << 46, {}, &memory),
            Status::kInvalidValue);
}

TEST_F(MachineMemoryTest, ManagedMemoryMoves) {
  PinnedMemory memory, pinned;
  ASSERT_EQ(machine_->AllocatePinned(process_, 1 << 20, true, &memory), Status::kSuccess);
  ASSERT_EQ(machine_->AllocatePinned(process_, 4096, false, &pinned), Status::kSuccess);
  EXPECT_EQ(machine_->Describe(process_, memory.address).kind, PointerInfo::Kind::kManaged);
  const std::uint64_t before = machine_->FreeMemory(process_, 2);
  const auto bytes = Pattern(1 << 20, 8);
  Write(memory.address, bytes);
  const auto prefetch = [&](Address address, std::uint64_t size, int device) {
    OpId op = 0;
    const Status status =
        machine_->Prefetch(process_, Default(), address, size, device, machine_->now(), &op);
    const Time start = machine_->now();
    if (status == Status::kSuccess) Wait(op);
    return std::pair(status, machine_->now() - start);
  };
  const auto [moved, cost] = prefetch(memory.address, 1 << 20, 2);
  EXPECT_EQ(moved, Status::kSuccess);
  EXPECT_EQ(machine_->Describe(process_, memory.address).device, 2);
  EXPECT_EQ(machine_->FreeMemory(process_, 2), before);
  const auto [again, nothing] = prefetch(memory.address, 1 << 20, 2);
  EXPECT_EQ(again, Status::kSuccess);
  EXPECT_LT(nothing, cost / 2) << "it is there already";
  EXPECT_EQ(prefetch(memory.address, 4096, 1).first, Status::kSuccess);
  EXPECT_EQ(machine_->Describe(process_, memory.address).device, 2) << "a part does not move it";
  EXPECT_EQ(Read(memory.address, 1 << 20), bytes);
  EXPECT_EQ(prefetch(memory.address, 1 << 20, -1).first, Status::kSuccess);
  EXPECT_EQ(prefetch(memory.address, 1 << 20, 99).first, Status::kInvalidDevice);
  EXPECT_EQ(prefetch(memory.address, (1 << 20) + 1, 0).first, Status::kInvalidValue);
  EXPECT_EQ(prefetch(pinned.address, 64, 0).first, Status::kInvalidValue);
  EXPECT_EQ(machine_->FreePinned(process_, memory.address), Status::kSuccess);
}

// One variable for all devices, there until the process ends.
TEST_F(MachineMemoryTest, ManagedVariablesAreShared) {
  const std::string text = R"(.version 8.0
.target sm_90
.address_size 64
.global .attribute(.managed) .align 4 .u32 counter = 5;
.global .align 4 .u32 plain = 6;
)";
  const auto load = [&](int device) {
    Status status;
    auto module = machine_->LoadModule(process_, device, std::as_bytes(std::span(text)), &status);
    EXPECT_TRUE(module) << module.error().message;
    return module ? *module : 0;
  };
  const ModuleId first = load(0), second = load(1);
  GlobalInfo a, b, plain;
  ASSERT_EQ(machine_->GetGlobal(first, "counter", &a), Status::kSuccess);
  ASSERT_EQ(machine_->GetGlobal(second, "counter", &b), Status::kSuccess);
  ASSERT_EQ(machine_->GetGlobal(first, "plain", &plain), Status::kSuccess);
  EXPECT_TRUE(a.managed);
  EXPECT_GE(a.fd, 0);
  EXPECT_EQ(a.address, b.address);
  EXPECT_FALSE(plain.managed);
  EXPECT_EQ(Read(a.address, 4), (std::vector<std::uint8_t>{5, 0, 0, 0}));
  Write(a.address, {9, 0, 0, 0});
  EXPECT_EQ(machine_->FreePinned(process_, a.address), Status::kInvalidValue);
  EXPECT_EQ(machine_->UnloadModule(process_, first), Status::kSuccess);
  EXPECT_EQ(machine_->UnloadModule(process_, second), Status::kSuccess);
  EXPECT_EQ(machine_->Describe(process_, plain.address).kind, PointerInfo::Kind::kUnknown);
  ASSERT_EQ(machine_->GetGlobal(load(0), "counter", &b), Status::kSuccess);
  EXPECT_EQ(a.address, b.address);
  EXPECT_EQ(Read(b.address, 4), (std::vector<std::uint8_t>{9, 0, 0, 0}));
}

}  // namespace
}  // namespace allranks::node
