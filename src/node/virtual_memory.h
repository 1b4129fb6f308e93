// Memory by handles, as CUDA's virtual memory management has it: physical memory and multicast
// objects that any number of processes share, addresses that a process reserves, and mappings of
// the one at the other with rights per device. Part of the Machine (machine.h); reached by
// Machine::virtual_memory().
//
// A handle is a process's own number of something shared. What it stands for lives until the last
// handle, mapping, binding and open descriptor of it is gone, in whatever process.
#pragma once

#include <array>
#include <cstdint>

#include "node/ids.h"
#include "node/status.h"

namespace allranks::node {

// Ways to share, as bits of CUmemAllocationHandleType.
inline constexpr std::uint32_t kShareByDescriptor = 1;
inline constexpr std::uint32_t kShareByFabric = 8;

using FabricHandle = std::array<std::uint8_t, 64>;

// As CUmemAccess_flags has them.
enum class AccessRight : std::uint8_t { kNone = 0, kRead = 1, kReadWrite = 3 };

struct HandleInfo {
  bool multicast = false;
  int device = -1;  // ordinal as the process sees it; -1: it does not, or a multicast object
  std::uint64_t size = 0;
  std::uint32_t share = 0;
};

// The switch can copy stores and add up loads: NVSwitch from the third generation on.
bool HasMulticast(const struct Profile& profile);

class VirtualMemory {
 public:
  // Sizes, offsets and addresses of memory and of multicast objects are multiples of this.
  static constexpr std::uint64_t kGranularity = std::uint64_t{2} << 20;

  virtual ~VirtualMemory() = default;

  // --- handles
  virtual Status Create(ProcessId process, int device, std::uint64_t size, std::uint32_t share,
                        HandleId* handle) = 0;
  virtual Status Release(ProcessId process, HandleId handle) = 0;
  // The handle that is mapped at `address`, once more to be released.
  virtual Status Retain(ProcessId process, Address address, HandleId* handle) = 0;
  virtual Status Info(ProcessId process, HandleId handle, HandleInfo* info) = 0;

  // --- addresses
  // `alignment` 0: the granularity. The `hint` is honoured if those addresses are free.
  virtual Status Reserve(ProcessId process, std::uint64_t size, std::uint64_t alignment,
                         Address hint, Address* address) = 0;
  virtual Status FreeReserved(ProcessId process, Address address, std::uint64_t size) = 0;
  // kNotReady: a multicast object whose team is not complete.
  virtual Status Map(ProcessId process, Address address, std::uint64_t size, std::uint64_t offset,
                     HandleId handle) = 0;
  // Whole mappings without a gap, as SetAccess.
  virtual Status Unmap(ProcessId process, Address address, std::uint64_t size) = 0;
  virtual Status SetAccess(ProcessId process, Address address, std::uint64_t size, int device,
                           AccessRight right) = 0;
  virtual Status GetAccess(ProcessId process, Address address, int device, AccessRight* right) = 0;
  // Whether any of the process's devices may use what is mapped in the range.
  virtual bool InUse(ProcessId process, Address address, std::uint64_t size, int device) const = 0;

  // --- sharing
  // The descriptor is the caller's. It stands for the memory while anybody has it open.
  virtual Status ExportDescriptor(ProcessId process, HandleId handle, int* fd) = 0;
  virtual Status ImportDescriptor(ProcessId process, int fd, HandleId* handle) = 0;
  virtual Status ExportFabric(ProcessId process, HandleId handle, FabricHandle* fabric) = 0;
  virtual Status ImportFabric(ProcessId process, const FabricHandle& fabric, HandleId* handle) = 0;

  // --- multicast objects
  virtual Status CreateMulticast(ProcessId process, std::uint32_t devices, std::uint64_t size,
                                 std::uint32_t share, HandleId* handle) = 0;
  virtual Status AddDevice(ProcessId process, HandleId multicast, int device) = 0;
  // kNotReady: the team is not complete.
  virtual Status Bind(ProcessId process, HandleId multicast, std::uint64_t offset, HandleId memory,
                      std::uint64_t memory_offset, std::uint64_t size) = 0;
  virtual Status BindAddress(ProcessId process, HandleId multicast, std::uint64_t offset,
                             Address address, std::uint64_t size) = 0;
  virtual Status Unbind(ProcessId process, HandleId multicast, int device, std::uint64_t offset,
                        std::uint64_t size) = 0;
};

}  // namespace allranks::node
