// Host functions and their queues, values in memory. stream_calls.h has the theory.
#include "server/stream_calls.h"

#include <cstring>
#include <utility>

#include "server/translate.h"

namespace allranks::server {

using node::Hosts;
using node::OpId;
using node::Status;

StreamCalls::StreamCalls(Desk& desk) : desk_(desk), hosts_(desk.hosts()), machine_(desk.machine()) {
  machine_.SetHostCaller([this](const node::HostCall& call, Time at) { HostCallDue(call, at); });
}

void StreamCalls::Handle(Thread thread, const wire::CallHost& message, Time at) {
  const auto stream = desk_.FindStream(thread, message.stream);
  if (!stream) return desk_.Fail<wire::CallHost>(thread, Status::kInvalidHandle);
  OpId op = 0;
  desk_.Fail<wire::CallHost>(thread, machine_.CallHost(desk_.MachineOf(thread), stream->id,
                                                       FunctionOf(message.function), at, &op));
}

void StreamCalls::HostCallDue(const node::HostCall& call, Time at) {
  const Process* process = desk_.roster().FindMachine(call.process);
  if (process == nullptr) return;
  HostFunctions& calls = host_functions_[process->rank];
  calls.due.push_back(call);
  if (!calls.caller) return;
  const Thread thread = *std::exchange(calls.caller, std::nullopt);
  hosts_.WakeAt(thread, at + machine_.profile().launch.host_function,
                [this, thread](Time) { AnswerHostCaller(thread); });
  machine_.Stop();
}

void StreamCalls::AnswerHostCaller(Thread thread) {
  HostFunctions& calls = host_functions_[thread.rank];
  if (calls.due.empty()) {  // its device was reset meanwhile
    calls.caller = thread;
    return hosts_.Wait(thread, wire::OpName(wire::Op::kNextHostCall), false);
  }
  const node::HostCall call = calls.due.front();
  calls.due.pop_front();
  hosts_.Note(thread, Hosts::Activity::kActs);
  desk_.Reply<wire::NextHostCall>(thread, {.call = call.op,
                                           .function = FunctionOf(call.function),
                                           .error = static_cast<std::int32_t>(call.status)});
}

void StreamCalls::Handle(Thread thread, const wire::NextHostCall& message, Time at) {
  if (host_functions_[thread.rank].caller)
    return desk_.Fail<wire::NextHostCall>(thread, Status::kInvalidValue);
  if (message.done != 0) machine_.FinishHostCall(desk_.MachineOf(thread), message.done, at);
  AnswerHostCaller(thread);
}

void StreamCalls::DropHostFunctions(std::int32_t rank) {
  if (const auto calls = host_functions_.find(rank); calls != host_functions_.end())
    calls->second.due.clear();
}

void StreamCalls::ThreadEnded(Thread thread) {
  if (const auto calls = host_functions_.find(thread.rank);
      calls != host_functions_.end() && calls->second.caller == thread)
    calls->second.caller.reset();
}

void StreamCalls::Handle(Thread thread, const wire::StreamValues& message, Time at) {
  const auto stream = desk_.FindStream(thread, message.stream);
  if (!stream) return desk_.Fail<wire::StreamValues>(thread, Status::kInvalidHandle);
  OpId op = 0;
  desk_.Fail<wire::StreamValues>(thread, machine_.Values(desk_.MachineOf(thread), stream->id,
                                                         ValuesOf(message.values), at, &op));
}

// --- devices and events of several processes

void StreamCalls::Handle(Thread thread, const wire::SetVisible& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  desk_.Fail<wire::SetVisible>(thread,
                               machine_.SetVisible(desk_.MachineOf(thread), message.devices));
}

void StreamCalls::Handle(Thread thread, const wire::ExportEvent& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  if (!desk_.ProcessOf(thread).events.contains(message.event))
    return desk_.Fail<wire::ExportEvent>(thread, Status::kInvalidHandle);
  node::IpcHandle handle{};
  const Status status = machine_.ExportEvent(desk_.MachineOf(thread), message.event, &handle);
  wire::IpcExportReply reply;
  std::memcpy(reply.handle.data(), handle.bytes, sizeof handle.bytes);
  desk_.Reply<wire::ExportEvent>(thread, reply, status);
}

void StreamCalls::Handle(Thread thread, const wire::OpenEvent& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  Process& process = desk_.ProcessOf(thread);
  if (process.events.size() >= desk_.limits().objects)
    return desk_.Fail<wire::OpenEvent>(thread, Status::kOutOfMemory);
  node::IpcHandle handle{};
  std::memcpy(handle.bytes, message.handle.data(), sizeof handle.bytes);
  wire::OpenEventReply reply;
  int device = 0;
  const Status status = machine_.OpenEvent(desk_.MachineOf(thread), handle, &device, &reply.event);
  if (status == Status::kSuccess) process.events[reply.event] = device;
  reply.device = device;
  desk_.Reply<wire::OpenEvent>(thread, reply, status);
}

}  // namespace allranks::server
