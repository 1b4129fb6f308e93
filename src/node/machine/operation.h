// Work that the Machine was given: operations, the streams and events that order them, and graphs
// of them. Plain data; machine_streams.cpp and machine_work.cpp act on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "node/check/checker.h"
#include "node/code/code.h"
#include "node/ids.h"
#include "node/machine.h"
#include "node/state/memory.h"
#include "node/time.h"

namespace allranks::node {

struct Stream {
  ProcessId process = 0;
  int device = 0;  // machine-wide
  bool non_blocking = false;
  bool legacy = false;
  bool destroyed = false;  // kept until its tail is complete
  int priority = 0;        // lower numbers first
  OpId tail = 0;
  std::vector<OpId> also;   // the next operation waits for these, too (graphs)
  StreamId shown = 0;       // as listeners know it: itself, or where its graph was launched
  check::ChainPlace chain;  // of the checker
};

// What orders all streams of a process on a device: cuCtxRecordEvent and cuCtxWaitEvent. Each list
// is a stream of its own, because a wait must not come after what an earlier record stands for.
struct ContextOrder {
  Stream records, waits;
};

// What is known of an event wherever it is open.
struct EventState {
  bool recorded = false;
  OpId op = 0;
  Time time = 0;
};

struct Event {
  ProcessId process = 0;
  int device = 0;
  bool timing = true;
  bool imported = false;
  std::shared_ptr<EventState> state = std::make_shared<EventState>();
};

struct Operation {
  enum class Kind : std::uint8_t {
    kKernel,
    kCopy,
    kMemset,
    kFree,
    kMove,
    kRecord,
    kHost,
    kValues,
    kGraph,  // the beginning of a graph's launch
    kJoin,   // nothing but the end of what it depends on
    kAct,    // of the node itself
  };
  OpId id = 0;
  Kind kind = Kind::kRecord;
  ProcessId process = 0;
  int device = 0;
  StreamId stream = 0;   // as listeners know it
  int missing = 0;       // dependences not complete
  Time ready = 0;        // not before
  bool chained = false;  // became ready by the end of another operation
  bool voided = false;   // its context has ended: completes without effect
  bool started = false;
  std::vector<OpId> next;
  std::vector<std::uint64_t> waiters;
  check::OpClocks clocks;
  // kKernel
  std::shared_ptr<const Code> code;
  bool trusted = false;  // ModuleImage::trusted
  LaunchRequest launch;
  Bank constants;
  int priority = 0;               // lower numbers first
  bool triggered = false;         // those in `early` may begin
  bool finished = false;          // over, but not all that it overlaps
  bool early_start = false;       // began by another kernel's trigger
  int primaries = 0;              // kernels before it that it may overlap, and that are not over
  std::vector<OpId> early;        // wait for its trigger only
  std::vector<OpId> at_start;     // wait until all its CTAs have begun
  std::vector<OpId> overlapping;  // kernels that may begin before it is over, but end after it
  // kCopy, kMemset
  std::shared_ptr<CopyRequest> copy;
  Place src, dst;                    // no object: bytes of the request
  std::uint64_t size = 0, done = 0;  // bytes of all rows
  std::uint64_t sent = 0;            // of these: on their way
  int engine = 0;                    // of its device, that moves them
  std::uint64_t row = 0;             // bytes of one
  Rows rows;
  std::uint32_t value = 0;
  int width = 1;
  std::size_t record = 0;
  // kFree
  Address address = 0;
  // kMove, of dst.object
  int target = -1;  // machine-wide, -1: the host
  bool whole = false;
  // kRecord
  EventId event = 0;
  // kHost
  HostFunction host;
  // kAct
  Time delay = 0;
  std::function<void(Time)> action;
  // kValues
  std::vector<ValueOp> values;
  std::vector<Place> places;
  std::size_t step = 0;     // the first that is not done
  std::uint64_t watch = 0;  // of the value it waits for
};

struct ExecutableGraph {
  ProcessId process = 0;
  std::vector<GraphNode> nodes;
  std::vector<SiteId> sites;  // by node, as far as they are known
  OpId last = 0;              // the end of its latest launch
};

}  // namespace allranks::node
