// Descriptors of ranges of device memory (cuMemGetHandleForAddressRange): what each stands for,
// what has none, and how long the memory lives.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>

#include "ptx_machine.h"

namespace allranks::node {
namespace {

constexpr std::uint64_t kGranule = VirtualMemory::kGranularity;
constexpr std::uint64_t kPage = 4096;

class MemoryRangesTest : public PtxMachineTest {
 protected:
  VirtualMemory& vmm() { return machine_->virtual_memory(); }

  Status Export(Address address, std::uint64_t size) {
    int fd = -1;
    const Status status = vmm().ExportRange(process_, address, size, &fd);
    if (fd >= 0) close(fd);
    return status;
  }
  MemoryRange Find(int fd) {
    MemoryRange range;
    EXPECT_EQ(vmm().FindRange(process_, fd, &range), Status::kSuccess);
    return range;
  }
  HandleId Create(int device, std::uint32_t share = 0) {
    HandleId handle = 0;
    EXPECT_EQ(vmm().Create(process_, device, kGranule, share, &handle), Status::kSuccess);
    return handle;
  }
};

TEST_F(MemoryRangesTest, OfAnAllocation) {
  Address address = 0;
  ASSERT_EQ(machine_->Allocate(process_, 2, 4 * kGranule, &address), Status::kSuccess);
  ASSERT_EQ(address % kPage, 0u);
  int fd = -1;
  ASSERT_EQ(vmm().ExportRange(process_, address + 3 * kPage, 5 * kPage, &fd), Status::kSuccess);
  const MemoryRange range = Find(fd);
  EXPECT_EQ(range.device, 2);
  EXPECT_EQ(range.size, 5 * kPage);
  ASSERT_EQ(range.parts.size(), 1u);
  EXPECT_EQ(range.parts[0].object, machine_->Describe(process_, address).object);
  EXPECT_EQ(range.parts[0].offset, 3 * kPage);
  EXPECT_EQ(range.parts[0].size, 5 * kPage);
  // A copy of the descriptor, in whatever process, is the same.
  const int copy = dup(fd);
  close(fd);
  EXPECT_EQ(Find(copy).parts[0].offset, 3 * kPage);
  close(copy);
  EXPECT_EQ(Export(address, 4 * kGranule), Status::kSuccess);
}

TEST_F(MemoryRangesTest, PagesAndBounds) {
  Address address = 0;
  ASSERT_EQ(machine_->Allocate(process_, 0, kGranule, &address), Status::kSuccess);
  EXPECT_EQ(Export(address, 0), Status::kInvalidValue);
  EXPECT_EQ(Export(address + 512, kPage), Status::kInvalidValue);
  EXPECT_EQ(Export(address, kPage + 512), Status::kInvalidValue);
  EXPECT_EQ(Export(address, kGranule + kPage), Status::kInvalidValue);
  EXPECT_EQ(Export(address - kPage, 2 * kPage), Status::kInvalidValue);
  EXPECT_EQ(Export(address + kGranule, kPage), Status::kInvalidValue);
  EXPECT_EQ(Export(0, kPage), Status::kInvalidValue);
  EXPECT_EQ(Export(address, ~(kPage - 1)), Status::kInvalidValue);
  // Two allocations are not one, though the second follows the first.
  Address next = 0;
  ASSERT_EQ(machine_->Allocate(process_, 0, kGranule, &next), Status::kSuccess);
  EXPECT_EQ(Export(std::min(address, next), 3 * kGranule), Status::kInvalidValue);
  ASSERT_EQ(machine_->Free(process_, address), Status::kSuccess);
  EXPECT_EQ(Export(address, kPage), Status::kInvalidValue);
}

// cuda.h: backed without a gap, by memory of one device with the same properties.
TEST_F(MemoryRangesTest, OfMappings) {
  const HandleId first = Create(1), second = Create(1), far = Create(0);
  const HandleId shared = Create(1, kShareByDescriptor);
  Address range = 0;
  ASSERT_EQ(vmm().Reserve(process_, 6 * kGranule, 0, 0, &range), Status::kSuccess);
  const auto map = [&](std::uint64_t place, HandleId handle) {
    ASSERT_EQ(vmm().Map(process_, range + place * kGranule, kGranule, 0, handle), Status::kSuccess);
  };
  map(0, first);
  map(1, second);
  map(2, far);
  map(4, first);
  map(5, shared);
  int fd = -1;
  ASSERT_EQ(vmm().ExportRange(process_, range + kGranule - kPage, 3 * kPage, &fd),
            Status::kSuccess);
  const MemoryRange found = Find(fd);
  close(fd);
  ASSERT_EQ(found.parts.size(), 2u);
  EXPECT_EQ(found.device, 1);
  EXPECT_EQ(found.parts[0].object, machine_->Describe(process_, range).object);
  EXPECT_EQ(found.parts[0].offset, kGranule - kPage);
  EXPECT_EQ(found.parts[0].size, kPage);
  EXPECT_EQ(found.parts[1].object, machine_->Describe(process_, range + kGranule).object);
  EXPECT_EQ(found.parts[1].offset, 0u);
  EXPECT_EQ(found.parts[1].size, 2 * kPage);
  EXPECT_EQ(Export(range + kGranule, 2 * kGranule), Status::kInvalidValue);      // two devices
  EXPECT_EQ(Export(range + 2 * kGranule, 2 * kGranule), Status::kInvalidValue);  // a gap
  EXPECT_EQ(Export(range + 3 * kGranule, kGranule), Status::kInvalidValue);
  EXPECT_EQ(Export(range + 4 * kGranule, 2 * kGranule), Status::kInvalidValue);  // properties
  EXPECT_EQ(Export(range + 5 * kGranule, kGranule), Status::kSuccess);
}

TEST_F(MemoryRangesTest, OtherMemoryHasNone) {
  PinnedMemory pinned;
  ASSERT_EQ(machine_->AllocatePinned(process_, kGranule, false, &pinned), Status::kSuccess);
  EXPECT_EQ(Export(pinned.address, kPage), Status::kNotSupported);
  HandleId host = 0;
  ASSERT_EQ(vmm().CreateHost(process_, MemoryPlace::kHostNuma, kGranule, 0, &host),
            Status::kSuccess);
  Address address = 0;
  ASSERT_EQ(vmm().Reserve(process_, kGranule, 0, 0, &address), Status::kSuccess);
  ASSERT_EQ(vmm().Map(process_, address, kGranule, 0, host), Status::kSuccess);
  EXPECT_EQ(Export(address, kPage), Status::kNotSupported);
  Address pooled = 0;
  ASSERT_EQ(machine_->AllocateAsync(process_, machine_->DefaultStream(process_, 0),
                                    machine_->DefaultPool(process_, 0), kGranule, &pooled),
            Status::kSuccess);
  EXPECT_EQ(Export(pooled, kPage), Status::kInvalidValue);
  // An IPC handle's memory is its owner's to export.
  Address own = 0, theirs = 0;
  ASSERT_EQ(machine_->Allocate(process_, 0, kGranule, &own), Status::kSuccess);
  IpcHandle handle{};
  ASSERT_EQ(machine_->IpcExport(process_, own, &handle), Status::kSuccess);
  const ProcessId other = machine_->AddProcess(1, 0);
  ASSERT_EQ(machine_->IpcOpen(other, 0, handle, &theirs), Status::kSuccess);
  int fd = -1;
  EXPECT_EQ(vmm().ExportRange(other, theirs, kPage, &fd), Status::kInvalidValue);
}

TEST_F(MemoryRangesTest, AreNoMemoryHandlesAndStayOnTheirHost) {
  Start({}, "h100x8x2-ib");
  Address address = 0;
  ASSERT_EQ(machine_->Allocate(process_, 0, kGranule, &address), Status::kSuccess);
  int fd = -1;
  ASSERT_EQ(vmm().ExportRange(process_, address, kPage, &fd), Status::kSuccess);
  HandleId handle = 0;
  EXPECT_EQ(vmm().ImportDescriptor(process_, fd, &handle), Status::kInvalidValue);
  MemoryRange range;
  const ProcessId neighbour = machine_->AddProcess(1, 0), far = machine_->AddProcess(2, 1);
  EXPECT_EQ(vmm().FindRange(neighbour, fd, &range), Status::kSuccess);
  EXPECT_EQ(vmm().FindRange(far, fd, &range), Status::kInvalidValue);
  close(fd);
  // Nor is another descriptor a range.
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(vmm().FindRange(process_, ends[1], &range), Status::kInvalidValue);
  close(ends[0]);
  close(ends[1]);
  EXPECT_EQ(vmm().FindRange(process_, -1, &range), Status::kInvalidValue);
  ASSERT_EQ(vmm().ExportDescriptor(process_, Create(0, kShareByDescriptor), &fd), Status::kSuccess);
  EXPECT_EQ(vmm().FindRange(process_, fd, &range), Status::kInvalidValue);
  close(fd);
}

TEST_F(MemoryRangesTest, KeepTheMemory) {
  const std::uint64_t before = machine_->FreeMemory(process_, 1);
  const HandleId handle = Create(1);
  Address address = 0;
  ASSERT_EQ(vmm().Reserve(process_, kGranule, 0, 0, &address), Status::kSuccess);
  ASSERT_EQ(vmm().Map(process_, address, kGranule, 0, handle), Status::kSuccess);
  const std::uint64_t object = machine_->Describe(process_, address).object;
  int fd = -1;
  ASSERT_EQ(vmm().ExportRange(process_, address, kGranule, &fd), Status::kSuccess);
  ASSERT_EQ(vmm().Unmap(process_, address, kGranule), Status::kSuccess);
  ASSERT_EQ(vmm().Release(process_, handle), Status::kSuccess);
  EXPECT_EQ(Find(fd).parts[0].object, object);
  EXPECT_EQ(machine_->FreeMemory(process_, 1), before - kGranule);
  close(fd);
  ASSERT_EQ(vmm().Release(process_, Create(0)), Status::kSuccess);  // notices what is closed
  EXPECT_EQ(machine_->FreeMemory(process_, 1), before);
}

}  // namespace
}  // namespace allranks::node
