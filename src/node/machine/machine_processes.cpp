// The Machine: processes and what each of them sees of the devices. What a process has made goes
// with it here, whoever keeps it.
#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "node/listener.h"
#include "node/machine/machine_impl.h"

namespace allranks::node {

const Process* MachineImpl::Find(ProcessId process) const {
  if (process == 0 || process > sim_.processes.size()) return nullptr;
  const Process* found = sim_.processes[process - 1].get();
  return found->alive ? found : nullptr;
}

Device* MachineImpl::DeviceOf(const Process& process, int device) {
  if (device < 0 || device >= DeviceCount(process.id)) return nullptr;
  return &sim_.devices[static_cast<std::size_t>(sim_.NumberOf(process, device))];
}

Stream* MachineImpl::FindStream(ProcessId process, StreamId stream) {
  const auto it = streams_.find(stream);
  const bool known = it != streams_.end() && it->second.process == process && !it->second.destroyed;
  return known ? &it->second : nullptr;
}

Event* MachineImpl::FindEvent(ProcessId process, EventId event) {
  const auto it = events_.find(event);
  return it == events_.end() || it->second.process != process ? nullptr : &it->second;
}

Status& MachineImpl::Sticky(ProcessId id, int device_number) {
  Process& process = sim_.ProcessOf(id);
  return process.sticky[static_cast<std::size_t>(sim_.OrdinalOf(process, device_number))];
}

void MachineImpl::NumberDevices(Process& process) {
  process.ordinals.assign(sim_.devices.size(), -1);
  for (std::size_t i = 0; i < process.visible.size(); ++i)
    process.ordinals[static_cast<std::size_t>(process.visible[i])] = static_cast<int>(i);
}

Time MachineImpl::SendBetweenHosts(int from, int to, std::uint64_t bytes, Time at) {
  const auto& vertices = sim_.profile.topology.vertices;
  const auto cpu_of = [&](int host) {
    const auto found = std::find_if(vertices.begin(), vertices.end(), [&](const auto& vertex) {
      return vertex.kind == Topology::Kind::kCpu && vertex.host == host;
    });
    return found == vertices.end() ? -1 : static_cast<int>(found - vertices.begin());
  };
  const int source = cpu_of(from), target = cpu_of(to);
  if (source < 0 || target < 0) return at;
  const Route& way = sim_.fabric.Way(source, target);
  if (way.latency == kTimeNever) return at;
  if (!sim_.fabric.Alive(way)) return kTimeNever;
  return sim_.fabric.SendByNics(way, bytes, at);
}

ProcessId MachineImpl::AddProcess(int rank, int host) {
  auto process = std::make_unique<Process>();
  process->id = static_cast<ProcessId>(sim_.processes.size() + 1);
  process->rank = rank;
  process->host = host;
  process->alive = true;
  const ProcessId id = process->id;
  sim_.processes.push_back(std::move(process));
  Process& made = *sim_.processes.back();
  const int per_host = static_cast<int>(sim_.profile.machine.devices_per_host);
  const int first = host * per_host;
  for (int d = first; d < first + per_host && d < static_cast<int>(sim_.devices.size()); ++d)
    made.visible.push_back(d);
  NumberDevices(made);
  const int count = DeviceCount(id);
  // Ranks are what processes say they are: any number.
  const std::uint64_t number = static_cast<std::uint32_t>(rank);
  const std::uint64_t slot = number % kPinnedArenas;
  made.pinned = Arena(kPinnedArena + slot * kPinnedStride, kPinnedStride);
  for (int d = 0; d < count; ++d) {
    const std::uint64_t arena =
        (number * static_cast<std::uint64_t>(count) + static_cast<std::uint64_t>(d)) %
        kDeviceArenas;
    made.device_arenas.emplace_back(kDeviceArena + arena * kDeviceStride, kDeviceStride);
  }
  made.peers.resize(static_cast<std::size_t>(count));
  made.sticky.resize(static_cast<std::size_t>(count), Status::kSuccess);
  return id;
}

Status MachineImpl::SetVisible(ProcessId id, std::span<const std::int32_t> devices) {
  if (Find(id) == nullptr) return Status::kInvalidContext;
  Process& process = sim_.ProcessOf(id);
  // What has been made would get other numbers.
  const auto owns = [id](const auto& things) {
    return std::any_of(things.begin(), things.end(),
                       [id](const auto& entry) { return entry.second.process == id; });
  };
  const bool used = !process.table.all().empty() || owns(streams_) || owns(modules_) ||
                    owns(pools_) || owns(graphs_) || owns(events_) || virtual_memory_.Used(id);
  if (used) return Status::kIllegalState;
  std::vector<int> visible;
  std::vector<Arena> arenas;
  for (const std::int32_t device : devices) {
    if (device < 0 || device >= DeviceCount(id)) return Status::kInvalidDevice;
    const int number = sim_.NumberOf(process, device);
    if (std::find(visible.begin(), visible.end(), number) != visible.end())
      return Status::kInvalidDevice;
    visible.push_back(number);
    arenas.push_back(process.device_arenas[static_cast<std::size_t>(device)]);
  }
  process.visible = std::move(visible);
  NumberDevices(process);
  process.device_arenas = std::move(arenas);
  process.peers.assign(process.visible.size(), {});
  process.sticky.assign(process.visible.size(), Status::kSuccess);
  return Status::kSuccess;
}

void MachineImpl::RemoveProcess(ProcessId id) {
  if (Find(id) == nullptr) return;
  Process& process = sim_.ProcessOf(id);
  if (sim_.errors != nullptr) TellLeft(process);
  for (const int number : process.visible) EndContext(id, number);
  // Nobody is left to be told.
  for (auto it = operations_.begin(); it != operations_.end();) {
    if (it->second.process == id) {
      if (sim_.listener != nullptr && it->second.started)
        sim_.listener->OnEnd(it->first, sim_.now, nullptr);
      value_waits_.erase(it->first);
      it = operations_.erase(it);
    } else {
      ++it;
    }
  }
  queued_.erase(id);
  DropPools(id, -1);
  for (const int number : process.visible) DropHeap(id, number);
  texts_.erase(id);
  std::erase_if(ipc_opens_, [id](const auto& entry) { return entry.first.first == id; });
  std::erase_if(streams_, [id](const auto& entry) { return entry.second.process == id; });
  std::erase_if(default_streams_, [id](const auto& entry) { return entry.first.first == id; });
  std::erase_if(contexts_, [id](const auto& entry) { return entry.first.first == id; });
  std::erase_if(graphs_, [id](const auto& entry) { return entry.second.process == id; });
  std::erase_if(events_, [id](const auto& entry) { return entry.second.process == id; });
  std::vector<ModuleId> modules;
  for (const auto& [number, module] : modules_) {
    if (module.process == id) modules.push_back(number);
  }
  for (const ModuleId module : modules) UnloadModule(id, module);
  std::erase_if(managed_globals_, [id](const auto& entry) { return entry.first.first == id; });
  while (!process.table.all().empty()) Unmap(process, process.table.all().begin()->first);
  virtual_memory_.RemoveProcess(id);
  process.alive = false;
}

int MachineImpl::DeviceCount(ProcessId id) const {
  const Process* process = Find(id);
  if (process == nullptr) return 0;
  return static_cast<int>(process->visible.size());
}

std::uint64_t MachineImpl::FreeMemory(ProcessId id, int device) const {
  const Process* process = Find(id);
  if (process == nullptr || device < 0 || device >= DeviceCount(id)) return 0;
  const auto number = static_cast<std::size_t>(sim_.NumberOf(*process, device));
  return static_cast<std::uint64_t>(sim_.profile.device.memory_bytes) -
         sim_.devices[number].allocated;
}

Status MachineImpl::StickyError(ProcessId id, int device) const {
  const Process* process = Find(id);
  if (process == nullptr || device < 0 || device >= DeviceCount(id)) return Status::kInvalidDevice;
  return process->sticky[static_cast<std::size_t>(device)];
}

void MachineImpl::ResetDevice(ProcessId id, int device) {
  const Process* found = Find(id);
  if (found == nullptr || DeviceOf(*found, device) == nullptr) return;
  Process& process = sim_.ProcessOf(id);
  const int number = sim_.NumberOf(process, device);
  EndContext(id, number);
  process.sticky[static_cast<std::size_t>(device)] = Status::kSuccess;
  DropPools(id, number);
  DropHeap(id, number);
  std::vector<Address> mapped;
  for (const auto& [base, mapping] : process.table.all()) {
    if (mapping.object->device == number && !mapping.ipc && mapping.handle == 0 &&
        mapping.object->kind == Object::Kind::kDevice) {
      mapped.push_back(base);
    }
  }
  for (const Address base : mapped) Unmap(process, base);
}

}  // namespace allranks::node
