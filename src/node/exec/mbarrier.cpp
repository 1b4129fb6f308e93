// mbarrier instructions; see mbarrier.h for the layout and who wakes whom.
#include "node/exec/mbarrier.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "node/check/checker.h"
#include "node/check/errors.h"
#include "node/exec/async_internal.h"
#include "node/exec/wait.h"

namespace allranks::node {
namespace {

using Next = Simulator::AsyncNext;

// Writes the bytes and tells those who have parked on them.
void Store(Simulator& sim, Cta& cta, std::uint32_t offset, std::uint64_t word, Time at,
           Time visible) {
  const std::uint64_t old = LoadMbarrier(cta, offset);
  std::memcpy(cta.shared.data() + offset, &word, 8);
  sim.last_change = std::max(sim.last_change, at);
  sim.timer_wakes = 0;
  if (sim.livelock.auditing()) sim.livelock.OnUnitWrite(cta.shared.data() + offset, 8);
  Object& object = cta.shared_object;
  if (sim.errors != nullptr) check::Errors::OnWrite(object, offset, 8);
  if (old == word || object.watches.empty()) return;
  constexpr std::uint32_t kByte = Mbarrier::kPhaseByte;
  sim.waiting.NotifyWrite(object, offset, kByte, at, visible);
  if (old >> 56 != word >> 56) sim.waiting.NotifyWrite(object, offset + kByte, 1, at, visible);
}

// Lanes nearly always name the same mbarrier.
bool Resolve(Simulator& sim, const Path& path, const AsyncOp& a, int lane, bool own,
             SharedPlace* place) {
  return ResolveShared(sim, path, a.bar, lane, 8, 8, own, place);
}

Next Wait(Simulator& sim, Path& path, const Op& op, const AsyncOp& a, std::uint32_t lanes) {
  Cta& cta = *path.warp->cta;
  const bool waiting = path.wait_until != 0;
  std::uint32_t done = 0;
  bool hidden = false;
  Time limit = a.kind == AsyncOpKind::kTryWait ? kTryWaitLimit : 0;
  Time seen = 0;
  std::uint32_t places[kLanes], of[kLanes];
  int count = 0;
  for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
    const int l = std::countr_zero(left);
    SharedPlace place;
    if (!Resolve(sim, path, a, l, true, &place)) return Next::kGone;
    const auto note = cta.mbarriers.find(place.offset);
    if (note == cta.mbarriers.end()) {
      FaultWith(sim, path, "waits on an mbarrier that is not initialised", l);
      return Next::kGone;
    }
    const std::uint32_t phase = Mbarrier::Unpack(LoadMbarrier(cta, place.offset)).phase;
    const std::uint64_t value = LaneValue(path, a.value, l, a.parity ? 4 : 8);
    const std::uint64_t asked = a.parity ? value & 1 : value >> 63;
    if (phase != asked) {
      const Time completed = note->second.completed;
      if (a.kind == AsyncOpKind::kTryWait || completed <= path.clock) {
        done |= 1u << l;
        seen = std::max(seen, completed);
      } else {
        hidden = true;
      }
    }
    of[l] = place.offset;
    if (sim.checker != nullptr) sim.checker->MbarrierUsed(path, 1u << l, cta, place.offset, true);
    const bool ended = phase != asked;
    if (sim.errors != nullptr && (!ended || (done >> l & 1) != 0)) {
      sim.errors->OnMbarrierWait(path, cta, place.offset, 1u << l, ended,
                                 static_cast<std::uint32_t>(asked), note->second.phases);
    }
    if (std::find(places, places + count, place.offset) == places + count)
      places[count++] = place.offset;
    if (a.limit != kNoSlot) {
      const Time hint = Ns(static_cast<std::int64_t>(LaneValue(path, a.limit, l, 4)));
      limit = std::min(kTryWaitMostLimit, hint);
    }
  }
  // PTX ISA: how long a try_wait waits is up to the system, so under a schedule it may be no time.
  if (sim.checker != nullptr && !waiting && a.kind == AsyncOpKind::kTryWait &&
      sim.checker->Sometimes())
    limit = 0;
  if (a.kind == AsyncOpKind::kTryWait && done == 0) {
    if (!waiting) path.wait_until = std::max<Time>(1, path.clock + limit);
    if (path.clock < path.wait_until) {
      for (int i = 0; i < count; ++i) {
        auto& paths = cta.mbarriers[places[i]].waiting;
        if (std::find(paths.begin(), paths.end(), &path) == paths.end()) paths.push_back(&path);
      }
      path.clock = path.wait_until;  // unless the phase ends before
      sim.QueuePath(path, path.clock);
      path.state = Path::State::kBarrier;
      sim.ReleaseJoins(*path.warp);
      return Next::kBlocked;
    }
    ++sim.timer_wakes;
  }
  if (waiting || path.wait_until != 0) {
    for (int i = 0; i < count; ++i) std::erase(cta.mbarriers[places[i]].waiting, &path);
  }
  const Time begun = path.wait_until != 0 ? path.wait_until - limit : path.clock;
  path.wait_until = 0;
  path.clock = std::max(path.clock, seen);
  if (!path.spins.empty()) {
    if (hidden) sim.waiting.RecordChange(path);  // becomes true by itself
    for (int i = 0; i < count; ++i) {
      const std::uint32_t at = places[i] + Mbarrier::kPhaseByte;
      sim.waiting.RecordRead(path, cta.shared_object, at, 1, cta.shared.data() + at,
                             std::min(begun, path.clock), 0,
                             a.kind == AsyncOpKind::kTryWait ? limit : 0);
    }
  }
  path.clock += sim.costs.shared;
  if (sim.checker != nullptr) {
    for (int i = 0; i < count; ++i) {
      std::uint32_t here = 0;
      ForLanes(done, [&](int l) { here |= of[l] == places[i] ? 1u << l : 0; });
      if (here != 0) sim.checker->MbarrierWaited(path, here, cta, places[i], a);
    }
  }
  if (op.d != kNoSlot) {
    std::uint32_t& predicate = PredicatesOf(path)[op.d];
    predicate = (predicate & ~lanes) | done;
  }
  return Next::kGo;
}

}  // namespace

