// Pools, stream-ordered and registered memory. Each handler checks what the Machine takes on trust
// (ordinals, how many things a process may have) and passes on; pools are looked up there by
// process.
#include "server/memory_calls.h"

namespace allranks::server {

using node::Hosts;
using node::Status;

void MemoryCalls::Handle(Thread thread, const wire::DefaultPool& message, Time) {
  if (!desk_.DeviceOk(thread, message.device))
    return desk_.Fail<wire::DefaultPool>(thread, Status::kInvalidDevice);
  desk_.Reply<wire::DefaultPool>(
      thread, {.pool = memory_.DefaultPool(desk_.MachineOf(thread), message.device)});
}

void MemoryCalls::Handle(Thread thread, const wire::CreatePool& message, Time) {
  if (!desk_.DeviceOk(thread, message.device))
    return desk_.Fail<wire::CreatePool>(thread, Status::kInvalidDevice);
  node::PoolId pool = 0;
  const Status status = memory_.CreatePool(desk_.MachineOf(thread), message.device,
                                           message.max_size, message.share, &pool);
  desk_.Reply<wire::CreatePool>(thread, {.pool = pool}, status);
}

void MemoryCalls::Handle(Thread thread, const wire::DestroyPool& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  desk_.Fail<wire::DestroyPool>(thread, memory_.DestroyPool(desk_.MachineOf(thread), message.pool));
}

void MemoryCalls::Handle(Thread thread, const wire::GetPoolAttribute& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  std::uint64_t value = 0;
  const Status status =
      memory_.GetPoolAttribute(desk_.MachineOf(thread), message.pool,
                               static_cast<node::PoolAttribute>(message.attribute), &value);
  desk_.Reply<wire::GetPoolAttribute>(thread, {.value = value}, status);
}

void MemoryCalls::Handle(Thread thread, const wire::SetPoolAttribute& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  desk_.Fail<wire::SetPoolAttribute>(
      thread,
      memory_.SetPoolAttribute(desk_.MachineOf(thread), message.pool,
                               static_cast<node::PoolAttribute>(message.attribute), message.value));
}

void MemoryCalls::Handle(Thread thread, const wire::TrimPool& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  desk_.Fail<wire::TrimPool>(thread,
                             memory_.TrimPool(desk_.MachineOf(thread), message.pool, message.keep));
}

void MemoryCalls::Handle(Thread thread, const wire::SetPoolAccess& message, Time) {
  if (!desk_.DeviceOk(thread, message.device))
    return desk_.Fail<wire::SetPoolAccess>(thread, Status::kInvalidDevice);
  desk_.Fail<wire::SetPoolAccess>(
      thread,
      memory_.SetPoolAccess(desk_.MachineOf(thread), message.pool, message.device, message.access));
}

void MemoryCalls::Handle(Thread thread, const wire::GetPoolAccess& message, Time) {
  if (!desk_.DeviceOk(thread, message.device))
    return desk_.Fail<wire::GetPoolAccess>(thread, Status::kInvalidDevice);
  bool access = false;
  const Status status =
      memory_.GetPoolAccess(desk_.MachineOf(thread), message.pool, message.device, &access);
  desk_.Reply<wire::GetPoolAccess>(thread, {.access = access}, status);
}

void MemoryCalls::Handle(Thread thread, const wire::AllocAsync& message, Time) {
  const auto stream = desk_.FindStream(thread, message.stream);
  if (!stream) return desk_.Fail<wire::AllocAsync>(thread, Status::kInvalidHandle);
  Process& process = desk_.ProcessOf(thread);
  if (process.allocations >= desk_.limits().objects)
    return desk_.Fail<wire::AllocAsync>(thread, Status::kOutOfMemory);
  const node::ProcessId id = desk_.MachineOf(thread);
  const node::PoolId pool =
      message.pool != 0 ? message.pool : memory_.DefaultPool(id, stream->device);
  node::Address address = 0;
  const Status status = memory_.AllocateAsync(id, stream->id, pool, message.size, &address);
  if (status == Status::kSuccess) ++process.allocations;
  desk_.Reply<wire::AllocAsync>(thread, {.address = address}, status);
}

void MemoryCalls::Handle(Thread thread, const wire::FreeAsync& message, Time at) {
  const auto stream = desk_.FindStream(thread, message.stream);
  if (!stream) return desk_.Fail<wire::FreeAsync>(thread, Status::kInvalidHandle);
  Process& process = desk_.ProcessOf(thread);
  node::OpId op = 0;
  const Status status =
      memory_.FreeAsync(desk_.MachineOf(thread), stream->id, message.address, at, &op);
  if (status == Status::kSuccess && process.allocations > 0) --process.allocations;
  desk_.Fail<wire::FreeAsync>(thread, status);
}

void MemoryCalls::Handle(Thread thread, const wire::RegisterHost& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  Process& process = desk_.ProcessOf(thread);
  if (process.allocations >= desk_.limits().objects)
    return desk_.Fail<wire::RegisterHost>(thread, Status::kOutOfMemory);
  node::PinnedMemory memory;
  const Status status =
      memory_.RegisterHost(desk_.MachineOf(thread), message.address, message.size,
                           {message.file_device, message.file_inode, message.file_offset}, &memory);
  if (status != Status::kSuccess) return desk_.Fail<wire::RegisterHost>(thread, status);
  process.pinned = true;
  ++process.allocations;
  desk_.Reply<wire::RegisterHost>(
      thread, {.address = memory.address, .size = memory.size, .shared = memory.shared}, status,
      memory.fd);
}

void MemoryCalls::Handle(Thread thread, const wire::Prefetch& message, Time at) {
  const auto stream = desk_.FindStream(thread, message.stream);
  if (!stream) return desk_.Fail<wire::Prefetch>(thread, Status::kInvalidHandle);
  node::OpId op = 0;
  desk_.Fail<wire::Prefetch>(
      thread, memory_.Prefetch(desk_.MachineOf(thread), stream->id, message.address, message.size,
                               message.device, at, &op));
}

}  // namespace allranks::server
