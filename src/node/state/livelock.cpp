// The audit for livelocks; livelock.h has the theory.
#include "node/state/livelock.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "node/code/lanes.h"
#include "node/state/spin_state.h"
#include "node/state/state.h"

namespace allranks::node {
namespace {

// Warp instructions from a milestone to the first audit: a fraction of a second.
constexpr std::uint64_t kInterval = 500'000;
// Back edges of probed warps after which it is decided whether they get somewhere, and those of all
// warps after which others are probed instead (at first).
constexpr std::uint64_t kProbeEdges = 64, kProbePatience = 1 << 16;
// The share of an audit in what is executed, if it finds progress.
constexpr std::uint64_t kShare = 20;
// Back edges and virtual time without a new state that confirm a livelock.
constexpr std::uint64_t kConfirmEdges = 4096;
constexpr Time kConfirmSpan = Ms(1);
// Back edges for which paths are late now and then before it counts, how seldom, and for how long.
constexpr std::uint64_t kShakenEdges = 4096, kShakes = 4;
constexpr Time kMostShake = Us(2);
constexpr std::size_t kMostStates = std::size_t{1} << 17;
// A path that sleeps for longer than this is no reason to hope.
constexpr Time kFarAway = Ms(1000);

std::uint64_t Fold(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15;
  return hash ^ (hash >> 29);
}

std::uint64_t StateOf(const Path& path, std::uint64_t changes) {
  const FunctionCode& function = path.warp->cta->launch->code->functions[path.frame.function];
  std::uint64_t hash = Fold(Fold(changes, std::uint64_t{path.pc} << 32 | path.mask),
                            std::uint64_t{path.frame.slots} << 32 | path.frame.depth);
  const std::byte* registers = RegistersOf(path);
  const auto words = [&](std::size_t begin, std::size_t size, std::size_t step) {
    ForLanes(path.mask, [&](int l) {
      std::uint64_t value = 0;
      std::memcpy(&value, registers + begin + static_cast<std::size_t>(l) * step, size);
      hash = Fold(hash, value);
    });
  };
  if (path.mask == kAllLanes) {
    for (std::size_t at = 0; at < std::size_t{function.slots} * kSlotBytes; at += 8) {
      std::uint64_t value = 0;
      std::memcpy(&value, registers + at, 8);
      hash = Fold(hash, value);
    }
  } else {
    for (std::uint32_t slot = 0; slot < function.slots; ++slot) {
      if (slot >= function.wide_slots) {
        words(std::size_t{slot} * kSlotBytes, 4, 4);
      } else if (slot % 2 == 0) {
        words(std::size_t{slot} * kSlotBytes, 8, 8);
      }
    }
  }
  for (std::uint32_t p = 0; p < function.predicates; ++p) {
    hash = Fold(hash, PredicatesOf(path)[p] & path.mask);
  }
  return hash;
}

Time ShakeOf(std::uint64_t edge) {
  const std::uint64_t drawn = Fold(Fold(3, edge), edge);
  return drawn % kShakes != 0 ? 0 : static_cast<Time>(drawn / kShakes) % kMostShake;
}

std::uint64_t HashOf(const std::byte* place, std::byte value) {
  return Fold(Fold(0, reinterpret_cast<std::uintptr_t>(place)),
              static_cast<std::uint64_t>(value) + 1);
}

}  // namespace

void Livelock::Begin() {
  probing_ = true;
  patience_ = kProbePatience;
  Choose();
}

void Livelock::Choose() {
  for (Probed& probed : probed_) probed = {};
  edges_ = probed_edges_ = probed_new_ = 0;
}

void Livelock::Probe(const Path& path) {
  if (++edges_ > patience_) {  // these stand still, or are few of many
    patience_ *= 2;
    return Choose();
  }
  const auto probed = std::find_if(probed_.begin(), probed_.end(), [&](const Probed& one) {
    return one.warp == path.warp || one.warp == nullptr;
  });
  if (probed == probed_.end()) return;
  probed->warp = path.warp;
  if (probed->states.insert(StateOf(path, 0)).second) ++probed_new_;
  if (++probed_edges_ < kProbeEdges) return;
  if (2 * probed_new_ <= probed_edges_) return Audit();
  const bool full = std::any_of(probed_.begin(), probed_.end(),
                                [](const Probed& one) { return one.states.size() > kMostStates; });
  if (full) return Choose();
  edges_ = probed_edges_ = probed_new_ = 0;
}

void Livelock::Audit() {
  probing_ = false;
  auditing_ = true;
  found_ = shaking_ = false;
  warps_.clear();
  unit_states_.clear();
  ++period_;
  edges_ = last_new_ = 0;
  began_ = state_.stats.warp_instructions;
  quiet_since_ = state_.now;
}

void Livelock::End() {
  const std::uint64_t now = state_.stats.warp_instructions;
  std::uint64_t rest = kInterval;
  probing_ = false;
  if (auditing_) {
    rest = std::max(rest, kShare * (now - began_));
    auditing_ = found_ = shaking_ = false;
    warps_.clear();
    unit_states_.clear();
  }
  state_.audit_at = now + rest;
}

void Livelock::Enter() {
  ++entry_;
  round_ = false;
}

Time Livelock::OnBackEdge(const Path& path) {
  if (probing_) {
    Probe(path);
    return 0;
  }
  Seen& seen = warps_[path.warp];
  ++edges_;
  if (std::exchange(seen.period, period_) != period_) seen.visits = 0;
  if (std::exchange(seen.entry, entry_) != entry_) seen.entered = 0;
  ++seen.visits;
  ++seen.entered;
  if (!seen.states.insert(StateOf(path, seen.changes)).second) {
    if (!found_ && edges_ % 1024 == 0) Conclude();
    if (found_ && !round_ && edges_ % 64 == 0) round_ = AllGoRound(true);
    return shaking_ ? ShakeOf(edges_) : 0;
  }
  if (seen.states.size() > limit_) {
    limit_ = std::min(limit_ * 8, kMostStates);
    End();
    return 0;
  }
  NewState();
  return 0;
}

void Livelock::Conclude() {
  if (!Confirmed()) return;
  if (!std::exchange(shaking_, true)) shaken_from_ = edges_;
  found_ = edges_ - shaken_from_ >= kShakenEdges;
}

void Livelock::NewState() {
  found_ = round_ = shaking_ = false;
  last_new_ = edges_;
  ++period_;
  quiet_since_ = state_.now;
}

void Livelock::NewUnitState(std::uint64_t state) {
  if (!unit_states_.insert(state).second) return;
  if (unit_states_.size() > kMostStates) return End();
  NewState();
}

void Livelock::OnUnit(const Path& path) {
  NewUnitState(Fold(Fold(1, reinterpret_cast<std::uintptr_t>(path.warp)),
                    std::uint64_t{path.pc} << 32 | path.mask));
}

void Livelock::OnUnitWrite(const std::byte* place, std::size_t size) {
  std::uint64_t hash = Fold(Fold(2, reinterpret_cast<std::uintptr_t>(place)), size);
  for (std::size_t at = 0; at < size; at += 8) {
    std::uint64_t value = 0;
    std::memcpy(&value, place + at, std::min<std::size_t>(8, size - at));
    hash = Fold(hash, value);
  }
  NewUnitState(hash);
}

std::uint64_t Livelock::UnitScheduled() {
  if (std::exchange(recent_period_, period_) != period_) recent_units_ = 0;
  ++recent_units_;
  ++units_;
  return period_;
}

void Livelock::UnitDone(std::uint64_t scheduled) {
  --units_;
  if (scheduled == recent_period_) --recent_units_;
}

bool Livelock::UnitsRepeat() const {
  return units_ == (recent_period_ == period_ ? recent_units_ : 0);
}

void Livelock::OnRead(const Path& path, const Object& object, std::uint64_t offset,
                      const std::byte* value, std::uint32_t size) {
  Look& look = warps_[path.warp].look;
  // A loop that takes a lock to look at something waits for that, not for the lock; one that looks
  // at its copy of something waits for the original.
  const Code& code = *path.warp->cta->launch->code;
  const auto weight = [&](const Object& what, std::uint32_t pc) {
    const Op& op = code.ops[pc];
    if (op.kind == OpKind::kMemory && code.memory[op.aux].kind != MemoryOpKind::kLoad) return 0;
    return what.kind == Object::Kind::kShared ? 1 : 2;
  };
  if (look.object != nullptr && weight(*look.object, look.pc) > weight(object, path.pc)) return;
  look = {&object, offset, 0, path.pc};
  std::memcpy(&look.value, value, std::min<std::size_t>(size, sizeof look.value));
}

void Livelock::OnWrite(const Path& path, const std::byte* place, const std::byte* old,
                       std::uint32_t size) {
  if (std::memcmp(place, old, size) == 0) return;
  std::uint64_t& changes = warps_[path.warp].changes;
  for (std::uint32_t i = 0; i < size; ++i) {
    if (place[i] != old[i]) changes += HashOf(place + i, place[i]) - HashOf(place + i, old[i]);
  }
}

const Livelock::Look* Livelock::LookOf(const Warp& warp) const {
  const auto it = warps_.find(&warp);
  return it == warps_.end() || it->second.look.object == nullptr ? nullptr : &it->second.look;
}

bool Livelock::Confirmed() const {
  const std::uint64_t quiet = edges_ - last_new_;
  if (quiet < kConfirmEdges || quiet < 2 * last_new_) return false;
  return state_.now - quiet_since_ >= kConfirmSpan && UnitsRepeat() && AllGoRound(false);
}

// Whether every path has shown that it only goes round, or cannot move by itself.
bool Livelock::AllGoRound(bool since_entry) const {
  const auto goes_round = [&](const Warp& warp) {
    const auto it = warps_.find(&warp);
    if (it == warps_.end()) return false;
    const Seen& seen = it->second;
    if (since_entry) return seen.entry == entry_ && seen.entered >= 2;
    return seen.period == period_ && seen.visits >= 2 * seen.states.size() + 4;
  };
  for (const Device& device : state_.devices) {
    for (const Launch& launch : device.launches) {
      for (const Cta* cta : launch.ctas) {
        for (const Warp& warp : cta->warps) {
          for (const Path* path : warp.paths) {
            if (path->state == Path::State::kBarrier || path->state == Path::State::kWarpSync) {
              continue;
            }
            if (path->state == Path::State::kParked) {
              const SpinState& spin = *path->parked;
              if (!spin.due ||
                  spin.head + static_cast<Time>(spin.skip) * spin.period > state_.now + kFarAway) {
                continue;
              }
            }
            if (!goes_round(warp)) return false;
          }
        }
      }
    }
  }
  return true;
}

}  // namespace allranks::node
