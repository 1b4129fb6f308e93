// Named barriers of a CTA: bar and barrier{.cta} .sync, .arrive and .red.
//
// PTX ISA: a thread waits for all threads of its warp that have not exited, then its warp has
// arrived, and counts as 32 threads whatever it has left. So a barrier counts warps; lanes that
// come apart from the rest of their warp are kept in `partial` until the rest has come or exited.
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "node/check/checker.h"
#include "node/check/errors.h"
#include "node/code/lanes.h"
#include "node/exec/simulator.h"
#include "node/exec/wait.h"

namespace allranks::node {
namespace {

std::uint32_t Value(const Path& path, Slot slot) {
  const Launch& launch = *path.warp->cta->launch;
  const std::byte* base = SlotAt(RegistersOf(path), launch.constants.data(), slot);
  std::uint32_t value = 0;
  std::memcpy(&value, base + std::countr_zero(path.mask) * 4, 4);
  return value;
}

const BarrierOp& OpOf(const Path& path) {
  const Code& code = *path.warp->cta->launch->code;
  return code.barriers[code.ops[path.pc].aux];
}

// What bar.red gives to the lanes of a path.
void WriteVotes(const Path& path, const NamedBarrier& barrier) {
  const BarrierOp& op = OpOf(path);
  const Slot d = path.warp->cta->launch->code->ops[path.pc].d;
  if (op.source == kNoSlot || d == kNoSlot) return;
  if (op.kind == BarrierOpKind::kRedPopc) {
    ForLanes(path.mask, [&](int l) {
      std::memcpy(RegistersOf(path) + d * kSlotBytes + l * 4, &barrier.votes, 4);
    });
    return;
  }
  const bool value =
      op.kind == BarrierOpKind::kRedAnd ? barrier.votes == barrier.voters : barrier.votes != 0;
  std::uint32_t& predicate = PredicatesOf(path)[d];
  predicate = value ? predicate | path.mask : predicate & ~path.mask;
}

}  // namespace

void Simulator::ArriveAtBarrier(Path& path, const BarrierOp& op) {
  Warp& warp = *path.warp;
  Cta& cta = *warp.cta;
  const std::uint32_t id = Value(path, op.id);
  if (id >= 16) {
    Fault(path, Status::kIllegalInstruction, "barrier number above 15");
    return;
  }
  if (cta.barriers.empty()) cta.barriers.resize(16);
  NamedBarrier& barrier = cta.barriers[id];
  const std::uint32_t count = op.threads == kNoSlot ? 0 : Value(path, op.threads);
  if (errors != nullptr) errors->OnBarrier(path, id, barrier, count);
  if (checker != nullptr && op.threads != kNoSlot &&
      !checker->BarrierComes(path, id, op.kind == BarrierOpKind::kArrive)) {
    errors->OnUnorderedBarrier(path, id);
  }
  if (op.threads != kNoSlot) barrier.expected = count;
  barrier.latest = std::max(barrier.latest, path.clock);
  if (op.source != kNoSlot) {
    const std::uint32_t p =
        (PredicatesOf(path)[op.source] ^ (op.source_negated ? kAllLanes : 0)) & path.mask;
    barrier.votes += static_cast<std::uint32_t>(std::popcount(p));
    barrier.voters += static_cast<std::uint32_t>(std::popcount(path.mask));
  }
  if (path.mask == warp.live) {
    ++barrier.warps;
    barrier.came |= 1u << warp.id;
  } else {
    barrier.partial.resize(cta.warps.size());
    barrier.partial[warp.id] |= path.mask;
  }
  if (checker != nullptr && op.kind == BarrierOpKind::kArrive) checker->BarrierArrives(path, id);
  if (op.kind == BarrierOpKind::kArrive && path.mask == warp.live) {
    ++path.pc;
    QueuePath(path, path.clock);
  } else {
    path.state = Path::State::kBarrier;
    barrier.waiting.push_back(&path);
  }
  CheckBarrier(cta, barrier);
  if (path.state != Path::State::kBarrier) return;
  ReleaseJoins(warp);
  if (errors != nullptr) errors->OnBlocked(cta);
}

void Simulator::CheckBarriers(Cta& cta) {
  for (NamedBarrier& barrier : cta.barriers) {
    if (barrier.Used()) CheckBarrier(cta, barrier);
  }
}

void Simulator::CheckBarrier(Cta& cta, NamedBarrier& barrier) {
  for (std::size_t w = 0; w < barrier.partial.size(); ++w) {
    if (barrier.partial[w] == 0 || (cta.warps[w].live & ~barrier.partial[w]) != 0) continue;
    if (errors != nullptr) errors->OnParts(cta.warps[w], barrier);
    barrier.partial[w] = 0;
    barrier.came |= 1u << w;
    ++barrier.warps;
    // Whoever only arrives has waited long enough.
    std::erase_if(barrier.waiting, [&](Path* path) {
      if (path->warp != &cta.warps[w] || OpOf(*path).kind != BarrierOpKind::kArrive) return false;
      path->clock = std::max(path->clock, barrier.latest);
      ++path->pc;
      QueuePath(*path, path->clock);
      return true;
    });
  }
  if (barrier.warps == 0) return;
  if (barrier.expected != 0) {
    if (std::uint64_t{barrier.warps} * kLanes < barrier.expected) return;
  } else {
    std::uint32_t alive = 0;
    for (const Warp& warp : cta.warps) alive += warp.live != 0 ? 1 : 0;
    if (barrier.warps < alive) return;
  }
  const NamedBarrier done = std::exchange(barrier, {});
  if (checker != nullptr) {
    checker->BarrierEnds(cta, static_cast<std::uint32_t>(&barrier - cta.barriers.data()),
                         done.waiting);
  }
  const Time at = done.latest + costs.barrier;
  for (Path* path : done.waiting) {
    WriteVotes(*path, done);
    path->clock = at;
    ++path->pc;
    QueuePath(*path, at);
  }
}

}  // namespace allranks::node
