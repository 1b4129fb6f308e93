// Parking and waking of paths that spin; wait.h has the theory. spin.cpp says when a path may be
// parked.
#include "node/exec/wait.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "node/check/errors.h"
#include "node/exec/simulator.h"
#include "node/listener.h"

namespace allranks::node {
namespace {

constexpr double kPollBytes = 64;  // a sector and its packet

// Adds k steps to the carried registers.
void Advance(Path& path, const SpinState& spin, std::uint64_t k) {
  std::size_t i = 0;
  for (const SpinCode::Carried& carried : spin.loop->carried) {
    if (carried.predicate) {
      ++i;
      continue;
    }
    std::byte* base = RegistersOf(path) + carried.slot * kSlotBytes;
    for (std::uint32_t m = path.mask; m != 0; m &= m - 1) {
      const int lane = std::countr_zero(m);
      const int words = std::max(1, carried.bytes / 8);
      for (int w = 0; w < words; ++w, ++i) {
        if (spin.step[i] == 0) continue;
        const std::uint64_t add = k * static_cast<std::uint64_t>(spin.step[i]);
        if (carried.bytes == 4) {
          std::uint32_t value = 0;
          std::memcpy(&value, base + lane * 4, 4);
          value += static_cast<std::uint32_t>(add);
          std::memcpy(base + lane * 4, &value, 4);
        } else {
          std::uint64_t value = 0;
          std::memcpy(&value, base + w * 2 * kSlotBytes + lane * 8, 8);
          value += add;
          std::memcpy(base + w * 2 * kSlotBytes + lane * 8, &value, 8);
        }
      }
    }
  }
}

// The iteration of a parked path, from 0 on, whose load is the first to look at `time` or later.
std::uint64_t FirstToSee(const SpinState& spin, const SpinRead& read, Time time) {
  const Time wait = time - read.delay - (spin.head + read.time) - read.span;
  return wait <= 0 ? 0 : static_cast<std::uint64_t>((wait + spin.period - 1) / spin.period);
}

}  // namespace

void Waiting::Park(Path& path, SpinState& spin) {
  const std::uint64_t skip = spin.skip;
  // From here on `head` is the time at which the path stands at the loop's head; reads keep their
  // place within the iteration.
  for (SpinRead& read : spin.reads) read.time = read.time - spin.head;
  spin.head = path.clock;
  path.state = Path::State::kParked;
  path.parked = &spin;
  path.ticket = 0;
  spin.due = false;
  for (std::size_t i = 0; i < spin.reads.size(); ++i) {
    const SpinRead& read = spin.reads[i];
    read.object->watches.Add({read.offset, read.size, &path, 0, static_cast<std::uint32_t>(i)});
  }
  const Device& device = *path.warp->cta->launch->device;
  for (SpinRead& read : spin.reads) {
    const Object& object = *read.object;
    const bool own = object.kind == Object::Kind::kShared || object.device == device.number;
    read.way = own ? nullptr : &sim_.timing.WayFrom(device, object);
  }
  LoadLinks(spin, 1);
  if (sim_.errors != nullptr) sim_.errors->OnPark(path, spin, skip == kForever);
  if (skip != kForever) Schedule(path, skip, SpinState::Wake::kTimer);
  for (const SpinRead& read : spin.reads) {
    if (read.change != kTimeNever)
      Schedule(path, FirstToSee(spin, read, read.change), SpinState::Wake::kArrival);
  }
  if (sim_.listener != nullptr) Tell(path, true, path.clock);
  // Who waits for this path at a join goes on alone, unless it does not take long.
  if (!spin.Arriving()) sim_.ReleaseJoins(*path.warp);
}

void Waiting::LoadLinks(const SpinState& spin, int sign) {
  for (const SpinRead& read : spin.reads) {
    if (read.way == nullptr) continue;
    // Each poll brings a sector; GB/s are bytes per ns.
    const double gbs = kPollBytes * 1000.0 / static_cast<double>(std::max<Time>(spin.period, 1));
    sim_.fabric.Background(*read.way, sign * gbs);
    if (sign < 0) {
      sim_.fabric.CountPolls(*read.way,
                             static_cast<std::uint64_t>(kPollBytes) * (spin.due ? spin.skip : 0));
    }
  }
}

void Waiting::Tell(const Path& path, bool parked, Time at) const {
  const Launch& launch = *path.warp->cta->launch;
  const SpinState& spin = *path.parked;
  WaitEvent event;
  event.op = launch.op;
  event.place = spin.reads.empty() ? spin.loop->branch : spin.reads.front().pc;
  event.time = at;
  if (!parked) {
    NameWriter(spin, &event);
    return sim_.listener->OnWake(event);
  }
  event.file = &launch.code->lines[event.place].file;
  event.line = launch.code->lines[event.place].line;
  event.what = &launch.code->forms[event.place];
  if (!spin.reads.empty()) {
    event.object = &spin.reads.front().object->name;
    event.offset = spin.reads.front().offset;
  }
  sim_.listener->OnPark(event);
}

void Waiting::NameWriter(const SpinState& spin, WaitEvent* event) const {
  if (!spin.due || spin.wake == SpinState::Wake::kTimer) return;
  event->by = spin.by.op;
  event->written = spin.by.time;
  for (const SpinRead& read : spin.reads) {
    const LastWrites::Write* last = sim_.last_writes.Find(read.object->id, read.offset, read.size);
    if (last == nullptr || last->time > event->time) continue;  // a later one tells nothing
    // What was under way when the wait began is known from here only.
    if (spin.wake == SpinState::Wake::kArrival && read.change != kTimeNever) {
      event->by = last->op;
      event->written = last->time;
    }
    if (event->by != last->op) continue;
    event->by_file = &last->code->lines[last->pc].file;
    event->by_line = last->code->lines[last->pc].line;
    return;
  }
}

// Sets the wake-up at the start of the iteration after `skip` more ones, if none is due earlier.
void Waiting::Schedule(Path& path, std::uint64_t skip, SpinState::Wake wake, WaitWriter by) {
  SpinState& spin = *path.parked;
  if (spin.due && spin.skip <= skip) return;
  spin.due = true;
  spin.skip = skip;
  spin.wake = wake;
  spin.by = by;
  const Time at = spin.head + static_cast<Time>(skip) * spin.period;
  sim_.QueueParked(path, at);
}

void Waiting::NotifyWrite(Object& object, std::uint64_t offset, std::uint64_t size, Time time,
                          Time visible, OpId by) {
  object.watches.ForEachOn(offset, size, [&](const Watch& watch) {
    if (watch.path == nullptr) {
      if (on_host_watch) on_host_watch(watch.host, visible);
      return;
    }
    const SpinState& spin = *watch.path->parked;
    const SpinRead& read = spin.reads[watch.index];
    // Its load is issued after the write and samples it when visible.
    Schedule(*watch.path, FirstToSee(spin, read, std::max(time + 1 + read.delay, visible)),
             SpinState::Wake::kWrite, {by, time});
  });
}

void Waiting::Unpark(Path& path) {
  if (path.parked == nullptr) return;
  LoadLinks(*path.parked, -1);
  if (sim_.listener != nullptr) Tell(path, false, std::max(path.clock, sim_.now));
  for (const SpinRead& read : path.parked->reads) {
    read.object->watches.EraseAt(read.offset,
                                 [&](const Watch& watch) { return watch.path == &path; });
  }
  path.parked = nullptr;
}

void Waiting::Disturb(Path& path) {
  const SpinState& spin = *path.parked;
  const Time wait = sim_.now - spin.head;
  Schedule(path, wait <= 0 ? 0 : static_cast<std::uint64_t>((wait + spin.period - 1) / spin.period),
           SpinState::Wake::kWrite);
}

void Waiting::Wake(Path& path) {
  SpinState& spin = *path.parked;
  CHECK(spin.due);
  const std::uint64_t skip = spin.skip;
  if (skip > 0) Advance(path, spin, skip);
  path.clock = spin.head + static_cast<Time>(skip) * spin.period;
  sim_.stats.skipped_iterations += skip;
  if (spin.wake == SpinState::Wake::kTimer) ++sim_.timer_wakes;
  Unpark(path);
  path.spins.clear();
}

void Waiting::Forget(const Object& object) {
  for (Device& device : sim_.devices) {
    for (const Launch& launch : device.launches) {
      for (const Cta* cta : launch.ctas) {
        for (const Warp& warp : cta->warps) {
          for (Path* path : warp.paths) {
            if (path->parked != nullptr) continue;
            const bool knows =
                std::any_of(path->spins.begin(), path->spins.end(), [&](const auto& spin) {
                  return std::any_of(spin->reads.begin(), spin->reads.end(),
                                     [&](const SpinRead& read) { return read.object == &object; });
                });
            if (knows) path->spins.clear();
          }
        }
      }
    }
  }
}

void Waiting::WakeAll(Object& object) {
  const std::vector<Watch> watches = object.watches.All();
  for (const Watch& watch : watches) {
    if (watch.path != nullptr) {
      NotifyWrite(object, watch.offset, watch.size, sim_.now, sim_.now);
    }
  }
  // They re-execute their loads after the object is gone; nothing may point at it until then.
  for (const Watch& watch : watches) {
    if (watch.path == nullptr || watch.path->parked == nullptr) continue;
    Path& path = *watch.path;
    const Time at = std::max(
        sim_.now, path.parked->head + static_cast<Time>(path.parked->skip) * path.parked->period);
    Wake(path);
    sim_.QueuePath(path, at);
  }
  // Hosts and streams wait on: the object may live, and be written, under another address.
  object.watches.EraseIf([](const Watch& watch) { return watch.path != nullptr; });
  Forget(object);
}

}  // namespace allranks::node
