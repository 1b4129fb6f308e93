// Memory of processes, as the driver API has it: allocations, pools, pinned and managed memory, and
// what hosts see of it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "node/ids.h"
#include "node/status.h"
#include "node/time.h"
#include "node/virtual_memory.h"

namespace allranks::node {

struct PinnedMemory {
  Address address = 0;     // the same in the process and on the devices
  std::uint64_t size = 0;  // whole pages
  int fd = -1;             // sealed memfd; owned by the machine, valid until freed
  bool shared = false;     // it was there before: another registration of the same file made it
};

// What is mapped at an address: a part of a file that other mappings may share.
struct HostFile {
  std::uint64_t device = 0, inode = 0, offset = 0;  // no inode: it is memory of one mapping alone
  friend auto operator<=>(const HostFile&, const HostFile&) = default;
};

struct PointerInfo {
  enum class Kind : std::uint8_t { kUnknown, kDevice, kPinned, kManaged, kReserved };
  Kind kind = Kind::kUnknown;
  int device = -1;  // ordinal as the process sees it
  Address base = 0;
  std::uint64_t size = 0;
  std::uint64_t object = 0;    // the same number is the same memory
  bool mapped_handle = false;  // by VirtualMemory::Map
  Address range = 0;           // the reservation, or the allocation
  std::uint64_t range_size = 0;
  std::uint32_t share = 0;  // how it can be shared
  PoolId pool = 0;          // that it came from
};

// Numbers as CUmemPool_attribute has them.
enum class PoolAttribute : std::uint8_t {
  kReuseFollowEvents = 1,
  kReuseOpportunistic,
  kReuseInternal,
  kReleaseThreshold,
  kReservedCurrent,
  kReservedHigh,
  kUsedCurrent,
  kUsedHigh,
};

class MemoryApi {
 public:
  virtual ~MemoryApi() = default;

  virtual std::uint64_t FreeMemory(ProcessId process, int device) const = 0;
  // Memory.
  virtual Status Allocate(ProcessId process, int device, std::uint64_t size, Address* address) = 0;
  virtual Status Free(ProcessId process, Address address) = 0;  // device memory
  // Pools of stream-ordered memory. Each (process, device) has a default one, which cannot be
  // destroyed; memory of a destroyed pool lives until it is freed. `max_size` 0: no limit.
  virtual PoolId DefaultPool(ProcessId process, int device) = 0;
  virtual Status CreatePool(ProcessId process, int device, std::uint64_t max_size,
                            std::uint32_t share, PoolId* pool) = 0;
  virtual Status DestroyPool(ProcessId process, PoolId pool) = 0;
  virtual Status GetPoolAttribute(ProcessId process, PoolId pool, PoolAttribute attribute,
                                  std::uint64_t* value) = 0;
  virtual Status SetPoolAttribute(ProcessId process, PoolId pool, PoolAttribute attribute,
                                  std::uint64_t value) = 0;
  virtual Status TrimPool(ProcessId process, PoolId pool, std::uint64_t keep) = 0;
  // Which devices' kernels may use a pool's memory; peer access has no say in it.
  virtual Status SetPoolAccess(ProcessId process, PoolId pool, int device, bool access) = 0;
  virtual Status GetPoolAccess(ProcessId process, PoolId pool, int device, bool* access) = 0;
  // The memory is there at once; that it is used only by work behind this call in stream order is
  // the program's promise.
  virtual Status AllocateAsync(ProcessId process, StreamId stream, PoolId pool, std::uint64_t size,
                               Address* address) = 0;
  // Memory of a pool or of Allocate; it goes when the stream gets there.
  virtual Status FreeAsync(ProcessId process, StreamId stream, Address address, Time at,
                           OpId* op) = 0;
  // Moves managed memory to a device, or to the host (`device` < 0). Where memory lives is kept per
  // allocation: only a prefetch of all of it changes that, others cost their time.
  virtual Status Prefetch(ProcessId process, StreamId stream, Address address, std::uint64_t size,
                          int device, Time at, OpId* op) = 0;
  // Managed memory is pinned memory that can move to a device by Prefetch.
  virtual Status AllocatePinned(ProcessId process, std::uint64_t size, bool managed,
                                PinnedMemory* memory) = 0;
  // Whole pages at an address of the process's own, for FreePinned to forget. All registrations of
  // one part of a file have the same memory.
  virtual Status RegisterHost(ProcessId process, Address address, std::uint64_t size,
                              const HostFile& file, PinnedMemory* memory) = 0;
  virtual Status FreePinned(ProcessId process, Address address) = 0;
  // Memory by handles, and what is mapped of it.
  virtual VirtualMemory& virtual_memory() = 0;
  virtual PointerInfo Describe(ProcessId process, Address address) const = 0;
  // Host code ran natively and may have written pinned memory: re-examine what parked warps wait
  // for.
  virtual void HostWrote(ProcessId process, Time at) = 0;
  // A host thread polls these bytes of pinned memory; the callback fires (once) at the first
  // virtual time at or after `at` at which one of them differs from `seen`. Cancel with Unwatch.
  struct HostWatch {
    Address address;
    std::uint32_t size;
    std::uint64_t seen;
  };
  virtual std::uint64_t WatchHost(ProcessId process, std::span<const HostWatch> watches, Time at,
                                  std::function<void(Time)> changed) = 0;
  virtual void Unwatch(std::uint64_t watch) = 0;
};

}  // namespace allranks::node
