// The graph of operations: what starts when, and what follows from its end. Streams
// (machine_streams.cpp) put operations in order; kernels are started here, copies in
// machine_copy.cpp.
#include <algorithm>

#include "base/check.h"
#include "node/code/dependents.h"
#include "node/listener.h"
#include "node/machine/machine_impl.h"

namespace allranks::node {
namespace {

constexpr std::uint64_t kWorkspaceBytes = 64;

}  // namespace

Operation& MachineImpl::NewOperation(Operation::Kind kind, ProcessId process, int device) {
  const OpId id = next_id_++;
  Operation& op = operations_[id];
  ++queued_[process];
  op.id = id;
  op.kind = kind;
  op.process = process;
  op.device = op.clocks.device = device;
  if (checker_ != nullptr) op.clocks.site = checker_->caller;
  if (sim_.listener != nullptr) sim_.listener->OnQueued(id);
  return op;
}

void MachineImpl::Depend(Operation& op, OpId on) {
  const auto it = operations_.find(on);
  if (it == operations_.end()) {
    if (sim_.checker != nullptr) checker_->After(op.clocks, on);
    return;
  }
  if (it->first == op.id) return;
  it->second.next.push_back(op.id);
  ++op.missing;
}

void MachineImpl::Follow(Operation& op, OpId before) {
  const bool may_overlap = op.kind == Operation::Kind::kKernel && op.launch.programmatic;
  const auto it = operations_.find(before);
  if (it == operations_.end() && may_overlap && sim_.checker != nullptr) {
    return checker_->Beside(op.clocks, before, op.device);
  }
  if (it == operations_.end() || !may_overlap) return Depend(op, before);
  Operation& first = it->second;
  if (first.kind != Operation::Kind::kKernel || first.device != op.device) {
    return Depend(op, before);
  }
  first.overlapping.push_back(op.id);
  if (sim_.checker != nullptr) checker_->Beside(op.clocks, first.clocks);
  ++op.primaries;
  if (first.triggered) {
    if (sim_.checker != nullptr && !LetsOthersBegin(*first.code))
      checker_->After(op.clocks, first.clocks.done);
    return;
  }
  first.early.push_back(op.id);
  ++op.missing;
}

void MachineImpl::Release(const std::vector<OpId>& ops, Time at, bool early) {
  for (const OpId id : ops) {
    const auto it = operations_.find(id);
    if (it == operations_.end()) continue;
    Operation& follower = it->second;
    if (at >= follower.ready) {
      follower.ready = at;
      follower.chained = true;
      follower.early_start = early;
    }
    if (--follower.missing == 0) Ready(follower);
  }
}

void MachineImpl::Enqueue(Stream& stream, Operation& op, Time at) {
  op.ready = std::max({op.ready, at, sim_.now});
  if (sim_.checker != nullptr) checker_->Enqueue(op.clocks, op.process, &stream.chain);
  Follow(op, stream.tail);
  for (const OpId id : std::exchange(stream.also, {})) Follow(op, id);
  // The legacy default stream and the blocking streams of a context wait for each other.
  if (!stream.non_blocking) {
    std::erase_if(streams_, [&](const auto& entry) {
      return entry.second.destroyed && !operations_.contains(entry.second.tail);
    });
    for (auto& [id, other] : streams_) {
      if (&other == &stream || other.process != stream.process || other.device != stream.device ||
          other.non_blocking) {
        continue;
      }
      if (stream.legacy || other.legacy) Depend(op, other.tail);
    }
  }
  stream.tail = op.id;
  op.stream = stream.shown;
  op.clocks.legacy = stream.legacy;
  if (op.missing == 0) Ready(op);
}

void MachineImpl::Ready(Operation& op) {
  Time at = op.ready;
  switch (op.kind) {
    case Operation::Kind::kKernel:
      // What was launched early is ready to go when the trigger comes.
      at += op.early_start ? profile().launch.cta
            : op.chained   ? profile().launch.between
                           : profile().launch.kernel;
      break;
    case Operation::Kind::kCopy:
    case Operation::Kind::kMemset:
    case Operation::Kind::kMove:
      at += profile().copy_engine.startup;
      break;
    case Operation::Kind::kFree:
    case Operation::Kind::kRecord:
    case Operation::Kind::kHost:
    case Operation::Kind::kValues:
      at += profile().launch.event;
      break;
    case Operation::Kind::kGraph:
      at += profile().launch.graph;
      break;
    case Operation::Kind::kJoin:
      break;
    case Operation::Kind::kAct:
      at += op.delay;
      break;
  }
  if (sim_.checker != nullptr && sim_.delays.on()) {
    at += sim_.delays.At(
        {Delays::Kind::kOperation, op.code.get(), static_cast<std::uint32_t>(op.kind), op.device},
        at, at);
  }
  At(at, [this, id = op.id] { Start(id); });
}

void MachineImpl::Start(OpId id) {
  const auto it = operations_.find(id);
  if (it == operations_.end()) return;
  Operation& op = it->second;
  const bool broken = op.voided || Sticky(op.process, op.device) != Status::kSuccess;
  if (broken && !(op.kind == Operation::Kind::kHost && op.host.after_error)) {
    Complete(id, sim_.now);  // a broken context does nothing any more
    return;
  }
  op.started = true;
  switch (op.kind) {
    case Operation::Kind::kKernel:
      StartKernel(op);
      break;
    case Operation::Kind::kCopy:
    case Operation::Kind::kMemset: {
      CopyRecord record{};
      record.src_device = op.src.object != nullptr ? op.src.object->device : -1;
      record.dst_device = op.dst.object != nullptr ? op.dst.object->device : -1;
      record.bytes = op.size;
      record.start = sim_.now;
      op.record = std::min(sim_.stats.copies.size(), kMaxRecords);
      if (op.record == sim_.stats.copies.size()) sim_.stats.copies.push_back(record);
      op.engine = FreeEngine(sim_.devices[static_cast<std::size_t>(op.device)]);
      if (sim_.checker != nullptr) {
        checker_->Begin(op.clocks, op.kind == Operation::Kind::kCopy ? "copy" : "memset", op.device,
                        op.stream, op.id);
      }
      TellBegin(op);
      StepCopy(id);
      break;
    }
    case Operation::Kind::kMove:
      TellBegin(op);
      StartMove(op);
      break;
    case Operation::Kind::kRecord:
      TellBegin(op);
      Complete(id, sim_.now);
      break;
    case Operation::Kind::kFree:
    case Operation::Kind::kGraph:
    case Operation::Kind::kJoin:
      Complete(id, sim_.now);
      break;
    case Operation::Kind::kAct: {
      // It may give its stream more to do, which is then behind it.
      const auto action = std::move(op.action);
      if (sim_.checker != nullptr) checker_->Begin(op.clocks, "judge", op.device);
      acting_ = &op.clocks;
      action(sim_.now);
      acting_ = nullptr;
      Complete(id, sim_.now);
      break;
    }
    case Operation::Kind::kHost:
      TellBegin(op);
      StartHost(op);
      break;
    case Operation::Kind::kValues:
      TellBegin(op);
      if (sim_.checker != nullptr)
        checker_->Begin(op.clocks, "stream", op.device, op.stream, op.id);
      StepValues(id);
      break;
  }
}

void MachineImpl::TellBegin(const Operation& op) {
  if (sim_.listener == nullptr) return;
  using Kind = OperationEvent::Kind;
  OperationEvent event;
  event.op = op.id;
  event.process = op.process;
  event.device = op.device;
  event.stream = op.stream;
  const auto legacy = default_streams_.find({op.process, op.device});
  event.legacy = legacy != default_streams_.end() && legacy->second == op.stream;
  event.time = sim_.now;
  switch (op.kind) {
    case Operation::Kind::kKernel:
      event.kind = Kind::kKernel;
      event.name = op.code->name;
      event.grid = op.launch.grid;
      event.block = op.launch.block;
      break;
    case Operation::Kind::kCopy:
    case Operation::Kind::kMemset:
      event.kind = op.kind == Operation::Kind::kCopy ? Kind::kCopy : Kind::kMemset;
      event.from = op.src.object != nullptr ? op.src.object->device : -1;
      event.to = op.dst.object != nullptr ? op.dst.object->device : -1;
      event.bytes = op.size;
      event.engine = op.engine;
      break;
    case Operation::Kind::kMove:
      event.kind = Kind::kMove;
      event.from = op.dst.object->device;
      event.to = op.target;
      event.bytes = op.size;
      break;
    case Operation::Kind::kRecord:
      event.kind = Kind::kRecord;
      break;
    case Operation::Kind::kHost:
      event.kind = Kind::kHost;
      break;
    case Operation::Kind::kValues:
      event.kind = Kind::kValues;
      break;
    case Operation::Kind::kFree:
    case Operation::Kind::kGraph:
    case Operation::Kind::kJoin:
    case Operation::Kind::kAct:
      return;
  }
  sim_.listener->OnBegin(event);
}

void MachineImpl::StartKernel(Operation& op) {
  Device& device = sim_.devices[static_cast<std::size_t>(op.device)];
  // Blocks of a higher priority go first; what has begun stays.
  const auto place =
      std::find_if(device.launches.begin(), device.launches.end(),
                   [&](const struct Launch& other) { return other.priority > op.priority; });
  struct Launch& launch = *device.launches.emplace(place);
  launch.priority = op.priority;
  launch.primary_over = op.primaries == 0;
  launch.number = op.id;
  launch.op = op.id;
  launch.process = op.process;
  launch.device = &device;
  launch.code = op.code;
  launch.trusted = op.trusted;
  launch.request = op.launch;
  launch.params = op.launch.params;
  launch.total_ctas = op.launch.grid.Count();
  launch.constants = std::move(op.constants);
  if (launch.code->growing != nullptr) ExtendConstants(launch);
  launch.end = sim_.now;
  if (op.launch.cooperative) {
    Process& process = sim_.ProcessOf(op.process);
    Mapping mapping;
    const int visible = sim_.OrdinalOf(process, op.device);
    if (MapNew(process, visible, Object::Kind::kGlobal, kWorkspaceBytes, "grid barrier",
               &mapping) == Status::kSuccess) {
      launch.workspace = mapping.base;
    }
  }
  launch.record = std::min(sim_.stats.kernels.size(), kMaxRecords);
  KernelRecord record;
  record.name = launch.record == kMaxRecords ? "(further kernels)" : op.code->name;
  record.device = op.device;
  record.process = op.process;
  record.grid = op.launch.grid;
  record.block = op.launch.block;
  record.start = sim_.now;
  record.end = -1;
  if (launch.record == sim_.stats.kernels.size()) sim_.stats.kernels.push_back(std::move(record));
  op.record = launch.record;
  TellBegin(op);
  if (sim_.checker != nullptr) {
    checker_->BeginLaunch(launch, op.clocks, op.stream, op.id);
    launch.schedule = sim_.stalls.OfLaunch();
    for (const OpId follower : op.overlapping) {
      const auto it = operations_.find(follower);
      if (it != operations_.end()) checker_->Beside(it->second.clocks, op.clocks);
    }
  }
  sim_.residency.Dispatch(device, sim_.now);
}

void MachineImpl::FinishLaunch(struct Launch& launch, Time at) {
  sim_.stats.kernels[launch.record].end = at;
  sim_.timing.SumUp(launch, &sim_.stats.kernels[launch.record]);
  if (launch.workspace != 0) Unmap(sim_.ProcessOf(launch.process), launch.workspace);
  const OpId op = launch.op;
  // An engine frame may still hold a reference: the launch is put aside, not destroyed.
  auto& launches = launch.device->launches;
  for (auto it = launches.begin(); it != launches.end(); ++it) {
    if (&*it == &launch) {
      ended_.splice(ended_.end(), launches, it);
      break;
    }
  }
  At(at, [this, op] {
    const auto it = operations_.find(op);
    if (it == operations_.end()) return;
    it->second.finished = true;
    if (it->second.primaries == 0) Complete(op, sim_.now);
  });
}

void MachineImpl::Complete(OpId id, Time at) {
  auto node = operations_.extract(id);
  if (node.empty()) return;
  Operation& op = node.mapped();
  --queued_[op.process];
  if (sim_.listener != nullptr && op.started) {
    const bool kernel = op.kind == Operation::Kind::kKernel && op.record < kMaxRecords;
    sim_.listener->OnEnd(id, at, kernel ? &sim_.stats.kernels[op.record] : nullptr);
  }
  sim_.last_change = std::max(sim_.last_change, at);
  sim_.timer_wakes = 0;
  if (op.kind == Operation::Kind::kFree) FinishFree(op);
  if (op.kind == Operation::Kind::kRecord) {
    if (const auto event = events_.find(op.event);
        event != events_.end() && event->second.state->op == id) {
      event->second.state->time = at;
    }
  }
  if (sim_.checker != nullptr) {
    checker_->End(op.clocks, id);
    for (const OpId follower : op.next) {
      const auto it = operations_.find(follower);
      if (it != operations_.end()) checker_->After(it->second.clocks, op.clocks.end);
    }
    for (const OpId follower : op.overlapping) {
      const auto it = operations_.find(follower);
      if (it != operations_.end())
        checker_->PrimaryOver(it->second.clocks, op.clocks.done, op.clocks.end);
    }
    if (!op.waiters.empty()) checker_->HostWaited(id);
  }
  Release(op.next, at, false);
  Release(op.at_start, at, false);
  if (!op.triggered) Release(op.early, at, false);
  for (const OpId follower : op.overlapping) {
    const auto it = operations_.find(follower);
    if (it == operations_.end() || --it->second.primaries != 0) continue;
    if (it->second.finished) {
      At(at, [this, follower] { Complete(follower, sim_.now); });
      continue;
    }
    for (struct Launch& launch : sim_.devices[static_cast<std::size_t>(op.device)].launches) {
      if (launch.op != follower) continue;
      sim_.PrimaryOver(launch, at);
    }
  }
  for (const std::uint64_t waiter : op.waiters) {
    const auto it = waiting_.find(waiter);
    if (it == waiting_.end()) continue;
    it->second.latest = std::max(it->second.latest, at);
    if (--it->second.missing != 0) continue;
    auto done = std::move(it->second.done);
    const Time latest = it->second.latest;
    waiting_.erase(it);
    done(latest);
  }
}

Status MachineImpl::Launch(ProcessId process, StreamId stream, const LaunchRequest& launch, Time at,
                           OpId* id) {
  return Launch(process, stream, launch, false, at, id);
}

Status MachineImpl::Launch(ProcessId process, StreamId stream, const LaunchRequest& launch,
                           bool checked, Time at, OpId* id) {
  Stream* s = FindStream(process, stream);
  if (s == nullptr) return Status::kInvalidHandle;
  if (queued_[process] >= kMaxQueued) return Status::kOutOfMemory;
  const auto it = kernels_.find(launch.kernel);
  if (it == kernels_.end()) return Status::kInvalidHandle;
  Kernel& kernel = it->second;
  const LoadedModule& module = modules_.at(kernel.module);
  if (module.process != process) return Status::kInvalidHandle;
  if (module.device != s->device) return Status::kInvalidContext;
  Status status = DecodeKernel(kernel);
  if (status != Status::kSuccess) return status;
  const Code& code = *kernel.code;
  status = sim_.residency.CheckLaunch(
      code, launch,
      checked ? static_cast<std::uint32_t>(profile().sm.shared_per_cta_bytes)
              : kernel.dynamic_shared_limit);
  if (status != Status::kSuccess) return status;
  if (launch.params.size() < code.param_bytes) return Status::kInvalidValue;
  const Dim3 cluster = sim_.residency.ClusterSize(code, launch.cluster);
  if (launch.cooperative && cluster.Count() > 1) {
    const auto clusters = static_cast<std::uint64_t>(sim_.residency.MaxActiveClusters(
        code, static_cast<std::uint32_t>(launch.block.Count()), launch.dynamic_shared, cluster));
    if (launch.grid.Count() > clusters * cluster.Count()) return Status::kCooperativeLaunchTooLarge;
  } else if (launch.cooperative) {
    const auto resident =
        static_cast<std::uint64_t>(sim_.residency.CtasPerSm(
            code, static_cast<std::uint32_t>(launch.block.Count()), launch.dynamic_shared)) *
        static_cast<std::uint64_t>(profile().device.sms);
    if (launch.grid.Count() > resident) return Status::kCooperativeLaunchTooLarge;
  }
  Operation& op = NewOperation(Operation::Kind::kKernel, process, s->device);
  op.code = kernel.code;
  op.trusted = modules_.at(kernel.module).image->trusted;
  op.launch = launch;
  op.launch.cluster = cluster;
  op.priority = launch.priority.value_or(s->priority);
  op.launch.params.resize(code.param_bytes);
  // Now, not at the start: the module may be unloaded in between.
  op.constants = BuildConstants(code, module, op.launch.params);
  if (launch.trigger_event != 0) RecordTrigger(op, launch);
  Enqueue(*s, op, at);
  *id = op.id;
  return Status::kSuccess;
}

// The event is complete when the launch has triggered, or begun with all its CTAs.
void MachineImpl::RecordTrigger(Operation& op, const LaunchRequest& launch) {
  Event* event = FindEvent(op.process, launch.trigger_event);
  if (event == nullptr || event->device != op.device) return;
  Operation& record = NewOperation(Operation::Kind::kRecord, op.process, op.device);
  record.event = launch.trigger_event;
  record.missing = 1;
  (launch.trigger_at_start ? op.at_start : op.early).push_back(record.id);
  event->state->op = record.id;
  event->state->recorded = true;
}

void MachineImpl::OnFault(struct Launch& launch, Status status, std::string message) {
  FailDevice(launch.process, launch.device->number, status, std::move(message));
}

void MachineImpl::FailDevice(ProcessId process, int device, Status status, std::string message) {
  struct Fault fault;
  fault.process = process;
  fault.device = device;
  fault.status = status;
  fault.message = std::move(message);
  faults_.push_back(std::move(fault));
  Sticky(process, device) = status;
  EndContext(process, device);
}

void MachineImpl::EndContext(ProcessId process, int device_number) {
  Device& device = sim_.devices[static_cast<std::size_t>(device_number)];
  std::vector<OpId> ended;
  for (auto it = device.launches.begin(); it != device.launches.end();) {
    const auto next = std::next(it);
    if (it->process == process) {
      sim_.residency.Kill(*it);
      if (it->workspace != 0) {
        Unmap(sim_.ProcessOf(process), it->workspace);
        it->workspace = 0;
      }
      ended.push_back(it->op);
      ended_.splice(ended_.end(), device.launches, it);
    }
    it = next;
  }
  // Those behind them complete when their turn comes, without effect (Start).
  for (auto& [id, op] : operations_) {
    if (op.process != process || op.device != device_number) continue;
    op.voided = true;
    if (value_waits_.erase(id) == 0) continue;
    Unwatch(op.watch);
    ended.push_back(id);
  }
  At(sim_.now, [this, ended, device_number] {
    for (const OpId op : ended) Complete(op, sim_.now);
    sim_.residency.Dispatch(sim_.devices[static_cast<std::size_t>(device_number)], sim_.now);
  });
}

}  // namespace allranks::node
