// Stream-ordered memory and its pools, registered and managed memory. As in device_calls.cpp, each
// handler checks what the Machine takes on trust and passes on; pools are looked up there by
// process.
#include "server/core.h"

namespace allranks::server {

using node::Hosts;
using node::Status;

void Core::Handle(Thread thread, const wire::DefaultPool& message, Time) {
  if (!DeviceOk(thread, message.device))
    return Fail<wire::DefaultPool>(thread, Status::kInvalidDevice);
  Reply<wire::DefaultPool>(thread,
                           {.pool = machine_->DefaultPool(MachineOf(thread), message.device)});
}

void Core::Handle(Thread thread, const wire::CreatePool& message, Time) {
  if (!DeviceOk(thread, message.device))
    return Fail<wire::CreatePool>(thread, Status::kInvalidDevice);
  node::PoolId pool = 0;
  const Status status = machine_->CreatePool(MachineOf(thread), message.device, message.max_size,
                                             message.share, &pool);
  Reply<wire::CreatePool>(thread, {.pool = pool}, status);
}

void Core::Handle(Thread thread, const wire::DestroyPool& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  Fail<wire::DestroyPool>(thread, machine_->DestroyPool(MachineOf(thread), message.pool));
}

void Core::Handle(Thread thread, const wire::GetPoolAttribute& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  std::uint64_t value = 0;
  const Status status = machine_->GetPoolAttribute(
      MachineOf(thread), message.pool, static_cast<node::PoolAttribute>(message.attribute), &value);
  Reply<wire::GetPoolAttribute>(thread, {.value = value}, status);
}

void Core::Handle(Thread thread, const wire::SetPoolAttribute& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  Fail<wire::SetPoolAttribute>(
      thread, machine_->SetPoolAttribute(MachineOf(thread), message.pool,
                                         static_cast<node::PoolAttribute>(message.attribute),
                                         message.value));
}

void Core::Handle(Thread thread, const wire::TrimPool& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  Fail<wire::TrimPool>(thread, machine_->TrimPool(MachineOf(thread), message.pool, message.keep));
}

void Core::Handle(Thread thread, const wire::SetPoolAccess& message, Time) {
  if (!DeviceOk(thread, message.device))
    return Fail<wire::SetPoolAccess>(thread, Status::kInvalidDevice);
  Fail<wire::SetPoolAccess>(thread, machine_->SetPoolAccess(MachineOf(thread), message.pool,
                                                            message.device, message.access));
}

void Core::Handle(Thread thread, const wire::GetPoolAccess& message, Time) {
  if (!DeviceOk(thread, message.device))
    return Fail<wire::GetPoolAccess>(thread, Status::kInvalidDevice);
  bool access = false;
  const Status status =
      machine_->GetPoolAccess(MachineOf(thread), message.pool, message.device, &access);
  Reply<wire::GetPoolAccess>(thread, {.access = access}, status);
}

void Core::Handle(Thread thread, const wire::AllocAsync& message, Time) {
  const auto stream = Find(thread, message.stream);
  if (!stream) return Fail<wire::AllocAsync>(thread, Status::kInvalidHandle);
  Process& process = ProcessOf(thread);
  if (process.allocations >= options_.limits.objects)
    return Fail<wire::AllocAsync>(thread, Status::kOutOfMemory);
  const node::ProcessId id = MachineOf(thread);
  const node::PoolId pool =
      message.pool != 0 ? message.pool : machine_->DefaultPool(id, stream->device);
  node::Address address = 0;
  const Status status = machine_->AllocateAsync(id, stream->id, pool, message.size, &address);
  if (status == Status::kSuccess) ++process.allocations;
  Reply<wire::AllocAsync>(thread, {.address = address}, status);
}

void Core::Handle(Thread thread, const wire::FreeAsync& message, Time at) {
  const auto stream = Find(thread, message.stream);
  if (!stream) return Fail<wire::FreeAsync>(thread, Status::kInvalidHandle);
  Process& process = ProcessOf(thread);
  node::OpId op = 0;
  const Status status =
      machine_->FreeAsync(MachineOf(thread), stream->id, message.address, at, &op);
  if (status == Status::kSuccess && process.allocations > 0) --process.allocations;
  Fail<wire::FreeAsync>(thread, status);
}

void Core::Handle(Thread thread, const wire::RegisterHost& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  Process& process = ProcessOf(thread);
  if (process.allocations >= options_.limits.objects)
    return Fail<wire::RegisterHost>(thread, Status::kOutOfMemory);
  node::PinnedMemory memory;
  const Status status =
      machine_->RegisterHost(MachineOf(thread), message.address, message.size, &memory);
  if (status != Status::kSuccess) return Fail<wire::RegisterHost>(thread, status);
  process.pinned = true;
  ++process.allocations;
  Reply<wire::RegisterHost>(thread, {.address = memory.address, .size = memory.size}, status,
                            memory.fd);
}

void Core::Handle(Thread thread, const wire::Prefetch& message, Time at) {
  const auto stream = Find(thread, message.stream);
  if (!stream) return Fail<wire::Prefetch>(thread, Status::kInvalidHandle);
  node::OpId op = 0;
  Fail<wire::Prefetch>(thread, machine_->Prefetch(MachineOf(thread), stream->id, message.address,
                                                  message.size, message.device, at, &op));
}

}  // namespace allranks::server