std::string ChangeMbarrier(Simulator& sim, Cta& cta, std::uint32_t offset,
                           const MbarrierChange& change, Time at, Time visible,
                           std::uint64_t* before) {
  const auto found = cta.mbarriers.find(offset);
  if (found == cta.mbarriers.end()) return "uses an mbarrier that is not initialised";
  Mbarrier m = Mbarrier::Unpack(LoadMbarrier(cta, offset));
  if (change.increment > kMbarrierMaxCount - m.pending) return "overflows an mbarrier's count";
  m.pending += change.increment;
  m.tx += change.tx;
  if (change.tx > 0) {
    found->second.expected += static_cast<std::uint64_t>(change.tx);
  } else {
    found->second.arrived += static_cast<std::uint64_t>(-change.tx);
  }
  if (m.tx > kMbarrierMaxTx || m.tx < -kMbarrierMaxTx) {
    return "overflows an mbarrier's transaction count (2^20 - 1)";
  }
  if (before != nullptr) *before = m.Pack();
  if (change.arrive > m.pending) {
    return fmt::format("arrives {} times at an mbarrier that waits for {} more arrivals",
                       change.arrive, m.pending);
  }
  if (change.drop > m.expected) return "drops more arrivals than an mbarrier expects";
  m.expected -= change.drop;
  m.pending -= change.arrive;
  found->second.latest = std::max(found->second.latest, visible);
  if (m.pending == 0 && m.tx == 0 && (change.arrive != 0 || change.tx != 0)) {
    if (change.no_complete) return "completes an mbarrier's phase despite .noComplete";
    m.phase ^= 1;
    m.pending = m.expected;
    found->second.completed = visible = std::exchange(found->second.latest, 0);
    if (sim.checker != nullptr) sim.checker->MbarrierEnds(cta, offset);
    ++found->second.phases;
    found->second.expected = found->second.arrived = 0;
    for (Path* path : std::exchange(found->second.waiting, {})) {
      path->clock = std::max(at, visible);
      sim.QueuePath(*path, path->clock);
    }
  }
  Store(sim, cta, offset, m.Pack(), at, visible);
  return "";
}

