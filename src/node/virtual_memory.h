// Memory by handles, as CUDA's virtual memory management has it: physical memory and multicast
// objects that any number of processes share, addresses that a process reserves, and mappings of
// the one at the other with rights per device. Part of the Machine (machine.h); reached by
// Machine::virtual_memory().
//
// A handle is a process's own number of something shared. What it stands for lives until the last
// handle, mapping, binding and open descriptor of it is gone, in whatever process.
//
// Memory of the host is a memory file, as pinned memory is. Its mappings have two kinds of rights:
// those of devices, which the node checks, and those of the host, which the process's own pages
// have.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "node/ids.h"
#include "node/status.h"

namespace allranks::node {

// Ways to share, as bits of CUmemAllocationHandleType.
inline constexpr std::uint32_t kShareByDescriptor = 1;
inline constexpr std::uint32_t kShareByFabric = 8;

using FabricHandle = std::array<std::uint8_t, 64>;

// As CUmemAccess_flags has them.
enum class AccessRight : std::uint8_t { kNone = 0, kRead = 1, kReadWrite = 3 };

// Where memory lies, by the names of CUmemLocationType. The hosts have no NUMA nodes, as their
// devices say (CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID): both kinds of host memory are the same, but only
// the latter can be shared.
enum class MemoryPlace : std::uint8_t { kDevice, kHost, kHostNuma };

struct HandleInfo {
  bool multicast = false;
  MemoryPlace place = MemoryPlace::kDevice;
  int device = -1;  // ordinal as the process sees it; -1: it does not, or a multicast object
  std::uint64_t size = 0;
  std::uint32_t share = 0;
};

// What a descriptor of a range of device memory stands for: bytes of objects, in order.
struct MemoryRange {
  struct Part {
    std::uint64_t object = 0;  // PointerInfo::object
    std::uint64_t offset = 0, size = 0;
  };
  int device = -1;  // machine-wide
  std::uint64_t size = 0;
  std::vector<Part> parts;
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
  virtual Status CreateHost(ProcessId process, MemoryPlace place, std::uint64_t size,
                            std::uint32_t share, HandleId* handle) = 0;
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
  // The memory file that is mapped at `address`, -1: no host memory. The machine's.
  virtual int FileAt(ProcessId process, Address address) const = 0;
  // `place`: by which name the host is meant. kHostNuma is not for memory that has another place.
  virtual Status SetHostAccess(ProcessId process, Address address, std::uint64_t size,
                               MemoryPlace place, AccessRight right) = 0;
  virtual Status GetHostAccess(ProcessId process, Address address, AccessRight* right) = 0;
  // Whether any of the process's devices may use what is mapped in the range.
  virtual bool InUse(ProcessId process, Address address, std::uint64_t size, int device) const = 0;

  // --- sharing
  // The descriptor is the caller's. It stands for the memory while anybody has it open.
  virtual Status ExportDescriptor(ProcessId process, HandleId handle, int* fd) = 0;
  virtual Status ImportDescriptor(ProcessId process, int fd, HandleId* handle) = 0;
  virtual Status ExportFabric(ProcessId process, HandleId handle, FabricHandle* fabric) = 0;
  virtual Status ImportFabric(ProcessId process, const FabricHandle& fabric, HandleId* handle) = 0;

  // A descriptor, as above, of whole host pages of one cudaMalloc, or of mappings without a gap of
  // one device's memory. It keeps the memory.
  virtual Status ExportRange(ProcessId process, Address address, std::uint64_t size, int* fd) = 0;
  // What such a descriptor stands for; kInvalidValue: it is none, or of another host.
  virtual Status FindRange(ProcessId process, int fd, MemoryRange* range) const = 0;

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
