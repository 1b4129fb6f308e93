// Memory by handles, multicast objects and sharing between processes. As in device_calls.cpp, each
// handler checks what the Machine takes on trust and passes on; handles and addresses are looked up
// there by process.
#include <cstring>
#include <utility>

#include "server/core.h"

namespace allranks::server {

using node::Hosts;
using node::Status;

// --- handles -----------------------------------------------------------------------------------

void Core::Handle(Thread thread, const wire::CreateMemory& message, Time) {
  if (!DeviceOk(thread, message.device))
    return Fail<wire::CreateMemory>(thread, Status::kInvalidDevice);
  node::HandleId handle = 0;
  const Status status = machine_->virtual_memory().Create(MachineOf(thread), message.device,
                                                          message.size, message.share, &handle);
  Reply<wire::CreateMemory>(thread, {.handle = handle}, status);
}

void Core::Handle(Thread thread, const wire::ReleaseMemory& message, Time at) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  const Status status = machine_->virtual_memory().Release(MachineOf(thread), message.handle);
  // Somebody may wait for the team of an object that is no longer his.
  std::erase_if(team_waits_, [at](const auto& entry) { return entry.second(at); });
  Fail<wire::ReleaseMemory>(thread, status);
}

void Core::Handle(Thread thread, const wire::RetainMemory& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  node::HandleId handle = 0;
  const Status status =
      machine_->virtual_memory().Retain(MachineOf(thread), message.address, &handle);
  Reply<wire::RetainMemory>(thread, {.handle = handle}, status);
}

void Core::Handle(Thread thread, const wire::MemoryInfo& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  node::HandleInfo info;
  const Status status = machine_->virtual_memory().Info(MachineOf(thread), message.handle, &info);
  Reply<wire::MemoryInfo>(
      thread,
      {.multicast = info.multicast, .device = info.device, .size = info.size, .share = info.share},
      status);
}

void Core::Handle(Thread thread, const wire::ExportMemory& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  node::VirtualMemory& memory = machine_->virtual_memory();
  if (message.by == wire::ShareBy::kFabric) {
    wire::ExportReply reply;
    const Status status = memory.ExportFabric(MachineOf(thread), message.handle, &reply.fabric);
    return Reply<wire::ExportMemory>(thread, reply, status);
  }
  int fd = -1;
  const Status status = memory.ExportDescriptor(MachineOf(thread), message.handle, &fd);
  const wire::Fd own(fd);
  Reply<wire::ExportMemory>(thread, {}, status, own.get());
}

void Core::Handle(Thread thread, const wire::ImportMemory& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  node::VirtualMemory& memory = machine_->virtual_memory();
  node::HandleId handle = 0;
  Status status = Status::kInvalidValue;
  if (message.by == wire::ShareBy::kFabric) {
    status = memory.ImportFabric(MachineOf(thread), message.fabric, &handle);
  } else if (const auto& fds = threads_.at(thread).fds; fds.size() == 1) {
    status = memory.ImportDescriptor(MachineOf(thread), fds.front().get(), &handle);
  }
  Reply<wire::ImportMemory>(thread, {.handle = handle}, status);
}

// --- addresses ---------------------------------------------------------------------------------

void Core::Handle(Thread thread, const wire::ReserveAddress& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  node::Address address = 0;
  const Status status = machine_->virtual_memory().Reserve(
      MachineOf(thread), message.size, message.alignment, message.hint, &address);
  Reply<wire::ReserveAddress>(thread, {.address = address}, status);
}

void Core::Handle(Thread thread, const wire::FreeAddress& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  Fail<wire::FreeAddress>(thread, machine_->virtual_memory().FreeReserved(
                                      MachineOf(thread), message.address, message.size));
}

void Core::Handle(Thread thread, const wire::MapMemory& message, Time) {
  WhenTeamComplete<wire::MapMemory>(thread, [this, thread, message] {
    return machine_->virtual_memory().Map(MachineOf(thread), message.address, message.size,
                                          message.offset, message.handle);
  });
}

void Core::Handle(Thread thread, const wire::UnmapMemory& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  const node::ProcessId process = MachineOf(thread);
  std::vector<node::OpId> ops;
  for (int device = 0; device < machine_->DeviceCount(process); ++device) {
    if (!machine_->virtual_memory().InUse(process, message.address, message.size, device)) continue;
    std::vector<node::OpId> tail;
    if (machine_->DeviceTail(process, device, &tail) == Status::kSuccess)
      ops.insert(ops.end(), tail.begin(), tail.end());
  }
  const auto unmap = [this, thread, message](Time) {
    Fail<wire::UnmapMemory>(
        thread, machine_->virtual_memory().Unmap(MachineOf(thread), message.address, message.size));
  };
  if (machine_->Done(ops)) return unmap(0);
  hosts_.Wait(thread, wire::OpName(wire::Op::kUnmapMemory), false);
  const std::uint64_t id = machine_->WhenDone(std::move(ops), [this, thread, unmap](Time done) {
    if (auto record = threads_.find(thread); record != threads_.end()) record->second.when_done = 0;
    hosts_.WakeAt(thread, done + machine_->profile().launch.sync, unmap);
    machine_->Stop();
  });
  if (auto record = threads_.find(thread); record != threads_.end() && hosts_.Has(thread))
    record->second.when_done = id;
}

