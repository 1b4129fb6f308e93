// Memory by handles and multicast objects at the Machine: what programs of tests/programs/vmm
// cannot show with one host and sm_90 code. Hosts that share a fabric, 8-bit and single 16-bit
// multimem loads, bulk copies to multicast addresses and across mappings, limits.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <vector>

#include "node/hardware/profile.h"
#include "ptx_machine.h"

namespace allranks::node {
namespace {

constexpr std::uint64_t kGranule = VirtualMemory::kGranularity;

std::unique_ptr<Machine> MachineOf(const char* profile) {
  auto loaded = LoadProfile(std::string(ALLRANKS_SOURCE_DIR "/profiles/") + profile + ".toml");
  EXPECT_TRUE(loaded) << loaded.error().message;
  if (!loaded) return nullptr;
  auto machine = Machine::Create(*loaded, {});
  EXPECT_TRUE(machine) << machine.error().message;
  return machine ? std::move(*machine) : nullptr;
}

class VirtualMemoryTest : public PtxMachineTest {
 protected:
  VirtualMemory& vmm() { return machine_->virtual_memory(); }

  Address MapFor(HandleId handle, std::uint64_t size, int devices) {
    Address address = 0;
    EXPECT_EQ(vmm().Reserve(process_, size, 0, 0, &address), Status::kSuccess);
    EXPECT_EQ(vmm().Map(process_, address, size, 0, handle), Status::kSuccess);
    for (int d = 0; d < devices; ++d) {
      EXPECT_EQ(vmm().SetAccess(process_, address, size, d, AccessRight::kReadWrite),
                Status::kSuccess);
    }
    return address;
  }

