// Streams, events and work: what a thread enqueues, asks about and waits for.
//
// A query that is answered "not ready" costs a round trip of wall time, so a loop around one would
// make waiting expensive. After kPatience equal answers in a row the thread is left waiting: until
// the work is done, rounded up to the loop's own period, so that the program sees the time it would
// have seen; or until an eighth of the time waited so far has passed, because the loop may have
// another way out.
#include "server/work_calls.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "server/translate.h"

namespace allranks::server {

using node::Hosts;
using node::OpId;
using node::Status;

namespace {

constexpr int kPatience = 16;
constexpr std::size_t kMaxParams = 32'768;

}  // namespace

// --- streams and events -------------------------------------------------------------------------

void WorkCalls::Handle(Thread thread, const wire::CreateStream& message, Time) {
  if (!desk_.DeviceOk(thread, message.device))
    return desk_.Fail<wire::CreateStream>(thread, Status::kInvalidDevice);
  Process& process = desk_.ProcessOf(thread);
  if (process.streams.size() >= desk_.limits().objects)
    return desk_.Fail<wire::CreateStream>(thread, Status::kOutOfMemory);
  node::StreamId stream = 0;
  const Status status = work_.CreateStream(desk_.MachineOf(thread), message.device,
                                           message.non_blocking, message.priority, &stream);
  if (status == Status::kSuccess) process.streams[stream] = message.device;
  desk_.Reply<wire::CreateStream>(thread, {.stream = stream}, status);
}

void WorkCalls::Handle(Thread thread, const wire::DestroyStream& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  if (desk_.ProcessOf(thread).streams.erase(message.stream) == 0)
    return desk_.Fail<wire::DestroyStream>(thread, Status::kInvalidHandle);
  desk_.Fail<wire::DestroyStream>(thread,
                                  work_.DestroyStream(desk_.MachineOf(thread), message.stream));
}

void WorkCalls::Handle(Thread thread, const wire::StreamSync& message, Time at) {
  const auto stream = desk_.FindStream(thread, message.stream);
  if (!stream) return desk_.Fail<wire::StreamSync>(thread, Status::kInvalidHandle);
  std::vector<OpId> ops;
  const Status status = work_.StreamTail(desk_.MachineOf(thread), stream->id, &ops);
  if (status != Status::kSuccess) return desk_.Fail<wire::StreamSync>(thread, status);
  desk_.ReplyWhenDone<wire::StreamSync>(thread, std::move(ops), stream->device, at);
}

void WorkCalls::Handle(Thread thread, const wire::DeviceSync& message, Time at) {
  if (!desk_.DeviceOk(thread, message.device))
    return desk_.Fail<wire::DeviceSync>(thread, Status::kInvalidDevice);
  std::vector<OpId> ops;
  const Status status = work_.DeviceTail(desk_.MachineOf(thread), message.device, &ops);
  if (status != Status::kSuccess) return desk_.Fail<wire::DeviceSync>(thread, status);
  desk_.ReplyWhenDone<wire::DeviceSync>(thread, std::move(ops), message.device, at);
}

void WorkCalls::Handle(Thread thread, const wire::CreateEvent& message, Time) {
  if (!desk_.DeviceOk(thread, message.device))
    return desk_.Fail<wire::CreateEvent>(thread, Status::kInvalidDevice);
  Process& process = desk_.ProcessOf(thread);
  if (process.events.size() >= desk_.limits().objects)
    return desk_.Fail<wire::CreateEvent>(thread, Status::kOutOfMemory);
  node::EventId event = 0;
  const Status status =
      work_.CreateEvent(desk_.MachineOf(thread), message.device, message.timing, &event);
  if (status == Status::kSuccess) process.events[event] = message.device;
  desk_.Reply<wire::CreateEvent>(thread, {.event = event}, status);
}

void WorkCalls::Handle(Thread thread, const wire::DestroyEvent& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  if (desk_.ProcessOf(thread).events.erase(message.event) == 0)
    return desk_.Fail<wire::DestroyEvent>(thread, Status::kInvalidHandle);
  desk_.Fail<wire::DestroyEvent>(thread,
                                 work_.DestroyEvent(desk_.MachineOf(thread), message.event));
}

void WorkCalls::Handle(Thread thread, const wire::RecordEvent& message, Time at) {
  const auto stream = desk_.FindStream(thread, message.stream);
  if (!stream || !desk_.ProcessOf(thread).events.contains(message.event))
    return desk_.Fail<wire::RecordEvent>(thread, Status::kInvalidHandle);
  desk_.Fail<wire::RecordEvent>(
      thread, work_.RecordEvent(desk_.MachineOf(thread), stream->id, message.event, at));
}

void WorkCalls::Handle(Thread thread, const wire::WaitEvent& message, Time at) {
  const auto stream = desk_.FindStream(thread, message.stream);
  if (!stream || !desk_.ProcessOf(thread).events.contains(message.event))
    return desk_.Fail<wire::WaitEvent>(thread, Status::kInvalidHandle);
  desk_.Fail<wire::WaitEvent>(
      thread, work_.WaitEvent(desk_.MachineOf(thread), stream->id, message.event, at));
}

void WorkCalls::Handle(Thread thread, const wire::RecordContext& message, Time at) {
  if (!desk_.DeviceOk(thread, message.device))
    return desk_.Fail<wire::RecordContext>(thread, Status::kInvalidContext);
  if (!desk_.ProcessOf(thread).events.contains(message.event))
    return desk_.Fail<wire::RecordContext>(thread, Status::kInvalidHandle);
  desk_.Fail<wire::RecordContext>(
      thread, work_.RecordContext(desk_.MachineOf(thread), message.device, message.event, at));
}

void WorkCalls::Handle(Thread thread, const wire::WaitContext& message, Time at) {
  if (!desk_.DeviceOk(thread, message.device))
    return desk_.Fail<wire::WaitContext>(thread, Status::kInvalidContext);
  if (!desk_.ProcessOf(thread).events.contains(message.event))
    return desk_.Fail<wire::WaitContext>(thread, Status::kInvalidHandle);
  desk_.Fail<wire::WaitContext>(
      thread, work_.WaitContext(desk_.MachineOf(thread), message.device, message.event, at));
}

void WorkCalls::Handle(Thread thread, const wire::EventSync& message, Time at) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  const Process& process = desk_.ProcessOf(thread);
  auto event = process.events.find(message.event);
  if (event == process.events.end())
    return desk_.Fail<wire::EventSync>(thread, Status::kInvalidHandle);
  std::vector<OpId> ops;
  const Status status = work_.EventTail(desk_.MachineOf(thread), message.event, &ops);
  if (status != Status::kSuccess) return desk_.Fail<wire::EventSync>(thread, status);
  desk_.ReplyWhenDone<wire::EventSync>(thread, std::move(ops), event->second, at);
}

