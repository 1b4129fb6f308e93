// The Machine: watches of host threads on pinned memory, and the report of who on the devices waits
// for what.
#include <algorithm>
#include <cstring>
#include <functional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "node/exec/mbarrier.h"
#include "node/exec/wait.h"
#include "node/machine/machine_impl.h"

namespace allranks::node {

void MachineImpl::HostWrote(ProcessId id, Time at) {
  if (Find(id) == nullptr) return;
  const Process& process = sim_.ProcessOf(id);
  at = std::max(at, sim_.now);
  TakeHost(id);
  RecheckValues(at);
  RecheckHosts(id, at);
  // A program speaks much more often than its kernels wait for it.
  if (std::ranges::all_of(sim_.devices, [](const Device& d) { return d.launches.empty(); })) return;
  for (const auto& [base, memory] : process.table.host_visible()) {
    Object& object = *memory;
    // Each place once: the lanes of many warps may wait at one.
    std::set<std::pair<std::uint64_t, std::uint32_t>> changed;
    for (const Watch& watch : object.watches.All()) {
      if (watch.path == nullptr || changed.contains({watch.offset, watch.size})) continue;
      if (watch.path->parked->reads[watch.index].Current()) continue;
      changed.emplace(watch.offset, watch.size);
      sim_.waiting.NotifyWrite(object, watch.offset, watch.size, at, at + sim_.costs.host);
    }
  }
}

// Memory that processes share (a file that both have registered, host memory by handles) may have
// changed for the host of another one. Its own threads are told by whoever answers their calls.
void MachineImpl::RecheckHosts(ProcessId writer, Time at) {
  for (const auto& [number, watching] : host_watches_) {
    if (watching.fired || watching.process == 0 || watching.process == writer) continue;
    for (std::size_t i = 0; i < watching.seen.size(); ++i) {
      const HostWatching::Seen& seen = watching.seen[i];
      const Object& object = *watching.objects[i];
      if (object.mappings < 2) continue;
      if (std::memcmp(object.data + seen.offset, &seen.value, seen.size) == 0) continue;
      sim_.waiting.on_host_watch(number, at + sim_.costs.host);
      break;
    }
  }
}

std::uint64_t MachineImpl::WatchHost(ProcessId id, std::span<const HostWatch> watches, Time at,
                                     std::function<void(Time)> changed) {
  if (Find(id) == nullptr) return 0;
  const Process& process = sim_.ProcessOf(id);
  const std::uint64_t number = next_id_++;
  HostWatching watching;
  watching.changed = std::move(changed);
  watching.process = id;
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
    watching.seen.push_back({offset, seen, size});
  }
  host_watches_.emplace(number, std::move(watching));
  if (now_different) sim_.waiting.on_host_watch(number, std::max(at, sim_.now));
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
  // Shared memory is in no table of writes: its objects have no number.
  const auto writer = [&](const Object& object, std::uint64_t offset, std::uint32_t size) {
    const LastWrites::Write* last = sim_.last_writes.Find(object.id, offset, size);
    if (last == nullptr) return std::string();
    const SourceLine& line = last->code->lines[last->pc];
    std::string text = fmt::format("{} on device {}", last->code->name, last->device);
    if (line.line != 0) text += fmt::format(", {}:{}", line.file, line.line);
    return text + fmt::format(", {} of {} (0x{:x})", last->code->forms[last->pc], last->value,
                              last->value);
  };
  for (const Device& device : sim_.devices) {
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
            const auto looks = [&](const SpinRead& read) {
              pc = read.pc;
              waiter.has_object = true;
              waiter.object = read.object->name;
              waiter.offset = read.offset;
              std::memcpy(&waiter.seen, read.value.data(),
                          std::min<std::size_t>(read.lane_size, sizeof waiter.seen));
              waiter.writer = writer(*read.object, read.offset, read.lane_size);
            };
            if (path->parked != nullptr && !path->parked->reads.empty()) {
              looks(path->parked->reads.front());
            } else if (path->parked == nullptr && !path->spins.empty() &&
                       path->spins.back()->looked.object != nullptr) {
              looks(path->spins.back()->looked);
            } else if (path->parked != nullptr) {
              pc = path->parked->loop->branch;
            } else if (const Livelock::Look* look = sim_.livelock.LookOf(warp);
                       look != nullptr &&
                       (path->state == Path::State::kQueued || MbarrierWaitedFor(*path) >= 0)) {
              pc = look->pc;
              waiter.has_object = true;
              waiter.object = look->object->name;
              waiter.offset = look->offset;
              waiter.seen = look->value;
              waiter.writer = writer(*look->object, look->offset, 4);
            }
            waiter.what = launch.code->forms[pc];
            if (const std::int64_t at = MbarrierWaitedFor(*path); at >= 0) {
              waiter.what += " (a phase that waits for " +
                             DescribePhase(*cta, static_cast<std::uint32_t>(at)) + ")";
            }
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
    waiter.writer = writer(*place.object, place.offset, 4);
    std::memcpy(&waiter.seen, place.object->data + place.offset,
                static_cast<std::size_t>(op.values[op.step].width));
    waiters.push_back(std::move(waiter));
  }
  return waiters;
}

}  // namespace allranks::node