  // Memory on the devices 0..n-1 and the address of all of it.
  Address MakeMulticast(int devices, std::vector<Address>* on) {
    HandleId multicast = 0;
    EXPECT_EQ(vmm().CreateMulticast(process_, static_cast<std::uint32_t>(devices), kGranule, 0,
                                    &multicast),
              Status::kSuccess);
    for (int d = 0; d < devices; ++d)
      EXPECT_EQ(vmm().AddDevice(process_, multicast, d), Status::kSuccess);
    for (int d = 0; d < devices; ++d) {
      HandleId memory = 0;
      EXPECT_EQ(vmm().Create(process_, d, kGranule, 0, &memory), Status::kSuccess);
      EXPECT_EQ(vmm().Bind(process_, multicast, 0, memory, 0, kGranule), Status::kSuccess);
      on->push_back(MapFor(memory, kGranule, devices));
    }
    return MapFor(multicast, kGranule, devices);
  }
};

// 8-bit numbers are added in f16 and rounded once at the end; min and max pick one of them.
TEST_F(VirtualMemoryTest, SmallTypesOfMultimem) {
  std::vector<Address> on;
  const Address all = MakeMulticast(3, &on);
  // e4m3: 16 + 1 + 1 = 18 in f16, which is a number of the format; step by step 17 would be 16.
  const std::array<std::uint32_t, 3> e4m3 = {0x58585858, 0x38383838, 0x38383838};
  // e5m2: 8 + 1 + 1 = 10, where 9 would be 8.
  const std::array<std::uint32_t, 3> e5m2 = {0x48484848, 0x3c3c3c3c, 0x3c3c3c3c};
  // bf16: 256 + 1 + 1 = 258 in f32, where 257 would be 256; f16: 2048 + 1 + 1 = 2050.
  const std::array<std::uint32_t, 3> bf16 = {0x43804380, 0x3f803f80, 0x3f803f80};
  const std::array<std::uint32_t, 3> f16 = {0x68006800, 0x3c003c00, 0x3c003c00};
  for (std::size_t d = 0; d < 3; ++d) {
    const std::uint32_t words[] = {e4m3[d], e4m3[d], e4m3[d], e4m3[d],
                                   e5m2[d], e5m2[d], bf16[d], f16[d]};
    Write(on[d], words, sizeof words);
  }
  input_ = all;
  Address out = 0;
  ASSERT_EQ(machine_->Allocate(process_, 0, 256, &out), Status::kSuccess);
  const std::string body =
      "setp.ne.u32 %p1, %t, 0; @%p1 ret;\n"
      "multimem.ld_reduce.relaxed.sys.global.add.acc::f16.v4.e4m3x4 {%r0, %r1, %r2, %r3}, [%in];\n"
      "st.global.v4.u32 [%out], {%r0, %r1, %r2, %r3};\n"
      "multimem.ld_reduce.relaxed.sys.global.add.v2.e5m2x4 {%r0, %r1}, [%in+16];\n"
      "st.global.v2.u32 [%out+16], {%r0, %r1};\n"
      "multimem.ld_reduce.relaxed.sys.global.add.acc::f32.bf16x2 %r0, [%in+24];\n"
      "st.global.u32 [%out+24], %r0;\n"
      "multimem.ld_reduce.relaxed.sys.global.add.acc::f32.f16x2 %r0, [%in+28];\n"
      "st.global.u32 [%out+28], %r0;\n"
      "multimem.ld_reduce.relaxed.sys.global.add.v2.f16 {%h0, %h1}, [%in+28];\n"
      "st.global.v2.u16 [%out+32], {%h0, %h1};\n"
      "multimem.ld_reduce.relaxed.sys.global.min.v2.bf16 {%h0, %h1}, [%in+24];\n"
      "st.global.v2.u16 [%out+36], {%h0, %h1};\n"
      "multimem.ld_reduce.relaxed.sys.global.max.e4m3x4 %r0, [%in];\n"
      "st.global.u32 [%out+40], %r0;\n";
  const auto words = RunAt<std::uint32_t>(body, out, 11, {});
  ASSERT_EQ(words.size(), 11u) << fault_;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(words[static_cast<std::size_t>(i)], 0x59595959u);
  EXPECT_EQ(words[4], 0x49494949u);
  EXPECT_EQ(words[5], 0x49494949u);
  EXPECT_EQ(words[6], 0x43814381u);
  EXPECT_EQ(words[7], 0x68016801u);
  EXPECT_EQ(words[8], 0x68006800u);  // in f16, step by step
  EXPECT_EQ(words[9], 0x3f803f80u);
  EXPECT_EQ(words[10], 0x58585858u);
}

TEST_F(VirtualMemoryTest, BulkCopiesReachAllReplicasAndCrossMappings) {
  std::vector<Address> on;
  const Address all = MakeMulticast(2, &on);
  HandleId left = 0, right = 0;
  ASSERT_EQ(vmm().Create(process_, 0, kGranule, 0, &left), Status::kSuccess);
  ASSERT_EQ(vmm().Create(process_, 1, kGranule, 0, &right), Status::kSuccess);
  Address pair = 0;
  ASSERT_EQ(vmm().Reserve(process_, 2 * kGranule, 0, 0, &pair), Status::kSuccess);
  ASSERT_EQ(vmm().Map(process_, pair, kGranule, 0, left), Status::kSuccess);
  ASSERT_EQ(vmm().Map(process_, pair + kGranule, kGranule, 0, right), Status::kSuccess);
  ASSERT_EQ(vmm().SetAccess(process_, pair, 2 * kGranule, 0, AccessRight::kReadWrite),
            Status::kSuccess);
  std::vector<std::uint32_t> words(64);
  for (std::uint32_t i = 0; i < 64; ++i) words[i] = 1000 + i;
  const Address seam = pair + kGranule - 128;
  Write(seam, words.data(), 256);
  // In across the seam, out to the multicast address, once more as an addition.
  input_ = seam;
  const std::string body =
      "setp.ne.u32 %p1, %t, 0; @%p1 ret;\n"
      "mov.u32 %r1, dynamic; add.u32 %r2, %r1, 1024;\n"
      "mbarrier.init.shared.b64 [%r2], 1;\n"
      "mbarrier.arrive.expect_tx.shared.b64 %rd1, [%r2], 256;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%in], 256, "
      "[%r2];\n"
      "wait: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; @!%p2 bra wait;\n"
      "cp.async.bulk.global.shared::cta.bulk_group [%out], [%r1], 256;\n"
      "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n"
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%out], [%r1], 256;\n"
      "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n";
  Options options;
  options.dynamic_shared = 2048;
  // A multicast address cannot be read back: RunAt's own copy of the output is refused.
  const auto none = [&] {
    text_ = Kernel(body);
    Status status;
    auto module = machine_->LoadModule(process_, 0, std::as_bytes(std::span(text_)), &status);
    ASSERT_TRUE(module) << module.error().message;
    KernelInfo info;
    ASSERT_EQ(machine_->GetKernel(*module, "k", &info), Status::kSuccess);
    LaunchRequest request;
    request.kernel = info.id;
    request.block = {32, 1, 1};
    request.dynamic_shared = options.dynamic_shared;
    request.params.resize(info.param_bytes);
    std::memcpy(request.params.data() + info.param_offsets[0], &all, 8);
    std::memcpy(request.params.data() + info.param_offsets[1], &input_, 8);
    OpId op = 0;
    ASSERT_EQ(machine_->Launch(process_, machine_->DefaultStream(process_, 0), request,
                               machine_->now(), &op),
              Status::kSuccess);
    ASSERT_TRUE(Wait(op));
    for (const Fault& fault : machine_->TakeFaults()) ADD_FAILURE() << fault.message;
  };
  none();
  for (const Address where : on) {
    const auto found = Read<std::uint32_t>(where, 64);
    for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(found[i], 2 * (1000 + i)) << i;
  }
}

// 72 devices of 18 hosts behind the same switches.
TEST(VirtualMemoryHosts, AFabricJoinsHosts) {
  auto machine = MachineOf("gb200nvl72");
  ASSERT_NE(machine, nullptr);
  VirtualMemory& vmm = machine->virtual_memory();
  const ProcessId near = machine->AddProcess(0, 0), far = machine->AddProcess(1, 17);
  HandleId memory = 0, imported = 0;
  ASSERT_EQ(vmm.Create(near, 0, kGranule, kShareByFabric | kShareByDescriptor, &memory),
            Status::kSuccess);
  int fd = -1;
  ASSERT_EQ(vmm.ExportDescriptor(near, memory, &fd), Status::kSuccess);
  EXPECT_EQ(vmm.ImportDescriptor(far, fd, &imported), Status::kNotPermitted);
  close(fd);
  FabricHandle handle{};
  ASSERT_EQ(vmm.ExportFabric(near, memory, &handle), Status::kSuccess);
  ASSERT_EQ(vmm.ImportFabric(far, handle, &imported), Status::kSuccess);
  HandleInfo info;
  ASSERT_EQ(vmm.Info(far, imported, &info), Status::kSuccess);
  EXPECT_EQ(info.device, -1);  // not one of its own
  Address address = 0;
  ASSERT_EQ(vmm.Reserve(far, kGranule, 0, 0, &address), Status::kSuccess);
  ASSERT_EQ(vmm.Map(far, address, kGranule, 0, imported), Status::kSuccess);
  EXPECT_EQ(vmm.SetAccess(far, address, kGranule, 3, AccessRight::kReadWrite), Status::kSuccess);
  EXPECT_EQ(machine->Describe(far, address).device, 3);
  OpId op = 0;
  MemsetRequest set;
  set.dst = address;
  set.count = 64;
  EXPECT_EQ(machine->Memset(far, machine->DefaultStream(far, 3), set, machine->now(), &op),
            Status::kSuccess);
  EXPECT_TRUE(WaitFor(*machine, op));
  // A team of devices of two hosts, complete only with the second.
  HandleId multicast = 0, theirs = 0, own = 0;
  ASSERT_EQ(vmm.CreateMulticast(near, 2, kGranule, kShareByFabric, &multicast), Status::kSuccess);
  ASSERT_EQ(vmm.ExportFabric(near, multicast, &handle), Status::kSuccess);
  ASSERT_EQ(vmm.ImportFabric(far, handle, &theirs), Status::kSuccess);
  ASSERT_EQ(vmm.AddDevice(near, multicast, 0), Status::kSuccess);
  EXPECT_EQ(vmm.Bind(near, multicast, 0, memory, 0, kGranule), Status::kNotReady);
  ASSERT_EQ(vmm.AddDevice(far, theirs, 0), Status::kSuccess);
  EXPECT_EQ(vmm.Bind(near, multicast, 0, memory, 0, kGranule), Status::kSuccess);
  ASSERT_EQ(vmm.Create(far, 0, kGranule, kShareByFabric, &own), Status::kSuccess);
  EXPECT_EQ(vmm.Bind(far, theirs, 0, own, 0, kGranule), Status::kSuccess);
  // The memory outlives the process that made it.
  machine->RemoveProcess(near);
  EXPECT_EQ(machine->Memset(far, machine->DefaultStream(far, 3), set, machine->now(), &op),
            Status::kSuccess);
  EXPECT_TRUE(WaitFor(*machine, op));
}

TEST(VirtualMemoryHosts, ANetworkDoesNot) {
  auto machine = MachineOf("h100x8x2-ib");
  ASSERT_NE(machine, nullptr);
  VirtualMemory& vmm = machine->virtual_memory();
  const ProcessId near = machine->AddProcess(0, 0), far = machine->AddProcess(1, 1);
  HandleId memory = 0, imported = 0;
  ASSERT_EQ(vmm.Create(near, 0, kGranule, kShareByFabric, &memory), Status::kSuccess);
  FabricHandle handle{};
  ASSERT_EQ(vmm.ExportFabric(near, memory, &handle), Status::kSuccess);
  EXPECT_EQ(vmm.ImportFabric(far, handle, &imported), Status::kNotPermitted);
}

TEST(VirtualMemoryHosts, WithoutASwitchThereIsNoMulticast) {
  auto machine = MachineOf("l40s-pcie8");
  ASSERT_NE(machine, nullptr);
  EXPECT_FALSE(HasMulticast(machine->profile()));
  HandleId multicast = 0;
  EXPECT_EQ(machine->virtual_memory().CreateMulticast(machine->AddProcess(0, 0), 2, kGranule, 0,
                                                      &multicast),
            Status::kNotSupported);
}

TEST_F(VirtualMemoryTest, RangesThatDoNotFitAreRefused) {
  Address address = 0;
  const std::uint64_t huge = std::uint64_t{1} << 62;
  EXPECT_EQ(vmm().Reserve(process_, huge, 0, 0, &address), Status::kOutOfMemory);
  EXPECT_EQ(vmm().Reserve(process_, kGranule, huge, 0, &address), Status::kOutOfMemory);
  EXPECT_EQ(vmm().Reserve(process_, ~std::uint64_t{4095}, 0, 0, &address), Status::kOutOfMemory);
  ASSERT_EQ(vmm().Reserve(process_, kGranule, 0, ~std::uint64_t{4095}, &address), Status::kSuccess);
  HandleId handle = 0;
  ASSERT_EQ(vmm().Create(process_, 0, kGranule, 0, &handle), Status::kSuccess);
  EXPECT_EQ(vmm().Create(process_, 0, ~(kGranule - 1), 0, &handle), Status::kOutOfMemory);
  EXPECT_EQ(vmm().Map(process_, address, ~(kGranule - 1), 0, handle), Status::kInvalidValue);
  EXPECT_EQ(vmm().Map(process_, address, kGranule, ~(kGranule - 1), handle), Status::kInvalidValue);
  EXPECT_EQ(vmm().Unmap(process_, address, ~(kGranule - 1)), Status::kInvalidValue);
  EXPECT_EQ(vmm().SetAccess(process_, ~(kGranule - 1), 2 * kGranule, 0, AccessRight::kRead),
            Status::kInvalidValue);
  EXPECT_EQ(vmm().CreateMulticast(process_, 99, kGranule, 0, &handle), Status::kInvalidValue);
  EXPECT_EQ(vmm().CreateMulticast(process_, 1, ~(kGranule - 1), 0, &handle), Status::kInvalidValue);
  EXPECT_EQ(vmm().Bind(process_, handle, ~(kGranule - 1), handle, 0, kGranule),
            Status::kInvalidValue);
  EXPECT_EQ(vmm().Create(77, 0, kGranule, 0, &handle), Status::kInvalidContext);
}

}  // namespace
}  // namespace allranks::node
