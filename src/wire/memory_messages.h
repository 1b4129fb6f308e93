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
  static constexpr Op kOp = Op::kDefaultPool;
  using Reply = PoolReply;
  std::int32_t device = 0;
  template <class A> void Visit(A& a) { a(device); }
};
struct CreatePool {
  static constexpr Op kOp = Op::kCreatePool;
  using Reply = PoolReply;
  std::int32_t device = 0;
  std::uint64_t max_size = 0;  // 0: no limit
  std::uint32_t share = 0;     // bits of CUmemAllocationHandleType
  template <class A> void Visit(A& a) { a(device, max_size, share); }
};
struct DestroyPool {
  static constexpr Op kOp = Op::kDestroyPool;
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
  static constexpr Op kOp = Op::kGetPoolAttribute;
  using Reply = GetPoolAttributeReply;
  std::uint64_t pool = 0;
  std::uint8_t attribute = 0;
  template <class A> void Visit(A& a) { a(pool, attribute); }
};
struct SetPoolAttribute {
  static constexpr Op kOp = Op::kSetPoolAttribute;
  using Reply = Empty;
  std::uint64_t pool = 0;
  std::uint8_t attribute = 0;
  std::uint64_t value = 0;
  template <class A> void Visit(A& a) { a(pool, attribute, value); }
};
struct TrimPool {
  static constexpr Op kOp = Op::kTrimPool;
  using Reply = Empty;
  std::uint64_t pool = 0, keep = 0;
  template <class A> void Visit(A& a) { a(pool, keep); }
};

struct SetPoolAccess {
  static constexpr Op kOp = Op::kSetPoolAccess;
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
  static constexpr Op kOp = Op::kGetPoolAccess;
  using Reply = GetPoolAccessReply;
  std::uint64_t pool = 0;
  std::int32_t device = 0;
  template <class A> void Visit(A& a) { a(pool, device); }
};

struct AllocAsync {
  static constexpr Op kOp = Op::kAllocAsync;
  using Reply = AddressReply;
  StreamRef stream;
  std::uint64_t pool = 0, size = 0;  // pool 0: the default one of the stream's device
  template <class A> void Visit(A& a) { a(stream, pool, size); }
};
struct FreeAsync {
  static constexpr Op kOp = Op::kFreeAsync;
  using Reply = Empty;
  StreamRef stream;
  std::uint64_t address = 0;
  template <class A> void Visit(A& a) { a(stream, address); }
};

// --- host memory -------------------------------------------------------------------------------

// Whole pages of the process's own memory, which become the node's: the reply's frame carries the
// memory file to be put there.
struct RegisterHost {
  static constexpr Op kOp = Op::kRegisterHost;
  using Reply = AllocPinnedReply;
  std::uint64_t address = 0, size = 0;
  template <class A> void Visit(A& a) { a(address, size); }
};
// Moves managed memory. `device` < 0: to the host.
struct Prefetch {
  static constexpr Op kOp = Op::kPrefetch;
  using Reply = Empty;
  StreamRef stream;
  std::uint64_t address = 0, size = 0;
  std::int32_t device = -1;
  template <class A> void Visit(A& a) { a(stream, address, size, device); }
};

// clang-format on
}  // namespace allranks::wire
