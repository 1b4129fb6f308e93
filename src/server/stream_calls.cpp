// What streams do beside kernels and copies: host functions and values in memory.
//
// A process runs its host functions on one thread of its own, which asks for the next one and waits
// here until a stream has got to it. When it asks again, the function has returned and the stream
// goes on. Functions of several streams queue up in the order in which their turns came.
#include <cstring>
#include <utility>

#include "server/core.h"

namespace allranks::server {

using node::Hosts;
using node::OpId;
using node::Status;

void Core::Handle(Thread thread, const wire::CallHost& message, Time at) {
  const auto stream = Find(thread, message.stream);
  if (!stream) return Fail<wire::CallHost>(thread, Status::kInvalidHandle);
  OpId op = 0;
  Fail<wire::CallHost>(thread, machine_->CallHost(MachineOf(thread), stream->id,
                                                  {.function = message.function.function,
                                                   .argument = message.function.argument,
                                                   .after_error = message.function.after_error},
                                                  at, &op));
}

void Core::HostCallDue(const node::HostCall& call, Time at) {
  const auto rank = machine_ranks_.find(call.process);
  if (rank == machine_ranks_.end()) return;
  const auto process = processes_.find(rank->second);
  if (process == processes_.end()) return;
  process->second.host_calls.push_back(call);
  if (!process->second.host_caller) return;
  const Thread thread = *std::exchange(process->second.host_caller, std::nullopt);
  hosts_.WakeAt(thread, at + machine_->profile().launch.host_function,
                [this, thread](Time) { AnswerHostCaller(thread); });
  machine_->Stop();
}

void Core::AnswerHostCaller(Thread thread) {
  Process& process = ProcessOf(thread);
  if (process.host_calls.empty()) {  // its device was reset meanwhile
    process.host_caller = thread;
    return hosts_.Wait(thread, wire::OpName(wire::Op::kNextHostCall), false);
  }
  const node::HostCall call = process.host_calls.front();
  process.host_calls.pop_front();
  hosts_.Note(thread, Hosts::Activity::kActs);
  wire::NextHostCallReply reply;
  reply.call = call.op;
  reply.function = {.function = call.function.function,
                    .argument = call.function.argument,
                    .after_error = call.function.after_error};
  reply.error = static_cast<std::int32_t>(call.status);
  Reply<wire::NextHostCall>(thread, reply);
}

void Core::Handle(Thread thread, const wire::NextHostCall& message, Time at) {
  Process& process = ProcessOf(thread);
  if (process.host_caller) return Fail<wire::NextHostCall>(thread, Status::kInvalidValue);
  if (message.done != 0) machine_->FinishHostCall(MachineOf(thread), message.done, at);
  AnswerHostCaller(thread);
}

std::vector<node::ValueOp> ValuesOf(const std::vector<wire::ValueOp>& messages) {
  std::vector<node::ValueOp> values;
  for (const wire::ValueOp& value : messages) {
    values.push_back({.kind = static_cast<node::ValueOp::Kind>(value.kind),
                      .compare = static_cast<node::ValueOp::Compare>(value.compare),
                      .width = value.width,
                      .address = value.address,
                      .value = value.value});
  }
  return values;
}

void Core::Handle(Thread thread, const wire::StreamValues& message, Time at) {
  const auto stream = Find(thread, message.stream);
  if (!stream) return Fail<wire::StreamValues>(thread, Status::kInvalidHandle);
  OpId op = 0;
  Fail<wire::StreamValues>(
      thread, machine_->Values(MachineOf(thread), stream->id, ValuesOf(message.values), at, &op));
}

// --- devices and events of several processes

void Core::Handle(Thread thread, const wire::SetVisible& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  Fail<wire::SetVisible>(thread, machine_->SetVisible(MachineOf(thread), message.devices));
}

void Core::Handle(Thread thread, const wire::ExportEvent& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  if (!ProcessOf(thread).events.contains(message.event))
    return Fail<wire::ExportEvent>(thread, Status::kInvalidHandle);
  node::IpcHandle handle{};
  const Status status = machine_->ExportEvent(MachineOf(thread), message.event, &handle);
  wire::IpcExportReply reply;
  std::memcpy(reply.handle.data(), handle.bytes, sizeof handle.bytes);
  Reply<wire::ExportEvent>(thread, reply, status);
}

void Core::Handle(Thread thread, const wire::OpenEvent& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  Process& process = ProcessOf(thread);
  if (process.events.size() >= options_.limits.objects)
    return Fail<wire::OpenEvent>(thread, Status::kOutOfMemory);
  node::IpcHandle handle{};
  std::memcpy(handle.bytes, message.handle.data(), sizeof handle.bytes);
  wire::OpenEventReply reply;
  int device = 0;
  const Status status = machine_->OpenEvent(MachineOf(thread), handle, &device, &reply.event);
  if (status == Status::kSuccess) process.events[reply.event] = device;
  reply.device = device;
  Reply<wire::OpenEvent>(thread, reply, status);
}

}  // namespace allranks::server
