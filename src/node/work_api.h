// Work of processes: streams, events, what is put into streams, and waiting for it. Each takes
// effect in stream order, not before `at`; `op` is what to wait for.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "node/ids.h"
#include "node/requests.h"
#include "node/status.h"
#include "node/time.h"

namespace allranks::node {

class WorkApi {
 public:
  virtual ~WorkApi() = default;

  // Streams and events.
  virtual StreamId DefaultStream(ProcessId process, int device) = 0;
  virtual Status CreateStream(ProcessId process, int device, bool non_blocking, int priority,
                              StreamId* stream) = 0;
  virtual Status DestroyStream(ProcessId process, StreamId stream) = 0;
  virtual Status CreateEvent(ProcessId process, int device, bool timing, EventId* event) = 0;
  virtual Status DestroyEvent(ProcessId process, EventId event) = 0;
  // Work. Each takes effect in stream order, not before `at`; `op` is what to wait for.
  virtual Status Launch(ProcessId process, StreamId stream, const LaunchRequest& launch, Time at,
                        OpId* op) = 0;
  // Copies between device and pinned memory of any devices; `copy` is kept alive by the machine
  // until done.
  virtual Status Copy(ProcessId process, StreamId stream, std::shared_ptr<CopyRequest> copy,
                      Time at, OpId* op) = 0;
  virtual Status Memset(ProcessId process, StreamId stream, const MemsetRequest& request, Time at,
                        OpId* op) = 0;
  virtual Status RecordEvent(ProcessId process, StreamId stream, EventId event, Time at) = 0;
  virtual Status WaitEvent(ProcessId process, StreamId stream, EventId event, Time at) = 0;
  // The same of a context: the event stands for all work that the process has given to the device,
  // in any stream; all that it gives to any stream of the device from now on waits, also in streams
  // that are made later. Nodes of a graph wait as the stream of its launch does.
  virtual Status RecordContext(ProcessId process, int device, EventId event, Time at) = 0;
  virtual Status WaitContext(ProcessId process, int device, EventId event, Time at) = 0;
  // Calls a function of the process by way of the host caller.
  virtual Status CallHost(ProcessId process, StreamId stream, const HostFunction& function, Time at,
                          OpId* op) = 0;
  // Whoever brings a call to its process; fires inside RunUntil.
  virtual void SetHostCaller(std::function<void(const HostCall&, Time)> caller) = 0;
  virtual Status FinishHostCall(ProcessId process, OpId op, Time at) = 0;
  // Writes to memory and waits for values there, one after the other.
  virtual Status Values(ProcessId process, StreamId stream, std::vector<ValueOp> values, Time at,
                        OpId* op) = 0;
  // Graphs that can be launched: a list of operations in which each comes after those it waits for.
  virtual Status PutGraph(ProcessId process, std::vector<GraphNode> nodes, GraphId* graph) = 0;
  // Launches from now on use `node` in that place; those under way are not changed.
  virtual Status UpdateGraph(ProcessId process, GraphId graph, std::uint32_t place,
                             GraphNode node) = 0;
  virtual Status DropGraph(ProcessId process, GraphId graph) = 0;
  // One launch of a graph begins when the one before it has ended.
  virtual Status LaunchGraph(ProcessId process, StreamId stream, GraphId graph, Time at,
                             OpId* op) = 0;
  // Last operation of a stream / the one an event marks / all of a device. What synchronise waits
  // for.
  virtual Status StreamTail(ProcessId process, StreamId stream, std::vector<OpId>* ops) = 0;
  virtual Status EventTail(ProcessId process, EventId event, std::vector<OpId>* ops) = 0;
  virtual Status DeviceTail(ProcessId process, int device, std::vector<OpId>* ops) = 0;
  virtual bool Done(std::span<const OpId> ops) const = 0;
  virtual Status EventTime(ProcessId process, EventId event,
                           Time* time) = 0;  // kNotReady, kInvalidHandle
  // Calls `done(t)` when all are complete (at once if they are). Fires inside RunUntil, in time
  // order.
  virtual std::uint64_t WhenDone(std::vector<OpId> ops, std::function<void(Time)> done) = 0;
  virtual void CancelWhenDone(std::uint64_t id) = 0;
};

}  // namespace allranks::node
