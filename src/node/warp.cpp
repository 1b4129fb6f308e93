// Paths of a warp: parting, meeting again, warp-wide operations, exit. CTA barriers: barriers.cpp.
//
// Why no lane can starve another: a path holds back lanes that wait for it at a join only while it
// can run. When it parks, waits in a barrier or for other lanes, or has taken kPatience back edges,
// ReleaseJoins lets the waiting lanes go on alone. They still meet later at outer joins.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "node/check/checker.h"
#include "node/check/errors.h"
#include "node/cluster.h"
#include "node/lanes.h"
#include "node/wait.h"
#include "node/world.h"

namespace allranks::node {
namespace {

std::uint32_t Lane32(const Path& path, Slot slot, int lane) {
  const Launch& launch = *path.warp->cta->launch;
  const std::byte* base = SlotAt(RegistersOf(path), launch.constants.data(), slot);
  std::uint32_t value = 0;
  std::memcpy(&value, base + lane * 4, 4);
  return value;
}

std::uint64_t Lane64(const Path& path, Slot slot, int lane) {
  const Launch& launch = *path.warp->cta->launch;
  const std::byte* base = SlotAt(RegistersOf(path), launch.constants.data(), slot);
  std::uint64_t value = 0;
  std::memcpy(&value, base + lane * 8, 8);
  return value;
}

void SetLane32(const Path& path, Slot slot, int lane, std::uint32_t value) {
  std::memcpy(RegistersOf(path) + slot * kSlotBytes + lane * 4, &value, 4);
}

void SetPredicate(const Path& path, Slot predicate, int lane, bool value) {
  if (value) {
    PredicatesOf(path)[predicate] |= 1u << lane;
  } else {
    PredicatesOf(path)[predicate] &= ~(1u << lane);
  }
}

const WarpOp& WarpOpOf(const Path& path) {
  const Code& code = *path.warp->cta->launch->code;
  return code.warp_ops[code.ops[path.pc].aux];
}

// The member mask of the path's first lane; those of the others may differ until they have parted.
std::uint32_t MembersOf(const Path& path) {
  const WarpOp& op = WarpOpOf(path);
  return Lane32(path, op.mask, std::countr_zero(path.mask));
}

// redux.sync.{min,max}.f32: NaNs are left out, or win with .NaN; -0 is less than +0.
std::uint32_t ReduceFloats(const WarpOp& op, const std::uint64_t* in, std::uint32_t lanes) {
  constexpr std::uint32_t kNan = 0x7fffffff, kSign = 0x80000000;
  bool any = false;
  bool nan = false;
  std::uint32_t best = 0;
  ForLanes(lanes, [&](int l) {
    const std::uint32_t bits = static_cast<std::uint32_t>(in[l]) & (op.absolute ? ~kSign : ~0u);
    if ((bits & ~kSign) > 0x7f800000) {
      nan = true;
      return;
    }
    // Ordered as unsigned numbers.
    const std::uint32_t key = (bits & kSign) != 0 ? ~bits : bits | kSign;
    if (!any || (op.what == WarpOp::What::kReduxMin ? key < best : key > best)) best = key;
    any = true;
  });
  if (!any || (nan && op.nan_wins)) return kNan;
  return (best & kSign) != 0 ? best & ~kSign : ~best;
}

// Those of `lanes` whose member mask is `members`.
std::uint32_t LanesWith(const Path& path, std::uint32_t lanes, std::uint32_t members) {
  const Slot mask = WarpOpOf(path).mask;
  const std::uint32_t live = path.warp->live;
  std::uint32_t same = 0;
  ForLanes(lanes, [&](int l) {
    same |= static_cast<std::uint32_t>((Lane32(path, mask, l) & live) == members) << l;
  });
  return same;
}

bool IsAligned(const Path& path) {
  const Code& code = *path.warp->cta->launch->code;
  return code.ops[path.pc].kind == OpKind::kMatrix;
}

// Have all lanes of the warp come to the `.aligned` operation that `path` waits in?
bool WholeWarpAt(const Path& path) {
  std::uint32_t here = 0;
  for (const Path* other : path.warp->paths) {
    if (other->state == Path::State::kWarpSync && other->pc == path.pc &&
        other->frame.slots == path.frame.slots) {
      here |= other->mask;
    }
  }
  return here == path.warp->live;
}

}  // namespace

Path* World::NewPath(Warp& warp, std::uint32_t mask, std::uint32_t pc, Time clock,
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

void World::RemovePath(Path& path) {
  Unpark(path);
  path.state = Path::State::kGone;
  path.ticket = 0;  // whatever the queues still hold of it is void
  path.spins.clear();
  auto& paths = path.warp->paths;
  paths.erase(std::find(paths.begin(), paths.end(), &path));
  free_paths_.push_back(&path);
}

void World::QueuePath(Path& path, Time time) {
  path.state = Path::State::kQueued;
  path.ordered = false;
  path.ticket = NextTicket();
  Push(path, time);
}

void World::Push(Path& path, Time time) {
  Device* device = path.warp->cta->launch->device;
  device->queue.push({time, path.ticket, &path});
  Time& head = heads[static_cast<std::size_t>(device->number)];
  head = std::min(head, time);
  Expect(device, time);
}

void World::Expect(const Device* device, Time time) {
  order_limit = std::min(order_limit, time);
  if (device != running) other_limit = std::min(other_limit, time);
}

std::int32_t World::NewJoin(Path& path, std::uint32_t pc, std::uint32_t expected) {
  auto& joins = path.warp->joins;
  auto it = std::find_if(joins.begin(), joins.end(), [](const Join& j) { return !j.used; });
  if (it == joins.end()) it = joins.emplace(joins.end());
  *it = {pc, expected, 0, path.join, 0, true, path.frame};
  return static_cast<std::int32_t>(it - joins.begin());
}

Path* World::Split(Path& path, std::uint32_t lanes, std::uint32_t reconverge) {
  const std::int32_t join =
      reconverge == 0xffffffffu ? path.join : NewJoin(path, reconverge, path.mask);
  Path* other = NewPath(*path.warp, lanes, path.pc, path.clock, join);
  other->frame = path.frame;
  path.mask &= ~lanes;
  path.join = join;
  QueuePath(*other, path.clock);
  return other;
}

void World::Part(Path& path, std::uint32_t taken, const BranchOp& branch) {
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
  path.mask = rest;
  path.pc = next;
  path.join = join;
  QueuePath(*other, path.clock);
}

bool World::ArriveAtJoin(Path& path) {
  Warp& warp = *path.warp;
  Join& join = warp.joins[static_cast<std::size_t>(path.join)];
  join.arrived |= path.mask;
  join.latest = std::max(join.latest, path.clock);
  if (join.arrived == join.expected) {
    path.mask = join.arrived;
    path.clock = join.latest;
    path.join = join.outer;
    join.used = false;
    return true;
  }
  RemovePath(path);
  ReleaseJoins(warp);
  return false;
}

void World::ReleaseJoins(Warp& warp) {
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

void World::ExitLanes(Path& path, std::uint32_t lanes) {
  Warp& warp = *path.warp;
  if (checker != nullptr) checker->Exit(path, lanes);
  Cta& cta = *warp.cta;
  warp.live &= ~lanes;
  cta.live_threads -= static_cast<std::uint32_t>(std::popcount(lanes));
  cta.end = std::max(cta.end, path.clock);
  for (Join& join : warp.joins) join.expected &= ~lanes;
  path.mask &= ~lanes;
  if (path.mask == 0) RemovePath(path);
  if (warp.live == 0) CloseRegisters(warp);
  if (cta.live_threads == 0) {
    CtaDone(cta);
    return;
  }
  ReleaseJoins(warp);
  CheckWarpSync(warp);
  CheckBarriers(cta);
  if (cta.cluster != nullptr) CheckClusterBarrier(*this, *cta.cluster);
  if (errors != nullptr) errors->OnBlocked(cta);
}

bool World::WarpOpAlone(Path& path) {
  // Several sets of lanes may be here at once, each with its own mask: tiles of a warp.
  const std::uint32_t whole = path.mask;
  const std::uint32_t live = path.warp->live;
  std::array<std::uint32_t, kLanes> sets;
  std::size_t count = 0;
  for (std::uint32_t left = whole; left != 0; left &= ~sets[count++]) {
    const std::uint32_t members = Lane32(path, WarpOpOf(path).mask, std::countr_zero(left)) & live;
    sets[count] = LanesWith(path, left, members);
    if (sets[count] != members) return false;
  }
  for (std::size_t i = 0; i < count; ++i) {
    path.mask = sets[i];
    Path* const group[] = {&path};
    ExecuteWarpOp(*path.warp, group);
  }
  path.mask = whole;
  ++path.pc;
  return true;
}

void World::ArriveAtWarpSync(Path& path) {
  const std::uint32_t same = LanesWith(path, path.mask, MembersOf(path) & path.warp->live);
  if (same != path.mask) Split(path, path.mask & ~same, path.pc + 1);
  path.state = Path::State::kWarpSync;
  if (errors != nullptr) errors->OnWarpSync(path);
  CheckWarpSync(*path.warp);
  if (path.state != Path::State::kWarpSync) return;
  ReleaseJoins(*path.warp);
  if (errors != nullptr) errors->OnBlocked(*path.warp->cta);
}

// Lanes meet by (member mask, operation), not by pc.
void World::CheckWarpSync(Warp& warp) {
  for (bool again = true; again;) {
    again = false;
    for (Path* first : warp.paths) {
      if (first->state != Path::State::kWarpSync) continue;
      if (IsAligned(*first)) {
        // Lanes that were waited for have ended: it is executed when the path is run again.
        if (!WholeWarpAt(*first)) continue;
        QueuePath(*first, first->clock);
        again = true;
        break;
      }
      const std::uint32_t members = MembersOf(*first) & warp.live;
      const WarpOp::What what = WarpOpOf(*first).what;
      std::vector<Path*> group;
      std::uint32_t here = 0;
      Time latest = 0;
      for (Path* path : warp.paths) {
        if (path->state != Path::State::kWarpSync || IsAligned(*path) ||
            WarpOpOf(*path).what != what || (MembersOf(*path) & warp.live) != members) {
          continue;
        }
        group.push_back(path);
        here |= path->mask;
        latest = std::max(latest, path->clock);
      }
      if ((members & ~here) != 0) continue;
      ExecuteWarpOp(warp, group);
      for (Path* path : group) {
        path->clock = latest + costs.step;
        ++path->pc;
      }
      // Lanes that stand at the same place again are one path again.
      for (std::size_t i = 0; i < group.size(); ++i) {
        if (group[i] == nullptr) continue;
        for (std::size_t k = i + 1; k < group.size(); ++k) {
          if (group[k] == nullptr || group[k]->pc != group[i]->pc ||
              group[k]->join != group[i]->join || group[k]->frame.depth != group[i]->frame.depth)
            continue;
          group[i]->mask |= group[k]->mask;
          RemovePath(*group[k]);
          group[k] = nullptr;
        }
        QueuePath(*group[i], group[i]->clock);
      }
      again = true;
      break;
    }
  }
}

bool World::MeetAligned(Path& path) {
  Warp& warp = *path.warp;
  path.state = Path::State::kWarpSync;
  if (!WholeWarpAt(path)) {
    if (errors != nullptr) errors->OnWarpSync(path);
    ReleaseJoins(warp);
    if (errors != nullptr) errors->OnBlocked(*warp.cta);
    return false;
  }
  path.state = Path::State::kRunning;
  std::vector<Path*> others = warp.paths;
  std::erase(others, &path);
  for (const Path* other : others) path.clock = std::max(path.clock, other->clock);
  for (Path* other : others) {
    if (other->join == path.join) {
      path.mask |= other->mask;
      RemovePath(*other);
      continue;
    }
    other->clock = path.clock + costs.step;
    ++other->pc;
    QueuePath(*other, other->clock);
  }
  return true;
}

void World::ExecuteWarpOp(Warp& warp, std::span<Path* const> group) {
  using What = WarpOp::What;
  const Code& code = *warp.cta->launch->code;
  std::uint64_t in[kLanes] = {};
  std::uint32_t lanes = 0;
  std::uint32_t votes = 0;
  for (const Path* path : group) {
    const WarpOp& op = WarpOpOf(*path);
    lanes |= path->mask;
    const bool is_vote = op.what == What::kVoteAll || op.what == What::kVoteAny ||
                         op.what == What::kVoteUni || op.what == What::kBallot;
    if (is_vote) {
      votes |= (PredicatesOf(*path)[op.source] ^ (op.source_negated ? kAllLanes : 0)) & path->mask;
    } else if (op.source != kNoSlot) {
      ForLanes(path->mask, [&](int l) {
        in[l] = op.bytes == 8 ? Lane64(*path, op.source, l) : Lane32(*path, op.source, l);
      });
    }
  }
  if (checker != nullptr && WarpOpOf(*group.front()).what == What::kSync) {
    checker->WarpMeets(warp, lanes);
  }
  for (const Path* path : group) {
    const WarpOp& op = WarpOpOf(*path);
    const Slot d = code.ops[path->pc].d;
    const auto set = [&](int l, std::uint32_t value) {
      if (d != kNoSlot) SetLane32(*path, d, l, value);
    };
    const auto set_predicate = [&](Slot p, int l, bool value) {
      if (p != kNoSlot) SetPredicate(*path, p, l, value);
    };
    switch (op.what) {
      case What::kSync:
      case What::kActiveMask:
        break;
      case What::kShflUp:
      case What::kShflDown:
      case What::kShflBfly:
      case What::kShflIdx:
        // PTX ISA, shfl.sync: c holds the clamp (bits 0-4) and the segment mask (bits 8-12).
        ForLanes(path->mask, [&](int l) {
          const auto b = static_cast<int>(Lane32(*path, op.b, l) & 31);
          const std::uint32_t c = Lane32(*path, op.c, l);
          const auto segment = static_cast<int>(c >> 8 & 31);
          const auto clamp = static_cast<int>(c & 31);
          const int max_lane = (l & segment) | (clamp & ~segment);
          const int min_lane = l & segment;
          int from = l;
          bool valid = false;
          switch (op.what) {
            case What::kShflUp:
              from = l - b;
              valid = from >= max_lane;
              break;
            case What::kShflDown:
              from = l + b;
              valid = from <= max_lane;
              break;
            case What::kShflBfly:
              from = l ^ b;
              valid = from <= max_lane;
              break;
            default:
              from = min_lane | (b & ~segment);
              valid = from <= max_lane;
              break;
          }
          if (!valid) from = l;
          set(l, static_cast<std::uint32_t>(in[from & 31]));
          set_predicate(op.predicate, l, valid);
        });
        break;
      case What::kVoteAll:
      case What::kVoteAny:
      case What::kVoteUni: {
        const bool value = op.what == What::kVoteAll   ? votes == lanes
                           : op.what == What::kVoteAny ? votes != 0
                                                       : votes == 0 || votes == lanes;
        ForLanes(path->mask, [&](int l) { set_predicate(d, l, value); });
        break;
      }
      case What::kBallot:
        ForLanes(path->mask, [&](int l) { set(l, votes); });
        break;
      case What::kMatchAny:
      case What::kMatchAll:
        ForLanes(path->mask, [&](int l) {
          std::uint32_t equal = 0;
          ForLanes(lanes, [&](int k) { equal |= in[k] == in[l] ? 1u << k : 0; });
          const bool all = equal == lanes;
          set(l, op.what == What::kMatchAny ? equal : all ? lanes : 0);
          set_predicate(op.predicate, l, all);
        });
        break;
      case What::kElect: {
        const int leader = std::countr_zero(lanes);
        ForLanes(path->mask, [&](int l) {
          set(l, static_cast<std::uint32_t>(leader));
          set_predicate(op.predicate, l, l == leader);
        });
        break;
      }
      default: {
        if (op.is_float) {
          const std::uint32_t value = ReduceFloats(op, in, lanes);
          ForLanes(path->mask, [&](int l) { set(l, value); });
          break;
        }
        std::uint32_t value = static_cast<std::uint32_t>(in[std::countr_zero(lanes)]);
        ForLanes(lanes & (lanes - 1), [&](int l) {
          const auto v = static_cast<std::uint32_t>(in[l]);
          const bool less = op.is_signed
                                ? static_cast<std::int32_t>(v) < static_cast<std::int32_t>(value)
                                : v < value;
          switch (op.what) {
            case What::kReduxAdd:
              value += v;
              break;
            case What::kReduxMin:
              value = less ? v : value;
              break;
            case What::kReduxMax:
              value = less ? value : v;
              break;
            case What::kReduxAnd:
              value &= v;
              break;
            case What::kReduxOr:
              value |= v;
              break;
            default:
              value ^= v;
              break;
          }
        });
        ForLanes(path->mask, [&](int l) { set(l, value); });
        break;
      }
    }
  }
}

}  // namespace allranks::node
