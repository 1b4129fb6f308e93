// Streams and events: who comes after whom, and what a host can wait for. machine_work.cpp runs
// what they order.
#include <algorithm>
#include <cstring>

#include "node/machine/machine_impl.h"

namespace allranks::node {

StreamId MachineImpl::DefaultStream(ProcessId process, int device) {
  const Process* found = Find(process);
  if (found == nullptr || DeviceOf(*found, device) == nullptr) return 0;
  const int number = sim_.NumberOf(*found, device);
  StreamId& id = default_streams_[{process, number}];
  if (id == 0) {
    id = next_id_++;
    Stream& made = streams_[id];
    made.process = process;
    made.device = number;
    made.legacy = true;
    made.shown = id;
    made.also = ContextWaits(process, number);
  }
  return id;
}

Status MachineImpl::CreateStream(ProcessId process, int device, bool non_blocking, int priority,
                                 StreamId* stream) {
  const Process* found = Find(process);
  if (found == nullptr || DeviceOf(*found, device) == nullptr) return Status::kInvalidContext;
  *stream = next_id_++;
  Stream& made = streams_[*stream];
  made.process = process;
  made.device = sim_.NumberOf(*found, device);
  made.non_blocking = non_blocking;
  made.priority = priority;
  made.shown = *stream;
  made.also = ContextWaits(process, made.device);
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
  made.device = sim_.NumberOf(*found, device);
  made.timing = timing;
  events_[*event] = made;
  return Status::kSuccess;
}

namespace {

constexpr std::uint64_t kEventMagic = 0x3154'4e45'4b4e'5241;  // "ARNKENT1"

}  // namespace

Status MachineImpl::ExportEvent(ProcessId process, EventId event, IpcHandle* handle) {
  const Event* e = FindEvent(process, event);
  if (e == nullptr) return Status::kInvalidHandle;
  shared_events_[event] = {e->device, e->state};
  const std::uint64_t words[] = {kEventMagic, event};
  const SharedHandles::Signature signature = shared_handles_.Sign(kEventMagic, event);
  *handle = {};
  std::memcpy(handle->bytes, words, sizeof words);
  std::memcpy(handle->bytes + sizeof words, signature.data(), signature.size());
  return Status::kSuccess;
}

Status MachineImpl::OpenEvent(ProcessId process, const IpcHandle& handle, int* device,
                              EventId* event) {
  const Process* found = Find(process);
  if (found == nullptr || found->visible.empty()) return Status::kInvalidContext;
  std::uint64_t words[2];
  std::memcpy(words, handle.bytes, sizeof words);
  const auto it = shared_events_.find(words[1]);
  if (words[0] != kEventMagic || it == shared_events_.end() ||
      !shared_handles_.Signed(kEventMagic, words[1], handle.bytes + sizeof words) ||
      sim_.devices[static_cast<std::size_t>(it->second.first)].host != found->host) {
    return Status::kInvalidValue;
  }
  Event made;
  made.process = process;
  made.device = it->second.first;
  made.timing = false;
  made.imported = true;
  made.state = it->second.second.lock();
  if (made.state == nullptr) {  // destroyed by all who had it
    shared_events_.erase(it);
    return Status::kInvalidHandle;
  }
  *device = std::max(sim_.OrdinalOf(*found, made.device), 0);
  *event = next_id_++;
  events_[*event] = std::move(made);
  return Status::kSuccess;
}

Status MachineImpl::DestroyEvent(ProcessId process, EventId event) {
  if (FindEvent(process, event) == nullptr) return Status::kInvalidHandle;
  events_.erase(event);
  return Status::kSuccess;
}

Status MachineImpl::RecordEvent(ProcessId process, StreamId stream, EventId event, Time at) {
  Stream* s = FindStream(process, stream);
  Event* e = FindEvent(process, event);
  if (s == nullptr || e == nullptr) return Status::kInvalidHandle;
  if (queued_[process] >= kMaxQueued) return Status::kOutOfMemory;
  // An imported one belongs to no device here: whoever opened it may record it.
  if (e->device != s->device && !e->imported) return Status::kInvalidHandle;
  Operation& op = NewOperation(Operation::Kind::kRecord, process, s->device);
  op.event = event;
  e->state->op = op.id;
  e->state->recorded = true;
  Enqueue(*s, op, at);
  return Status::kSuccess;
}

Status MachineImpl::WaitEvent(ProcessId process, StreamId stream, EventId event, Time at) {
  Stream* s = FindStream(process, stream);
  const Event* e = FindEvent(process, event);
  if (s == nullptr || e == nullptr) return Status::kInvalidHandle;
  if (queued_[process] >= kMaxQueued) return Status::kOutOfMemory;
  if (!e->state->recorded) return Status::kSuccess;
  // A wait is an operation of its own, so that the stream's later work depends on it.
  Operation& op = NewOperation(Operation::Kind::kRecord, process, s->device);
  Depend(op, e->state->op);
  Enqueue(*s, op, at);
  return Status::kSuccess;
}

ContextOrder& MachineImpl::ContextOf(ProcessId process, int device) {
  const auto [it, fresh] = contexts_.try_emplace({process, device});
  if (!fresh) return it->second;
  for (Stream* stream : {&it->second.records, &it->second.waits}) {
    stream->process = process;
    stream->device = device;
    stream->non_blocking = true;
    stream->shown = next_id_++;
  }
  return it->second;
}

// The last wait of a context comes after all before it.
std::vector<OpId> MachineImpl::ContextWaits(ProcessId process, int device) const {
  const auto it = contexts_.find({process, device});
  if (it == contexts_.end() || it->second.waits.tail == 0) return {};
  return {it->second.waits.tail};
}

Status MachineImpl::RecordContext(ProcessId process, int device, EventId event, Time at) {
  const Process* found = Find(process);
  if (found == nullptr || DeviceOf(*found, device) == nullptr) return Status::kInvalidContext;
  const int number = sim_.NumberOf(*found, device);
  const Event* e = FindEvent(process, event);
  if (e == nullptr || (e->device != number && !e->imported)) return Status::kInvalidHandle;
  if (queued_[process] >= kMaxQueued) return Status::kOutOfMemory;
  Operation& op = NewOperation(Operation::Kind::kRecord, process, number);
  op.event = event;
  e->state->op = op.id;
  e->state->recorded = true;
  for (const auto& [id, other] : operations_) {
    if (other.process == process && other.device == number) Depend(op, id);
  }
  if (sim_.checker != nullptr) checker_->AfterDevice(op.clocks, process, number);
  Enqueue(ContextOf(process, number).records, op, at);
  return Status::kSuccess;
}

Status MachineImpl::WaitContext(ProcessId process, int device, EventId event, Time at) {
  const Process* found = Find(process);
  if (found == nullptr || DeviceOf(*found, device) == nullptr) return Status::kInvalidContext;
  const int number = sim_.NumberOf(*found, device);
  const Event* e = FindEvent(process, event);
  if (e == nullptr) return Status::kInvalidHandle;
  if (queued_[process] >= kMaxQueued) return Status::kOutOfMemory;
  if (!e->state->recorded) return Status::kSuccess;
  Stream& waits = ContextOf(process, number).waits;
  const OpId before = waits.tail;
  Operation& op = NewOperation(Operation::Kind::kRecord, process, number);
  Depend(op, e->state->op);
  Enqueue(waits, op, at);
  for (auto& [id, stream] : streams_) {
    if (stream.process != process || stream.device != number) continue;
    std::erase(stream.also, before);
    stream.also.push_back(op.id);
  }
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
  ops->push_back(e->state->op);
  if (sim_.checker != nullptr && e->state->op != 0) {
    // An event of another process is waited for by this one.
    const auto it = operations_.find(e->state->op);
    if (it == operations_.end()) {
      checker_->HostWaited(e->state->op, process);
    } else if (it->second.process != process) {
      it->second.clocks.told.push_back(process);
    }
  }
  return Status::kSuccess;
}

Status MachineImpl::DeviceTail(ProcessId process, int device, std::vector<OpId>* ops) {
  const Process* found = Find(process);
  if (found == nullptr || DeviceOf(*found, device) == nullptr) return Status::kInvalidDevice;
  const int number = sim_.NumberOf(*found, device);
  if (sim_.checker != nullptr) checker_->DeviceWaited(process, number);
  for (const auto& [id, op] : operations_) {
    if (op.process == process && op.device == number) ops->push_back(id);
  }
  return Status::kSuccess;
}

bool MachineImpl::Done(std::span<const OpId> ops) const {
  const bool done =
      std::none_of(ops.begin(), ops.end(), [&](OpId id) { return operations_.contains(id); });
  if (done && sim_.checker != nullptr)
    for (const OpId id : ops) checker_->HostWaited(id);
  return done;
}

Status MachineImpl::EventTime(ProcessId process, EventId event, Time* time) {
  const Event* e = FindEvent(process, event);
  if (e == nullptr || !e->timing || !e->state->recorded) return Status::kInvalidHandle;
  if (operations_.contains(e->state->op)) return Status::kNotReady;
  *time = e->state->time;
  return Status::kSuccess;
}

std::uint64_t MachineImpl::WhenDone(std::vector<OpId> ops, std::function<void(Time)> done) {
  const std::uint64_t id = next_id_++;
  Waiting waiting;
  waiting.latest = sim_.now;
  for (const OpId op : ops) {
    const auto it = operations_.find(op);
    if (it == operations_.end()) {
      if (sim_.checker != nullptr) checker_->HostWaited(op);
      continue;
    }
    it->second.waiters.push_back(id);
    ++waiting.missing;
  }
  if (waiting.missing == 0) {
    done(sim_.now);
    return 0;
  }
  waiting.done = std::move(done);
  waiting_.emplace(id, std::move(waiting));
  return id;
}

void MachineImpl::CancelWhenDone(std::uint64_t id) { waiting_.erase(id); }

}  // namespace allranks::node
