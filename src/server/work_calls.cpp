// Streams, events and work: what a thread enqueues, asks about and waits for.
//
// A query that is answered "not ready" costs a round trip of wall time, so a loop around one would
// make waiting expensive. After kPatience equal answers in a row the thread is left waiting: until
// the work is done, rounded up to the loop's own period, so that the program sees the time it would
// have seen; or until an eighth of the time waited so far has passed, because the loop may have
// another way out.
#include <algorithm>
#include <utility>

#include "server/core.h"

namespace allranks::server {

using node::Hosts;
using node::OpId;
using node::Status;

namespace {

constexpr int kPatience = 16;
constexpr std::size_t kMaxParams = 32'768;

}  // namespace

node::Rows RowsOf(const wire::Rows& rows) {
  return {rows.height, rows.depth, rows.dst_pitch, rows.dst_slice, rows.src_pitch, rows.src_slice};
}

std::optional<Core::Stream> Core::Find(Thread thread, const wire::StreamRef& ref) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  if (ref.stream == 0) {
    if (!DeviceOk(thread, ref.device)) return std::nullopt;
    return Stream{machine_->DefaultStream(MachineOf(thread), ref.device), ref.device};
  }
  const Process& process = ProcessOf(thread);
  auto found = process.streams.find(ref.stream);
  if (found == process.streams.end()) return std::nullopt;
  return Stream{ref.stream, found->second};
}

template <class M>
void Core::ReplyWhenDone(Thread thread, std::vector<OpId> ops, int device, Time at,
                         std::shared_ptr<typename M::Reply> body,
                         std::shared_ptr<node::CopyRequest> copy) {
  auto answer = [this, thread, device, body, copy](Time) {
    typename M::Reply reply;
    if (body != nullptr) reply = std::move(*body);
    if constexpr (std::is_same_v<M, wire::CopyOut>) reply.bytes = std::move(copy->bytes);
    Reply<M>(thread, reply, machine_->StickyError(MachineOf(thread), device));
  };
  if (machine_->Done(ops)) return answer(at);
  hosts_.Wait(thread, wire::OpName(wire::kOpOf<M>), false);
  const std::uint64_t id = machine_->WhenDone(std::move(ops), [this, thread, answer](Time done) {
    if (auto record = threads_.find(thread); record != threads_.end()) record->second.when_done = 0;
    hosts_.WakeAt(thread, done + machine_->profile().launch.sync, answer);
    machine_->Stop();
  });
  if (auto record = threads_.find(thread); record != threads_.end() && hosts_.Has(thread))
    record->second.when_done = id;
}

// --- streams and events
// -----------------------------------------------------------------------------

void Core::Handle(Thread thread, const wire::CreateStream& message, Time) {
  if (!DeviceOk(thread, message.device))
    return Fail<wire::CreateStream>(thread, Status::kInvalidDevice);
  Process& process = ProcessOf(thread);
  if (process.streams.size() >= options_.limits.objects)
    return Fail<wire::CreateStream>(thread, Status::kOutOfMemory);
  node::StreamId stream = 0;
  const Status status = machine_->CreateStream(MachineOf(thread), message.device,
                                               message.non_blocking, message.priority, &stream);
  if (status == Status::kSuccess) process.streams[stream] = message.device;
  Reply<wire::CreateStream>(thread, {.stream = stream}, status);
}

void Core::Handle(Thread thread, const wire::DestroyStream& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  if (ProcessOf(thread).streams.erase(message.stream) == 0)
    return Fail<wire::DestroyStream>(thread, Status::kInvalidHandle);
  Fail<wire::DestroyStream>(thread, machine_->DestroyStream(MachineOf(thread), message.stream));
}

void Core::Handle(Thread thread, const wire::StreamSync& message, Time at) {
  const auto stream = Find(thread, message.stream);
  if (!stream) return Fail<wire::StreamSync>(thread, Status::kInvalidHandle);
  std::vector<OpId> ops;
  const Status status = machine_->StreamTail(MachineOf(thread), stream->id, &ops);
  if (status != Status::kSuccess) return Fail<wire::StreamSync>(thread, status);
  ReplyWhenDone<wire::StreamSync>(thread, std::move(ops), stream->device, at);
}

