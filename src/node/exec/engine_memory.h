// Loads, stores and atomics of a path: addresses, bounds and rights, bytes, visibility, cost.
// Included by engine.cpp; see engine.h.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>

#include "node/alu/atomic_ops.h"
#include "node/alu/dense.h"
#include "node/alu/memory_ops.h"
#include "node/check/checker.h"
#include "node/check/errors.h"
#include "node/code/banks.h"
#include "node/code/lanes.h"
#include "node/exec/async_internal.h"
#include "node/exec/cluster.h"
#include "node/exec/engine.h"
#include "node/exec/simulator.h"
#include "node/exec/wait.h"
#include "node/state/access.h"

namespace allranks::node {

template <bool kChecked>
void EngineT<kChecked>::OutOfBounds(const MemoryOp& m, int lane, std::uint64_t address,
                                    const char* space) {
  (void)m;
  std::string what = fmt::format("{} accesses address 0x{:x} of {}, which is not mapped",
                                 code_->forms[path_->pc], address, space);
  if (const Mapping* near = sim_.ProcessOf(launch_->process).table.Nearest(address)) {
    const std::uint64_t end = near->base + near->size;
    what += address >= end
                ? fmt::format(" ({} bytes after {} of {} bytes)", address - end, near->object->name,
                              near->size)
                : fmt::format(" ({} bytes before {})", near->base - address, near->object->name);
  }
  const std::uint32_t thread = warp_->id * kLanes + static_cast<std::uint32_t>(lane);
  sim_.Fault(*path_, Status::kIllegalAddress, fmt::format("{}, thread {}", what, thread),
             {FaultAt::Cause::kUnmapped, lane, address, nullptr, 0, 0});
}

template <bool kChecked>
bool EngineT<kChecked>::Misaligned(const MemoryOp& m, std::uint32_t lanes, const Object* object,
                                   const std::uint64_t* offset) {
  const std::uint64_t low = std::uint64_t{m.bytes} * m.count - 1;
  if (low == 0) return false;
  std::uint64_t bits = 0;
  if (lanes == kAllLanes) {
    for (int l = 0; l < kLanes; ++l) bits |= offset[l];
  } else {
    ForLanes(lanes, [&](int l) { bits |= offset[l]; });
  }
  if ((bits & low) == 0) return false;
  int culprit = 0;
  ForLanes(lanes, [&](int l) { culprit = (offset[l] & low) != 0 ? l : culprit; });
  sim_.Fault(*path_, Status::kMisalignedAddress,
             fmt::format("{} at an address that is not a multiple of {}", code_->forms[path_->pc],
                         low + 1),
             {FaultAt::Cause::kOther, culprit, 0, object, offset[culprit], 0});
  return true;
}

// The address of every lane, also of those that do not take part.
template <bool kChecked>
void EngineT<kChecked>::Addresses(const MemoryOp& m, std::uint64_t* address) const {
  if (m.address == kNoSlot) {
    const std::uint64_t frame = m.in_frame ? path_->frame.local : 0;
    std::fill_n(address, kLanes, static_cast<std::uint64_t>(m.offset) + frame);
  } else if (m.address32) {
    const auto* base = reinterpret_cast<const std::uint32_t*>(Source(m.address));
    for (int l = 0; l < kLanes; ++l) {
      address[l] = static_cast<std::uint32_t>(base[l] + static_cast<std::uint32_t>(m.offset));
    }
  } else {
    const auto* base = reinterpret_cast<const std::uint64_t*>(Source(m.address));
    for (int l = 0; l < kLanes; ++l) address[l] = base[l] + static_cast<std::uint64_t>(m.offset);
  }
}

template <bool kChecked>
Time EngineT<kChecked>::ChargeBanks(const MemoryOp& m, std::uint32_t lanes, const Cta& owner,
                                    const std::uint64_t* offset) {
  if (by_tensor_) return path_->clock;
  const std::uint32_t bytes = std::uint32_t{m.bytes} * m.count;
  const bool serial = m.kind != MemoryOpKind::kLoad && m.kind != MemoryOpKind::kStore;
  const std::uint32_t passes = dense_ ? (bytes + 3) / 4 : BankPasses(lanes, offset, bytes, serial);
  Sm& sm = device_->sms[static_cast<std::size_t>(owner.sm)];
  const Time served = sm.banks.Take(path_->clock, passes);
  // Capacity is given out by buckets: the passes of this access take their own time as well.
  return std::max(served, path_->clock + static_cast<Time>(passes - 1) * sim_.costs.cycle);
}

// Shared memory of any CTA of the cluster (cluster.h); `address` is changed.
template <bool kChecked>
bool EngineT<kChecked>::ClusterLanes(const MemoryOp& m, std::uint32_t lanes,
                                     std::uint64_t* address) {
  while (lanes != 0) {
    const int first = std::countr_zero(lanes);
    const std::uint64_t window = address[first] >> kRankShift;
    std::uint32_t here = 0, offset = 0;
    Cta* target = FindCta(*cta_, address[first], &offset);
    if (target == nullptr) {
      sim_.Fault(*path_, Status::kIllegalAddress,
                 fmt::format("{} accesses shared address 0x{:x}: the cluster has no such block, "
                             "or it is over",
                             code_->forms[path_->pc], address[first]));
      return false;
    }
    ForLanes(lanes, [&](int l) {
      if (address[l] >> kRankShift != window) return;
      here |= 1u << l;
      address[l] &= (1u << kRankShift) - 1;
    });
    if (!MemoryGroup(m, here, &target->shared_object, target->shared.data(), target->shared.size(),
                     address)) {
      return false;
    }
    const Time way = target == cta_ ? sim_.costs.shared : sim_.costs.cluster;
    value_ready_ = std::max(
        {value_ready_, ChargeBanks(m, here, *target, address) + way + late_by_, not_before_ + way});
    lanes &= ~here;
  }
  return true;
}

// The access of `mask` at `address`, which is changed: each kind of memory in turn. False: it has
// faulted.
template <bool kChecked>
bool EngineT<kChecked>::Spaces(const MemoryOp& m, std::uint32_t mask, std::uint64_t* address) {
  bool ok = true;
  std::uint32_t left = mask;
  while (ok && left != 0) {
    // Lanes of one kind of memory at a time; nearly always that is all of them.
    std::uint32_t same = left;
    ptx::Space space = m.space;
    if (space == ptx::Space::kNone) {
      const auto window = [](std::uint64_t a) {
        return a - kSharedWindow < 3 * kWindowSize ? (a - kSharedWindow) / kWindowSize + 1 : 0;
      };
      const std::uint64_t first = window(address[std::countr_zero(left)]);
      same = 0;
      ForLanes(left, [&](int l) { same |= window(address[l]) == first ? 1u << l : 0; });
      space = first == 0   ? ptx::Space::kGlobal
              : first == 1 ? ptx::Space::kShared
              : first == 2 ? ptx::Space::kLocal
                           : ptx::Space::kParam;
      if (first != 0) {
        const std::uint64_t base = kSharedWindow + (first - 1) * kWindowSize;
        ForLanes(same, [&](int l) { address[l] -= base; });
      }
    }
    left &= ~same;
    switch (space) {
      case ptx::Space::kShared:
        if (cta_->cluster != nullptr) {
          ok = ClusterLanes(m, same, address);
          break;
        }
        ok = MemoryGroup(m, same, &cta_->shared_object, cta_->shared.data(), cta_->shared.size(),
                         address);
        if (!ok) break;
        value_ready_ =
            std::max(value_ready_, ChargeBanks(m, same, *cta_, address) + sim_.costs.shared);
        break;
      case ptx::Space::kLocal: {
        const std::uint64_t bytes = warp_->local_bytes;
        std::uint64_t place[kLanes];
        ForLanes(same, [&](int l) {
          place[l] = address[l] <= bytes ? address[l] + static_cast<std::uint64_t>(l) * bytes
                                         : ~std::uint64_t{0};
          if (address[l] + std::uint64_t{m.bytes} * m.count > bytes)
            place[l] = ~std::uint64_t{0} - 64;
        });
        ok = MemoryGroup(m, same, nullptr, warp_->local.data(), warp_->local.size(), place);
        value_ready_ = std::max(value_ready_, path_->clock + sim_.costs.l1);
        break;
      }
      case ptx::Space::kParam:
        if (m.kind != MemoryOpKind::kLoad) {
          sim_.Fault(*path_, Status::kIllegalAddress, "store to kernel parameters");
          return false;
        }
        ok = MemoryGroup(m, same, nullptr, launch_->params.data(), launch_->params.size(), address);
        value_ready_ = std::max(value_ready_, path_->clock + sim_.costs.l1);
        break;
      default:
        ok = GlobalLanes(m, same, address);
        break;
    }
  }
  return ok;
}

// A release that other CTAs can see: what this CTA has stored is there before. So nothing is ever
// handed to another CTA before it has arrived, and whoever releases further what it has acquired
// need not know whose stores these were (cumulativity).
template <bool kChecked>
void EngineT<kChecked>::AwaitStores(Time cost) {
  Path& path = *path_;
  // The goal is set once: what other warps store meanwhile is not this one's to wait for.
  if (path.release_goal == 0) {
    path.release_goal = std::max(path.clock, cta_->store_arrival) + cost;
  }
  path.clock = std::max(path.clock, path.release_goal);
}

// Where this warp is, as a place of a directed schedule.
template <bool kChecked>
Delays::Place EngineT<kChecked>::PlaceHere(Delays::Kind kind) const {
  const Dim3& block = cta_->index;
  return {kind,
          code_,
          path_->pc,
          device_->number,
          block.x + (std::uint64_t{block.y} << 32) + (std::uint64_t{block.z} << 48),
          warp_->id};
}

// How long the warp stops before a strong access, under a directed schedule.
template <bool kChecked>
Time EngineT<kChecked>::DelayHere(const MemoryOp& m, std::uint32_t mask) {
  using Kind = Delays::Kind;
  Delays& delays = sim_.delays;
  if (delays.Watches(path_)) return delays.Again(path_, SwapWouldSucceed(m, mask));
  const Kind kind = m.compare != kNoSlot             ? Kind::kSwap
                    : m.kind == MemoryOpKind::kLoad  ? Kind::kLoad
                    : m.kind == MemoryOpKind::kStore ? Kind::kStore
                                                     : Kind::kAtomic;
  const Time began = sim_.stats.kernels[launch_->record].start;
  Time late = delays.At(PlaceHere(kind), path_->clock, began);
  if (late != 0 && kind == Kind::kLoad) delays.SetStale(path_);
  if (late == 0 && kind == Kind::kLoad) {
    late = delays.At(PlaceHere(Kind::kLater), path_->clock, began);
    if (late != 0) delays.SetLater(path_, true);
  }
  if (late != 0 && (kind == Kind::kStore || kind == Kind::kAtomic)) delays.SetLater(path_, false);
  if (late != 0 && kind == Kind::kSwap) delays.Watch(path_);
  if (late == 0 && kind == Kind::kSwap) {
    late = delays.At(PlaceHere(Kind::kAtomic), path_->clock, began);
    if (late != 0) delays.SetLater(path_, false);
  }
  return late;
}

// Whether the first lane's compare-and-swap finds what it expects in memory now.
template <bool kChecked>
bool EngineT<kChecked>::SwapWouldSucceed(const MemoryOp& m, std::uint32_t mask) {
  std::uint64_t address[kLanes];
  Addresses(m, address);
  const int lane = std::countr_zero(mask);
  const Mapping* mapping = FindMapping(address[lane]);
  if (m.space == ptx::Space::kShared || mapping == nullptr || mapping->multicast != nullptr)
    return false;
  const std::uint64_t offset = address[lane] - mapping->base + mapping->offset;
  std::uint64_t expected = LaneValue(*path_, m.compare, lane, m.bytes), found = 0;
  if (m.bytes > 8 || offset + m.bytes > mapping->object->size) return false;
  std::memcpy(&found, mapping->object->data + offset, m.bytes);
  if (m.bytes < 8) expected &= (std::uint64_t{1} << m.bytes * 8) - 1;
  return found == expected;
}

template <bool kChecked>
typename EngineT<kChecked>::Next EngineT<kChecked>::Memory(const Op& op, std::uint32_t mask) {
  const MemoryOp& m = code_->memory[op.aux];
  Path& path = *path_;
  const bool is_load = m.kind == MemoryOpKind::kLoad;
  if (warp_->pending_until > path.clock) {
    if (m.address != kNoSlot) WaitFor(m.address);
    if (!is_load) {
      if (m.kind == MemoryOpKind::kStore) {
        for (int e = 0; e < m.count; ++e) WaitFor(m.data[e]);
      } else {
        for (int e = 0; e < m.count; ++e) WaitFor(m.operand[e]);
        if (m.compare != kNoSlot) WaitFor(m.compare);
      }
    }
  }
  const bool ordered = m.Strong() && m.space != ptx::Space::kLocal && m.space != ptx::Space::kParam;
  if (ordered) {
    if (m.Releases() && m.scope >= Scope::kCluster) AwaitStores(FenceCost(m.scope));
    if (!Turn()) return Again(op);
    if constexpr (kChecked) {
      const bool perturbed = path.clock >= sim_.perturbed_from;
      if (const Time late = perturbed ? cta_->stall.At(path.pc, warp_->id) : 0; late != 0) {
        sim_.waiting.RecordChange(path);
        path.clock += late;
        return Again(op);
      }
      if (sim_.delays.on()) {
        if (const Time late = DelayHere(m, mask); late != 0) {
          sim_.waiting.RecordChange(path);
          path.clock += late;
          return Again(op);
        }
      }
    }
  }

  path.release_goal = 0;
  value_ready_ = path.clock;
  changed_ = false;
  if (mask != kAllLanes || !m.plain || !DenseAccess(m)) {
    std::uint64_t address[kLanes];
    Addresses(m, address);
    if (!Spaces(m, mask, address)) return Next::kGone;
  }

  if (is_load || m.kind == MemoryOpKind::kAtomic) {
    for (int e = 0; e < m.count; ++e) {
      const Slot d = m.data[e];
      if (d == kNoSlot) continue;
      ready_[d] = value_ready_;
    }
    warp_->pending_until = std::max(warp_->pending_until, value_ready_);
    // What follows an acquire must not start before it: the value is waited for.
    if (m.order == Order::kAcquire || m.order == Order::kAcqRel || m.order == Order::kSc) {
      path.clock = std::max(path.clock, value_ready_);
    }
  }
  if (changed_ && !path.spins.empty()) {
    sim_.waiting.RecordChange(path);
    Waiting::EndWatch(*warp_);
  }
  ++path.pc;
  if (path.clock >= path.quantum_end) return Yield();
  return Next::kGo;
}

// A strong load under the checker, which knows the writes of the place and may choose among them.
template <bool kChecked>
void EngineT<kChecked>::CheckedLoad(const MemoryOp& m, const Access& access, const std::byte* base,
                                    Time sampled) {
  Object& object = *access.object;
  std::byte values[kLanes][kMaxKept];
  ForLanes(access.lanes, [&](int l) {
    std::memcpy(values[l], base + access.offset[l], access.bytes);
    HideLate(object, access.offset[l], access.bytes, values[l], sampled);
  });
  // A value that will become another one by itself is nothing to park on.
  if (sim_.checker->Load(access, values[0], sampled) || late_by_ != 0)
    sim_.waiting.RecordChange(*path_);
  ForLanes(access.lanes, [&](int l) {
    LoadLane(m, registers_, l, values[l]);
    if (!path_->spins.empty()) {
      sim_.waiting.RecordRead(*path_, object, access.offset[l], access.bytes, values[l],
                              path_->clock, sampled - path_->clock);
    }
  });
}

// What a strong access that looks at `sampled` finds instead of the newest bytes.
template <bool kChecked>
void EngineT<kChecked>::HideLate(const Object& object, std::uint64_t offset, std::uint32_t bytes,
                                 std::byte* value, Time sampled) {
  if (!object.late.Pending(sampled)) return;
  const Time own = object.late.Hide(offset, bytes, value, sampled, cta_->number);
  // Behind an atomic of this CTA on the same bytes, which waits for its turn there.
  late_by_ = std::max(late_by_, own - sampled);
}

// Atomics while something is on its way to their bytes. Those that leave alone what a load would
// see now, as polls do, come before it in modification order: they are over, and their lanes are
// returned with what they saw in `seen`. The rest has to come after it (late_writes.h).
template <bool kChecked>
std::uint32_t EngineT<kChecked>::EarlyAtomics(const MemoryOp& m, std::uint32_t lanes,
                                              const Object& object, const std::byte* base,
                                              const std::uint64_t* offset, Time sampled,
                                              std::byte (*seen)[kMaxKept]) {
  static constexpr std::uint64_t kAtStart[kLanes] = {};
  const std::uint32_t bytes = std::uint32_t{m.bytes} * m.count;
  const bool global = object.kind != Object::Kind::kShared;
  MemoryOp trial = m;  // leaves registers alone: a destination may be an operand, too
  std::fill(std::begin(trial.data), std::end(trial.data), kNoSlot);
  std::uint32_t early = 0;
  ForLanes(lanes, [&](int l) {
    const Time latest = object.late.Latest(offset[l], bytes);
    if (latest <= sampled) return;
    std::byte after[kMaxKept];
    std::memcpy(seen[l], base + offset[l], bytes);
    if (m.kind == MemoryOpKind::kAtomic && !object.late.Crowded(offset[l])) {
      const Time own = object.late.Hide(offset[l], bytes, seen[l], sampled, cta_->number);
      std::memcpy(after, seen[l], bytes);
      AtomicLanes(trial, registers_, constants_, 1u << l, after, kAtStart, global);
      if (std::memcmp(after, seen[l], bytes) == 0) {
        AtomicLanes(m, registers_, constants_, 1u << l, after, kAtStart, global);
        late_by_ = std::max(late_by_, own - sampled);
        early |= 1u << l;
        return;
      }
    }
    not_before_ = std::max(not_before_, latest);
  });
  return early;
}

// The access itself, for lanes whose bytes are all in one piece of memory of `size` bytes.
template <bool kChecked>
bool EngineT<kChecked>::MemoryGroup(const MemoryOp& m, std::uint32_t lanes, Object* object,
                                    std::byte* base, std::uint64_t size,
                                    const std::uint64_t* offset) {
  const std::uint32_t bytes = std::uint32_t{m.bytes} * m.count;
  std::uint64_t highest = 0;
  dense_ = false;
  if (lanes == kAllLanes) {
    std::uint64_t off = 0;
    for (std::uint64_t l = 0; l < kLanes; ++l) {
      highest = std::max(highest, offset[l]);
      off |= offset[l] - offset[0] - l * bytes;
    }
    dense_ = off == 0;
  } else {
    ForLanes(lanes, [&](int l) { highest = std::max(highest, offset[l]); });
  }
  if (size < bytes || highest > size - bytes) {
    int culprit = std::countr_zero(lanes);
    ForLanes(lanes, [&](int l) {
      if (size < bytes || offset[l] > size - bytes) culprit = l;
    });
    const std::uint32_t thread = warp_->id * kLanes + static_cast<std::uint32_t>(culprit);
    sim_.Fault(
        *path_, Status::kIllegalAddress,
        fmt::format("{} accesses {} bytes at offset {} of {} ({} bytes), thread {}",
                    code_->forms[path_->pc], bytes, offset[culprit],
                    object != nullptr ? object->name : "local or parameter memory", size, thread),
        {FaultAt::Cause::kBeyond, culprit, 0, object, offset[culprit], bytes});
    return false;
  }
  if (Misaligned(m, lanes, object, offset)) return false;
  [[maybe_unused]] const Access access{path_,  &m,    object, lanes,
                                       offset, bytes, dense_, path_->clock};
  // Local memory and parameters are nobody else's.
  const bool checked = kChecked && object != nullptr;
  if constexpr (kChecked) {
    if (checked) sim_.errors->OnAccess(access);
    if (checked && !m.Strong()) sim_.checker->Weak(access);
  }
  const bool global = object != nullptr && object->kind != Object::Kind::kShared;
  // Writes to it take their time: others see them later.
  const bool far = global || (object != nullptr && object != &cta_->shared_object);
  // When a strong access looks at its bytes, and whether these may be newer than it may see.
  const Time sampled = path_->clock + (!far || !m.Strong() ? 0
                                       : global            ? sim_.timing.DelayTo(*device_, *object)
                                                           : sim_.costs.cluster / 2);
  const bool late = m.Strong() && object != nullptr && object->late.Pending(sampled);
  late_by_ = not_before_ = 0;
  const bool audited = sim_.livelock.auditing();

  if (m.kind == MemoryOpKind::kLoad) {
    if (audited && object != nullptr) {
      const std::uint64_t at = offset[std::countr_zero(lanes)];
      sim_.livelock.OnRead(*path_, *object, at, base + at, bytes);
    }
    if constexpr (kChecked) {
      if (checked && m.Strong()) {
        CheckedLoad(m, access, base, sampled);
        return true;
      }
    }
    if (late) {
      std::byte value[kLanes][kMaxKept];
      ForLanes(lanes, [&](int l) {
        std::memcpy(value[l], base + offset[l], bytes);
        HideLate(*object, offset[l], bytes, value[l], sampled);
        LoadLane(m, registers_, l, value[l]);
      });
      if (late_by_ != 0) sim_.waiting.RecordChange(*path_);
      if (path_->spins.empty()) return true;
      ForLanes(lanes, [&](int l) {
        sim_.waiting.RecordRead(*path_, *object, offset[l], bytes, value[l], path_->clock,
                                sampled - path_->clock);
      });
      return true;
    }
    LoadLanes(m, registers_, lanes, base, offset, dense_);
    if (!path_->spins.empty() && object != nullptr) {
      const Time delay = global ? sim_.timing.DelayTo(*device_, *object) : sampled - path_->clock;
      ForLanes(lanes, [&](int l) {
        sim_.waiting.RecordRead(*path_, *object, offset[l], bytes, base + offset[l], path_->clock,
                                delay);
      });
    }
    return true;
  }

  // Old bytes of strong writes: others may see them for a while.
  const bool keeps = m.Strong() && (far || checked || late) && bytes <= kMaxKept;
  std::byte old[kLanes][kMaxKept], seen[kLanes][kMaxKept];
  if (keeps || audited) {
    ForLanes(lanes, [&](int l) { std::memcpy(old[l], base + offset[l], bytes); });
  }
  std::uint32_t early = 0;  // lanes whose atomic is over
  if (m.kind == MemoryOpKind::kStore) {
    const bool watched = (object != nullptr && !object->watches.empty()) || !path_->spins.empty();
    changed_ |= StoreLanes(m, registers_, constants_, lanes, base, offset, dense_, watched);
    if (!changed_ && !path_->spins.empty() && object != nullptr) {
      const Time delay = global ? sim_.timing.DelayTo(*device_, *object) : sampled - path_->clock;
      ForLanes(lanes, [&](int l) {
        sim_.waiting.RecordRead(*path_, *object, offset[l], bytes, base + offset[l], path_->clock,
                                delay);
      });
    }
  } else {
    if (late) early = EarlyAtomics(m, lanes, *object, base, offset, sampled, seen);
    changed_ |= AtomicLanes(m, registers_, constants_, lanes & ~early, base, offset, global);
    if (late_by_ != 0 || not_before_ != 0) sim_.waiting.RecordChange(*path_);
    if (!changed_ && !path_->spins.empty() && object != nullptr) {
      // A failed compare-and-swap and its like only read.
      ForLanes(lanes, [&](int l) {
        const std::byte* value = (early >> l & 1) != 0 ? seen[l] : base + offset[l];
        sim_.waiting.RecordRead(*path_, *object, offset[l], bytes, value, path_->clock,
                                sampled - path_->clock);
      });
    }
  }
  if (audited) {
    ForLanes(lanes, [&](int l) { sim_.livelock.OnWrite(*path_, base + offset[l], old[l], bytes); });
    if (object != nullptr && m.kind == MemoryOpKind::kAtomic) {
      const std::uint64_t at = offset[std::countr_zero(lanes)];
      sim_.livelock.OnRead(*path_, *object, at, base + at, bytes);
    }
  }
  const bool timed = far || not_before_ != 0;
  const std::uint32_t wrote = lanes & ~early;
  if constexpr (kChecked) {
    if (checked && keeps) {
      Access part = access;
      part.lanes = early;
      if (early != 0) sim_.checker->Load(part, seen[0], sampled);
      part.lanes = wrote;
      if (wrote != 0) sim_.checker->Store(part, old[0], !timed);
    }
  }
  if (m.Strong() && global) {
    ForLanes(wrote, [&](int l) {
      sim_.last_writes.Note(object->id, offset[l], base + offset[l], bytes, launch_->code,
                            path_->pc, device_->number);
    });
  }
  if (keeps && timed) {
    const bool atomic = m.kind != MemoryOpKind::kStore;
    ForLanes(wrote, [&](int l) {
      // One that came behind others is kept even if it changed nothing: it has seen them.
      if (not_before_ == 0 && std::memcmp(old[l], base + offset[l], bytes) == 0) return;
      for (std::uint32_t at = 0; at < bytes; at += 16) {
        object->late.Add(offset[l] + at, std::min<std::uint32_t>(16, bytes - at), old[l] + at,
                         cta_->number, sim_.now, atomic);
      }
    });
  }
  if (!global && object != nullptr) {
    sim_.last_change = std::max(sim_.last_change, path_->clock);
    sim_.timer_wakes = 0;
    const Time visible = std::max(path_->clock + (far ? sim_.costs.cluster : 0), not_before_);
    if (keeps && timed) {
      object->late.Close(visible);
      if constexpr (kChecked) sim_.checker->Close(*object, wrote, offset, visible);
    }
    if (changed_ && !object->watches.empty()) {
      ForLanes(lanes, [&](int l) {
        sim_.waiting.NotifyWrite(*object, offset[l], bytes, path_->clock, visible);
      });
    }
  }
  return true;
}

}  // namespace allranks::node
