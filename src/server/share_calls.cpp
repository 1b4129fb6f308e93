// Memory by handles, multicast objects and sharing between processes. As in device_calls.cpp, each
// handler checks what the Machine takes on trust and passes on; handles and addresses are looked up
// there by process.
#include "server/share_calls.h"

#include <cstring>
#include <utility>
#include <vector>

namespace allranks::server {

using node::Hosts;
using node::Status;

// --- handles -----------------------------------------------------------------------------------

void ShareCalls::Handle(Thread thread, const wire::CreateMemory& message, Time) {
  node::VirtualMemory& memory = machine_.virtual_memory();
  node::HandleId handle = 0;
  if (message.place != wire::MemoryPlace::kDevice) {
    hosts_.Note(thread, Hosts::Activity::kActs);
    const Status status =
        memory.CreateHost(desk_.MachineOf(thread), static_cast<node::MemoryPlace>(message.place),
                          message.size, message.share, &handle);
    return desk_.Reply<wire::CreateMemory>(thread, {.handle = handle}, status);
  }
  if (!desk_.DeviceOk(thread, message.device))
    return desk_.Fail<wire::CreateMemory>(thread, Status::kInvalidDevice);
  const Status status =
      memory.Create(desk_.MachineOf(thread), message.device, message.size, message.share, &handle);
  desk_.Reply<wire::CreateMemory>(thread, {.handle = handle}, status);
}

void ShareCalls::Handle(Thread thread, const wire::ReleaseMemory& message, Time at) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  const Status status = machine_.virtual_memory().Release(desk_.MachineOf(thread), message.handle);
  // Somebody may wait for the team of an object that is no longer his.
  TryTeams(at);
  desk_.Fail<wire::ReleaseMemory>(thread, status);
}

void ShareCalls::Handle(Thread thread, const wire::RetainMemory& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  node::HandleId handle = 0;
  const Status status =
      machine_.virtual_memory().Retain(desk_.MachineOf(thread), message.address, &handle);
  desk_.Reply<wire::RetainMemory>(thread, {.handle = handle}, status);
}

void ShareCalls::Handle(Thread thread, const wire::MemoryInfo& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  node::HandleInfo info;
  const Status status =
      machine_.virtual_memory().Info(desk_.MachineOf(thread), message.handle, &info);
  desk_.Reply<wire::MemoryInfo>(thread,
                                {.multicast = info.multicast,
                                 .place = static_cast<wire::MemoryPlace>(info.place),
                                 .device = info.device,
                                 .size = info.size,
                                 .share = info.share},
                                status);
}

void ShareCalls::Handle(Thread thread, const wire::ExportMemory& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  node::VirtualMemory& memory = machine_.virtual_memory();
  if (message.by == wire::ShareBy::kFabric) {
    wire::ExportReply reply;
    const Status status =
        memory.ExportFabric(desk_.MachineOf(thread), message.handle, &reply.fabric);
    return desk_.Reply<wire::ExportMemory>(thread, reply, status);
  }
  int fd = -1;
  const Status status = memory.ExportDescriptor(desk_.MachineOf(thread), message.handle, &fd);
  const wire::Fd own(fd);
  desk_.Reply<wire::ExportMemory>(thread, {}, status, own.get());
}

void ShareCalls::Handle(Thread thread, const wire::ImportMemory& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  node::VirtualMemory& memory = machine_.virtual_memory();
  node::HandleId handle = 0;
  Status status = Status::kInvalidValue;
  if (message.by == wire::ShareBy::kFabric) {
    status = memory.ImportFabric(desk_.MachineOf(thread), message.fabric, &handle);
  } else if (const auto& fds = desk_.RecordOf(thread).fds; fds.size() == 1) {
    status = memory.ImportDescriptor(desk_.MachineOf(thread), fds.front().get(), &handle);
  }
  desk_.Reply<wire::ImportMemory>(thread, {.handle = handle}, status);
}

void ShareCalls::Handle(Thread thread, const wire::ExportRange& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  int fd = -1;
  const Status status = machine_.virtual_memory().ExportRange(desk_.MachineOf(thread),
                                                              message.address, message.size, &fd);
  const wire::Fd own(fd);
  desk_.Reply<wire::ExportRange>(thread, {}, status, own.get());
}

// --- addresses ---------------------------------------------------------------------------------

void ShareCalls::Handle(Thread thread, const wire::ReserveAddress& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  node::Address address = 0;
  const Status status = machine_.virtual_memory().Reserve(
      desk_.MachineOf(thread), message.size, message.alignment, message.hint, &address);
  desk_.Reply<wire::ReserveAddress>(thread, {.address = address}, status);
}