void WorkCalls::Handle(Thread thread, const wire::EventElapsed& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  const Process& process = desk_.ProcessOf(thread);
  if (!process.events.contains(message.start) || !process.events.contains(message.end))
    return desk_.Fail<wire::EventElapsed>(thread, Status::kInvalidHandle);
  Time start = 0, end = 0;
  Status status = work_.EventTime(desk_.MachineOf(thread), message.start, &start);
  if (status == Status::kSuccess)
    status = work_.EventTime(desk_.MachineOf(thread), message.end, &end);
  desk_.Reply<wire::EventElapsed>(thread, {.ps = end - start}, status);
}

// --- queries ------------------------------------------------------------------------------------

template <class M>
void WorkCalls::AnswerQuery(Thread thread, std::vector<OpId> ops, std::uint64_t object, int device,
                            Time at) {
  ThreadRecord::Series& series = desk_.RecordOf(thread).series;
  auto answer = [this, thread, device] {
    hosts_.Note(thread, Hosts::Activity::kActs);
    desk_.RecordOf(thread).series = {};
    desk_.Reply<M>(thread, {}, desk_.ErrorOf(thread, device));
  };
  if (work_.Done(ops)) return answer();
  hosts_.Note(thread, Hosts::Activity::kPolls);
  if (series.op == wire::kOpOf<M> && series.object == object && series.device == device) {
    series.period = at - series.last;
    ++series.count;
  } else {
    series = {wire::kOpOf<M>, object, device, 1, at, at, 0};
  }
  series.last = at;
  const auto not_ready = [this, thread](Time now) {
    desk_.RecordOf(thread).series.last = now;
    desk_.Reply<M>(thread, {}, Status::kNotReady);
  };
  if (series.count <= kPatience) return not_ready(at);
  const Time period = std::max<Time>(series.period, 1);
  const Time waited = at - series.first;
  // In whole periods, so that the loop stays on its grid.
  const Time step = std::max<Time>(period, waited / 8 / period * period);
  hosts_.Wait(thread, wire::OpName(wire::kOpOf<M>), false);
  hosts_.WakeAt(thread, at + step, not_ready);
  const std::uint64_t id =
      work_.WhenDone(std::move(ops), [this, thread, at, period, answer](Time done) {
        if (ThreadRecord* record = desk_.roster().Find(thread)) record->when_done = 0;
        const Time looks = done <= at ? 1 : (done - at + period - 1) / period;
        hosts_.WakeAt(thread, at + looks * period, [answer](Time) { answer(); });
        desk_.machine().Stop();
      });
  desk_.RecordOf(thread).when_done = id;
}