Next ExecuteMbarrier(Simulator& sim, Path& path, const Op& op, const AsyncOp& a,
                     std::uint32_t lanes) {
  if (a.kind == AsyncOpKind::kTestWait || a.kind == AsyncOpKind::kTryWait)
    return Wait(sim, path, op, a, lanes);
  const Time at = path.clock;
  for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
    const int l = std::countr_zero(left);
    const auto operand = [&](Slot slot, std::uint32_t otherwise) {
      return slot == kNoSlot ? otherwise : static_cast<std::uint32_t>(LaneValue(path, slot, l, 4));
    };
    if (a.kind == AsyncOpKind::kPendingCount) {
      SetLaneValue(path, op.d, l, Mbarrier::Unpack(LaneValue(path, a.value, l, 8)).pending, 4);
      continue;
    }
    const bool own = a.kind == AsyncOpKind::kInit || a.kind == AsyncOpKind::kInval;
    SharedPlace place;
    if (!Resolve(sim, path, a, l, own, &place)) return Next::kGone;
    Cta& cta = *place.cta;
    const Time visible = &cta == path.warp->cta ? at : at + sim.costs.cluster;
    MbarrierChange change;
    std::uint64_t before = 0;
    switch (a.kind) {
      case AsyncOpKind::kInit: {
        const std::uint32_t count = operand(a.count, 1);
        if (count == 0 || count > kMbarrierMaxCount) {
          FaultWith(sim, path, fmt::format("with a count of {} (1 to 2^20 - 1)", count), l);
          return Next::kGone;
        }
        Mbarrier m;
        m.pending = m.expected = count;
        if (sim.checker != nullptr) {
          const bool live = cta.mbarriers.contains(place.offset);
          sim.checker->MbarrierBegins(path, l, cta, place.offset, live);
        }
        MbarrierNote& note = cta.mbarriers[place.offset];
        note.completed = note.latest = 0;
        note.phases = 0;
        note.expected = note.arrived = 0;
        Store(sim, cta, place.offset, m.Pack(), at, visible);
        continue;
      }
      case AsyncOpKind::kInval:
        if (cta.mbarriers.erase(place.offset) == 0) {
          FaultWith(sim, path, "on an mbarrier that is not initialised", l);
          return Next::kGone;
        }
        if (sim.checker != nullptr) sim.checker->MbarrierInvalid(path, l, cta, place.offset);
        Store(sim, cta, place.offset, 0xCBCBCBCBCBCBCBCBu, at, visible);
        continue;
      case AsyncOpKind::kExpectTx:
        change.tx = operand(a.tx, 0);
        break;
      case AsyncOpKind::kCompleteTx:
        change.tx = -std::int64_t{operand(a.tx, 0)};
        break;
      case AsyncOpKind::kArriveDrop:
      case AsyncOpKind::kArrive:
        change.arrive = operand(a.count, 1);
        if (change.arrive == 0 || change.arrive > kMbarrierMaxCount) {
          FaultWith(sim, path, "with a count that is not in 1 to 2^20 - 1", l);
          return Next::kGone;
        }
        if (a.kind == AsyncOpKind::kArriveDrop) change.drop = change.arrive;
        change.tx = operand(a.tx, 0);
        change.no_complete = a.no_complete;
        break;
      default:
        break;
    }
    if (sim.checker != nullptr) {
      sim.checker->MbarrierUsed(path, 1u << l, cta, place.offset, false);
      if (change.arrive != 0) sim.checker->MbarrierArrives(path, l, cta, place.offset, a);
    }
    const std::string wrong = ChangeMbarrier(sim, cta, place.offset, change, at, visible, &before);
    if (!wrong.empty()) {
      FaultWith(sim, path, wrong, l);
      return Next::kGone;
    }
    SetLaneValue(path, op.d, l, before, 8);
  }
  if (op.d != kNoSlot) {
    Warp& warp = *path.warp;
    ReadyOf(path)[op.d] = at + (a.kind == AsyncOpKind::kPendingCount ? 0 : sim.costs.shared);
    warp.pending_until = std::max(warp.pending_until, ReadyOf(path)[op.d]);
  }
  return Next::kGo;
}

}  // namespace allranks::node