void ShareCalls::Handle(Thread thread, const wire::FreeAddress& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  desk_.Fail<wire::FreeAddress>(
      thread, machine_.virtual_memory().FreeReserved(desk_.MachineOf(thread), message.address,
                                                     message.size));
}

void ShareCalls::Handle(Thread thread, const wire::MapMemory& message, Time) {
  const auto attempt = [this, thread, message] {
    return machine_.virtual_memory().Map(desk_.MachineOf(thread), message.address, message.size,
                                         message.offset, message.handle);
  };
  WhenTeamComplete(thread, attempt, [this, thread, message](Status status) {
    const int fd = status == Status::kSuccess
                       ? machine_.virtual_memory().FileAt(desk_.MachineOf(thread), message.address)
                       : -1;
    if (fd >= 0) {
      node::HandleInfo info;
      machine_.virtual_memory().Info(desk_.MachineOf(thread), message.handle, &info);
      Process& process = desk_.ProcessOf(thread);
      process.pinned = true;
      process.shares_host_memory = process.shares_host_memory || info.share != 0;
    }
    desk_.Reply<wire::MapMemory>(thread, {.mapped = fd >= 0 ? message.size : 0}, status, fd);
  });
}

void ShareCalls::Handle(Thread thread, const wire::UnmapMemory& message, Time at) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  const node::ProcessId process = desk_.MachineOf(thread);
  std::vector<node::OpId> ops;
  for (int device = 0; device < machine_.DeviceCount(process); ++device) {
    if (!machine_.virtual_memory().InUse(process, message.address, message.size, device)) continue;
    std::vector<node::OpId> tail;
    if (machine_.DeviceTail(process, device, &tail) == Status::kSuccess)
      ops.insert(ops.end(), tail.begin(), tail.end());
  }
  desk_.WhenDone(thread, std::move(ops), wire::OpName(wire::Op::kUnmapMemory),
                 machine_.profile().launch.sync, at, [this, thread, message](Time) {
                   desk_.Fail<wire::UnmapMemory>(
                       thread, machine_.virtual_memory().Unmap(desk_.MachineOf(thread),
                                                               message.address, message.size));
                 });
}

void ShareCalls::Handle(Thread thread, const wire::SetMemoryAccess& message, Time) {
  const bool of_device = message.place == wire::MemoryPlace::kDevice;
  if (!of_device) hosts_.Note(thread, Hosts::Activity::kActs);
  if (of_device && !desk_.DeviceOk(thread, message.device))
    return desk_.Fail<wire::SetMemoryAccess>(thread, Status::kInvalidDevice);
  const auto right = static_cast<node::AccessRight>(message.flags);
  if (right != node::AccessRight::kNone && right != node::AccessRight::kRead &&
      right != node::AccessRight::kReadWrite) {
    return desk_.Fail<wire::SetMemoryAccess>(thread, Status::kInvalidValue);
  }
  node::VirtualMemory& memory = machine_.virtual_memory();
  const node::ProcessId process = desk_.MachineOf(thread);
  desk_.Fail<wire::SetMemoryAccess>(
      thread, of_device
                  ? memory.SetAccess(process, message.address, message.size, message.device, right)
                  : memory.SetHostAccess(process, message.address, message.size,
                                         static_cast<node::MemoryPlace>(message.place), right));
}

void ShareCalls::Handle(Thread thread, const wire::GetMemoryAccess& message, Time) {
  const bool of_device = message.place == wire::MemoryPlace::kDevice;
  if (!of_device) hosts_.Note(thread, Hosts::Activity::kActs);
  if (of_device && !desk_.DeviceOk(thread, message.device))
    return desk_.Fail<wire::GetMemoryAccess>(thread, Status::kInvalidDevice);
  node::VirtualMemory& memory = machine_.virtual_memory();
  const node::ProcessId process = desk_.MachineOf(thread);
  node::AccessRight right = node::AccessRight::kNone;
  const Status status = of_device
                            ? memory.GetAccess(process, message.address, message.device, &right)
                            : memory.GetHostAccess(process, message.address, &right);
  desk_.Reply<wire::GetMemoryAccess>(thread, {.flags = static_cast<std::uint8_t>(right)}, status);
}

// --- multicast objects -------------------------------------------------------------------------

void ShareCalls::WhenTeamComplete(Thread thread, std::function<Status()> attempt, Answer answer) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  const Status status = attempt();
  if (status != Status::kNotReady) return answer(status);
  hosts_.Wait(thread, "a call on a multicast object whose team is not complete", false);
  team_waits_[thread] = [this, thread, attempt = std::move(attempt),
                         answer = std::move(answer)](Time at) {
    const Status now = attempt();
    if (now == Status::kNotReady) return false;
    hosts_.WakeAt(thread, at, [answer, now](Time) { answer(now); });
    return true;
  };
}

