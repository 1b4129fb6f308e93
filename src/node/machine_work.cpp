// Streams, events and the graph of operations: what starts when, and what follows from its end.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "node/machine_impl.h"

namespace allranks::node {
namespace {

// A copy proceeds in pieces of this size, each applied when it has arrived.
constexpr std::uint64_t kCopyPiece = std::uint64_t{1} << 20;
constexpr std::uint64_t kWorkspaceBytes = 64;
// Launches and copies that are recorded one by one; what comes after them is summed up in one
// entry.
constexpr std::size_t kMaxRecords = 1 << 16;
// Operations a process may have queued. Hardware blocks the caller at about a thousand.
constexpr std::size_t kMaxQueued = 1 << 16;

}  // namespace

StreamId MachineImpl::DefaultStream(ProcessId process, int device) {
  const Process* found = Find(process);
  if (found == nullptr || DeviceOf(*found, device) == nullptr) return 0;
  const int number = world_.FirstDevice(*found) + device;
  StreamId& id = default_streams_[{process, number}];
  if (id == 0) {
    id = next_id_++;
    streams_[id] = {process, number, false, true, 0};
  }
  return id;
}

Status MachineImpl::CreateStream(ProcessId process, int device, bool non_blocking, int priority,
                                 StreamId* stream) {
  (void)priority;  // accepted; no profile says yet what it is worth
  const Process* found = Find(process);
  if (found == nullptr || DeviceOf(*found, device) == nullptr) return Status::kInvalidContext;
  *stream = next_id_++;
  streams_[*stream] = {process, world_.FirstDevice(*found) + device, non_blocking, false, 0};
  return Status::kSuccess;
}

Status MachineImpl::DestroyStream(ProcessId process, StreamId stream) {
  Stream* found = FindStream(process, stream);
  if (found == nullptr || found->legacy) return Status::kInvalidHandle;
  // Its operations go on, and others still have to wait for them.
  found->destroyed = true;
  if (!operations_.contains(found->tail)) streams_.erase(stream);
  return Status::kSuccess;
}

Status MachineImpl::CreateEvent(ProcessId process, int device, bool timing, EventId* event) {
  const Process* found = Find(process);
  if (found == nullptr || DeviceOf(*found, device) == nullptr) return Status::kInvalidContext;
  *event = next_id_++;
  Event made;
  made.process = process;
  made.device = world_.FirstDevice(*found) + device;
  made.timing = timing;
  events_[*event] = made;
  return Status::kSuccess;
}

Status MachineImpl::DestroyEvent(ProcessId process, EventId event) {
  if (FindEvent(process, event) == nullptr) return Status::kInvalidHandle;
  events_.erase(event);
  return Status::kSuccess;
}

Operation& MachineImpl::NewOperation(Operation::What what, ProcessId process, int device) {
  const OpId id = next_id_++;
  Operation& op = operations_[id];
  ++queued_[process];
  op.id = id;
  op.what = what;
  op.process = process;
  op.device = device;
  return op;
}

void MachineImpl::Depend(Operation& op, OpId on) {
  const auto it = operations_.find(on);
  if (it == operations_.end() || it->first == op.id) return;
  it->second.next.push_back(op.id);
  ++op.missing;
}

void MachineImpl::Enqueue(Stream& stream, Operation& op, Time at) {
  op.ready = std::max({op.ready, at, world_.now});
  Depend(op, stream.tail);
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
  if (op.missing == 0) Ready(op);
}

void MachineImpl::Ready(Operation& op) {
  Time at = op.ready;
  switch (op.what) {
    case Operation::What::kKernel:
      at += op.chained ? profile().launch.between : profile().launch.kernel;
      break;
    case Operation::What::kCopy:
    case Operation::What::kMemset:
      at += profile().copy_engine.startup;
      break;
    case Operation::What::kRecord:
      at += profile().launch.event;
      break;
  }
  At(at, [this, id = op.id] { Start(id); });
}

void MachineImpl::Start(OpId id) {
  const auto it = operations_.find(id);
  if (it == operations_.end()) return;
  Operation& op = it->second;
  if (op.voided || Sticky(op.process, op.device) != Status::kSuccess) {
    Complete(id, world_.now);  // a broken context does nothing any more
    return;
  }
  switch (op.what) {
    case Operation::What::kKernel:
      StartKernel(op);
      break;
    case Operation::What::kCopy:
    case Operation::What::kMemset: {
      CopyRecord record{};
      record.src_device = op.src.object != nullptr ? op.src.object->device : -1;
      record.dst_device = op.dst.object != nullptr ? op.dst.object->device : -1;
      record.bytes = op.size;
      record.start = world_.now;
      op.record = std::min(world_.stats.copies.size(), kMaxRecords);
      if (op.record == world_.stats.copies.size()) world_.stats.copies.push_back(record);
      StepCopy(id);
      break;
    }
    case Operation::What::kRecord:
      Complete(id, world_.now);
      break;
  }
}

void MachineImpl::StartKernel(Operation& op) {
  Device& device = world_.devices[static_cast<std::size_t>(op.device)];
  device.launches.emplace_back();
  struct Launch& launch = device.launches.back();
  launch.number = op.id;
  launch.op = op.id;
  launch.process = op.process;
  launch.device = &device;
  launch.code = op.code;
  launch.request = op.launch;
  launch.params = op.launch.params;
  launch.total_ctas = op.launch.grid.Count();
  launch.constants = std::move(op.constants);
  launch.end = world_.now;
  if (op.launch.cooperative) {
    Process& process = world_.ProcessOf(op.process);
    Mapping mapping;
    const int visible = op.device - world_.FirstDevice(process);
    if (MapNew(process, visible, Object::Kind::kGlobal, kWorkspaceBytes, "grid barrier",
               &mapping) == Status::kSuccess) {
      launch.workspace = mapping.base;
    }
  }
  launch.record = std::min(world_.stats.kernels.size(), kMaxRecords);
  KernelRecord record;
  record.name = launch.record == kMaxRecords ? "(further kernels)" : op.code->name;
  record.device = op.device;
  record.process = op.process;
  record.grid = op.launch.grid;
  record.block = op.launch.block;
  record.start = world_.now;
  record.end = -1;
  if (launch.record == world_.stats.kernels.size())
    world_.stats.kernels.push_back(std::move(record));
  engine_->OnKernel(launch, true);
  world_.Dispatch(device, world_.now);
}

void MachineImpl::FinishLaunch(struct Launch& launch, Time at) {
  engine_->OnKernel(launch, false);
  world_.stats.kernels[launch.record].end = at;
  if (launch.workspace != 0) Unmap(world_.ProcessOf(launch.process), launch.workspace);
  const OpId op = launch.op;
  // An engine frame may still hold a reference: the launch is put aside, not destroyed.
  auto& launches = launch.device->launches;
  for (auto it = launches.begin(); it != launches.end(); ++it) {
    if (&*it == &launch) {
      ended_.splice(ended_.end(), launches, it);
      break;
    }
  }
  At(at, [this, op] { Complete(op, world_.now); });
}

// One piece of a copy or memset: charged now, applied when it has arrived.
void MachineImpl::StepCopy(OpId id) {
  Operation& op = operations_.at(id);
  const std::uint64_t piece = std::min(kCopyPiece, op.size - op.done);
  const int from = op.src.object != nullptr ? op.src.object->device : -1;
  const int to = op.dst.object != nullptr ? op.dst.object->device : -1;
  const bool memset = op.what == Operation::What::kMemset;
  const Time arrival = world_.ChargeCopy(memset ? to : from, to, piece, world_.now);
  At(arrival, [this, id, piece, memset] {
    const auto it = operations_.find(id);
    if (it == operations_.end()) return;
    Operation& o = it->second;
    std::byte* dst = o.dst.object != nullptr ? o.dst.object->data + o.dst.offset + o.done
                                             : o.copy->bytes.data() + o.done;
    if (memset) {
      for (std::uint64_t i = 0; i < piece; i += static_cast<std::uint64_t>(o.width)) {
        std::memcpy(dst + i, &o.value, static_cast<std::size_t>(o.width));
      }
    } else {
      const std::byte* src = o.src.object != nullptr ? o.src.object->data + o.src.offset + o.done
                                                     : o.copy->bytes.data() + o.done;
      std::memmove(dst, src, piece);
    }
    if (o.dst.object != nullptr) {
      Object& object = *o.dst.object;
      world_.last_change = world_.now;
      world_.timer_wakes = 0;
      if (!object.watches.empty()) {
        world_.NotifyWrite(object, o.dst.offset + o.done, piece, world_.now, world_.now);
      }
    }
    o.done += piece;
    if (o.done < o.size) {
      StepCopy(id);
      return;
    }
    world_.stats.copies[o.record].end = world_.now;
    Complete(id, world_.now);
  });
}

void MachineImpl::Complete(OpId id, Time at) {
  auto node = operations_.extract(id);
  if (node.empty()) return;
  Operation& op = node.mapped();
  --queued_[op.process];
  world_.last_change = std::max(world_.last_change, at);
  world_.timer_wakes = 0;
  if (op.what == Operation::What::kRecord) {
    if (const auto event = events_.find(op.event);
        event != events_.end() && event->second.op == id) {
      event->second.time = at;
    }
  }
  for (const OpId next : op.next) {
    const auto it = operations_.find(next);
    if (it == operations_.end()) continue;
    Operation& follower = it->second;
    if (at >= follower.ready) {
      follower.ready = at;
      follower.chained = true;
    }
    if (--follower.missing == 0) Ready(follower);
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
  status = world_.CheckLaunch(code, launch, kernel.dynamic_shared_limit);
  if (status != Status::kSuccess) return status;
  if (launch.params.size() < code.param_bytes) return Status::kInvalidValue;
  if (launch.cooperative) {
    const auto resident =
        static_cast<std::uint64_t>(world_.CtasPerSm(
            code, static_cast<std::uint32_t>(launch.block.Count()), launch.dynamic_shared)) *
        static_cast<std::uint64_t>(profile().device.sms);
    if (launch.grid.Count() > resident) return Status::kCooperativeLaunchTooLarge;
  }
  Operation& op = NewOperation(Operation::What::kKernel, process, s->device);
  op.code = kernel.code;
  op.launch = launch;
  op.launch.params.resize(code.param_bytes);
  // Now, not at the start: the module may be unloaded in between.
  op.constants = BuildConstants(code, module, op.launch.params);
  Enqueue(*s, op, at);
  *id = op.id;
  return Status::kSuccess;
}

bool MachineImpl::Resolve(ProcessId process, Address address, std::uint64_t size,
                          Place* place) const {
  const Mapping* mapping = world_.ProcessOf(process).table.Find(address);
  if (mapping == nullptr) return false;
  const std::uint64_t offset = address - mapping->base;
  if (size > mapping->object->size || offset > mapping->object->size - size) return false;
  place->object = mapping->object;
  place->offset = offset;
  return true;
}

Status MachineImpl::Copy(ProcessId process, StreamId stream, std::shared_ptr<CopyRequest> copy,
                         Time at, OpId* id) {
  Stream* s = FindStream(process, stream);
  if (s == nullptr) return Status::kInvalidHandle;
  if (queued_[process] >= kMaxQueued) return Status::kOutOfMemory;
  if (copy->size == 0) {
    *id = 0;
    return Status::kSuccess;
  }
  Place src, dst;
  if (copy->src != 0) {
    if (!Resolve(process, copy->src, copy->size, &src)) return Status::kInvalidValue;
  } else if (copy->bytes.size() < copy->size) {
    return Status::kInvalidValue;
  }
  if (copy->dst != 0) {
    if (!Resolve(process, copy->dst, copy->size, &dst)) return Status::kInvalidValue;
  } else {
    if (copy->src == 0) return Status::kInvalidValue;
    copy->bytes.resize(copy->size);
  }
  Operation& op = NewOperation(Operation::What::kCopy, process, s->device);
  op.copy = std::move(copy);
  op.size = op.copy->size;
  op.src = std::move(src);
  op.dst = std::move(dst);
  Enqueue(*s, op, at);
  *id = op.id;
  return Status::kSuccess;
}

Status MachineImpl::Memset(ProcessId process, StreamId stream, Address dst, std::uint32_t value,
                           int width, std::uint64_t count, Time at, OpId* id) {
  Stream* s = FindStream(process, stream);
  if (s == nullptr) return Status::kInvalidHandle;
  if (queued_[process] >= kMaxQueued) return Status::kOutOfMemory;
  if (width != 1 && width != 2 && width != 4) return Status::kInvalidValue;
  if (count == 0) {
    *id = 0;
    return Status::kSuccess;
  }
  const auto step = static_cast<std::uint64_t>(width);
  Place place;
  if (count > (std::uint64_t{1} << 48) || !Resolve(process, dst, count * step, &place) ||
      dst % step != 0) {
    return Status::kInvalidValue;
  }
  Operation& op = NewOperation(Operation::What::kMemset, process, s->device);
  op.dst = std::move(place);
  op.size = count * step;
  op.value = value;
  op.width = width;
  Enqueue(*s, op, at);
  *id = op.id;
  return Status::kSuccess;
}

Status MachineImpl::RecordEvent(ProcessId process, StreamId stream, EventId event, Time at) {
  Stream* s = FindStream(process, stream);
  Event* e = FindEvent(process, event);
  if (s == nullptr || e == nullptr) return Status::kInvalidHandle;
  if (queued_[process] >= kMaxQueued) return Status::kOutOfMemory;
  if (e->device != s->device) return Status::kInvalidHandle;
  Operation& op = NewOperation(Operation::What::kRecord, process, s->device);
  op.event = event;
  e->op = op.id;
  e->recorded = true;
  Enqueue(*s, op, at);
  return Status::kSuccess;
}

Status MachineImpl::WaitEvent(ProcessId process, StreamId stream, EventId event, Time at) {
  Stream* s = FindStream(process, stream);
  const Event* e = FindEvent(process, event);
  if (s == nullptr || e == nullptr) return Status::kInvalidHandle;
  if (queued_[process] >= kMaxQueued) return Status::kOutOfMemory;
  if (!e->recorded) return Status::kSuccess;
  // A wait is an operation of its own, so that the stream's later work depends on it.
  Operation& op = NewOperation(Operation::What::kRecord, process, s->device);
  Depend(op, e->op);
  Enqueue(*s, op, at);
  return Status::kSuccess;
}

Status MachineImpl::StreamTail(ProcessId process, StreamId stream, std::vector<OpId>* ops) {
  const Stream* s = FindStream(process, stream);
  if (s == nullptr) return Status::kInvalidHandle;
  ops->push_back(s->tail);
  if (s->legacy) {  // synchronising it waits for the blocking streams as well
    for (const auto& [id, other] : streams_) {
      if (other.process == s->process && other.device == s->device && !other.non_blocking) {
        ops->push_back(other.tail);
      }
    }
  }
  return Status::kSuccess;
}

Status MachineImpl::EventTail(ProcessId process, EventId event, std::vector<OpId>* ops) {
  const Event* e = FindEvent(process, event);
  if (e == nullptr) return Status::kInvalidHandle;
  ops->push_back(e->op);
  return Status::kSuccess;
}

Status MachineImpl::DeviceTail(ProcessId process, int device, std::vector<OpId>* ops) {
  const Process* found = Find(process);
  if (found == nullptr || DeviceOf(*found, device) == nullptr) return Status::kInvalidDevice;
  const int number = world_.FirstDevice(*found) + device;
  for (const auto& [id, op] : operations_) {
    if (op.process == process && op.device == number) ops->push_back(id);
  }
  return Status::kSuccess;
}

bool MachineImpl::Done(std::span<const OpId> ops) const {
  return std::none_of(ops.begin(), ops.end(), [&](OpId id) { return operations_.contains(id); });
}

Status MachineImpl::EventTime(ProcessId process, EventId event, Time* time) {
  const Event* e = FindEvent(process, event);
  if (e == nullptr || !e->timing || !e->recorded) return Status::kInvalidHandle;
  if (operations_.contains(e->op)) return Status::kNotReady;
  *time = e->time;
  return Status::kSuccess;
}

std::uint64_t MachineImpl::WhenDone(std::vector<OpId> ops, std::function<void(Time)> done) {
  const std::uint64_t id = next_id_++;
  Waiting waiting;
  waiting.latest = world_.now;
  for (const OpId op : ops) {
    const auto it = operations_.find(op);
    if (it == operations_.end()) continue;
    it->second.waiters.push_back(id);
    ++waiting.missing;
  }
  if (waiting.missing == 0) {
    done(world_.now);
    return 0;
  }
  waiting.done = std::move(done);
  waiting_.emplace(id, std::move(waiting));
  return id;
}

void MachineImpl::CancelWhenDone(std::uint64_t id) { waiting_.erase(id); }

void MachineImpl::OnFault(struct Launch& launch, Status status, std::string message) {
  struct Fault fault;
  fault.process = launch.process;
  fault.device = launch.device->number;
  fault.status = status;
  fault.message = std::move(message);
  faults_.push_back(std::move(fault));
  Sticky(launch.process, launch.device->number) = status;
  EndContext(launch.process, launch.device->number);
}

void MachineImpl::EndContext(ProcessId process, int device_number) {
  Device& device = world_.devices[static_cast<std::size_t>(device_number)];
  std::vector<OpId> ended;
  for (auto it = device.launches.begin(); it != device.launches.end();) {
    const auto next = std::next(it);
    if (it->process == process) {
      world_.Kill(*it);
      if (it->workspace != 0) {
        Unmap(world_.ProcessOf(process), it->workspace);
        it->workspace = 0;
      }
      ended.push_back(it->op);
      ended_.splice(ended_.end(), device.launches, it);
    }
    it = next;
  }
  // Those behind them complete when their turn comes, without effect (Start).
  for (auto& [id, op] : operations_) {
    if (op.process == process && op.device == device_number) op.voided = true;
  }
  At(world_.now, [this, ended, device_number] {
    for (const OpId op : ended) Complete(op, world_.now);
    world_.Dispatch(world_.devices[static_cast<std::size_t>(device_number)], world_.now);
  });
}

}  // namespace allranks::node
