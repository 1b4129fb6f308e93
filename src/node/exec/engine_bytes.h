// The bytes of an access: what a load finds of writes in flight, what a store leaves, atomics in
// their order. engine_memory.h has found out where they are. Included by engine.cpp; see engine.h.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "node/alu/atomic_ops.h"
#include "node/alu/dense.h"
#include "node/alu/memory_ops.h"
#include "node/check/checker.h"
#include "node/check/errors.h"
#include "node/code/lanes.h"
#include "node/exec/engine.h"
#include "node/exec/simulator.h"
#include "node/exec/wait.h"
#include "node/state/access.h"

namespace allranks::node {

// Where lanes are in an array of kMaxKept bytes for each.
inline constexpr auto kKeptAt = [] {
  std::array<std::uint64_t, kLanes> at = {};
  for (std::uint64_t l = 0; l < kLanes; ++l) at[l] = l * kMaxKept;
  return at;
}();

// Calls f(from, count) for the pieces of `size` bytes at `offset` that lie in one line each.
template <class F>
void ForPieces(std::uint64_t offset, std::uint32_t size, F f) {
  constexpr std::uint32_t kLine = LateWrites::kLineBytes;
  static_assert(kLine == Watches::kMaxBytes);
  for (std::uint32_t at = 0; at < size;) {
    const std::uint32_t count =
        std::min(size - at, kLine - static_cast<std::uint32_t>((offset + at) % kLine));
    f(at, count);
    at += count;
  }
}

// A strong load under the checker, which knows the writes of the place and may choose among them.
template <bool kChecked>
void EngineT<kChecked>::CheckedLoad(const MemoryOp& m, const Access& access, const std::byte* base,
                                    Time sampled) {
  Object& object = *access.object;
  std::byte values[kLanes][kMaxKept];
  FindBytes(object, access.lanes, access.offset, access.bytes, base, sampled, values);
  // An older value that the checker chose, or one behind an atomic of its own, will become another
  // one at a time that nobody knows: nothing to park on.
  if (sim_.checker->Load(access, values[0], sampled) || late_by_ != 0)
    sim_.waiting.RecordChange(*path_);
  LoadLanes(m, registers_, access.lanes, values[0], kKeptAt.data(), false);
  RecordReads(object, access.lanes, access.offset, access.bytes, sampled - path_->clock,
              [&](int l) { return values[l]; });
}

// What the lanes of a strong load that looks at `sampled` find.
template <bool kChecked>
void EngineT<kChecked>::FindBytes(const Object& object, std::uint32_t lanes,
                                  const std::uint64_t* offset, std::uint32_t bytes,
                                  const std::byte* base, Time sampled,
                                  std::byte (*values)[kMaxKept]) {
  if (!dense_ || !object.late.Pending(sampled)) {
    ForLanes(lanes, [&](int l) {
      std::memcpy(values[l], base + offset[l], bytes);
      HideLate(object, offset[l], bytes, values[l], sampled);
    });
    return;
  }
  std::byte all[kLanes * kMaxKept];
  std::memcpy(all, base + offset[0], std::size_t{kLanes} * bytes);
  HideLate(object, offset[0], kLanes * bytes, all, sampled);
  for (std::size_t l = 0; l < kLanes; ++l) std::memcpy(values[l], all + l * bytes, bytes);
}

// Notes of what the lanes have read; those of lanes one behind the other are by lines.
template <bool kChecked>
template <class F>
void EngineT<kChecked>::RecordReads(Object& object, std::uint32_t lanes,
                                    const std::uint64_t* offset, std::uint32_t bytes, Time delay,
                                    F value_of) {
  if (path_->spins.empty()) return;
  if (!dense_) {
    ForLanes(lanes, [&](int l) {
      sim_.waiting.RecordRead(*path_, object, offset[l], bytes, value_of(l), path_->clock, delay);
    });
    return;
  }
  std::byte all[kLanes * kMaxKept];
  for (int l = 0; l < kLanes; ++l) {
    std::memcpy(all + static_cast<std::size_t>(l) * bytes, value_of(l), bytes);
  }
  ForPieces(offset[0], kLanes * bytes, [&](std::uint32_t at, std::uint32_t size) {
    sim_.waiting.RecordRead(*path_, object, offset[0] + at, size, all + at, path_->clock, delay, 0,
                            size / bytes);
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
  // An aligned load that begins in an allocation and ends behind it finds what hardware has there,
  // where allocations end at multiples of 256 bytes. The checker knows better.
  const bool over_the_end = !kChecked && m.kind == MemoryOpKind::kLoad && object != nullptr &&
                            object->kind == Object::Kind::kDevice && highest < size;
  if ((size < bytes || highest > size - bytes) && !over_the_end) {
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
      FindBytes(*object, lanes, offset, bytes, base, sampled, value);
      LoadLanes(m, registers_, lanes, value[0], kKeptAt.data(), false);
      if (late_by_ != 0) sim_.waiting.RecordChange(*path_);
      RecordReads(*object, lanes, offset, bytes, sampled - path_->clock,
                  [&](int l) { return value[l]; });
      return true;
    }
    LoadLanes(m, registers_, lanes, base, offset, dense_);
    if (!path_->spins.empty() && object != nullptr) {
      const Time delay = global ? sim_.timing.DelayTo(*device_, *object) : sampled - path_->clock;
      RecordReads(*object, lanes, offset, bytes, delay, [&](int l) { return base + offset[l]; });
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
      RecordReads(*object, lanes, offset, bytes, delay, [&](int l) { return base + offset[l]; });
    }
  } else {
    if (late) early = EarlyAtomics(m, lanes, *object, base, offset, sampled, seen);
    changed_ |= AtomicLanes(m, registers_, constants_, lanes & ~early, base, offset, global);
    if (late_by_ != 0 || not_before_ != 0) sim_.waiting.RecordChange(*path_);
    if (!changed_ && !path_->spins.empty() && object != nullptr) {
      // A failed compare-and-swap and its like only read.
      RecordReads(*object, lanes, offset, bytes, sampled - path_->clock,
                  [&](int l) { return (early >> l & 1) != 0 ? seen[l] : base + offset[l]; });
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
                            path_->pc, device_->number, launch_->op, path_->clock);
    });
  }
  if (keeps && timed) {
    const bool atomic = m.kind != MemoryOpKind::kStore;
    // Of a line all lanes' bytes are under way if those of one lane have changed.
    const auto add = [&](std::uint64_t at, std::uint32_t count, const std::byte* before) {
      // One that came behind others is kept even if it changed nothing: it has seen them.
      if (not_before_ == 0 && std::memcmp(before, base + at, count) == 0) return;
      object->late.Add(at, count, before, cta_->number, sim_.now, atomic);
    };
    if (dense_ && !atomic) {
      std::byte all[kLanes * kMaxKept];
      for (std::size_t l = 0; l < kLanes; ++l) std::memcpy(all + l * bytes, old[l], bytes);
      ForPieces(offset[0], kLanes * bytes, [&](std::uint32_t at, std::uint32_t count) {
        add(offset[0] + at, count, all + at);
      });
    } else {
      ForLanes(wrote, [&](int l) { add(offset[l], bytes, old[l]); });
    }
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
        sim_.waiting.NotifyWrite(*object, offset[l], bytes, path_->clock, visible, launch_->op);
      });
    }
  }
  return true;
}

}  // namespace allranks::node
