// Memory of the host by handles, at the Machine: who may use it, who can have it, what wakes those
// who wait for it. The test stands for the process that has the memory file mapped.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "ptx_machine.h"

namespace allranks::node {
namespace {

constexpr std::uint64_t kGranule = VirtualMemory::kGranularity;
constexpr MemoryPlace kHost = MemoryPlace::kHost, kNuma = MemoryPlace::kHostNuma;

class HostMemoryTest : public PtxMachineTest {
 protected:
  VirtualMemory& vmm() { return machine_->virtual_memory(); }

  HandleId Create(MemoryPlace place, std::uint32_t share = 0) {
    HandleId handle = 0;
    EXPECT_EQ(vmm().CreateHost(process_, place, kGranule, share, &handle), Status::kSuccess);
    return handle;
  }
  Address MapIn(ProcessId process, HandleId handle) {
    Address address = 0;
    EXPECT_EQ(vmm().Reserve(process, kGranule, 0, 0, &address), Status::kSuccess);
    EXPECT_EQ(vmm().Map(process, address, kGranule, 0, handle), Status::kSuccess);
    return address;
  }
  Status Allow(ProcessId process, Address address, int device) {
    return vmm().SetAccess(process, address, kGranule, device, AccessRight::kReadWrite);
  }
  Status Fill(ProcessId process, int device, Address address, std::uint32_t value, OpId* op) {
    MemsetRequest set;
    set.dst = address;
    set.value = value;
    set.width = 4;
    set.count = 64;
    return machine_->Memset(process, machine_->DefaultStream(process, device), set, machine_->now(),
                            op);
  }
};

// The process's own view of a mapping.
class View {
 public:
  View(VirtualMemory& vmm, ProcessId process, Address address)
      : words_(static_cast<std::uint32_t*>(mmap(nullptr, kGranule, PROT_READ | PROT_WRITE,
                                                MAP_SHARED, vmm.FileAt(process, address), 0))) {}
  ~View() { munmap(words_, kGranule); }
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  std::uint32_t& operator[](std::size_t i) { return words_[i]; }