void WorkCalls::Handle(Thread thread, const wire::StreamQuery& message, Time at) {
  const Process& process = desk_.ProcessOf(thread);
  const int count = desk_.machine().DeviceCount(desk_.MachineOf(thread));
  Desk::Stream stream;
  if (message.stream.stream == 0) {
    if (message.stream.device < 0 || message.stream.device >= count)
      return desk_.Fail<wire::StreamQuery>(thread, Status::kInvalidHandle);
    stream = {work_.DefaultStream(desk_.MachineOf(thread), message.stream.device),
              message.stream.device};
  } else {
    auto found = process.streams.find(message.stream.stream);
    if (found == process.streams.end())
      return desk_.Fail<wire::StreamQuery>(thread, Status::kInvalidHandle);
    stream = {message.stream.stream, found->second};
  }
  std::vector<OpId> ops;
  const Status status = work_.StreamTail(desk_.MachineOf(thread), stream.id, &ops);
  if (status != Status::kSuccess) return desk_.Fail<wire::StreamQuery>(thread, status);
  AnswerQuery<wire::StreamQuery>(thread, std::move(ops), stream.id, stream.device, at);
}

void WorkCalls::Handle(Thread thread, const wire::EventQuery& message, Time at) {
  const Process& process = desk_.ProcessOf(thread);
  auto event = process.events.find(message.event);
  if (event == process.events.end())
    return desk_.Fail<wire::EventQuery>(thread, Status::kInvalidHandle);
  std::vector<OpId> ops;
  const Status status = work_.EventTail(desk_.MachineOf(thread), message.event, &ops);
  if (status != Status::kSuccess) return desk_.Fail<wire::EventQuery>(thread, status);
  AnswerQuery<wire::EventQuery>(thread, std::move(ops), message.event, event->second, at);
}

// --- work ---------------------------------------------------------------------------------------

void WorkCalls::Handle(Thread thread, wire::Launch& message, Time at) {
  const auto stream = desk_.FindStream(thread, message.stream);
  node::LaunchRequest launch;
  if (message.params.size() > kMaxParams)
    return desk_.Fail<wire::Launch>(thread, Status::kInvalidValue);
  if (!stream || !Translate(desk_.ProcessOf(thread), message, &launch))
    return desk_.Fail<wire::Launch>(thread, Status::kInvalidHandle);
  OpId op = 0;
  desk_.Fail<wire::Launch>(thread,
                           work_.Launch(desk_.MachineOf(thread), stream->id, launch, at, &op));
}

// Bytes that a process has the node hold for copies not yet made.
void WorkCalls::CountQueued(Thread thread, OpId op, std::uint64_t bytes) {
  const std::int32_t rank = thread.rank;
  desk_.ProcessOf(thread).queued_bytes += bytes;
  work_.WhenDone({op}, [this, rank, bytes](Time) {
    if (Process* process = desk_.roster().Find(rank))
      process->queued_bytes -= std::min(process->queued_bytes, bytes);
  });
}