void Core::Handle(Thread thread, const wire::DeviceSync& message, Time at) {
  if (!DeviceOk(thread, message.device))
    return Fail<wire::DeviceSync>(thread, Status::kInvalidDevice);
  std::vector<OpId> ops;
  const Status status = machine_->DeviceTail(MachineOf(thread), message.device, &ops);
  if (status != Status::kSuccess) return Fail<wire::DeviceSync>(thread, status);
  ReplyWhenDone<wire::DeviceSync>(thread, std::move(ops), message.device, at);
}

void Core::Handle(Thread thread, const wire::CreateEvent& message, Time) {
  if (!DeviceOk(thread, message.device))
    return Fail<wire::CreateEvent>(thread, Status::kInvalidDevice);
  Process& process = ProcessOf(thread);
  if (process.events.size() >= options_.limits.objects)
    return Fail<wire::CreateEvent>(thread, Status::kOutOfMemory);
  node::EventId event = 0;
  const Status status =
      machine_->CreateEvent(MachineOf(thread), message.device, message.timing, &event);
  if (status == Status::kSuccess) process.events[event] = message.device;
  Reply<wire::CreateEvent>(thread, {.event = event}, status);
}

void Core::Handle(Thread thread, const wire::DestroyEvent& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  if (ProcessOf(thread).events.erase(message.event) == 0)
    return Fail<wire::DestroyEvent>(thread, Status::kInvalidHandle);
  Fail<wire::DestroyEvent>(thread, machine_->DestroyEvent(MachineOf(thread), message.event));
}

void Core::Handle(Thread thread, const wire::RecordEvent& message, Time at) {
  const auto stream = Find(thread, message.stream);
  if (!stream || !ProcessOf(thread).events.contains(message.event))
    return Fail<wire::RecordEvent>(thread, Status::kInvalidHandle);
  Fail<wire::RecordEvent>(thread,
                          machine_->RecordEvent(MachineOf(thread), stream->id, message.event, at));
}

void Core::Handle(Thread thread, const wire::WaitEvent& message, Time at) {
  const auto stream = Find(thread, message.stream);
  if (!stream || !ProcessOf(thread).events.contains(message.event))
    return Fail<wire::WaitEvent>(thread, Status::kInvalidHandle);
  Fail<wire::WaitEvent>(thread,
                        machine_->WaitEvent(MachineOf(thread), stream->id, message.event, at));
}

void Core::Handle(Thread thread, const wire::EventSync& message, Time at) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  const Process& process = ProcessOf(thread);
  auto event = process.events.find(message.event);
  if (event == process.events.end()) return Fail<wire::EventSync>(thread, Status::kInvalidHandle);
  std::vector<OpId> ops;
  const Status status = machine_->EventTail(MachineOf(thread), message.event, &ops);
  if (status != Status::kSuccess) return Fail<wire::EventSync>(thread, status);
  ReplyWhenDone<wire::EventSync>(thread, std::move(ops), event->second, at);
}

void Core::Handle(Thread thread, const wire::EventElapsed& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  const Process& process = ProcessOf(thread);
  if (!process.events.contains(message.start) || !process.events.contains(message.end))
    return Fail<wire::EventElapsed>(thread, Status::kInvalidHandle);
  Time start = 0, end = 0;
  Status status = machine_->EventTime(MachineOf(thread), message.start, &start);
  if (status == Status::kSuccess)
    status = machine_->EventTime(MachineOf(thread), message.end, &end);
  Reply<wire::EventElapsed>(thread, {.ps = end - start}, status);
}

// --- queries
// ----------------------------------------------------------------------------------------

