// What a machine tells while it runs, for whoever asked (MachineOptions::listener): operations,
// waits of kernels, and what links carry. Nobody listens: nothing is made up to be told. The
// machine never prints; server/trace.h makes a file of this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "node/machine.h"
#include "node/time.h"

namespace allranks::node {

struct OperationEvent {
  enum class Kind : std::uint8_t { kKernel, kCopy, kMemset, kMove, kRecord, kHost, kValues };
  Kind kind = Kind::kKernel;
  OpId op = 0;
  ProcessId process = 0;
  int device = 0;           // machine-wide
  StreamId stream = 0;      // of a graph's nodes: where the graph was launched
  bool legacy = false;      // the device's default stream
  Time time = 0;            // when it begins
  std::string name;         // kernels, as the module has it
  Dim3 grid, block;         // kernels
  int from = -1, to = -1;   // copies: devices, -1: a host
  std::uint64_t bytes = 0;  // copies
  int engine = -1;          // copies: of the device
};

// Where warps of a kernel wait: one loop of it.
struct WaitEvent {
  OpId op = 0;
  std::uint32_t place = 0;  // tells the loops of a kernel apart
  Time time = 0;
  // Only when a wait begins.
  const std::string* file = nullptr;    // of the loop's load
  int line = 0;                         // 0: not known
  const std::string* what = nullptr;    // its instruction
  const std::string* object = nullptr;  // what it reads; null: nothing in memory
  std::uint64_t offset = 0;
  // Only when it ends: the operation whose write has ended it, and when that was made; 0: none, or
  // it is not known.
  OpId by = 0;
  Time written = 0;
  const std::string* by_file = nullptr;  // of a kernel's store; null: not known
  int by_line = 0;
};

// Calls come in the order in which things are found out, which is nearly that of time: a warp may
// be ahead of others by the profile's quantum, and a link is told of its future.
class Listener {
 public:
  virtual ~Listener() = default;
  // An operation was made, by the call that is being carried out; it may begin much later.
  virtual void OnQueued(OpId op) = 0;
  virtual void OnBegin(const OperationEvent& event) = 0;
  // `kernel`: its figures; null for other operations and beyond the limit of records.
  virtual void OnEnd(OpId op, Time at, const KernelRecord* kernel) = 0;
  // Part of a warp waits without being executed, and no longer does so.
  virtual void OnPark(const WaitEvent& event) = 0;
  virtual void OnWake(const WaitEvent& event) = 0;
  // A direction of a link is taken from `begin` to `end` by so many bytes, headers included.
  // `port`: twice the link's number in the topology, plus one for the way back.
  virtual void OnPort(std::size_t port, Time begin, Time end, std::uint64_t bytes) = 0;
};

}  // namespace allranks::node
