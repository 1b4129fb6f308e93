// What accesses and copies cost; see timing.h.
#include "node/exec/timing.h"

#include <algorithm>
#include <cstdlib>

namespace allranks::node {
namespace {

constexpr std::uint64_t kStampUnit = 32;  // lines filled per step of a stamp

std::vector<int> HomesOf(std::span<const Replica> replicas) {
  std::vector<int> homes;
  for (const Replica& replica : replicas) homes.push_back(replica.object->device);
  return homes;
}

// While it lives, what passes the fabric is on a launch's ledger.
class Charged {
 public:
  Charged(Fabric& fabric, std::uint64_t* ledger) : fabric_(fabric) { fabric_.SetLedger(ledger); }
  ~Charged() { fabric_.SetLedger(nullptr); }
  Charged(const Charged&) = delete;
  Charged& operator=(const Charged&) = delete;

 private:
  Fabric& fabric_;
};

std::int64_t Units(std::uint64_t bytes) { return static_cast<std::int64_t>(bytes); }

}  // namespace

std::uint32_t Timing::MissedLines(const Object& object, std::uint64_t first, std::uint64_t last) {
  if (object.device < 0 || last * kLineBytesOfL2 >= object.size) return 0;
  if (object.stamps == nullptr) {
    const std::uint64_t lines = (object.size + kLineBytesOfL2 - 1) / kLineBytesOfL2;
    object.stamps.reset(static_cast<std::uint32_t*>(std::calloc(lines, sizeof(std::uint32_t))));
    if (object.stamps == nullptr) return static_cast<std::uint32_t>(last - first + 1);
  }
  Device& home = state_.devices[static_cast<std::size_t>(object.device)];
  const auto now_at = static_cast<std::uint32_t>(home.l2_filled / kStampUnit + 1);
  std::uint32_t missed = 0;
  for (std::uint32_t* stamp = &object.stamps[first]; stamp <= &object.stamps[last]; ++stamp) {
    if (*stamp == 0 || now_at - *stamp >= state_.l2_stamps) ++missed;
    *stamp = now_at;
  }
  home.l2_filled += missed;
  return missed;
}

void Timing::CoolCaches() {
  // As if so much had come in since that everything else is out.
  for (Device& device : state_.devices)
    device.l2_filled += kStampUnit * (std::uint64_t{state_.l2_stamps} + 1);
}

Reach Timing::Touch(const Object& object, std::uint64_t offset, std::uint64_t size) {
  Reach reach;
  if (size == 0) return reach;
  reach.bytes = ((offset + size - 1) / kSectorBytes - offset / kSectorBytes + 1) * kSectorBytes;
  const std::uint64_t first = offset / kLineBytesOfL2, last = (offset + size - 1) / kLineBytesOfL2;
  reach.lines = static_cast<std::uint32_t>(last - first + 1);
  reach.missed = MissedLines(object, first, last);
  return reach;
}

const Route& Timing::WayTo(const Device& device, const Object& object) {
  const int to = object.device < 0 ? state_.fabric.HostOf(device.number) : object.device;
  return state_.fabric.Way(device.number, to < 0 ? device.number : to);
}

const Route& Timing::WayFrom(const Device& device, const Object& object) {
  const int from = object.device < 0 ? state_.fabric.HostOf(device.number) : object.device;
  return state_.fabric.Way(from < 0 ? device.number : from, device.number);
}

Time Timing::DelayTo(const Device& device, const Object& object) {
  if (object.device == device.number) return state_.costs.l2 / 2;
  const Time way = WayTo(device, object).latency;
  return object.device < 0 ? way : way + state_.costs.l2 / 2;
}

Time Timing::AckDelay(const Device& device, const Object& object) {
  return object.device == device.number ? 0 : WayFrom(device, object).latency;
}

bool Timing::Reachable(const Device& device, const Mapping& mapping) {
  const auto alive = [&](const Object& object) {
    return state_.fabric.Alive(WayTo(device, object)) &&
           state_.fabric.Alive(WayFrom(device, object));
  };
  if (mapping.multicast == nullptr) return alive(*mapping.object);
  for (const Multicast::Segment& segment : mapping.multicast->segments) {
    for (const Replica& replica : segment.replicas) {
      if (!alive(*replica.object)) return false;
    }
  }
  return true;
}

bool Timing::CanCopy(int from, int to) {
  if (from == to) return true;
  const int source = from < 0 ? state_.fabric.HostOf(to) : from;
  const int target = to < 0 ? state_.fabric.HostOf(from) : to;
  return source < 0 || target < 0 || state_.fabric.Alive(state_.fabric.Way(source, target));
}

Time Timing::AtHome(const Cta& cta, const Object& object, const Reach& reach, Time at) {
  if (object.device < 0) return at;
  Device& home = state_.devices[static_cast<std::size_t>(object.device)];
  const Time served = home.l2.Take(at, Units(reach.bytes));
  if (reach.missed == 0) return served;
  const std::uint64_t bytes = reach.bytes * reach.missed / reach.lines;
  LedgerOf(cta)[state_.fabric.ports().size() + static_cast<std::size_t>(object.device)] += bytes;
  return home.hbm.Take(served, Units(bytes));
}

std::uint64_t* Timing::LedgerOf(const Cta& cta) {
  std::vector<std::uint64_t>& ledger = cta.launch->ledger;
  if (ledger.empty()) ledger.resize(state_.fabric.ports().size() + state_.devices.size());
  return ledger.data();
}

void Timing::SumUp(const Launch& launch, KernelRecord* record) const {
  if (launch.ledger.empty()) return;
  const std::vector<Port>& ports = state_.fabric.ports();
  const auto busy = [](std::uint64_t bytes, double gbs) {
    return static_cast<Time>(static_cast<double>(bytes) * 1000.0 / gbs);
  };
  for (std::size_t p = 0; p < ports.size(); ++p) {
    record->link_busy =
        std::max(record->link_busy, busy(launch.ledger[p], state_.fabric.GbsOf(ports[p])));
  }
  const auto& bandwidth = state_.profile.bandwidth;
  for (std::size_t d = 0; d < state_.devices.size(); ++d) {
    record->hbm_busy = std::max(
        record->hbm_busy,
        busy(launch.ledger[ports.size() + d], bandwidth.hbm_gbs * bandwidth.hbm_efficiency));
  }
}

Time Timing::LeaveSm(const Cta& cta, std::uint64_t bytes, Time at) {
  return cta.launch->device->sms[static_cast<std::size_t>(cta.sm)].port.Take(at, Units(bytes));
}

Time Timing::ChargeLoad(const Cta& cta, Mover mover, const Object& object, const Reach& reach,
                        Time at) {
  Device& device = *cta.launch->device;
  const Time latency = reach.missed != 0 ? state_.costs.hbm : state_.costs.l2;
  if (object.device == device.number) {
    return AtHome(cta, object, reach, LeaveSm(cta, reach.bytes, at)) + latency;
  }
  // The request goes out, the data comes back: a read takes the way in with its data.
  const Time sent = LeaveSm(cta, reach.bytes, at);
  const Charged charged(state_.fabric, LedgerOf(cta));
  Time served =
      state_.fabric.Send(WayTo(device, object), Packet::kRequest, 0, reach.lines, sent, mover);
  served = AtHome(cta, object, reach, served) + (object.device < 0 ? 0 : latency);
  const Route& back = WayFrom(device, object);
  return state_.fabric.Send(back, Packet::kAnswer, reach.bytes, reach.lines, served, mover);
}

Time Timing::ChargeStore(const Cta& cta, Mover mover, const Object& object, const Reach& reach,
                         Time at) {
  Device& device = *cta.launch->device;
  if (object.device == device.number) {
    return AtHome(cta, object, reach, LeaveSm(cta, reach.bytes, at)) + state_.costs.l2 / 2;
  }
  const Time sent = LeaveSm(cta, reach.bytes, at);
  const Route& way = WayTo(device, object);
  const std::uint32_t packets =
      std::max(reach.lines, state_.fabric.Packets(way, mover, reach.bytes));
  const Charged charged(state_.fabric, LedgerOf(cta));
  const Time there = state_.fabric.Send(way, Packet::kWrite, reach.bytes, packets, sent, mover);
  return AtHome(cta, object, reach, there) + (object.device < 0 ? 0 : state_.costs.l2 / 2);
}

Time Timing::AtomicTurn(const Object& object, std::uint64_t offset, std::uint32_t operations,
                        Time arrival) {
  if (object.device < 0) return arrival;
  Device& home = state_.devices[static_cast<std::size_t>(object.device)];
  if (home.atomics.empty()) home.atomics.resize(kAtomicLines);
  const std::uint64_t line = offset / kSectorBytes * 0x9e3779b97f4a7c15 + object.id;
  Time& free = home.atomics[(line >> 40) % kAtomicLines];
  const Time start = std::max(arrival, free);
  free = start + static_cast<Time>(operations) * state_.costs.atomic;
  return free - state_.costs.atomic;
}

Time Timing::ChargeMulticastStore(const Cta& cta, std::span<const Replica> replicas,
                                  const Reach& reach, Time at) {
  const std::vector<int> members = HomesOf(replicas);
  const Time sent = LeaveSm(cta, reach.bytes, at);
  const Charged charged(state_.fabric, LedgerOf(cta));
  Time last =
      state_.fabric.Replicate(cta.launch->device->number, members, reach.bytes, reach.lines, sent);
  for (const Replica& replica : replicas) {
    last = std::max(last, AtHome(cta, *replica.object, reach, sent + state_.costs.l2 / 2));
  }
  return last + state_.costs.l2 / 2;
}

Time Timing::ChargeMulticastLoad(const Cta& cta, std::span<const Replica> replicas,
                                 const Reach& reach, Time at) {
  const std::vector<int> members = HomesOf(replicas);
  const Time sent = LeaveSm(cta, reach.bytes, at);
  for (const Replica& replica : replicas) AtHome(cta, *replica.object, reach, sent);
  const Time ready = reach.missed != 0 ? state_.costs.hbm : state_.costs.l2;
  const Charged charged(state_.fabric, LedgerOf(cta));
  return state_.fabric.Reduce(cta.launch->device->number, members, reach.bytes, reach.lines, sent,
                              ready);
}

CopyTimes Timing::ChargeCopy(Device& runner, int engine, int from, int to, std::uint64_t bytes,
                             Time at) {
  CopyTimes times;
  if (from < 0 && to < 0) {
    times.sent = at + static_cast<Time>(static_cast<double>(bytes) * 1000.0 /
                                        state_.profile.copy_engine.gbs);
    times.arrived = times.sent;
    return times;
  }
  times.sent = times.arrived = at;
  const auto memory = [&](int device) {
    if (device < 0) return;
    Server& hbm = state_.devices[static_cast<std::size_t>(device)].hbm;
    times.sent = std::max(times.sent, hbm.Take(at, Units(bytes)));
  };
  memory(from);
  memory(to);
  if (from == to) {
    times.arrived = times.sent;
    return times;
  }
  Time& free = runner.engines[static_cast<std::size_t>(engine)];
  const Time start = std::max(at, free);
  const int source = from < 0 ? state_.fabric.HostOf(to) : from;
  const int target = to < 0 ? state_.fabric.HostOf(from) : to;
  const Route& route = state_.fabric.Way(source, target);
  // An engine reads what is far from it and writes what is not.
  const bool reads = to == runner.number;
  const std::uint32_t packets = state_.fabric.Packets(route, Mover::kCopyEngine, bytes);
  if (reads) {
    state_.fabric.Send(state_.fabric.Way(target, source), Packet::kRequest, 0, packets, start,
                       Mover::kCopyEngine);
  }
  const Time there = state_.fabric.Send(route, reads ? Packet::kAnswer : Packet::kWrite, bytes,
                                        packets, start, Mover::kCopyEngine);
  const auto busy =
      static_cast<Time>(static_cast<double>(bytes) * 1000.0 / state_.profile.copy_engine.gbs);
  times.sent = std::max({times.sent, start + busy, there - route.latency});
  times.arrived = times.sent + route.latency;
  free = times.sent;
  return times;
}

}  // namespace allranks::node
