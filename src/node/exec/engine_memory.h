// Loads, stores and atomics of a path: addresses, bounds and rights, order. engine_bytes.h moves
// the bytes. Included by engine.cpp; see engine.h.
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

}  // namespace allranks::node
