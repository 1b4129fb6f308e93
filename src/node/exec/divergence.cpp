// Paths of a warp: parting, meeting again, exit. Warp-wide operations: warp_ops.cpp; CTA barriers:
// barriers.cpp.
//
// Why no lane can starve another: a path holds back lanes that wait for it at a join only while it
// can run. When it parks, waits in a barrier or for other lanes, or has taken kPatience back edges,
// ReleaseJoins lets the waiting lanes go on alone. They still meet later at outer joins.
#include <algorithm>
#include <bit>

#include "node/check/checker.h"
#include "node/check/errors.h"
#include "node/exec/cluster.h"
#include "node/exec/simulator.h"
#include "node/exec/wait.h"

namespace allranks::node {

Path* Simulator::NewPath(Warp& warp, std::uint32_t mask, std::uint32_t pc, Time clock,
                         std::int32_t join) {
  if (free_paths_.empty()) {
    path_pool_.emplace_back();
    free_paths_.push_back(&path_pool_.back());
  }
  Path* path = free_paths_.back();
  free_paths_.pop_back();
  path->warp = &warp;
  path->mask = mask;
  path->pc = pc;
  path->clock = clock;
  path->quantum_end = 0;
  path->join = join;
  path->frame = {};
  path->back_edges = 0;
  path->overdue = false;
  path->release_goal = 0;
  path->wait_until = 0;
  warp.paths.push_back(path);
  return path;
}

void Simulator::RemovePath(Path& path) {
  waiting.Unpark(path);
  if (delays.on()) delays.Gone(&path);
  path.state = Path::State::kGone;
  path.ticket = 0;  // whatever the queues still hold of it is void
  path.spins.clear();
  auto& paths = path.warp->paths;
  paths.erase(std::find(paths.begin(), paths.end(), &path));
  free_paths_.push_back(&path);
}

void Simulator::QueuePath(Path& path, Time time) {
  path.state = Path::State::kQueued;
  path.ordered = false;
  path.ticket = NextTicket();
  Push(path, time);
}

void Simulator::Push(Path& path, Time time) {
  Device* device = path.warp->cta->launch->device;
  device->queue.push({time, path.ticket, &path});
  Time& head = heads[static_cast<std::size_t>(device->number)];
  head = std::min(head, time);
  Expect(device, time);
}

void Simulator::Expect(const Device* device, Time time) {
  order_limit = std::min(order_limit, time);
  if (device != running) other_limit = std::min(other_limit, time);
}

std::int32_t Simulator::NewJoin(Path& path, std::uint32_t pc, std::uint32_t expected) {
  auto& joins = path.warp->joins;
  auto it = std::find_if(joins.begin(), joins.end(), [](const Join& j) { return !j.used; });
  if (it == joins.end()) it = joins.emplace(joins.end());
  *it = {pc, expected, 0, path.join, 0, true, false, path.frame};
  return static_cast<std::int32_t>(it - joins.begin());
}

Path* Simulator::Split(Path& path, std::uint32_t lanes, std::uint32_t reconverge) {
  const std::int32_t join =
      reconverge == 0xffffffffu ? path.join : NewJoin(path, reconverge, path.mask);
  Path* other = NewPath(*path.warp, lanes, path.pc, path.clock, join);
  other->frame = path.frame;
  if (join >= 0) path.warp->joins[static_cast<std::size_t>(join)].parted = true;
  path.mask &= ~lanes;
  path.join = join;
  QueuePath(*other, path.clock);
  return other;
}

void Simulator::Diverge(Path& path, std::uint32_t taken, const BranchOp& branch) {
  Warp& warp = *path.warp;
  const std::uint32_t rest = path.mask & ~taken;
  const std::uint32_t next = path.pc + 1;
  std::int32_t join = path.join;
  if (branch.reconverge != 0xffffffffu) {
    join = NewJoin(path, branch.reconverge, path.mask);
    Join& j = warp.joins[static_cast<std::size_t>(join)];
    if (branch.target == branch.reconverge || next == branch.reconverge) {
      // One side is at the meeting point already.
      const bool taken_waits = branch.target == branch.reconverge;
      j.arrived = taken_waits ? taken : rest;
      j.latest = path.clock;
      path.mask = taken_waits ? rest : taken;
      path.pc = taken_waits ? next : branch.target;
      path.join = join;
      return;
    }
  }
  Path* other = NewPath(warp, taken, branch.target, path.clock, join);
  other->frame = path.frame;
  if (join >= 0) warp.joins[static_cast<std::size_t>(join)].parted = true;
  path.mask = rest;
  path.pc = next;
  path.join = join;
  QueuePath(*other, path.clock);
}

bool Simulator::ArriveAtJoin(Path& path) {
  Warp& warp = *path.warp;
  Join& join = warp.joins[static_cast<std::size_t>(path.join)];
  join.arrived |= path.mask;
  join.latest = std::max(join.latest, path.clock);
  if (join.arrived == join.expected) {
    path.mask = join.arrived;
    path.clock = join.latest;
    path.join = join.outer;
    join.used = false;
    if (join.parted && !path.spins.empty()) waiting.RecordChange(path);
    return true;
  }
  RemovePath(path);
  ReleaseJoins(warp);
  return false;
}

void Simulator::ReleaseJoins(Warp& warp) {
  for (bool again = true; again;) {
    again = false;
    std::uint32_t runnable = 0;
    for (const Path* path : warp.paths) {
      const bool can_run =
          path->state == Path::State::kQueued || path->state == Path::State::kRunning;
      if (can_run && !path->overdue) runnable |= path->mask;
    }
    for (std::size_t i = 0; i < warp.joins.size(); ++i) {
      Join& join = warp.joins[i];
      if (!join.used) continue;
      if (join.expected == 0) {
        join.used = false;
        continue;
      }
      if (join.arrived == 0) continue;
      const std::uint32_t missing = join.expected & ~join.arrived;
      if ((missing & runnable) != 0) continue;
      bool inner_waits = false;
      for (std::size_t k = 0; k < warp.joins.size(); ++k) {
        inner_waits |= k != i && warp.joins[k].used && (warp.joins[k].arrived & missing) != 0;
      }
      if (inner_waits) continue;
      Path* path = NewPath(warp, join.arrived, join.pc, std::max(join.latest, Time{0}), join.outer);
      path->frame = join.frame;
      join.expected = missing;
      join.arrived = 0;
      if (missing == 0) join.used = false;
      QueuePath(*path, path->clock);
      again = true;
      break;
    }
  }
}

void Simulator::ExitLanes(Path& path, std::uint32_t lanes) {
  Warp& warp = *path.warp;
  livelock.End();
  if (checker != nullptr) checker->Exit(path, lanes);
  if (errors != nullptr) errors->OnExit(path, lanes);
  Cta& cta = *warp.cta;
  warp.live &= ~lanes;
  cta.live_threads -= static_cast<std::uint32_t>(std::popcount(lanes));
  cta.end = std::max(cta.end, path.clock);
  for (Join& join : warp.joins) join.expected &= ~lanes;
  path.mask &= ~lanes;
  if (path.mask == 0) RemovePath(path);
  if (warp.live == 0) residency.CloseRegisters(warp);
  if (cta.live_threads == 0) {
    residency.CtaDone(cta);
    return;
  }
  ReleaseJoins(warp);
  CheckWarpSync(warp);
  CheckBarriers(cta);
  if (cta.cluster != nullptr) CheckClusterBarrier(*this, *cta.cluster);
  if (errors != nullptr) errors->OnBlocked(cta);
}

}  // namespace allranks::node
