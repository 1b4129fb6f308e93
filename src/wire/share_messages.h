// Messages on memory by handles, multicast objects and what is shared between processes; part of
// wire/messages.h. A request or reply that has a descriptor says so: it travels beside the frame.
#pragma once

#include <cstdint>

#include "wire/device_messages.h"
#include "wire/op.h"

namespace allranks::wire {

// One line per Visit, so that a struct and its description stand side by side.
// clang-format off

// How something travels, as CUmemAllocationHandleType has it.
enum class ShareBy : std::uint8_t { kDescriptor, kFabric, kLast_ = kFabric };

// Where memory lies, or who may use it; by the names of CUmemLocationType.
enum class MemoryPlace : std::uint8_t { kDevice, kHost, kHostNuma, kLast_ = kHostNuma };

// --- handles -----------------------------------------------------------------------------------

struct HandleReply {
  std::uint64_t handle = 0;
  template <class A> void Visit(A& a) { a(handle); }
};
struct CreateMemory {
  using Reply = HandleReply;
  std::int32_t device = 0;  // of a device's memory
  std::uint64_t size = 0;
  std::uint32_t share = 0;  // bits of CUmemAllocationHandleType
  MemoryPlace place = MemoryPlace::kDevice;
  template <class A> void Visit(A& a) { a(device, size, share, place); }
};
struct ReleaseMemory {
  using Reply = Empty;
  std::uint64_t handle = 0;
  template <class A> void Visit(A& a) { a(handle); }
};
struct RetainMemory {
  using Reply = HandleReply;
  std::uint64_t address = 0;
  template <class A> void Visit(A& a) { a(address); }
};
struct MemoryInfoReply {
  bool multicast = false;
  MemoryPlace place = MemoryPlace::kDevice;
  std::int32_t device = -1;
  std::uint64_t size = 0;
  std::uint32_t share = 0;
  template <class A> void Visit(A& a) { a(multicast, place, device, size, share); }
};
struct MemoryInfo {
  using Reply = MemoryInfoReply;
  std::uint64_t handle = 0;
  template <class A> void Visit(A& a) { a(handle); }
};
// The reply's frame carries a descriptor, or the bytes are a fabric handle.
struct ExportReply {
  IpcBytes fabric{};
  template <class A> void Visit(A& a) { a(fabric); }
};
struct ExportMemory {
  using Reply = ExportReply;
  std::uint64_t handle = 0;
  ShareBy by = ShareBy::kDescriptor;
  template <class A> void Visit(A& a) { a(handle, by); }
};
// The request's frame carries the descriptor.
struct ImportMemory {
  using Reply = HandleReply;
  ShareBy by = ShareBy::kDescriptor;
  IpcBytes fabric{};
  template <class A> void Visit(A& a) { a(by, fabric); }
};

// The reply's frame carries a descriptor that other drivers take (dma-buf).
struct ExportRange {
  using Reply = Empty;
  std::uint64_t address = 0, size = 0;
  template <class A> void Visit(A& a) { a(address, size); }
};

// --- addresses ---------------------------------------------------------------------------------

struct ReserveAddress {
  using Reply = AddressReply;
  std::uint64_t size = 0, alignment = 0, hint = 0;
  template <class A> void Visit(A& a) { a(size, alignment, hint); }
};
struct FreeAddress {
  using Reply = Empty;
  std::uint64_t address = 0, size = 0;
  template <class A> void Visit(A& a) { a(address, size); }
};
// Of memory of the host: the frame carries the memory file, `mapped` bytes to be mapped at the
// address that was asked for.
struct MapMemoryReply {
  std::uint64_t mapped = 0;
  template <class A> void Visit(A& a) { a(mapped); }
};
// Of a multicast object: answered when its team is complete.
struct MapMemory {
  using Reply = MapMemoryReply;
  std::uint64_t address = 0, size = 0, offset = 0, handle = 0;
  template <class A> void Visit(A& a) { a(address, size, offset, handle); }
};
// Answered when the devices that may use the range are idle.
struct UnmapMemory {
  using Reply = Empty;
  std::uint64_t address = 0, size = 0;
  template <class A> void Visit(A& a) { a(address, size); }
};
struct SetMemoryAccess {
  using Reply = Empty;
  std::uint64_t address = 0, size = 0;
  std::int32_t device = 0;
  std::uint8_t flags = 0;  // CUmemAccess_flags
  MemoryPlace place = MemoryPlace::kDevice;  // else: the host's
  template <class A> void Visit(A& a) { a(address, size, device, flags, place); }
};
struct GetMemoryAccessReply {
  std::uint8_t flags = 0;
  template <class A> void Visit(A& a) { a(flags); }
};
struct GetMemoryAccess {
  using Reply = GetMemoryAccessReply;
  std::uint64_t address = 0;
  std::int32_t device = 0;
  MemoryPlace place = MemoryPlace::kDevice;
  template <class A> void Visit(A& a) { a(address, device, place); }
};

// --- multicast objects -------------------------------------------------------------------------

struct CreateMulticast {
  using Reply = HandleReply;
  std::uint32_t devices = 0;
  std::uint64_t size = 0;
  std::uint32_t share = 0;
  template <class A> void Visit(A& a) { a(devices, size, share); }
};
struct AddMulticastDevice {
  using Reply = Empty;
  std::uint64_t handle = 0;
  std::int32_t device = 0;
  template <class A> void Visit(A& a) { a(handle, device); }
};
// Memory by its handle, or (if that is 0) by its address. Answered when the team is complete.
struct BindMulticast {
  using Reply = Empty;
  std::uint64_t handle = 0, offset = 0, memory = 0, place = 0, size = 0;  // place: offset or address
  template <class A> void Visit(A& a) { a(handle, offset, memory, place, size); }
};
struct UnbindMulticast {
  using Reply = Empty;
  std::uint64_t handle = 0;
  std::int32_t device = 0;
  std::uint64_t offset = 0, size = 0;
  template <class A> void Visit(A& a) { a(handle, device, offset, size); }
};

// --- pools -------------------------------------------------------------------------------------

struct ExportPool {
  using Reply = ExportReply;
  std::uint64_t pool = 0;
  ShareBy by = ShareBy::kDescriptor;
  template <class A> void Visit(A& a) { a(pool, by); }
};
struct ImportPoolReply {
  std::uint64_t pool = 0;
  std::int32_t device = -1;
  template <class A> void Visit(A& a) { a(pool, device); }
};
// The request's frame carries the descriptor.
struct ImportPool {
  using Reply = ImportPoolReply;
  ShareBy by = ShareBy::kDescriptor;
  IpcBytes fabric{};
  template <class A> void Visit(A& a) { a(by, fabric); }
};
// One allocation of a pool, for processes that have imported the pool.
struct ExportPointer {
  using Reply = IpcExportReply;
  std::uint64_t address = 0;
  template <class A> void Visit(A& a) { a(address); }
};
struct ImportPointer {
  using Reply = AddressReply;
  std::uint64_t pool = 0;
  IpcBytes data{};
  template <class A> void Visit(A& a) { a(pool, data); }
};

// clang-format on
}  // namespace allranks::wire
