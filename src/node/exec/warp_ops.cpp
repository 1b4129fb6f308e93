// Operations that lanes of a warp execute together: shuffles, votes, matches, reductions,
// bar.warp.sync, and how lanes of several paths meet for them. `.aligned` ones (matrices) meet here
// and are executed by the engine.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <vector>

#include "node/check/checker.h"
#include "node/check/errors.h"
#include "node/code/lanes.h"
#include "node/exec/simulator.h"

namespace allranks::node {
namespace {

template <class Word>
Word LaneOf(const Path& path, Slot slot, int lane) {
  const Launch& launch = *path.warp->cta->launch;
  const std::byte* base = SlotAt(RegistersOf(path), launch.constants.data(), slot);
  Word value = 0;
  std::memcpy(&value, base + static_cast<std::size_t>(lane) * sizeof value, sizeof value);
  return value;
}
std::uint32_t Lane32(const Path& path, Slot slot, int lane) {
  return LaneOf<std::uint32_t>(path, slot, lane);
}
std::uint64_t Lane64(const Path& path, Slot slot, int lane) {
  return LaneOf<std::uint64_t>(path, slot, lane);
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

// What a lane gets from one that takes no part; nothing that looks right.
constexpr std::uint32_t kUndefined = 0xCBCBCBCB;

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
    if (!any || (op.kind == WarpOpKind::kReduxMin ? key < best : key > best)) best = key;
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

bool Simulator::WarpOpAlone(Path& path) {
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
  if (errors != nullptr && WarpOpOf(path).kind != WarpOpKind::kActiveMask) errors->OnWarpOp(path);
  ++path.pc;
  return true;
}

void Simulator::ArriveAtWarpSync(Path& path) {
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
void Simulator::CheckWarpSync(Warp& warp) {
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
      const WarpOpKind kind = WarpOpOf(*first).kind;
      std::vector<Path*> group;
      std::uint32_t here = 0;
      Time latest = 0;
      for (Path* path : warp.paths) {
        if (path->state != Path::State::kWarpSync || IsAligned(*path) ||
            WarpOpOf(*path).kind != kind || (MembersOf(*path) & warp.live) != members) {
          continue;
        }
        group.push_back(path);
        here |= path->mask;
        latest = std::max(latest, path->clock);
      }
      if ((members & ~here) != 0) continue;
      ExecuteWarpOp(warp, group);
      // All still stand at the operation.
      if (errors != nullptr)
        for (const Path* path : group) errors->OnWarpOp(*path);
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

bool Simulator::MeetAligned(Path& path) {
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

void Simulator::ExecuteWarpOp(Warp& warp, std::span<Path* const> group) {
  const Code& code = *warp.cta->launch->code;
  std::uint64_t in[kLanes] = {};
  std::uint32_t lanes = 0;
  std::uint32_t votes = 0;
  for (const Path* path : group) {
    const WarpOp& op = WarpOpOf(*path);
    lanes |= path->mask;
    const bool is_vote = op.kind == WarpOpKind::kVoteAll || op.kind == WarpOpKind::kVoteAny ||
                         op.kind == WarpOpKind::kVoteUni || op.kind == WarpOpKind::kBallot;
    if (is_vote) {
      votes |= (PredicatesOf(*path)[op.source] ^ (op.source_negated ? kAllLanes : 0)) & path->mask;
    } else if (op.source != kNoSlot) {
      ForLanes(path->mask, [&](int l) {
        in[l] = op.bytes == 8 ? Lane64(*path, op.source, l) : Lane32(*path, op.source, l);
      });
    }
  }
  if (checker != nullptr && WarpOpOf(*group.front()).kind == WarpOpKind::kSync) {
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
    switch (op.kind) {
      case WarpOpKind::kSync:
      case WarpOpKind::kActiveMask:
        break;
      case WarpOpKind::kShflUp:
      case WarpOpKind::kShflDown:
      case WarpOpKind::kShflBfly:
      case WarpOpKind::kShflIdx:
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
          switch (op.kind) {
            case WarpOpKind::kShflUp:
              from = l - b;
              valid = from >= max_lane;
              break;
            case WarpOpKind::kShflDown:
              from = l + b;
              valid = from <= max_lane;
              break;
            case WarpOpKind::kShflBfly:
              from = l ^ b;
              valid = from <= max_lane;
              break;
            default:
              from = min_lane | (b & ~segment);
              valid = from <= max_lane;
              break;
          }
          if (!valid) from = l;
          // PTX ISA, shfl.sync: what comes from a lane that takes no part is undefined.
          const bool there = (lanes >> from & 1) != 0;
          if (!there && errors != nullptr) errors->OnShuffle(*path, l, from, lanes);
          set(l, there ? static_cast<std::uint32_t>(in[from]) : kUndefined);
          set_predicate(op.predicate, l, valid);
        });
        break;
      case WarpOpKind::kVoteAll:
      case WarpOpKind::kVoteAny:
      case WarpOpKind::kVoteUni: {
        const bool value = op.kind == WarpOpKind::kVoteAll   ? votes == lanes
                           : op.kind == WarpOpKind::kVoteAny ? votes != 0
                                                             : votes == 0 || votes == lanes;
        ForLanes(path->mask, [&](int l) { set_predicate(d, l, value); });
        break;
      }
      case WarpOpKind::kBallot:
        ForLanes(path->mask, [&](int l) { set(l, votes); });
        break;
      case WarpOpKind::kMatchAny:
      case WarpOpKind::kMatchAll:
        ForLanes(path->mask, [&](int l) {
          std::uint32_t equal = 0;
          ForLanes(lanes, [&](int k) { equal |= in[k] == in[l] ? 1u << k : 0; });
          const bool all = equal == lanes;
          set(l, op.kind == WarpOpKind::kMatchAny ? equal : all ? lanes : 0);
          set_predicate(op.predicate, l, all);
        });
        break;
      case WarpOpKind::kElect: {
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
          switch (op.kind) {
            case WarpOpKind::kReduxAdd:
              value += v;
              break;
            case WarpOpKind::kReduxMin:
              value = less ? v : value;
              break;
            case WarpOpKind::kReduxMax:
              value = less ? value : v;
              break;
            case WarpOpKind::kReduxAnd:
              value &= v;
              break;
            case WarpOpKind::kReduxOr:
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
