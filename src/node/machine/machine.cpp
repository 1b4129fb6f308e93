// The Machine: how it is made, and the passing of time. machine_impl.h lists its other parts.
#include "node/machine.h"

#include <algorithm>
#include <utility>

#include "base/splitmix.h"
#include "node/code/dependents.h"
#include "node/exec/wait.h"
#include "node/machine/machine_impl.h"

namespace allranks::node {
namespace {

constexpr std::uint64_t kDefaultMemoryLimit = std::uint64_t{16} << 30;
// Path runs between two looks at the interrupt flag.
constexpr int kInterruptPeriod = 64;
// Nothing but timers for this long, and this many of them, is no progress.
constexpr Time kStuckSpan = Ms(1000);
constexpr std::uint64_t kStuckWakes = 16;

constexpr Time kLeastLate = Us(2);
constexpr std::uint64_t kLateSpan = Us(18);

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
    : sim_(profile, devices,
           options.memory_limit != 0 ? options.memory_limit : kDefaultMemoryLimit),
      shared_handles_(options.secret),
      virtual_memory_(sim_, shared_handles_),
      options_(options) {
  engine_ = MakeEngine(sim_, options.check);
  sim_.order_seed = options.order_seed;
  if (options.check) {
    checker_ = std::make_unique<check::Checker>(sim_);
    sim_.checker = checker_.get();
    errors_ =
        std::make_unique<check::Errors>(sim_, [this](Finding finding, const std::string& key) {
          checker_->Add(std::move(finding), key);
        });
    sim_.errors = errors_.get();
    SetSchedule(ScheduleOf(options.seed));
  }
  sim_.fuel = options.fuel;
  sim_.listener = options.listener;
  sim_.fabric.SetListener(options.listener);
  sim_.schedule = [this](Time time, std::function<void()> run) {
    time = std::max(time, sim_.now);
    timed_.push({time, ++order_, std::move(run), sim_.livelock.UnitScheduled()});
    sim_.Expect(nullptr, time);
  };
  sim_.on_text = [this](const struct Launch& launch, bool error, std::string text) {
    OnText(launch, error, std::move(text));
  };
  sim_.device_heap = [this](const struct Launch& launch, const Mapping** mapping) {
    return HeapOf(launch, mapping);
  };
  sim_.residency.on_launch_done = [this](struct Launch& launch, Time at) {
    FinishLaunch(launch, at);
  };
  sim_.on_fault = [this](struct Launch& launch, Status status, std::string message) {
    OnFault(launch, status, std::move(message));
  };
  sim_.grow_code = [this](struct Launch& launch, std::size_t function) {
    return GrowCode(launch, function);
  };
  sim_.on_trigger = [this](struct Launch& launch, Time at) {
    const auto it = operations_.find(launch.op);
    if (it == operations_.end() || it->second.triggered) return;
    it->second.triggered = true;
    if (sim_.checker != nullptr && !LetsOthersBegin(*launch.code)) {
      // All its blocks are over, so whoever begins now comes after them.
      checker_->End(it->second.clocks, it->first);
      for (const OpId follower : it->second.overlapping) {
        const auto after = operations_.find(follower);
        if (after != operations_.end())
          checker_->After(after->second.clocks, it->second.clocks.done);
      }
    }
    Release(std::exchange(it->second.early, {}), at, true);
  };
  sim_.residency.on_started = [this](struct Launch& launch, Time at) {
    const auto it = operations_.find(launch.op);
    if (it != operations_.end()) Release(std::exchange(it->second.at_start, {}), at, true);
  };
  sim_.waiting.on_host_watch = [this](std::uint64_t host, Time visible) {
    const auto it = host_watches_.find(host);
    if (it == host_watches_.end() || it->second.fired) return;
    it->second.fired = true;
    At(visible, [this, host] {
      const auto watch = host_watches_.find(host);
      if (watch == host_watches_.end()) return;
      auto changed = std::move(watch->second.changed);
      Unwatch(host);
      changed(sim_.now);
    });
  };
}

MachineImpl::~MachineImpl() {
  for (auto& process : sim_.processes) {
    if (process->alive) RemoveProcess(process->id);
  }
}

void MachineImpl::At(Time time, std::function<void()> run) {
  time = std::max(time, sim_.now);
  timed_.push({time, ++order_, std::move(run), std::nullopt});
  ++milestones_;
  sim_.Expect(nullptr, time);
}

bool MachineImpl::RunUntil(Time limit) {
  stop_ = false;
  int runs = 0;
  sim_.livelock.Enter();
  const auto finish = [&](Time at) {
    sim_.now = std::max(sim_.now, at);
    sim_.order_limit = 0;
  };
  while (true) {
    ended_.clear();
    if (stop_) return finish(sim_.now), true;
    // Not counted here: where a device's turn ends below must not depend on how often this function
    // was left and entered again.
    if (runs >= kInterruptPeriod) {
      runs = 0;
      if (interrupt_ != nullptr && interrupt_->load(std::memory_order_relaxed)) {
        return finish(sim_.now), true;
      }
    }
    // The earliest of the timed things and of all devices' queues; at equal times in this order.
    const Time timed = timed_.empty() ? kTimeNever : timed_.top().time;
    const Heads heads = FirstHeads();
    Device* next = nullptr;
    Time earliest = timed, others = kTimeNever;
    if (heads.first < timed) {
      next = &sim_.devices[heads.device];
      earliest = heads.first;
      others = std::min(timed, heads.second);
    }
    if (next == nullptr && timed_.empty()) {
      if (limit != kTimeNever) {
        finish(limit);
      } else {
        finish(sim_.now);
      }
      return false;
    }
    if (earliest > limit) return finish(limit), true;
    if (Quiet()) return finish(sim_.now), false;
    if (milestones_ == 0 && sim_.livelock.stands() && sim_.livelock.UnitsRepeat()) {
      if (limit == kTimeNever) return finish(sim_.now), false;
      // All that the devices will do until then is known. With copies under way it is executed all
      // the same.
      if (timed_.empty()) {
        if (PutOff(limit)) return finish(limit), false;
        continue;
      }
    }
    if (next == nullptr) {
      sim_.now = std::max(sim_.now, earliest);
      if (const auto unit = timed_.top().unit) {
        sim_.livelock.UnitDone(*unit);
      } else {
        --milestones_;
        sim_.livelock.End();
      }
      sim_.order_limit = 0;
      auto run = std::move(const_cast<Timed&>(timed_.top()).run);
      timed_.pop();
      run();
      ++runs;
      continue;
    }
    // This device may go on by itself until another one's turn comes.
    sim_.running = next;
    const Time bound = limit == kTimeNever ? limit : limit + 1;
    sim_.other_limit = std::min(others, bound);
    const Time ahead =
        std::min({others == kTimeNever ? kTimeNever : others + sim_.costs.quantum, bound, timed});
    while (!next->queue.empty() && !stop_) {
      const QueuedPath entry = next->queue.top();
      if (entry.path->ticket != entry.ticket) {
        next->queue.pop();
        continue;
      }
      // Registers and weak accesses may run ahead of other devices, too; what needs its turn may
      // not, and neither may anything pass the limit or what is timed.
      const bool in_turn = entry.time < sim_.other_limit || entry.time == earliest;
      if (!in_turn && (entry.time >= ahead || entry.path->ordered ||
                       entry.path->state == Path::State::kParked)) {
        break;
      }
      next->queue.pop();
      earliest = kTimeNever;  // only the first may stand at the limit itself
      if (in_turn) sim_.now = std::max(sim_.now, entry.time);
      DropVoid(*next);
      sim_.order_limit = sim_.other_limit;
      if (!next->queue.empty())
        sim_.order_limit = std::min(sim_.order_limit, next->queue.top().time);
      Path& path = *entry.path;
      path.ticket = 0;
      if (path.state == Path::State::kParked) {
        const bool by_value = path.parked->wake == SpinState::Wake::kWrite;
        sim_.waiting.Wake(path);
        if (const Time stall = by_value ? LateBy() : 0; stall != 0) {
          path.clock += stall;
          sim_.QueuePath(path, path.clock);
          if (++runs >= kInterruptPeriod) break;
          continue;
        }
      }
      engine_->Run(path, in_turn ? entry.time : -1);
      ended_.clear();
      if (sim_.stats.warp_instructions >= sim_.audit_at && !sim_.livelock.watching()) {
        sim_.livelock.Begin();
      }
      if (++runs >= kInterruptPeriod || sim_.livelock.stands()) break;
    }
    Head(*next);
  }
}

// How long the path whose wait has just ended is held up.
Time MachineImpl::LateBy() {
  if (late_wakes_ == 0 || sim_.now < sim_.perturbed_from) return 0;
  const std::uint64_t drawn = Draw(late_wakes_, ++late_wakes_drawn_);
  return drawn % 4 != 0 ? 0 : kLeastLate + static_cast<Time>((drawn >> 2) % kLateSpan);
}

// The time of a device's first path; kTimeNever: it has none.
Time MachineImpl::Head(Device& device) const {
  DropVoid(device);
  Time& head = sim_.heads[static_cast<std::size_t>(device.number)];
  head = device.queue.empty() ? kTimeNever : device.queue.top().time;
  return head;
}

// The two earliest devices; of equal ones the first by number. What the heads say is checked for
// these only, so that a turn does not touch every device.
MachineImpl::Heads MachineImpl::FirstHeads() const {
  while (true) {
    Heads found;
    std::size_t second = 0;
    for (std::size_t d = 0; d < sim_.heads.size(); ++d) {
      const Time at = sim_.heads[d];
      if (at >= found.second) continue;
      if (at < found.first) {
        found.second = std::exchange(found.first, at);
        second = std::exchange(found.device, d);
      } else {
        found.second = at;
        second = d;
      }
    }
    if (found.first != kTimeNever && Head(sim_.devices[found.device]) != found.first) continue;
    if (found.second != kTimeNever && Head(sim_.devices[second]) != found.second) continue;
    return found;
  }
}

std::optional<Time> MachineImpl::NextEvent() const {
  Time earliest = timed_.empty() ? kTimeNever : timed_.top().time;
  earliest = std::min(earliest, FirstHeads().first);
  if (earliest == kTimeNever) return std::nullopt;
  return earliest;
}

// Moves what goes round in circles on in time, up to `limit` or to the first timer of a parked
// path. True: up to the limit.
bool MachineImpl::PutOff(Time limit) {
  std::vector<QueuedPath> all;
  Time first = kTimeNever, until = limit;
  for (Device& device : sim_.devices) {
    for (DropVoid(device); !device.queue.empty(); DropVoid(device)) {
      const QueuedPath entry = device.queue.top();
      device.queue.pop();
      all.push_back(entry);
      Time& bound = entry.path->state == Path::State::kParked ? until : first;
      bound = std::min(bound, entry.time);
    }
  }
  const Time by = first == kTimeNever ? 0 : std::max<Time>(0, until - first);
  for (QueuedPath& entry : all) {
    Path& path = *entry.path;
    if (path.state != Path::State::kParked) {
      entry.time += by;
      path.clock += by;
      path.quantum_end += by;
      if (path.wait_until != 0) path.wait_until += by;
      if (path.release_goal != 0) path.release_goal += by;
    }
    path.warp->cta->launch->device->queue.push(entry);
  }
  for (Device& device : sim_.devices) Head(device);
  sim_.livelock.Enter();
  return until == limit;
}

bool MachineImpl::Stuck() const {
  return Quiet() || (!operations_.empty() && milestones_ == 0 && sim_.livelock.found() &&
                     sim_.livelock.UnitsRepeat());
}

bool MachineImpl::Quiet() const {
  if (operations_.empty()) return false;
  if (!timed_.empty()) return false;
  const bool quiet = sim_.timer_wakes >= kStuckWakes && sim_.now - sim_.last_change > kStuckSpan;
  return quiet || std::all_of(sim_.heads.begin(), sim_.heads.end(),
                              [](Time head) { return head == kTimeNever; });
}

std::vector<struct Fault> MachineImpl::TakeFaults() { return std::exchange(faults_, {}); }

const Stats& MachineImpl::stats() const {
  if (checker_ != nullptr) {
    sim_.stats.checked_accesses = checker_->accesses;
    sim_.stats.checked_bytes = checker_->bytes;
    sim_.stats.chosen_loads = checker_->chosen();
  }
  for (const Device& device : sim_.devices)
    for (const struct Launch& launch : device.launches)
      sim_.timing.SumUp(launch, &sim_.stats.kernels[launch.record]);
  sim_.stats.links = sim_.fabric.Records();
  sim_.stats.movers = sim_.fabric.moved();
  return sim_.stats;
}

}  // namespace allranks::node
