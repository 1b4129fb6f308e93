// Accesses to global memory: which mapping, which object or replicas, what it costs, and who is
// told of it. The bytes themselves move in MemoryGroup (engine_bytes.h). Included by engine.cpp;
// see engine.h.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>

#include "node/alu/atomic_ops.h"
#include "node/alu/dense.h"
#include "node/alu/memory_ops.h"
#include "node/code/lanes.h"
#include "node/exec/engine.h"
#include "node/exec/engine_memory.h"
#include "node/exec/sectors.h"
#include "node/exec/simulator.h"
#include "node/state/access.h"

namespace allranks::node {

// The turn of a warp's atomics at the L2: in each sector, those on one address one after the other.
inline Time AtomicTurns(Simulator& sim, const Object& object, std::uint32_t lanes,
                        const std::uint64_t* offset, Time arrival) {
  Time last = arrival;
  while (lanes != 0) {
    const std::uint64_t sector = offset[std::countr_zero(lanes)] / kSectorBytes;
    std::uint32_t here = 0;
    ForLanes(lanes, [&](int l) { here |= offset[l] / kSectorBytes == sector ? 1u << l : 0; });
    lanes &= ~here;
    std::uint32_t most = 0;
    while (here != 0) {
      const std::uint64_t first = offset[std::countr_zero(here)];
      std::uint32_t same = 0;
      ForLanes(here, [&](int l) { same |= offset[l] == first ? 1u << l : 0; });
      here &= ~same;
      most = std::max(most, static_cast<std::uint32_t>(std::popcount(same)));
    }
    last = std::max(last, sim.timing.AtomicTurn(object, sector * kSectorBytes, most, arrival));
  }
  return last;
}

template <bool kChecked>
const Mapping* EngineT<kChecked>::FindMapping(std::uint64_t address) {
  const AddressTable& table = sim_.ProcessOf(launch_->process).table;
  const auto holds = [&](const Cached& cached) {
    return cached.process == launch_->process && cached.device == device_ &&
           cached.version == table.version() &&
           address - cached.mapping->base < cached.mapping->size;
  };
  for (const Cached& cached : cache_) {
    if (holds(cached)) return cached.mapping;
  }
  constexpr int kLargePageShift = 21;
  const auto device = static_cast<std::uint64_t>(device_->number);
  Cached& page = pages_[((address >> kLargePageShift) + device * 32) % pages_.size()];
  if (!holds(page)) {
    const Mapping* mapping = table.Find(address);
    if (mapping == nullptr) return nullptr;
    page = {launch_->process, table.version(), mapping, device_};
  }
  cache_[cache_next_++ % cache_.size()] = page;
  return page.mapping;
}

template <bool kChecked>
bool EngineT<kChecked>::DenseAccess(const MemoryOp& m) {
  const std::uint64_t bytes = std::uint64_t{m.bytes} * m.count;
  const auto* base = reinterpret_cast<const std::uint64_t*>(Source(m.address));
  const std::uint64_t address = base[0] + static_cast<std::uint64_t>(m.offset);
  if ((address & (bytes - 1)) != 0 || !IsDense(base, bytes) || !path_->spins.empty() ||
      sim_.livelock.auditing()) {
    return false;
  }
  const Mapping* mapping = FindMapping(address);
  if (mapping == nullptr || mapping->multicast != nullptr) return false;
  Object& object = *mapping->object;
  const std::uint64_t within = address - mapping->base, size = kLanes * bytes;
  const std::uint64_t offset = within + mapping->offset, room = mapping->Room();
  const bool load = m.kind == MemoryOpKind::kLoad;
  const bool own = object.device == device_->number;
  if (size > room || within > room - size ||
      (!load && (mapping->read_only || !object.watches.empty()))) {
    return false;
  }
  if (own ? mapping->rights != Mapping::Rights::kPeers &&
                !(load ? mapping->readers
                       : mapping->writers)[static_cast<std::size_t>(device_->number)]
          : sim_.timing.faulty_links || !sim_.MayAccess(sim_.ProcessOf(launch_->process), *mapping,
                                                        device_->number, !load)) {
    return false;
  }
  const bool moved =
      load ? LoadDense(m.data, m.register_bytes, m.count, registers_, object.data + offset)
           : StoreDense(m.data, m.register_bytes, m.count, registers_, constants_,
                        object.data + offset);
  if (!moved) return false;
  if constexpr (kChecked) {
    std::uint64_t offsets[kLanes];
    for (std::uint64_t l = 0; l < kLanes; ++l) offsets[l] = offset + l * bytes;
    const Access access{path_,     &m,          &object,
                        kAllLanes, offsets,     static_cast<std::uint32_t>(bytes),
                        true,      path_->clock};
    sim_.errors->OnAccess(access);
    sim_.checker->Weak(access);
  }
  const Reach reach = sim_.timing.Touch(object, offset, size);
  KernelRecord& record = sim_.stats.kernels[launch_->record];
  if (!own) record.remote_bytes += size;
  if (load) {
    record.bytes_read += size;
    value_ready_ = sim_.timing.ChargeLoad(*cta_, Mover::kSm, object, reach, path_->clock);
    return true;
  }
  record.bytes_written += size;
  const Time arrival = sim_.timing.ChargeStore(*cta_, Mover::kSm, object, reach, path_->clock) +
                       sim_.timing.AckDelay(*device_, object);
  cta_->store_arrival = std::max(cta_->store_arrival, arrival);
  sim_.last_change = std::max(sim_.last_change, path_->clock);
  sim_.timer_wakes = 0;
  return true;
}

template <bool kChecked>
bool EngineT<kChecked>::GlobalLanes(const MemoryOp& m, std::uint32_t lanes,
                                    const std::uint64_t* address) {
  Process& process = sim_.ProcessOf(launch_->process);
  while (lanes != 0) {
    const int first = std::countr_zero(lanes);
    const Mapping* found = FindMapping(address[first]);
    if (found == nullptr) {
      OutOfBounds(m, first, address[first], "global memory");
      return false;
    }
    const Mapping& mapping = *found;
    const bool write = m.kind != MemoryOpKind::kLoad;
    if ((mapping.rights != Mapping::Rights::kPeers || mapping.object->device != device_->number) &&
        !sim_.MayAccess(process, mapping, device_->number, write)) {
      sim_.Fault(*path_, Status::kIllegalAddress,
                 fmt::format("{} {}", code_->forms[path_->pc],
                             sim_.NoAccess(process, mapping, device_->number)),
                 {FaultAt::Cause::kNoAccess, first, 0, mapping.object.get(),
                  address[first] - mapping.base + mapping.offset, 0});
      return false;
    }
    if (mapping.object->device != device_->number && sim_.timing.faulty_links &&
        !sim_.timing.Reachable(*device_, mapping)) {
      sim_.Fault(*path_, Status::kNvlinkUncorrectable,
                 fmt::format("{} accesses {} over a dead link", code_->forms[path_->pc],
                             mapping.object->name));
      return false;
    }
    if (mapping.read_only && write) {
      sim_.Fault(*path_, Status::kIllegalAddress, "store to constant memory");
      return false;
    }
    std::uint32_t here = 0;
    std::uint64_t offset[kLanes];
    if (lanes == kAllLanes) {
      bool all = true;
      for (int l = 0; l < kLanes; ++l) {
        offset[l] = address[l] - mapping.base;
        all &= offset[l] < mapping.size;
      }
      here = all ? kAllLanes : 0;
    }
    if (here == 0) {
      ForLanes(lanes, [&](int l) {
        offset[l] = address[l] - mapping.base;
        here |= offset[l] < mapping.size ? 1u << l : 0;
      });
    }
    lanes &= ~here;
    if (mapping.offset != 0) ForLanes(here, [&](int l) { offset[l] += mapping.offset; });
    const bool ok = mapping.multicast == nullptr ? ObjectLanes(m, here, *mapping.object, offset)
                                                 : MulticastLanes(m, here, mapping, offset);
    if (!ok) return false;
  }
  return true;
}

// Lanes of a multicast mapping. Stores and reductions of any kind go to all replicas, as the switch
// makes no difference; what a plain load would return is undefined.
template <bool kChecked>
bool EngineT<kChecked>::MulticastLanes(const MemoryOp& m, std::uint32_t lanes,
                                       const Mapping& mapping, const std::uint64_t* offset) {
  if (!m.multimem && m.kind != MemoryOpKind::kStore && m.kind != MemoryOpKind::kReduce) {
    sim_.Fault(
        *path_, Status::kIllegalAddress,
        fmt::format("{} reads a multicast address, which only multimem instructions may access",
                    code_->forms[path_->pc]));
    return false;
  }
  if constexpr (kChecked) {
    if (!m.multimem)
      sim_.errors->OnMulticast(*path_, lanes, *mapping.object, offset[std::countr_zero(lanes)]);
  }
  while (lanes != 0) {
    const std::uint64_t first = offset[std::countr_zero(lanes)];
    const Multicast::Segment* segment = mapping.multicast->Find(first);
    if (segment == nullptr) {
      sim_.Fault(*path_, Status::kIllegalAddress,
                 fmt::format("{} accesses offset {} of {}, to which not all devices of its team "
                             "have bound memory",
                             code_->forms[path_->pc], first, mapping.object->name));
      return false;
    }
    std::uint32_t here = 0;
    std::uint64_t within[kLanes];
    ForLanes(lanes, [&](int l) {
      within[l] = offset[l] - segment->begin;
      here |= within[l] < segment->end - segment->begin ? 1u << l : 0;
    });
    lanes &= ~here;
    if (!ReplicaLanes(m, here, segment->replicas, within)) return false;
  }
  return true;
}

// All replicas, one after the other; loads fold what they find.
template <bool kChecked>
bool EngineT<kChecked>::ReplicaLanes(const MemoryOp& m, std::uint32_t lanes,
                                     const std::vector<Replica>& replicas,
                                     const std::uint64_t* offset) {
  std::byte sum[kLanes][kMaxKept];
  float wide[kLanes][kMaxWide];
  // All replicas are reached at once: what the first one costs is the cost of all.
  Time visible = 0, late_by = 0;
  for (std::size_t r = 0; r < replicas.size(); ++r) {
    const Replica& replica = replicas[r];
    std::uint64_t place[kLanes];
    ForLanes(lanes, [&](int l) { place[l] = offset[l] + replica.offset; });
    if (!MemoryGroup(m, lanes, replica.object.get(), replica.object->data, replica.object->size,
                     place)) {
      return false;
    }
    if (r == 0) visible = ChargeReplicas(m, lanes, replicas, place);
    late_by = std::max(late_by, late_by_);
    if (m.kind == MemoryOpKind::kLoad) {
      ForLanes(lanes, [&](int l) {
        if (m.accumulate != 0) {
          FoldWide(m, registers_, l, r == 0, wide[l]);
        } else {
          FoldLane(m, registers_, l, r == 0, sum[l]);
        }
      });
    } else {
      if (not_before_ > visible) {
        const Time known = not_before_ + sim_.timing.AckDelay(*device_, *replica.object);
        cta_->store_arrival = std::max(cta_->store_arrival, known);
      }
      TellWritten(m, lanes, *replica.object, place, std::max(visible, not_before_));
    }
  }
  value_ready_ += late_by;
  if (m.kind == MemoryOpKind::kLoad) {
    ForLanes(lanes, [&](int l) {
      if (m.accumulate != 0) RoundWide(m, wide[l], sum[l]);
      LoadLane(m, registers_, l, sum[l]);
    });
  }
  return true;
}

// Whole sectors and lines that the lanes reach.
template <bool kChecked>
Reach EngineT<kChecked>::ReachOf(const MemoryOp& m, std::uint32_t here, const Object& object,
                                 const std::uint64_t* offset) {
  const std::uint64_t bytes = std::uint64_t{m.bytes} * m.count;
  if (dense_) return sim_.timing.Touch(object, offset[0], kLanes * bytes);
  SectorCounter sectors(sim_.timing);
  ForLanes(here, [&](int l) { sectors.Add(object, offset[l], bytes); });
  return sectors.Take();
}

// Of stores: when the last replica has them.
template <bool kChecked>
Time EngineT<kChecked>::ChargeReplicas(const MemoryOp& m, std::uint32_t here,
                                       const std::vector<Replica>& replicas,
                                       const std::uint64_t* offset) {
  const Reach reach = ReachOf(m, here, *replicas.front().object, offset);
  const auto requested = static_cast<std::uint64_t>(std::popcount(here)) * m.bytes * m.count;
  KernelRecord& record = sim_.stats.kernels[launch_->record];
  record.remote_bytes += requested;
  if (m.kind == MemoryOpKind::kLoad) {
    record.bytes_read += requested;
    value_ready_ = std::max(value_ready_,
                            sim_.timing.ChargeMulticastLoad(*cta_, replicas, reach, path_->clock));
    return value_ready_;
  }
  record.bytes_written += requested;
  const Time visible = sim_.timing.ChargeMulticastStore(*cta_, replicas, reach, path_->clock);
  // The slowest acknowledgement comes back the way of the slowest store.
  Time back = 0;
  for (const Replica& replica : replicas) {
    back = std::max(back, sim_.timing.AckDelay(*device_, *replica.object));
  }
  cta_->store_arrival = std::max(cta_->store_arrival, visible + back);
  return visible;
}

// Bytes of the object have changed; others can see it from `visible` on.
template <bool kChecked>
void EngineT<kChecked>::TellWritten(const MemoryOp& m, std::uint32_t here, Object& object,
                                    const std::uint64_t* offset, Time visible) {
  const std::uint64_t bytes = std::uint64_t{m.bytes} * m.count;
  if (changed_) {
    sim_.last_change = std::max(sim_.last_change, path_->clock);
    sim_.timer_wakes = 0;
  }
  if (m.Strong()) object.late.Close(visible);  // of what MemoryGroup has added
  if constexpr (kChecked) {
    if (m.Strong()) sim_.checker->Close(object, here, offset, visible);
  }
  if (!changed_ || object.watches.empty()) return;
  if (dense_) {
    sim_.waiting.NotifyWrite(object, offset[0], kLanes * bytes, path_->clock, visible, launch_->op);
    return;
  }
  ForLanes(here, [&](int l) {
    sim_.waiting.NotifyWrite(object, offset[l], bytes, path_->clock, visible, launch_->op);
  });
}

// Lanes whose bytes are all in one object: the access, what it costs, and who is told of it.
template <bool kChecked>
bool EngineT<kChecked>::ObjectLanes(const MemoryOp& m, std::uint32_t here, Object& object,
                                    const std::uint64_t* offset) {
  const std::uint64_t bytes = std::uint64_t{m.bytes} * m.count;
  if (!MemoryGroup(m, here, &object, object.data, object.size, offset)) return false;

  const Reach reach = ReachOf(m, here, object, offset);
  const auto requested = static_cast<std::uint64_t>(std::popcount(here)) * bytes;
  KernelRecord& record = sim_.stats.kernels[launch_->record];
  if (object.device != device_->number) record.remote_bytes += requested;
  Time visible = path_->clock;
  switch (m.kind) {
    case MemoryOpKind::kLoad:
      record.bytes_read += requested;
      value_ready_ = std::max(
          value_ready_,
          late_by_ + sim_.timing.ChargeLoad(*cta_, Mover::kSm, object, reach, path_->clock));
      return true;
    case MemoryOpKind::kStore:
      record.bytes_written += requested;
      visible = sim_.timing.ChargeStore(*cta_, Mover::kSm, object, reach, path_->clock);
      break;
    case MemoryOpKind::kReduce:
      record.bytes_written += requested;
      visible =
          AtomicTurns(sim_, object, here, offset,
                      sim_.timing.ChargeStore(*cta_, Mover::kSm, object, reach, path_->clock));
      visible = std::max(visible, not_before_);
      break;
    default: {
      record.bytes_read += requested;
      record.bytes_written += requested;
      const Time delay = sim_.timing.DelayTo(*device_, object);
      const Time arrival = path_->clock + delay + late_by_;
      const Time turn = std::max(not_before_, AtomicTurns(sim_, object, here, offset, arrival));
      visible = turn;
      value_ready_ = std::max(
          value_ready_, sim_.timing.ChargeLoad(*cta_, Mover::kSm, object, reach, path_->clock) +
                            (turn - path_->clock - delay));
      break;
    }
  }
  if constexpr (kChecked) {
    if (m.Strong() && m.kind != MemoryOpKind::kAtomic && sim_.delays.on()) {
      visible += sim_.delays.At(PlaceHere(Delays::Kind::kFlight), path_->clock, 0);
    }
  }
  cta_->store_arrival =
      std::max(cta_->store_arrival, visible + sim_.timing.AckDelay(*device_, object));
  TellWritten(m, here, object, offset, visible);
  return true;
}

}  // namespace allranks::node