void Core::Handle(Thread thread, const wire::SetMemoryAccess& message, Time) {
  if (!DeviceOk(thread, message.device))
    return Fail<wire::SetMemoryAccess>(thread, Status::kInvalidDevice);
  const auto right = static_cast<node::AccessRight>(message.flags);
  if (right != node::AccessRight::kNone && right != node::AccessRight::kRead &&
      right != node::AccessRight::kReadWrite) {
    return Fail<wire::SetMemoryAccess>(thread, Status::kInvalidValue);
  }
  Fail<wire::SetMemoryAccess>(
      thread, machine_->virtual_memory().SetAccess(MachineOf(thread), message.address, message.size,
                                                   message.device, right));
}

void Core::Handle(Thread thread, const wire::GetMemoryAccess& message, Time) {
  if (!DeviceOk(thread, message.device))
    return Fail<wire::GetMemoryAccess>(thread, Status::kInvalidDevice);
  node::AccessRight right = node::AccessRight::kNone;
  const Status status = machine_->virtual_memory().GetAccess(MachineOf(thread), message.address,
                                                             message.device, &right);
  Reply<wire::GetMemoryAccess>(thread, {.flags = static_cast<std::uint8_t>(right)}, status);
}

// --- multicast objects -------------------------------------------------------------------------

template <class M>
void Core::WhenTeamComplete(Thread thread, std::function<Status()> attempt) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  const Status status = attempt();
  if (status != Status::kNotReady) return Fail<M>(thread, status);
  hosts_.Wait(thread, "a call on a multicast object whose team is not complete", false);
  team_waits_[thread] = [this, thread, attempt = std::move(attempt)](Time at) {
    const Status now = attempt();
    if (now == Status::kNotReady) return false;
    hosts_.WakeAt(thread, at, [this, thread, now](Time) { Fail<M>(thread, now); });
    return true;
  };
}

void Core::Handle(Thread thread, const wire::CreateMulticast& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  node::HandleId handle = 0;
  const Status status = machine_->virtual_memory().CreateMulticast(
      MachineOf(thread), message.devices, message.size, message.share, &handle);
  Reply<wire::CreateMulticast>(thread, {.handle = handle}, status);
}

void Core::Handle(Thread thread, const wire::AddMulticastDevice& message, Time at) {
  if (!DeviceOk(thread, message.device))
    return Fail<wire::AddMulticastDevice>(thread, Status::kInvalidDevice);
  const Status status =
      machine_->virtual_memory().AddDevice(MachineOf(thread), message.handle, message.device);
  // Those who wait go on in the order of their ranks, whoever came first.
  if (status == Status::kSuccess)
    std::erase_if(team_waits_, [at](const auto& entry) { return entry.second(at); });
  Fail<wire::AddMulticastDevice>(thread, status);
}

void Core::Handle(Thread thread, const wire::BindMulticast& message, Time) {
  WhenTeamComplete<wire::BindMulticast>(thread, [this, thread, message] {
    node::VirtualMemory& memory = machine_->virtual_memory();
    const node::ProcessId process = MachineOf(thread);
    return message.memory != 0 ? memory.Bind(process, message.handle, message.offset,
                                             message.memory, message.place, message.size)
                               : memory.BindAddress(process, message.handle, message.offset,
                                                    message.place, message.size);
  });
}

void Core::Handle(Thread thread, const wire::UnbindMulticast& message, Time) {
  if (!DeviceOk(thread, message.device))
    return Fail<wire::UnbindMulticast>(thread, Status::kInvalidDevice);
  Fail<wire::UnbindMulticast>(
      thread, machine_->virtual_memory().Unbind(MachineOf(thread), message.handle, message.device,
                                                message.offset, message.size));
}

// --- pools -------------------------------------------------------------------------------------

void Core::Handle(Thread thread, const wire::ExportPool& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  wire::ExportReply reply;
  if (message.by == wire::ShareBy::kFabric) {
    const Status status = machine_->ExportPool(MachineOf(thread), message.pool, &reply.fabric);
    return Reply<wire::ExportPool>(thread, reply, status);
  }
  int fd = -1;
  const Status status = machine_->ExportPool(MachineOf(thread), message.pool, &fd);
  const wire::Fd own(fd);
  Reply<wire::ExportPool>(thread, reply, status, own.get());
}

void Core::Handle(Thread thread, const wire::ImportPool& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  wire::ImportPoolReply reply;
  Status status = Status::kInvalidValue;
  if (message.by == wire::ShareBy::kFabric) {
    status = machine_->ImportPool(MachineOf(thread), message.fabric, &reply.pool, &reply.device);
  } else if (const auto& fds = threads_.at(thread).fds; fds.size() == 1) {
    status = machine_->ImportPool(MachineOf(thread), fds.front().get(), &reply.pool, &reply.device);
  }
  Reply<wire::ImportPool>(thread, reply, status);
}

void Core::Handle(Thread thread, const wire::ExportPointer& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  node::IpcHandle data{};
  const Status status = machine_->ExportPointer(MachineOf(thread), message.address, &data);
  wire::IpcExportReply reply;
  if (status == Status::kSuccess) std::memcpy(reply.handle.data(), data.bytes, sizeof data.bytes);
  Reply<wire::ExportPointer>(thread, reply, status);
}

void Core::Handle(Thread thread, const wire::ImportPointer& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  Process& process = ProcessOf(thread);
  if (process.allocations >= options_.limits.objects)
    return Fail<wire::ImportPointer>(thread, Status::kOutOfMemory);
  node::IpcHandle data{};
  std::memcpy(data.bytes, message.data.data(), sizeof data.bytes);
  node::Address address = 0;
  const Status status = machine_->ImportPointer(MachineOf(thread), message.pool, data, &address);
  if (status == Status::kSuccess) ++process.allocations;
  Reply<wire::ImportPointer>(thread, {.address = address}, status);
}

}  // namespace allranks::server
