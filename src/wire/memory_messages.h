// Messages on memory beyond plain allocation: pools, stream-ordered and host memory; part of
// wire/messages.h.
#pragma once

#include <cstdint>

#include "wire/device_messages.h"
#include "wire/op.h"

namespace allranks::wire {

// One line per Visit, so that a struct and its description stand side by side.
// clang-format off

// --- pools -------------------------------------------------------------------------------------

struct PoolReply {
  std::uint64_t pool = 0;
  template <class A> void Visit(A& a) { a(pool); }
};
struct DefaultPool {
  using Reply = PoolReply;
  std::int32_t device = 0;
  template <class A> void Visit(A& a) { a(device); }
};
struct CreatePool {
  using Reply = PoolReply;
  std::int32_t device = 0;
  std::uint64_t max_size = 0;  // 0: no limit
  std::uint32_t share = 0;     // bits of CUmemAllocationHandleType
  template <class A> void Visit(A& a) { a(device, max_size, share); }
};
struct DestroyPool {
  using Reply = Empty;
  std::uint64_t pool = 0;
  template <class A> void Visit(A& a) { a(pool); }
};

// Attributes by their numbers in CUmemPool_attribute.
struct GetPoolAttributeReply {
  std::uint64_t value = 0;
  template <class A> void Visit(A& a) { a(value); }
};
struct GetPoolAttribute {
  using Reply = GetPoolAttributeReply;
  std::uint64_t pool = 0;
  std::uint8_t attribute = 0;
  template <class A> void Visit(A& a) { a(pool, attribute); }
};
struct SetPoolAttribute {
  using Reply = Empty;
  std::uint64_t pool = 0;
  std::uint8_t attribute = 0;
  std::uint64_t value = 0;
  template <class A> void Visit(A& a) { a(pool, attribute, value); }
};
struct TrimPool {
  using Reply = Empty;
  std::uint64_t pool = 0, keep = 0;
  template <class A> void Visit(A& a) { a(pool, keep); }
};

struct SetPoolAccess {
  using Reply = Empty;
  std::uint64_t pool = 0;
  std::int32_t device = 0;
  bool access = false;
  template <class A> void Visit(A& a) { a(pool, device, access); }
};
struct GetPoolAccessReply {
  bool access = false;
  template <class A> void Visit(A& a) { a(access); }
};
struct GetPoolAccess {
  using Reply = GetPoolAccessReply;
  std::uint64_t pool = 0;
  std::int32_t device = 0;
  template <class A> void Visit(A& a) { a(pool, device); }
};

struct AllocAsync {
  using Reply = AddressReply;
  StreamRef stream;
  std::uint64_t pool = 0, size = 0;  // pool 0: the default one of the stream's device
  template <class A> void Visit(A& a) { a(stream, pool, size); }
};
struct FreeAsync {
  using Reply = Empty;
  StreamRef stream;
  std::uint64_t address = 0;
  template <class A> void Visit(A& a) { a(stream, address); }
};

// --- host memory -------------------------------------------------------------------------------

// Whole pages of the process's own memory, which become the node's: the reply's frame carries the
// memory file to be put there.
struct RegisterHostReply {
  std::uint64_t address = 0, size = 0;
  bool shared = false;  // the pages are registered elsewhere, too: the memory file has their contents
  template <class A> void Visit(A& a) { a(address, size, shared); }
};
struct RegisterHost {
  using Reply = RegisterHostReply;
  std::uint64_t address = 0, size = 0;
  // The part of a file that is mapped there and that other mappings share; no inode: there is none.
  std::uint64_t file_device = 0, file_inode = 0, file_offset = 0;
  template <class A> void Visit(A& a) { a(address, size, file_device, file_inode, file_offset); }
};
// Moves managed memory. `device` < 0: to the host.
struct Prefetch {
  using Reply = Empty;
  StreamRef stream;
  std::uint64_t address = 0, size = 0;
  std::int32_t device = -1;
  template <class A> void Visit(A& a) { a(stream, address, size, device); }
};

// clang-format on
}  // namespace allranks::wire