void WorkCalls::Handle(Thread thread, const wire::Copy& message, Time at) {
  const auto stream = desk_.FindStream(thread, message.stream);
  if (!stream) return desk_.Fail<wire::Copy>(thread, Status::kInvalidHandle);
  if (message.dst == 0 || message.src == 0)
    return desk_.Fail<wire::Copy>(thread,
                                  message.size == 0 ? Status::kSuccess : Status::kInvalidValue);
  auto copy = std::make_shared<node::CopyRequest>();
  copy->dst = message.dst;
  copy->src = message.src;
  copy->size = message.size;
  copy->rows = RowsOf(message.rows);
  OpId op = 0;
  const Status status = work_.Copy(desk_.MachineOf(thread), stream->id, copy, at, &op);
  if (status != Status::kSuccess || !message.wait) return desk_.Fail<wire::Copy>(thread, status);
  desk_.ReplyWhenDone<wire::Copy>(thread, {op}, stream->device, at);
}

void WorkCalls::Handle(Thread thread, wire::CopyIn& message, Time at) {
  const auto stream = desk_.FindStream(thread, message.stream);
  if (!stream) return desk_.Fail<wire::CopyIn>(thread, Status::kInvalidHandle);
  if (message.bytes.empty()) return desk_.Fail<wire::CopyIn>(thread, Status::kSuccess);
  if (message.dst == 0) return desk_.Fail<wire::CopyIn>(thread, Status::kInvalidValue);
  auto copy = std::make_shared<node::CopyRequest>();
  const std::uint64_t size = message.bytes.size();
  copy->dst = message.dst;
  copy->bytes = std::move(message.bytes);
  copy->size = message.size;
  copy->rows = RowsOf(message.rows);
  OpId op = 0;
  const Status status = work_.Copy(desk_.MachineOf(thread), stream->id, copy, at, &op);
  if (status != Status::kSuccess) return desk_.Fail<wire::CopyIn>(thread, status);
  if (!message.wait && desk_.ProcessOf(thread).queued_bytes + size <= desk_.limits().queued_bytes) {
    CountQueued(thread, op, size);
    return desk_.Reply<wire::CopyIn>(thread);
  }
  desk_.ReplyWhenDone<wire::CopyIn>(thread, {op}, stream->device, at);
}

void WorkCalls::Handle(Thread thread, const wire::CopyOut& message, Time at) {
  const auto stream = desk_.FindStream(thread, message.stream);
  if (!stream) return desk_.Fail<wire::CopyOut>(thread, Status::kInvalidHandle);
  const wire::Rows& rows = message.rows;
  if (message.size == 0 || rows.height == 0 || rows.depth == 0)
    return desk_.Reply<wire::CopyOut>(thread);
  if (message.src == 0 || message.size > wire::kMaxChunk ||
      rows.height > wire::kMaxChunk / message.size ||
      rows.depth > wire::kMaxChunk / (message.size * rows.height))
    return desk_.Fail<wire::CopyOut>(thread, Status::kInvalidValue);
  auto copy = std::make_shared<node::CopyRequest>();
  copy->src = message.src;
  copy->size = message.size;
  copy->rows = RowsOf(rows);
  OpId op = 0;
  const Status status = work_.Copy(desk_.MachineOf(thread), stream->id, copy, at, &op);
  if (status != Status::kSuccess) return desk_.Fail<wire::CopyOut>(thread, status);
  desk_.ReplyWhenDone<wire::CopyOut>(thread, {op}, stream->device, at, copy);
}

void WorkCalls::Handle(Thread thread, const wire::Memset& message, Time at) {
  const auto stream = desk_.FindStream(thread, message.stream);
  if (!stream) return desk_.Fail<wire::Memset>(thread, Status::kInvalidHandle);
  if (message.width != 1 && message.width != 2 && message.width != 4)
    return desk_.Fail<wire::Memset>(thread, Status::kInvalidValue);
  node::MemsetRequest request;
  request.dst = message.dst;
  request.value = message.value;
  request.width = message.width;
  request.count = message.count;
  request.rows = RowsOf(message.rows);
  OpId op = 0;
  const Status status = work_.Memset(desk_.MachineOf(thread), stream->id, request, at, &op);
  if (status != Status::kSuccess || !message.wait) return desk_.Fail<wire::Memset>(thread, status);
  desk_.ReplyWhenDone<wire::Memset>(thread, {op}, stream->device, at);
}

}  // namespace allranks::server