template <class M>
void Core::AnswerQuery(Thread thread, std::vector<OpId> ops, std::uint64_t object, int device,
                       Time at) {
  ThreadRecord::Series& series = threads_.at(thread).series;
  auto answer = [this, thread, device] {
    hosts_.Note(thread, Hosts::Activity::kActs);
    threads_.at(thread).series = {};
    Reply<M>(thread, {}, machine_->StickyError(MachineOf(thread), device));
  };
  if (machine_->Done(ops)) return answer();
  hosts_.Note(thread, Hosts::Activity::kPolls);
  if (series.op == wire::kOpOf<M> && series.object == object && series.device == device) {
    series.period = at - series.last;
    ++series.count;
  } else {
    series = {wire::kOpOf<M>, object, device, 1, at, at, 0};
  }
  series.last = at;
  const auto not_ready = [this, thread](Time now) {
    threads_.at(thread).series.last = now;
    Reply<M>(thread, {}, Status::kNotReady);
  };
  if (series.count <= kPatience) return not_ready(at);
  const Time period = std::max<Time>(series.period, 1);
  const Time waited = at - series.first;
  // In whole periods, so that the loop stays on its grid.
  const Time step = std::max<Time>(period, waited / 8 / period * period);
  hosts_.Wait(thread, wire::OpName(wire::kOpOf<M>), false);
  hosts_.WakeAt(thread, at + step, not_ready);
  const std::uint64_t id =
      machine_->WhenDone(std::move(ops), [this, thread, at, period, answer](Time done) {
        if (auto record = threads_.find(thread); record != threads_.end())
          record->second.when_done = 0;
        const Time looks = done <= at ? 1 : (done - at + period - 1) / period;
        hosts_.WakeAt(thread, at + looks * period, [answer](Time) { answer(); });
        machine_->Stop();
      });
  threads_.at(thread).when_done = id;
}

void Core::Handle(Thread thread, const wire::StreamQuery& message, Time at) {
  const Process& process = ProcessOf(thread);
  const int count = machine_->DeviceCount(MachineOf(thread));
  Stream stream;
  if (message.stream.stream == 0) {
    if (message.stream.device < 0 || message.stream.device >= count)
      return Fail<wire::StreamQuery>(thread, Status::kInvalidHandle);
    stream = {machine_->DefaultStream(MachineOf(thread), message.stream.device),
              message.stream.device};
  } else {
    auto found = process.streams.find(message.stream.stream);
    if (found == process.streams.end())
      return Fail<wire::StreamQuery>(thread, Status::kInvalidHandle);
    stream = {message.stream.stream, found->second};
  }
  std::vector<OpId> ops;
  const Status status = machine_->StreamTail(MachineOf(thread), stream.id, &ops);
  if (status != Status::kSuccess) return Fail<wire::StreamQuery>(thread, status);
  AnswerQuery<wire::StreamQuery>(thread, std::move(ops), stream.id, stream.device, at);
}

void Core::Handle(Thread thread, const wire::EventQuery& message, Time at) {
  const Process& process = ProcessOf(thread);
  auto event = process.events.find(message.event);
  if (event == process.events.end()) return Fail<wire::EventQuery>(thread, Status::kInvalidHandle);
  std::vector<OpId> ops;
  const Status status = machine_->EventTail(MachineOf(thread), message.event, &ops);
  if (status != Status::kSuccess) return Fail<wire::EventQuery>(thread, status);
  AnswerQuery<wire::EventQuery>(thread, std::move(ops), message.event, event->second, at);
}

// --- work
// -------------------------------------------------------------------------------------------

bool Core::Translate(Thread thread, wire::Launch& message, node::LaunchRequest* launch) {
  const Process& process = ProcessOf(thread);
  if (!process.kernels.contains(message.kernel)) return false;
  if (message.trigger_event != 0 && !process.events.contains(message.trigger_event)) return false;
  launch->kernel = message.kernel;
  launch->grid = {message.grid.x, message.grid.y, message.grid.z};
  launch->block = {message.block.x, message.block.y, message.block.z};
  launch->cluster = {message.cluster.x, message.cluster.y, message.cluster.z};
  launch->dynamic_shared = message.dynamic_shared;
  launch->cooperative = message.cooperative;
  if (message.has_priority) launch->priority = message.priority;
  launch->programmatic = message.programmatic;
  launch->trigger_event = message.trigger_event;
  launch->trigger_at_start = message.trigger_at_start;
  launch->params = std::move(message.params);
  return true;
}

void Core::Handle(Thread thread, wire::Launch& message, Time at) {
  const auto stream = Find(thread, message.stream);
  node::LaunchRequest launch;
  if (message.params.size() > kMaxParams) return Fail<wire::Launch>(thread, Status::kInvalidValue);
  if (!stream || !Translate(thread, message, &launch))
    return Fail<wire::Launch>(thread, Status::kInvalidHandle);
  OpId op = 0;
  Fail<wire::Launch>(thread, machine_->Launch(MachineOf(thread), stream->id, launch, at, &op));
}