 private:
  std::uint32_t* words_;
};

TEST_F(HostMemoryTest, DevicesAndTheHostShareIt) {
  const Address address = MapIn(process_, Create(kNuma));
  OpId op = 0;
  EXPECT_EQ(Fill(process_, 1, address, 7, &op), Status::kInvalidValue);  // no right yet
  ASSERT_EQ(Allow(process_, address, 1), Status::kSuccess);
  View view(vmm(), process_, address);
  EXPECT_EQ(view[0], 0u);
  ASSERT_EQ(Fill(process_, 1, address, 7, &op), Status::kSuccess);
  ASSERT_TRUE(Wait(op));
  EXPECT_EQ(view[0], 7u);
  EXPECT_EQ(view[63], 7u);
  // A kernel of device 0, which may use it from now on, sees what the host has written.
  ASSERT_EQ(Allow(process_, address, 0), Status::kSuccess);
  view[1] = 1234;
  machine_->HostWrote(process_, machine_->now());
  const std::string body =
      "setp.ne.u32 %p1, %t, 0; @%p1 ret;\n"
      "ld.volatile.global.u32 %r0, [%in+4]; st.volatile.global.u32 [%in+8], %r0;\n"
      "st.global.u32 [%out], %r0;\n";
  Address out = 0;
  ASSERT_EQ(machine_->Allocate(process_, 0, 64, &out), Status::kSuccess);
  input_ = address;
  const auto seen = RunAt<std::uint32_t>(body, out, 1, {});
  ASSERT_EQ(seen.size(), 1u) << fault_;
  EXPECT_EQ(seen[0], 1234u);
  EXPECT_EQ(view[2], 1234u);
}

TEST_F(HostMemoryTest, IsPinnedMemoryOfTheHost) {
  const HandleId handle = Create(kHost);
  HandleInfo info;
  ASSERT_EQ(vmm().Info(process_, handle, &info), Status::kSuccess);
  EXPECT_EQ(info.place, kHost);
  EXPECT_EQ(info.size, kGranule);
  const std::uint64_t free = machine_->FreeMemory(process_, 0);
  const Address address = MapIn(process_, handle);
  EXPECT_EQ(machine_->FreeMemory(process_, 0), free);  // no device's
  const PointerInfo pointer = machine_->Describe(process_, address + 100);
  EXPECT_EQ(pointer.kind, PointerInfo::Kind::kPinned);
  EXPECT_TRUE(pointer.mapped_handle);
  EXPECT_EQ(pointer.base, address);
  EXPECT_EQ(pointer.size, kGranule);
  // It goes by cuMemUnmap, and a multicast object takes none of it.
  EXPECT_EQ(machine_->FreePinned(process_, address), Status::kInvalidValue);
  ASSERT_EQ(Allow(process_, address, 0), Status::kSuccess);
  HandleId multicast = 0;
  ASSERT_EQ(vmm().CreateMulticast(process_, 1, kGranule, 0, &multicast), Status::kSuccess);
  ASSERT_EQ(vmm().AddDevice(process_, multicast, 0), Status::kSuccess);
  EXPECT_EQ(vmm().Bind(process_, multicast, 0, handle, 0, kGranule), Status::kInvalidValue);
  EXPECT_EQ(vmm().BindAddress(process_, multicast, 0, address, kGranule), Status::kInvalidValue);
  ASSERT_EQ(vmm().Unmap(process_, address, kGranule), Status::kSuccess);
  EXPECT_EQ(machine_->Describe(process_, address).kind, PointerInfo::Kind::kReserved);
}

// cuda.h, cuMemSetAccess: HOST_NUMA accessibility is not for allocations with another location.
TEST_F(HostMemoryTest, RightsOfTheHost) {
  const Address plain = MapIn(process_, Create(kHost)), numa = MapIn(process_, Create(kNuma));
  HandleId on_device = 0;
  ASSERT_EQ(vmm().Create(process_, 0, kGranule, 0, &on_device), Status::kSuccess);
  const Address device = MapIn(process_, on_device);
  const auto set = [&](Address address, MemoryPlace place, AccessRight right) {
    return vmm().SetHostAccess(process_, address, kGranule, place, right);
  };
  const auto get = [&](Address address) {
    AccessRight right = AccessRight::kReadWrite;
    EXPECT_EQ(vmm().GetHostAccess(process_, address, &right), Status::kSuccess);
    return right;
  };
  EXPECT_EQ(get(plain), AccessRight::kNone);
  EXPECT_EQ(set(plain, kNuma, AccessRight::kRead), Status::kInvalidValue);
  EXPECT_EQ(set(plain, kHost, AccessRight::kRead), Status::kSuccess);
  EXPECT_EQ(get(plain), AccessRight::kRead);
  EXPECT_EQ(set(numa, kNuma, AccessRight::kReadWrite), Status::kSuccess);
  EXPECT_EQ(get(numa), AccessRight::kReadWrite);
  EXPECT_EQ(set(numa, kHost, AccessRight::kNone), Status::kSuccess);
  EXPECT_EQ(get(numa), AccessRight::kNone);
  EXPECT_EQ(set(device, kHost, AccessRight::kRead), Status::kInvalidValue);
  EXPECT_EQ(set(device, kNuma, AccessRight::kRead), Status::kInvalidValue);
  EXPECT_EQ(get(device), AccessRight::kNone);
  EXPECT_EQ(set(plain + 4096, kHost, AccessRight::kRead), Status::kInvalidValue);
  EXPECT_EQ(vmm().FileAt(process_, device), -1);
  EXPECT_EQ(vmm().FileAt(process_, 4096), -1);
}

TEST_F(HostMemoryTest, OnlyMemoryOfANumaNodeGoesToOtherProcesses) {
  HandleId none = 0;
  for (const std::uint32_t share : {kShareByDescriptor, kShareByFabric}) {
    EXPECT_EQ(vmm().CreateHost(process_, kHost, kGranule, share, &none), Status::kInvalidValue);
  }
  EXPECT_EQ(vmm().CreateHost(process_, kNuma, kGranule, kShareByFabric, &none),
            Status::kInvalidValue);
  const HandleId handle = Create(kNuma, kShareByDescriptor);
  const ProcessId other = machine_->AddProcess(1, 0);
  int fd = -1;
  ASSERT_EQ(vmm().ExportDescriptor(process_, handle, &fd), Status::kSuccess);
  HandleId theirs = 0;
  ASSERT_EQ(vmm().ImportDescriptor(other, fd, &theirs), Status::kSuccess);
  close(fd);
  HandleInfo info;
  ASSERT_EQ(vmm().Info(other, theirs, &info), Status::kSuccess);
  EXPECT_EQ(info.place, kNuma);
  const Address mine = MapIn(process_, handle), their = MapIn(other, theirs);
  ASSERT_EQ(Allow(other, their, 3), Status::kSuccess);
  ASSERT_EQ(vmm().SetHostAccess(other, their, kGranule, kNuma, AccessRight::kRead),
            Status::kSuccess);
  AccessRight right = AccessRight::kRead;
  ASSERT_EQ(vmm().GetHostAccess(process_, mine, &right), Status::kSuccess);
  EXPECT_EQ(right, AccessRight::kNone);  // rights are a mapping's own
  View view(vmm(), process_, mine);
  OpId op = 0;
  ASSERT_EQ(Fill(other, 3, their, 42, &op), Status::kSuccess);
  ASSERT_TRUE(Wait(op));
  EXPECT_EQ(view[5], 42u);
  // It lives as long as one of them has it.
  machine_->RemoveProcess(process_);
  ASSERT_EQ(Fill(other, 3, their, 43, &op), Status::kSuccess);
  ASSERT_TRUE(Wait(op));
  EXPECT_EQ(view[5], 43u);
}

TEST_F(HostMemoryTest, StaysOnItsHost) {
  Start({}, "h100x8x2-ib");
  const ProcessId far = machine_->AddProcess(1, 1);
  int fd = -1;
  ASSERT_EQ(vmm().ExportDescriptor(process_, Create(kNuma, kShareByDescriptor), &fd),
            Status::kSuccess);
  HandleId imported = 0;
  EXPECT_EQ(vmm().ImportDescriptor(far, fd, &imported), Status::kNotPermitted);
  close(fd);
}

// Each is a descriptor of the node's. What others have imported still counts for who made it.
TEST_F(HostMemoryTest, AreNotEndless) {
  std::vector<HandleId> all;
  HandleId handle = 0;
  Status status = Status::kSuccess;
  while (all.size() < 2000) {
    status = vmm().CreateHost(process_, kNuma, kGranule, 0, &handle);
    if (status != Status::kSuccess) break;
    all.push_back(handle);
  }
  EXPECT_EQ(status, Status::kOutOfMemory);
  EXPECT_EQ(all.size(), 512u);
  const ProcessId other = machine_->AddProcess(1, 0);
  EXPECT_EQ(vmm().CreateHost(other, kNuma, kGranule, 0, &handle), Status::kSuccess);
  ASSERT_EQ(vmm().Release(process_, all.back()), Status::kSuccess);
  EXPECT_EQ(vmm().CreateHost(process_, kNuma, kGranule, 0, &handle), Status::kSuccess);
  const std::uint64_t odd = kGranule + 4096;
  EXPECT_EQ(vmm().CreateHost(other, kNuma, odd, 0, &handle), Status::kInvalidValue);
  EXPECT_EQ(vmm().CreateHost(other, kNuma, 0, 0, &handle), Status::kInvalidValue);
  EXPECT_EQ(vmm().CreateHost(other, MemoryPlace::kDevice, kGranule, 0, &handle),
            Status::kInvalidValue);
  // Nor are mappings of one, each of which the node looks at when the process speaks.
  ASSERT_EQ(vmm().CreateHost(other, kNuma, kGranule, 0, &handle), Status::kSuccess);
  Address range = 0;
  ASSERT_EQ(vmm().Reserve(other, 2048 * kGranule, 0, 0, &range), Status::kSuccess);
  std::uint64_t mapped = 0;
  while (mapped < 2048 &&
         vmm().Map(other, range + mapped * kGranule, kGranule, 0, handle) == Status::kSuccess) {
    ++mapped;
  }
  EXPECT_EQ(mapped, 1024u);
}

// A host that polls is told by a device's store, and by what another process's host has written.
TEST_F(HostMemoryTest, WhoPollsItIsWoken) {
  const HandleId handle = Create(kNuma, kShareByDescriptor);
  const ProcessId other = machine_->AddProcess(1, 0);
  int fd = -1;
  ASSERT_EQ(vmm().ExportDescriptor(process_, handle, &fd), Status::kSuccess);
  HandleId theirs = 0;
  ASSERT_EQ(vmm().ImportDescriptor(other, fd, &theirs), Status::kSuccess);
  close(fd);
  const Address mine = MapIn(process_, handle), their = MapIn(other, theirs);
  View view(vmm(), process_, mine);
  int told = 0;
  const auto watch = [&](std::uint64_t seen) {
    const MemoryApi::HostWatch one = {mine + 16, 4, seen};
    return machine_->WatchHost(process_, std::span(&one, 1), machine_->now(), [&](Time) {
      ++told;
      machine_->Stop();
    });
  };
  const auto run = [&] {
    while (machine_->RunUntil(machine_->now() + Us(100))) {
    }
  };
  watch(0);
  machine_->HostWrote(other, machine_->now());
  run();
  EXPECT_EQ(told, 0);  // nothing has changed
  view[4] = 5;
  machine_->HostWrote(other, machine_->now());
  run();
  EXPECT_EQ(told, 1);
  watch(5);
  ASSERT_EQ(Allow(other, their, 2), Status::kSuccess);
  OpId op = 0;
  ASSERT_EQ(Fill(other, 2, their, 9, &op), Status::kSuccess);
  ASSERT_TRUE(Wait(op));
  run();
  EXPECT_EQ(told, 2);
}

}  // namespace
}  // namespace allranks::node