void ShareCalls::TryTeams(Time at) {
  std::erase_if(team_waits_, [at](const auto& entry) { return entry.second(at); });
}

void ShareCalls::Handle(Thread thread, const wire::CreateMulticast& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  node::HandleId handle = 0;
  const Status status = machine_.virtual_memory().CreateMulticast(
      desk_.MachineOf(thread), message.devices, message.size, message.share, &handle);
  desk_.Reply<wire::CreateMulticast>(thread, {.handle = handle}, status);
}

void ShareCalls::Handle(Thread thread, const wire::AddMulticastDevice& message, Time at) {
  if (!desk_.DeviceOk(thread, message.device))
    return desk_.Fail<wire::AddMulticastDevice>(thread, Status::kInvalidDevice);
  const Status status =
      machine_.virtual_memory().AddDevice(desk_.MachineOf(thread), message.handle, message.device);
  if (status == Status::kSuccess) TryTeams(at);
  desk_.Fail<wire::AddMulticastDevice>(thread, status);
}

void ShareCalls::Handle(Thread thread, const wire::BindMulticast& message, Time) {
  const auto attempt = [this, thread, message] {
    node::VirtualMemory& memory = machine_.virtual_memory();
    const node::ProcessId process = desk_.MachineOf(thread);
    return message.memory != 0 ? memory.Bind(process, message.handle, message.offset,
                                             message.memory, message.place, message.size)
                               : memory.BindAddress(process, message.handle, message.offset,
                                                    message.place, message.size);
  };
  WhenTeamComplete(thread, attempt, [this, thread](Status status) {
    desk_.Fail<wire::BindMulticast>(thread, status);
  });
}

void ShareCalls::Handle(Thread thread, const wire::UnbindMulticast& message, Time) {
  if (!desk_.DeviceOk(thread, message.device))
    return desk_.Fail<wire::UnbindMulticast>(thread, Status::kInvalidDevice);
  desk_.Fail<wire::UnbindMulticast>(
      thread, machine_.virtual_memory().Unbind(desk_.MachineOf(thread), message.handle,
                                               message.device, message.offset, message.size));
}

// --- pools -------------------------------------------------------------------------------------

void ShareCalls::Handle(Thread thread, const wire::ExportPool& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  wire::ExportReply reply;
  if (message.by == wire::ShareBy::kFabric) {
    const Status status = machine_.ExportPool(desk_.MachineOf(thread), message.pool, &reply.fabric);
    return desk_.Reply<wire::ExportPool>(thread, reply, status);
  }
  int fd = -1;
  const Status status = machine_.ExportPool(desk_.MachineOf(thread), message.pool, &fd);
  const wire::Fd own(fd);
  desk_.Reply<wire::ExportPool>(thread, reply, status, own.get());
}

void ShareCalls::Handle(Thread thread, const wire::ImportPool& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  wire::ImportPoolReply reply;
  Status status = Status::kInvalidValue;
  if (message.by == wire::ShareBy::kFabric) {
    status =
        machine_.ImportPool(desk_.MachineOf(thread), message.fabric, &reply.pool, &reply.device);
  } else if (const auto& fds = desk_.RecordOf(thread).fds; fds.size() == 1) {
    status =
        machine_.ImportPool(desk_.MachineOf(thread), fds.front().get(), &reply.pool, &reply.device);
  }
  desk_.Reply<wire::ImportPool>(thread, reply, status);
}

void ShareCalls::Handle(Thread thread, const wire::ExportPointer& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  node::IpcHandle data{};
  const Status status = machine_.ExportPointer(desk_.MachineOf(thread), message.address, &data);
  wire::IpcExportReply reply;
  if (status == Status::kSuccess) std::memcpy(reply.handle.data(), data.bytes, sizeof data.bytes);
  desk_.Reply<wire::ExportPointer>(thread, reply, status);
}

void ShareCalls::Handle(Thread thread, const wire::ImportPointer& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  Process& process = desk_.ProcessOf(thread);
  if (process.allocations >= desk_.limits().objects)
    return desk_.Fail<wire::ImportPointer>(thread, Status::kOutOfMemory);
  node::IpcHandle data{};
  std::memcpy(data.bytes, message.data.data(), sizeof data.bytes);
  node::Address address = 0;
  const Status status =
      machine_.ImportPointer(desk_.MachineOf(thread), message.pool, data, &address);
  if (status == Status::kSuccess) ++process.allocations;
  desk_.Reply<wire::ImportPointer>(thread, {.address = address}, status);
}

}  // namespace allranks::server
