// What is asked of streams: kernels, copies, memsets, host functions, values, graphs of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "node/ids.h"
#include "node/status.h"

namespace allranks::node {

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
  std::uint64_t Count() const { return std::uint64_t{x} * y * z; }
};

// --- one launch --------------------------------------------------------------------------------
struct LaunchRequest {
  KernelId kernel = 0;
  Dim3 grid, block, cluster;
  std::uint32_t dynamic_shared = 0;
  bool cooperative = false;
  std::optional<int> priority;    // else its stream's; lower numbers first
  bool programmatic = false;      // may begin when the kernel before it has triggered
  EventId trigger_event = 0;      // recorded when all CTAs have triggered or ended ...
  bool trigger_at_start = false;  // ... or when all have begun
  std::vector<std::byte> params;  // packed as KernelInfo says
};

// How a region lies in memory: `depth` planes of `height` rows. Rows must not overlap: a pitch is
// at least a row, a slice at least a plane (neither is looked at where there is only one).
struct Rows {
  std::uint64_t height = 1, depth = 1;
  std::uint64_t dst_pitch = 0, dst_slice = 0;  // bytes from row to row, from plane to plane
  std::uint64_t src_pitch = 0, src_slice = 0;
};

// Each end of a copy is device or pinned memory by address, or bytes held by the caller; those are
// packed, whatever `rows` says.
struct CopyRequest {
  Address dst = 0, src = 0;      // 0: the bytes below
  std::vector<std::byte> bytes;  // source when src == 0; filled when dst == 0
  std::uint64_t size = 0;        // of one row
  Rows rows;
};

struct MemsetRequest {
  Address dst = 0;
  std::uint32_t value = 0;
  int width = 1;            // bytes per element: 1, 2 or 4
  std::uint64_t count = 0;  // elements of one row
  Rows rows;                // its destination's part
};

// --- what a stream does beside kernels and copies ------------------------------------------------
// A function of the process. What the numbers mean is known only where it is called.
struct HostFunction {
  std::uint64_t function = 0, argument = 0;
  bool after_error = false;  // called even if its context has failed
};

// It is that function's turn; FinishHostCall says that it has returned.
struct HostCall {
  ProcessId process = 0;
  OpId op = 0;
  HostFunction function;
  Status status = Status::kSuccess;  // of the context
};

// One step of a batch of stream memory operations.
struct ValueOp {
  enum class Kind : std::uint8_t { kWrite, kWait, kBarrier, kUnorderedWrite };
  enum class Compare : std::uint8_t { kGreaterOrEqual, kEqual, kAnd, kNor };
  Kind kind = Kind::kBarrier;
  Compare compare = Compare::kEqual;
  int width = 4;  // bytes: 4 or 8
  Address address = 0;
  std::uint64_t value = 0;
};

// One operation of an executable graph. Only what belongs to its kind is looked at.
struct GraphNode {
  enum class Kind : std::uint8_t {
    kEmpty,
    kKernel,
    kCopy,
    kMemset,
    kHost,
    kRecord,
    kWait,
    kValues,
  };
  Kind kind = Kind::kEmpty;
  int device = 0;                    // ordinal as the process sees it
  std::vector<std::uint32_t> after;  // nodes before this one in the list
  LaunchRequest launch;
  CopyRequest copy;
  MemsetRequest memset;
  HostFunction host;
  EventId event = 0;
  std::vector<ValueOp> values;
};

}  // namespace allranks::node
