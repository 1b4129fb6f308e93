// Messages of what streams do beside kernels and copies: host functions, values in memory, graphs.
// Part of wire/messages.h.
#pragma once

#include <cstdint>
#include <vector>

#include "wire/device_messages.h"
#include "wire/op.h"

namespace allranks::wire {

// One line per Visit, so that a struct and its description stand side by side.
// clang-format off

// --- host functions ----------------------------------------------------------------------------

// Two numbers that only the process understands: an address to call, and what to call it with.
struct HostFunction {
  std::uint64_t function = 0, argument = 0;
  bool after_error = false;  // called even if the context has failed
  template <class A> void Visit(A& a) { a(function, argument, after_error); }
};
struct CallHost {
  using Reply = Empty;
  StreamRef stream;
  HostFunction function;
  template <class A> void Visit(A& a) { a(stream, function); }
};
// Sent by the thread that runs a process's host functions: `done` (0: none yet) has returned. The
// reply comes when a stream has got to the next one.
struct NextHostCallReply {
  std::uint64_t call = 0;
  HostFunction function;
  std::int32_t error = 0;  // the context's
  template <class A> void Visit(A& a) { a(call, function, error); }
};
struct NextHostCall {
  using Reply = NextHostCallReply;
  std::uint64_t done = 0;
  template <class A> void Visit(A& a) { a(done); }
};

// --- values in memory --------------------------------------------------------------------------

struct ValueOp {
  enum class Kind : std::uint8_t {
    kWrite,
    kWait,
    kBarrier,
    kUnorderedWrite,  // CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER
    kLast_ = kUnorderedWrite
  };
  enum class Compare : std::uint8_t { kGreaterOrEqual, kEqual, kAnd, kNor, kLast_ = kNor };
  Kind kind = Kind::kBarrier;
  Compare compare = Compare::kEqual;
  std::uint8_t width = 4;
  std::uint64_t address = 0, value = 0;
  template <class A> void Visit(A& a) { a(kind, compare, width, address, value); }
};
struct StreamValues {
  using Reply = Empty;
  StreamRef stream;
  std::vector<ValueOp> values;
  template <class A> void Visit(A& a) { a(stream, values); }
};

// --- events between processes, devices ---------------------------------------------------------

struct ExportEvent {
  using Reply = IpcExportReply;
  std::uint64_t event = 0;
  template <class A> void Visit(A& a) { a(event); }
};
struct OpenEventReply {
  std::uint64_t event = 0;
  std::int32_t device = 0;
  template <class A> void Visit(A& a) { a(event, device); }
};
struct OpenEvent {
  using Reply = OpenEventReply;
  IpcBytes handle{};
  template <class A> void Visit(A& a) { a(handle); }
};
// Which of the devices that Init named the process uses, and in which order (CUDA_VISIBLE_DEVICES).
struct SetVisible {
  using Reply = Empty;
  std::vector<std::int32_t> devices;
  template <class A> void Visit(A& a) { a(devices); }
};

// --- graphs ------------------------------------------------------------------------------------

// One operation of a graph; of the messages in it only what belongs to its kind is looked at, and
// never their streams.
struct GraphNode {
  enum class Kind : std::uint8_t {
    kEmpty, kKernel, kCopy, kMemset, kHost, kRecord, kWait, kValues, kLast_ = kValues
  };
  Kind kind = Kind::kEmpty;
  std::int32_t device = 0;
  std::vector<std::uint32_t> after;  // places before its own in the list
  Launch launch;
  Copy copy;
  Memset memset;
  HostFunction host;
  std::uint64_t event = 0;
  std::vector<ValueOp> values;
  std::vector<std::uint64_t> stack;  // where the node was made, as RequestHeader has it
  template <class A> void Visit(A& a) {
    a(kind, device, after, launch, copy, memset, host, event, values, stack);
  }
};
struct PutGraphReply {
  std::uint64_t graph = 0;
  template <class A> void Visit(A& a) { a(graph); }
};
struct PutGraph {
  using Reply = PutGraphReply;
  std::vector<GraphNode> nodes;
  template <class A> void Visit(A& a) { a(nodes); }
};
// Launches from now on do `nodes` in `places`; what each waits for stays as it was.
struct UpdateGraph {
  using Reply = Empty;
  std::uint64_t graph = 0;
  std::vector<std::uint32_t> places;
  std::vector<GraphNode> nodes;
  template <class A> void Visit(A& a) { a(graph, places, nodes); }
};
struct DropGraph {
  using Reply = Empty;
  std::uint64_t graph = 0;
  template <class A> void Visit(A& a) { a(graph); }
};
struct LaunchGraph {
  using Reply = Empty;
  StreamRef stream;
  std::uint64_t graph = 0;
  template <class A> void Visit(A& a) { a(stream, graph); }
};

// clang-format on
}  // namespace allranks::wire