// Bytes that a process has the node hold for copies not yet made.
void Core::CountQueued(Thread thread, OpId op, std::uint64_t bytes) {
  const std::int32_t rank = thread.rank;
  ProcessOf(thread).queued_bytes += bytes;
  machine_->WhenDone({op}, [this, rank, bytes](Time) {
    if (auto process = processes_.find(rank); process != processes_.end())
      process->second.queued_bytes -= std::min(process->second.queued_bytes, bytes);
  });
}

void Core::Handle(Thread thread, const wire::Copy& message, Time at) {
  const auto stream = Find(thread, message.stream);
  if (!stream) return Fail<wire::Copy>(thread, Status::kInvalidHandle);
  if (message.dst == 0 || message.src == 0)
    return Fail<wire::Copy>(thread, message.size == 0 ? Status::kSuccess : Status::kInvalidValue);
  auto copy = std::make_shared<node::CopyRequest>();
  copy->dst = message.dst;
  copy->src = message.src;
  copy->size = message.size;
  copy->rows = RowsOf(message.rows);
  OpId op = 0;
  const Status status = machine_->Copy(MachineOf(thread), stream->id, copy, at, &op);
  if (status != Status::kSuccess || !message.wait) return Fail<wire::Copy>(thread, status);
  ReplyWhenDone<wire::Copy>(thread, {op}, stream->device, at);
}

void Core::Handle(Thread thread, wire::CopyIn& message, Time at) {
  const auto stream = Find(thread, message.stream);
  if (!stream) return Fail<wire::CopyIn>(thread, Status::kInvalidHandle);
  if (message.bytes.empty()) return Fail<wire::CopyIn>(thread, Status::kSuccess);
  if (message.dst == 0) return Fail<wire::CopyIn>(thread, Status::kInvalidValue);
  auto copy = std::make_shared<node::CopyRequest>();
  const std::uint64_t size = message.bytes.size();
  copy->dst = message.dst;
  copy->bytes = std::move(message.bytes);
  copy->size = message.size;
  copy->rows = RowsOf(message.rows);
  OpId op = 0;
  const Status status = machine_->Copy(MachineOf(thread), stream->id, copy, at, &op);
  if (status != Status::kSuccess) return Fail<wire::CopyIn>(thread, status);
  if (!message.wait && ProcessOf(thread).queued_bytes + size <= options_.limits.queued_bytes) {
    CountQueued(thread, op, size);
    return Reply<wire::CopyIn>(thread);
  }
  ReplyWhenDone<wire::CopyIn>(thread, {op}, stream->device, at);
}

void Core::Handle(Thread thread, const wire::CopyOut& message, Time at) {
  const auto stream = Find(thread, message.stream);
  if (!stream) return Fail<wire::CopyOut>(thread, Status::kInvalidHandle);
  const wire::Rows& rows = message.rows;
  if (message.size == 0 || rows.height == 0 || rows.depth == 0) return Reply<wire::CopyOut>(thread);
  if (message.src == 0 || message.size > wire::kMaxChunk ||
      rows.height > wire::kMaxChunk / message.size ||
      rows.depth > wire::kMaxChunk / (message.size * rows.height))
    return Fail<wire::CopyOut>(thread, Status::kInvalidValue);
  auto copy = std::make_shared<node::CopyRequest>();
  copy->src = message.src;
  copy->size = message.size;
  copy->rows = RowsOf(rows);
  OpId op = 0;
  const Status status = machine_->Copy(MachineOf(thread), stream->id, copy, at, &op);
  if (status != Status::kSuccess) return Fail<wire::CopyOut>(thread, status);
  ReplyWhenDone<wire::CopyOut>(thread, {op}, stream->device, at, nullptr, copy);
}

void Core::Handle(Thread thread, const wire::Memset& message, Time at) {
  const auto stream = Find(thread, message.stream);
  if (!stream) return Fail<wire::Memset>(thread, Status::kInvalidHandle);
  if (message.width != 1 && message.width != 2 && message.width != 4)
    return Fail<wire::Memset>(thread, Status::kInvalidValue);
  node::MemsetRequest request;
  request.dst = message.dst;
  request.value = message.value;
  request.width = message.width;
  request.count = message.count;
  request.rows = RowsOf(message.rows);
  OpId op = 0;
  const Status status = machine_->Memset(MachineOf(thread), stream->id, request, at, &op);
  if (status != Status::kSuccess || !message.wait) return Fail<wire::Memset>(thread, status);
  ReplyWhenDone<wire::Memset>(thread, {op}, stream->device, at);
}

}  // namespace allranks::server
