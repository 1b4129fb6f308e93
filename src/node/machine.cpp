// The Machine: processes, the passing of time, host watches and reports.
#include "node/machine.h"
#include "node/dependents.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "node/listener.h"
#include "node/machine_impl.h"
#include "node/wait.h"

namespace allranks::node {
namespace {

constexpr std::uint64_t kDefaultMemoryLimit = std::uint64_t{16} << 30;
// Path runs between two looks at the interrupt flag.
constexpr int kInterruptPeriod = 64;
// Nothing but timers for this long, and this many of them, is no progress.
constexpr Time kStuckSpan = Ms(1000);
constexpr std::uint64_t kStuckWakes = 16;

constexpr Time kLeastStumble = Us(2);
constexpr std::uint64_t kStumbleSpan = Us(18);

// Entries of paths that have been queued anew, or are gone, are void.
void DropVoid(Device& device) {
  auto& queue = device.queue;
  while (!queue.empty() && queue.top().path->ticket != queue.top().ticket) queue.pop();
}

}  // namespace

Result<std::unique_ptr<Machine>> Machine::Create(const Profile& profile,
                                                 const MachineOptions& options) {
  Profile used = profile;
  if (options.devices < 0 || options.devices > profile.machine.devices_per_host) {
    return Fail("a host of profile {} has {} devices, not {}", profile.name,
                profile.machine.devices_per_host, options.devices);
  }
  if (options.devices != 0 && options.devices < profile.machine.devices_per_host) {
    used.topology = FewerDevices(
        profile.topology, static_cast<int>(profile.machine.devices_per_host), options.devices);
    used.machine.devices_per_host = options.devices;
  }
  if (used.DeviceCount() > kMaxDevices) {
    return Fail("profile {} has {} devices; a machine can have {}", profile.name,
                used.DeviceCount(), kMaxDevices);
  }
  auto machine = std::make_unique<MachineImpl>(used, options, static_cast<int>(used.DeviceCount()));
  if (auto planned = machine->PlanFaults(); !planned) return Fail(planned.error());
  return std::unique_ptr<Machine>(std::move(machine));
}

MachineImpl::MachineImpl(const Profile& profile, const MachineOptions& options, int devices)
    : world_(profile, devices,
             options.memory_limit != 0 ? options.memory_limit : kDefaultMemoryLimit),
      shared_handles_(options.secret),
      virtual_memory_(world_, shared_handles_),
      options_(options) {
  engine_ = MakeEngine(world_, options.check);
  world_.order_seed = options.order_seed;
  if (options.check) {
    checker_ = std::make_unique<check::Checker>(world_);
    world_.checker = checker_.get();
    errors_ =
        std::make_unique<check::Errors>(world_, [this](Finding finding, const std::string& key) {
          checker_->Add(std::move(finding), key);
        });
    world_.errors = errors_.get();
    SetSchedule(options.seed);
  }
  world_.fuel = options.fuel;
  world_.listener = options.listener;
  world_.fabric.SetListener(options.listener);
  world_.schedule = [this](Time time, std::function<void()> run) { At(time, std::move(run)); };
  world_.on_text = [this](const struct Launch& launch, bool error, std::string text) {
    OnText(launch, error, std::move(text));
  };
  world_.device_heap = [this](const struct Launch& launch, const Mapping** mapping) {
    return HeapOf(launch, mapping);
  };
  world_.on_launch_done = [this](struct Launch& launch, Time at) { FinishLaunch(launch, at); };
  world_.on_fault = [this](struct Launch& launch, Status status, std::string message) {
    OnFault(launch, status, std::move(message));
  };
  world_.on_trigger = [this](struct Launch& launch, Time at) {
    const auto it = operations_.find(launch.op);
    if (it == operations_.end() || it->second.triggered) return;
    it->second.triggered = true;
    if (world_.checker != nullptr && !LetsOthersBegin(*launch.code)) {
      // All its blocks are over, so whoever begins now comes after them.
      checker_->End(it->second.clocks, it->first);
      for (const OpId follower : it->second.overlapping) {
        const auto after = operations_.find(follower);
        if (after != operations_.end())
          checker_->After(after->second.clocks, it->second.clocks.end);
      }
    }
    Release(std::exchange(it->second.early, {}), at, true);
  };
  world_.on_started = [this](struct Launch& launch, Time at) {
    const auto it = operations_.find(launch.op);
    if (it != operations_.end()) Release(std::exchange(it->second.at_start, {}), at, true);
  };
  world_.on_host_watch = [this](std::uint64_t host, Time visible) {
    const auto it = host_watches_.find(host);
    if (it == host_watches_.end() || it->second.fired) return;
    it->second.fired = true;
    At(visible, [this, host] {
      const auto watch = host_watches_.find(host);
      if (watch == host_watches_.end()) return;
      auto changed = std::move(watch->second.changed);
      Unwatch(host);
      changed(world_.now);
    });
  };
}

MachineImpl::~MachineImpl() {
  for (auto& process : world_.processes) {
    if (process->alive) RemoveProcess(process->id);
  }
}

void MachineImpl::At(Time time, std::function<void()> run) {
  time = std::max(time, world_.now);
  timed_.push({time, ++order_, std::move(run)});
  world_.Expect(nullptr, time);
}

const Process* MachineImpl::Find(ProcessId process) const {
  if (process == 0 || process > world_.processes.size()) return nullptr;
  const Process* found = world_.processes[process - 1].get();
  return found->alive ? found : nullptr;
}

Device* MachineImpl::DeviceOf(const Process& process, int device) {
  if (device < 0 || device >= DeviceCount(process.id)) return nullptr;
  return &world_.devices[static_cast<std::size_t>(world_.NumberOf(process, device))];
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
  Process& process = world_.ProcessOf(id);
  return process.sticky[static_cast<std::size_t>(world_.OrdinalOf(process, device_number))];
}

void MachineImpl::NumberDevices(Process& process) {
  process.ordinals.assign(world_.devices.size(), -1);
  for (std::size_t i = 0; i < process.visible.size(); ++i)
    process.ordinals[static_cast<std::size_t>(process.visible[i])] = static_cast<int>(i);
}

ProcessId MachineImpl::AddProcess(int rank, int host) {
  auto process = std::make_unique<Process>();
  process->id = static_cast<ProcessId>(world_.processes.size() + 1);
  process->rank = rank;
  process->host = host;
  process->alive = true;
  const ProcessId id = process->id;
  world_.processes.push_back(std::move(process));
  Process& made = *world_.processes.back();
  const int per_host = static_cast<int>(world_.profile.machine.devices_per_host);
  const int first = host * per_host;
  for (int d = first; d < first + per_host && d < static_cast<int>(world_.devices.size()); ++d)
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
  Process& process = world_.ProcessOf(id);
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
    const int number = world_.NumberOf(process, device);
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
  Process& process = world_.ProcessOf(id);
  if (world_.errors != nullptr) TellLeft(process);
  for (const int number : process.visible) EndContext(id, number);
  // Nobody is left to be told.
  for (auto it = operations_.begin(); it != operations_.end();) {
    if (it->second.process == id) {
      if (world_.listener != nullptr && it->second.started)
        world_.listener->OnEnd(it->first, world_.now, nullptr);
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
  const auto number = static_cast<std::size_t>(world_.NumberOf(*process, device));
  return static_cast<std::uint64_t>(world_.profile.device.memory_bytes) -
         world_.devices[number].allocated;
}

Status MachineImpl::StickyError(ProcessId id, int device) const {
  const Process* process = Find(id);
  if (process == nullptr || device < 0 || device >= DeviceCount(id)) return Status::kInvalidDevice;
  return process->sticky[static_cast<std::size_t>(device)];
}

void MachineImpl::ResetDevice(ProcessId id, int device) {
  const Process* found = Find(id);
  if (found == nullptr || DeviceOf(*found, device) == nullptr) return;
  Process& process = world_.ProcessOf(id);
  const int number = world_.NumberOf(process, device);
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

// --- time ---------------------------------------------------------------------------------------

bool MachineImpl::RunUntil(Time limit) {
  stop_ = false;
  int runs = 0;
  const auto finish = [&](Time at) {
    world_.now = std::max(world_.now, at);
    world_.order_limit = 0;
  };
  while (true) {
    ended_.clear();
    if (stop_) return finish(world_.now), true;
    // Not counted here: where a device's turn ends below must not depend on how often this function
    // was left and entered again.
    if (runs >= kInterruptPeriod) {
      runs = 0;
      if (interrupt_ != nullptr && interrupt_->load(std::memory_order_relaxed)) {
        return finish(world_.now), true;
      }
    }
    // The earliest of the timed things and of all devices' queues; at equal times in this order.
    const Time timed = timed_.empty() ? kTimeNever : timed_.top().time;
    const Heads heads = FirstHeads();
    Device* next = nullptr;
    Time earliest = timed, others = kTimeNever;
    if (heads.first < timed) {
      next = &world_.devices[heads.device];
      earliest = heads.first;
      others = std::min(timed, heads.second);
    }
    if (next == nullptr && timed_.empty()) {
      if (limit != kTimeNever) {
        finish(limit);
      } else {
        finish(world_.now);
      }
      return false;
    }
    if (earliest > limit) return finish(limit), true;
    if (Stuck()) return finish(world_.now), false;
    if (next == nullptr) {
      world_.now = std::max(world_.now, earliest);
      world_.order_limit = 0;
      auto run = std::move(const_cast<Timed&>(timed_.top()).run);
      timed_.pop();
      run();
      ++runs;
      continue;
    }
    // This device may go on by itself until another one's turn comes.
    world_.running = next;
    const Time bound = limit == kTimeNever ? limit : limit + 1;
    world_.other_limit = std::min(others, bound);
    const Time ahead =
        std::min({others == kTimeNever ? kTimeNever : others + world_.costs.quantum, bound, timed});
    while (!next->queue.empty() && !stop_) {
      const QueuedPath entry = next->queue.top();
      if (entry.path->ticket != entry.ticket) {
        next->queue.pop();
        continue;
      }
      // Registers and weak accesses may run ahead of other devices, too; what needs its turn may
      // not, and neither may anything pass the limit or what is timed.
      const bool in_turn = entry.time < world_.other_limit || entry.time == earliest;
      if (!in_turn && (entry.time >= ahead || entry.path->ordered ||
                       entry.path->state == Path::State::kParked)) {
        break;
      }
      next->queue.pop();
      earliest = kTimeNever;  // only the first may stand at the limit itself
      if (in_turn) world_.now = std::max(world_.now, entry.time);
      DropVoid(*next);
      world_.order_limit = world_.other_limit;
      if (!next->queue.empty())
        world_.order_limit = std::min(world_.order_limit, next->queue.top().time);
      Path& path = *entry.path;
      path.ticket = 0;
      if (path.state == Path::State::kParked) {
        const bool by_value = !path.parked->by_timer;
        world_.Wake(path);
        if (const Time stall = by_value ? Stumble() : 0; stall != 0) {
          path.clock += stall;
          world_.QueuePath(path, path.clock);
          if (++runs >= kInterruptPeriod) break;
          continue;
        }
      }
      engine_->Run(path, in_turn ? entry.time : -1);
      ended_.clear();
      if (++runs >= kInterruptPeriod) break;
    }
    Head(*next);
  }
}

// How long the path whose wait has just ended is held up.
Time MachineImpl::Stumble() {
  if (stumble_ == 0) return 0;
  std::uint64_t drawn = stumble_ + 0x9e3779b97f4a7c15 * ++stumbles_;
  drawn = (drawn ^ (drawn >> 30)) * 0xbf58476d1ce4e5b9;
  drawn = (drawn ^ (drawn >> 27)) * 0x94d049bb133111eb;
  drawn ^= drawn >> 31;
  return drawn % 4 != 0 ? 0 : kLeastStumble + static_cast<Time>((drawn >> 2) % kStumbleSpan);
}

// The time of a device's first path; kTimeNever: it has none.
Time MachineImpl::Head(Device& device) const {
  DropVoid(device);
  Time& head = world_.heads[static_cast<std::size_t>(device.number)];
  head = device.queue.empty() ? kTimeNever : device.queue.top().time;
  return head;
}

// The two earliest devices; of equal ones the first by number. What the heads say is checked for
// these only, so that a turn does not touch every device.
MachineImpl::Heads MachineImpl::FirstHeads() const {
  while (true) {
    Heads found;
    std::size_t second = 0;
    for (std::size_t d = 0; d < world_.heads.size(); ++d) {
      const Time at = world_.heads[d];
      if (at >= found.second) continue;
      if (at < found.first) {
        found.second = std::exchange(found.first, at);
        second = std::exchange(found.device, d);
      } else {
        found.second = at;
        second = d;
      }
    }
    if (found.first != kTimeNever && Head(world_.devices[found.device]) != found.first) continue;
    if (found.second != kTimeNever && Head(world_.devices[second]) != found.second) continue;
    return found;
  }
}

std::optional<Time> MachineImpl::NextEvent() const {
  Time earliest = timed_.empty() ? kTimeNever : timed_.top().time;
  earliest = std::min(earliest, FirstHeads().first);
  if (earliest == kTimeNever) return std::nullopt;
  return earliest;
}

bool MachineImpl::Stuck() const {
  if (operations_.empty()) return false;
  if (!timed_.empty()) return false;
  const bool quiet =
      world_.timer_wakes >= kStuckWakes && world_.now - world_.last_change > kStuckSpan;
  return quiet || std::all_of(world_.heads.begin(), world_.heads.end(),
                              [](Time head) { return head == kTimeNever; });
}

// --- host watches -------------------------------------------------------------------------------

void MachineImpl::HostWrote(ProcessId id, Time at) {
  if (Find(id) == nullptr) return;
  const Process& process = world_.ProcessOf(id);
  at = std::max(at, world_.now);
  RecheckValues(at);
  for (const auto& [base, mapping] : process.table.all()) {
    if (!mapping.object->HostVisible()) continue;
    Object& object = *mapping.object;
    for (const Watch& watch : object.watches.All()) {
      if (watch.path == nullptr) continue;
      if (!watch.path->parked->reads[watch.index].Current()) {
        world_.NotifyWrite(object, watch.offset, watch.size, at, at + world_.costs.host);
      }
    }
  }
}

std::uint64_t MachineImpl::WatchHost(ProcessId id, std::span<const HostWatch> watches, Time at,
                                     std::function<void(Time)> changed) {
  if (Find(id) == nullptr) return 0;
  const Process& process = world_.ProcessOf(id);
  const std::uint64_t number = next_id_++;
  HostWatching watching;
  watching.changed = std::move(changed);
  bool now_different = false;
  for (const HostWatch& watch : watches) {
    const Mapping* mapping = process.table.Find(watch.address);
    const std::uint32_t size = std::min<std::uint32_t>(watch.size, 8);
    if (mapping == nullptr) continue;
    const std::uint64_t offset = watch.address - mapping->base + mapping->offset;
    if (offset + size > mapping->object->mapped) continue;
    Object& object = *mapping->object;
    std::uint64_t value = 0;
    std::memcpy(&value, object.data + offset, size);
    std::uint64_t seen = 0;
    std::memcpy(&seen, &watch.seen, size);
    now_different |= value != seen;
    object.watches.Add({offset, size, nullptr, number, 0});
    watching.objects.push_back(mapping->object);
  }
  host_watches_.emplace(number, std::move(watching));
  if (now_different) world_.on_host_watch(number, std::max(at, world_.now));
  return number;
}

void MachineImpl::Unwatch(std::uint64_t number) {
  const auto it = host_watches_.find(number);
  if (it == host_watches_.end()) return;
  for (const auto& object : it->second.objects) {
    object->watches.EraseIf(
        [number](const Watch& watch) { return watch.path == nullptr && watch.host == number; });
  }
  host_watches_.erase(it);
}

// --- reports ------------------------------------------------------------------------------------

std::vector<Waiter> MachineImpl::Waiters() const {
  std::vector<Waiter> waiters;
  const auto add = [&](Waiter waiter) {
    for (Waiter& known : waiters) {
      if (known.device == waiter.device && known.process == waiter.process &&
          known.kernel == waiter.kernel && known.line == waiter.line && known.file == waiter.file &&
          known.inlined_at == waiter.inlined_at && known.what == waiter.what &&
          known.object == waiter.object && known.offset == waiter.offset &&
          known.resident == waiter.resident) {
        ++known.others;
        return;
      }
    }
    waiters.push_back(std::move(waiter));
  };
  for (const Device& device : world_.devices) {
    for (const struct Launch& launch : device.launches) {
      Waiter base;
      base.device = device.number;
      base.process = launch.process;
      base.kernel = launch.code->name;
      for (const Cta* cta : launch.ctas) {
        for (const Warp& warp : cta->warps) {
          for (const Path* path : warp.paths) {
            Waiter waiter = base;
            waiter.block_index = cta->index;
            waiter.warp = warp.id;
            waiter.lanes = path->mask;
            std::uint32_t pc = path->pc;
            if (path->parked != nullptr && !path->parked->reads.empty()) {
              const SpinRead& read = path->parked->reads.front();
              pc = read.pc;
              waiter.has_object = true;
              waiter.object = read.object->name;
              waiter.offset = read.offset;
              waiter.seen = read.value[0];
            } else if (path->parked != nullptr) {
              pc = path->parked->loop->branch;
            }
            waiter.what = launch.code->forms[pc];
            waiter.file = launch.code->lines[pc].file;
            waiter.line = launch.code->lines[pc].line;
            waiter.inlined_at = launch.code->lines[pc].inlined_at;
            add(std::move(waiter));
          }
        }
      }
      if (launch.next_cta < launch.total_ctas) {
        Waiter waiter = base;
        const Dim3& grid = launch.request.grid;
        waiter.block_index = {static_cast<std::uint32_t>(launch.next_cta % grid.x),
                              static_cast<std::uint32_t>(launch.next_cta / grid.x % grid.y),
                              static_cast<std::uint32_t>(launch.next_cta / grid.x / grid.y)};
        waiter.resident = false;
        waiter.what = "not resident";
        waiter.others = static_cast<int>(
            std::min<std::uint64_t>(launch.total_ctas - launch.next_cta - 1, 1u << 30));
        waiters.push_back(std::move(waiter));
      }
    }
  }
  for (const OpId id : value_waits_) {
    const Operation& op = operations_.at(id);
    const Place& place = op.places[op.step];
    Waiter waiter;
    waiter.device = op.device;
    waiter.process = op.process;
    waiter.what = "cuStreamWaitValue";
    waiter.has_object = true;
    waiter.object = place.object->name;
    waiter.offset = place.offset;
    std::memcpy(&waiter.seen, place.object->data + place.offset,
                static_cast<std::size_t>(op.values[op.step].width));
    waiters.push_back(std::move(waiter));
  }
  return waiters;
}

std::vector<struct Fault> MachineImpl::TakeFaults() { return std::exchange(faults_, {}); }

const Stats& MachineImpl::stats() const {
  if (checker_ != nullptr) {
    world_.stats.checked_accesses = checker_->accesses;
    world_.stats.checked_bytes = checker_->bytes;
    world_.stats.chosen_loads = checker_->chosen();
  }
  world_.stats.links = world_.fabric.Records();
  world_.stats.movers = world_.fabric.moved();
  return world_.stats;
}

}  // namespace allranks::node
