// Where threads meet: barriers of warps, CTAs and clusters, mbarriers, the ends of threads; and
// asynchronous copies, which are agents beside the thread that began them.
//
// A copy is stamped as a warp of its own, by what completes it: the cp.async groups of a thread's
// warp, its bulk groups (sources and destinations apart, because wait_group.read is for sources
// only), or one mbarrier. In each of these, copies become known in the order in which they were
// begun, so one tick says it. Bulk copies belong to the asynchronous proxy: what they read must
// have passed a fence to it after it was written by threads of running kernels.
#include <algorithm>
#include <bit>

#include "node/check/checker.h"
#include "node/code/lanes.h"

namespace allranks::node::check {

WarpClocks& Checker::Of(const Path& path) { return path.warp->cta->clocks->warps[path.warp->id]; }

LaneState& Checker::StateOf(WarpClocks& warp, int lane) {
  if (warp.lanes == nullptr) warp.lanes = std::make_unique<std::array<LaneState, kLanes>>();
  return (*warp.lanes)[static_cast<std::size_t>(lane)];
}

void Checker::Separate(WarpClocks& warp, std::uint32_t lanes) {
  const std::size_t count = warp.groups.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t inside = warp.groups[i].lanes & lanes;
    if (inside == 0 || inside == warp.groups[i].lanes) continue;
    Group split = warp.groups[i];
    split.lanes = inside;
    warp.groups[i].lanes &= ~inside;
    warp.groups.push_back(std::move(split));
  }
}

Group& Checker::GroupOf(WarpClocks& warp, int lane) {
  for (Group& group : warp.groups) {
    if ((group.lanes >> lane & 1) != 0) return group;
  }
  return warp.groups.front();
}

void Checker::Coalesce(WarpClocks& warp) {
  std::vector<Group>& groups = warp.groups;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (std::size_t k = groups.size(); --k > i;) {
      if (!groups[i].Same(groups[k])) continue;
      groups[i].lanes |= groups[k].lanes;
      if (k + 1 != groups.size()) groups[k] = std::move(groups.back());
      groups.pop_back();
    }
  }
}

Group Checker::United(const std::vector<Group>& groups) const {
  const auto same = [&](const Group& group) { return group.Same(groups.front()); };
  if (!groups.empty() && std::all_of(groups.begin(), groups.end(), same)) return groups.front();
  const auto each = [&](auto of) {
    std::vector<std::decay_t<decltype(of(groups[0]))>> all;
    for (const Group& group : groups) all.push_back(of(group));
    return all;
  };
  Group all;
  all.others = join_(each([](const Group& group) { return group.others; }));
  all.own = MergedAll(each([](const Group& group) { return &group.own; }));
  all.seen = join_(each([](const Group& group) { return group.seen; }));
  all.sc.fenced = join_(each([](const Group& group) { return group.sc.fenced; }));
  all.sc.read = join_(each([](const Group& group) { return group.sc.read; }));
  all.proxied.global = join_(each([](const Group& group) { return group.proxied.global; }));
  all.proxied.shared = join_(each([](const Group& group) { return group.proxied.shared; }));
  return all;
}

// `lanes` of the warp know this from now on, together.
void Checker::Meet(WarpClocks& warp, std::uint32_t lanes, const Group& knows) {
  Separate(warp, lanes);
  std::erase_if(warp.groups, [&](const Group& group) { return (group.lanes & lanes) != 0; });
  warp.groups.push_back(knows);
  warp.groups.back().lanes = lanes;
}

void Checker::BeginCta(Cta& cta) {
  const LaunchClocks& launch = *cta.launch->clocks;
  cta.clocks = std::make_shared<CtaClocks>();
  CtaClocks& clocks = *cta.clocks;
  clocks.position.device = cta.launch->device->number;
  clocks.agent = NewAgent(launch.place, clocks.position, launch.info, cta.index);
  agents_[clocks.agent].start = launch.start;
  clocks.position.cta = clocks.agent;
  positions_[clocks.agent] = clocks.position;
  clocks.warps.resize(cta.warps.size());
  if (cta.launch->request.programmatic) cta.launch->clocks->ctas.push_back(clocks.agent);
  for (WarpClocks& warp : clocks.warps) {
    Group& group = warp.groups.emplace_back();
    group.lanes = kAllLanes;
    group.others = launch.start;
    group.proxied = {launch.start, launch.start};
  }
}

void Checker::JoinCluster(Cta& cta, std::uint64_t number) {
  cta.clocks->position.cluster = number;
  positions_[cta.clocks->agent].cluster = number;
}

void Checker::Exit(const Path& path, std::uint32_t lanes) {
  LaunchClocks& launch = *path.warp->cta->launch->clocks;
  // Shared memory ends with its block: who has begun a copy out of it waits until it has been read.
  const CtaClocks& cta = *path.warp->cta->clocks;
  if (!cta.sources.empty()) {
    const auto warp = static_cast<std::uint16_t>(kBulkReads + path.warp->id);
    ForLanes(lanes, [&](int l) {
      const auto it = cta.sources.find({path.warp->id, l});
      if (it != cta.sources.end() &&
          LanesOf(GroupOf(Of(path), l).own, warp, 1u << l, it->second.tick) == 0)
        ReportSource(path, it->second, false);
    });
  }
  const bool last =
      path.warp->cta->live_threads == static_cast<std::uint32_t>(std::popcount(lanes));
  if (last && !cta.pushes.empty()) {
    for (const auto& [warp, push] : cta.pushes) {
      bool known = false;
      for (const WarpClocks& of : cta.warps)
        for (const Group& group : of.groups)
          known = known || LanesOf(group.own, warp, 1, push.tick) != 0;
      if (!known) ReportSource(path, push, true);
    }
  }
  for (const Group& group : Of(path).groups) {
    if ((group.lanes & lanes) != 0) launch.end = join_(launch.end, group.others);
  }
}

void Checker::WarpMeets(Warp& warp, std::uint32_t lanes) {
  CtaClocks& cta = *warp.cta->clocks;
  WarpClocks& clocks = cta.warps[warp.id];
  const auto number = static_cast<std::uint16_t>(warp.id);
  if (clocks.groups.size() == 1) {
    if (lanes != kAllLanes && (warp.live & ~lanes) != 0) Separate(clocks, lanes);
  } else {
    std::vector<Group> met;
    for (const Group& group : clocks.groups)
      if ((group.lanes & lanes) != 0) met.push_back(group);
    Meet(clocks, lanes, United(met));
  }
  for (Group& group : clocks.groups) {
    if ((group.lanes & lanes) != 0) group.own = With(group.own, number, lanes, cta.tick);
  }
  ++cta.tick;
  if (Trail* trail = agents_[cta.agent].trail.get(); trail != nullptr)
    trail->WarpMet(number, lanes, ++moment_);
}

bool Checker::BarrierComes(const Path& path, std::uint32_t barrier, bool arrives) {
  CtaClocks& cta = *path.warp->cta->clocks;
  const auto warp = static_cast<std::uint16_t>(path.warp->id);
  const int lane = std::countr_zero(path.mask);
  bool known = true;
  if (const auto it = cta.left.find({barrier, warp}); it != cta.left.end()) {
    // A warp comes as a whole: one of its lanes has to know.
    for (const CtaClocks::Came& came : *it->second) {
      bool one = came.warp == warp;
      ForLanes(path.mask, [&](int l) {
        one = one || Knows(GroupOf(Of(path), l), cta, warp, l,
                           {cta.agent, came.tick, came.warp, came.lane});
      });
      known = known && one;
    }
    cta.left.erase(it);
  }
  cta.came[barrier].push_back({warp, static_cast<std::uint8_t>(lane), arrives, cta.tick});
  return known;
}

void Checker::BarrierArrives(const Path& path, std::uint32_t barrier) {
  CtaClocks& cta = *path.warp->cta->clocks;
  Group& arrived = cta.arrived[barrier];
  std::vector<Group> met{arrived};
  for (const Group& group : Of(path).groups)
    if ((group.lanes & path.mask) != 0) met.push_back(group);
  arrived = United(met);
  arrived.own = With(arrived.own, static_cast<std::uint16_t>(path.warp->id), path.mask, cta.tick);
  ++cta.tick;
}

void Checker::BarrierEnds(Cta& cta, std::uint32_t barrier, const std::vector<Path*>& waiting) {
  CtaClocks& clocks = *cta.clocks;
  std::vector<std::uint32_t> lanes(cta.warps.size());
  for (const Path* path : waiting) lanes[path->warp->id] |= path->mask;
  bool everybody = true;
  for (const Warp& warp : cta.warps) everybody &= (warp.live & ~lanes[warp.id]) == 0;
  // If everybody has come, the new base speaks for those that have exited, too: what they knew goes
  // with it.
  std::vector<Group> met;
  for (std::size_t i = 0; i < clocks.warps.size(); ++i) {
    for (const Group& group : clocks.warps[i].groups)
      if (everybody || (group.lanes & lanes[i]) != 0) met.push_back(group);
  }
  if (const auto it = clocks.arrived.find(barrier); it != clocks.arrived.end()) {
    met.push_back(it->second);
    clocks.arrived.erase(it);
  }
  if (const auto it = clocks.came.find(barrier); it != clocks.came.end()) {
    const auto phase = std::make_shared<const CtaClocks::Phase>(std::move(it->second));
    clocks.came.erase(it);
    for (const CtaClocks::Came& came : *phase)
      if (came.arrived) clocks.left[{barrier, came.warp}] = phase;
  }
  Group all = United(met);
  if (everybody) {
    all.own = WithBase(all.own, clocks.tick);
  } else {
    for (const Warp& warp : cta.warps) {
      all.own = With(all.own, static_cast<std::uint16_t>(warp.id), lanes[warp.id], clocks.tick);
    }
  }
  for (const Warp& warp : cta.warps) {
    if (lanes[warp.id] == 0) continue;
    WarpClocks& of = clocks.warps[warp.id];
    if ((warp.live & ~lanes[warp.id]) == 0) {
      of.groups.resize(1);
      of.groups[0] = all;
      of.groups[0].lanes = kAllLanes;
    } else {
      Meet(of, lanes[warp.id], all);
    }
  }
  std::uint64_t warps = 0;
  for (const Warp& warp : cta.warps)
    if (lanes[warp.id] != 0 && warp.id < 64) warps |= std::uint64_t{1} << warp.id;
  RecordBarrier(clocks, everybody ? ~std::uint64_t{0} : warps);
  ++clocks.tick;
}

void Checker::ClusterArrives(const Path& path, std::uint32_t lanes, const AsyncOp& op) {
  Cta& cta = *path.warp->cta;
  CtaClocks& clocks = *cta.clocks;
  Cluster& cluster = *cta.cluster;
  if (cluster.clocks == nullptr) cluster.clocks = std::make_shared<ClusterClocks>();
  ForLanes(lanes, [&](int l) {
    const Group& group = GroupOf(Of(path), l);
    Message said = Say(clocks, path, l, group, !op.relaxed, Scope::kCluster, clocks.tick);
    for (const Part& part : said) Merge(join_, cluster.clocks->arriving, part);
  });
  ++clocks.tick;
}

void Checker::ClusterEnds(Cluster& cluster) {
  if (cluster.clocks == nullptr) return;
  for (const Part& part : cluster.clocks->arriving) Merge(join_, cluster.clocks->ended, part);
  cluster.clocks->arriving.clear();
}

void Checker::ClusterWaited(const Path& path, std::uint32_t lanes, const AsyncOp& op) {
  const Cluster& cluster = *path.warp->cta->cluster;
  if (cluster.clocks != nullptr) HearAll(path, lanes, cluster.clocks->ended, op);
}

// Lanes that have waited together learn together.
void Checker::HearAll(const Path& path, std::uint32_t lanes, const Message& message,
                      const AsyncOp& op) {
  CtaClocks& cta = *path.warp->cta->clocks;
  WarpClocks& warp = Of(path);
  Separate(warp, lanes);
  for (const Part& part : message) {
    const Scope between = cta.position.Common(part.from);
    if (!op.relaxed && part.scope >= between && op.scope >= between) {
      for (Group& group : warp.groups) {
        if ((group.lanes & lanes) != 0) Learn(cta, group, part);
      }
    } else {
      Hear(cta, warp, lanes, {part}, false, op.scope, 0, 0);
    }
  }
}

void Checker::GridWaited(const Path& path) {
  CtaClocks& cta = *path.warp->cta->clocks;
  path.warp->cta->launch->clocks->waited = true;
  const ClockRef& primary = path.warp->cta->launch->clocks->primary;
  WarpClocks& warp = Of(path);
  Separate(warp, path.mask);
  for (Group& group : warp.groups) {
    if ((group.lanes & path.mask) != 0) {
      Learn(cta, group, {Scope::kSys, {}, primary, {}, {primary, primary}});
    }
  }
}

// --- mbarriers ---------------------------------------------------------------------------------

void Checker::MbarrierArrives(const Path& path, int lane, Cta& target, std::uint32_t offset,
                              const AsyncOp& op) {
  CtaClocks& cta = *path.warp->cta->clocks;
  const Group& group = GroupOf(Of(path), lane);
  Message& arriving = target.clocks->mbarriers[offset].arriving;
  for (const Part& part : Say(cta, path, lane, group, !op.relaxed, op.scope, cta.tick)) {
    Merge(join_, arriving, part);
  }
  ++cta.tick;
}

// The copy's bytes are known to whoever sees the phase end, and nothing else is.
void Checker::MbarrierCompletes(Cta& target, std::uint32_t offset, const ClockRef& copy) {
  Merge(join_, target.clocks->mbarriers[offset].arriving,
        {Scope::kCluster, target.clocks->position, copy, nullptr, {}});
}

void Checker::MbarrierEnds(Cta& target, std::uint32_t offset) {
  MbarrierClocks& mbarrier = target.clocks->mbarriers[offset];
  for (const Part& part : mbarrier.arriving) Merge(join_, mbarrier.ended, part);
  mbarrier.arriving.clear();
  std::erase_if(mbarrier.uses, [](const MbarrierClocks::Use& use) { return !use.wait; });
}

void Checker::MbarrierWaited(const Path& path, std::uint32_t lanes, Cta& target,
                             std::uint32_t offset, const AsyncOp& op) {
  HearAll(path, lanes, target.clocks->mbarriers[offset].ended, op);
}

// --- copies ------------------------------------------------------------------------------------

std::uint16_t Checker::CopyWarp(CtaClocks& cta, const Path& path, const Completion& by,
                                bool write) {
  const auto warp = static_cast<std::uint16_t>(path.warp->id);
  switch (by.by) {
    case Completion::By::kCopyGroup:
      return kCopyWarps + warp;
    case Completion::By::kBulkGroup:
      return (write ? kBulkWrites : kBulkReads) + warp;
    case Completion::By::kMbarrier:
      break;
  }
  const auto next = static_cast<std::uint16_t>(kMbarrierCopies + cta.copies.size() % 0x8000);
  return cta.copies.try_emplace({by.target->clocks->agent, by.offset}, next).first->second;
}

void Checker::CopyTouches(const Path& path, int lane, const Completion& by, Object& object,
                          std::uint64_t offset, std::uint64_t size, bool write,
                          std::uint32_t reduces) {
  if (size == 0 || object.kind == Object::Kind::kConst) return;
  CtaClocks& cta = *path.warp->cta->clocks;
  const bool bulk = by.by != Completion::By::kCopyGroup;
  // The copy begins after what its thread has done before.
  Group group = GroupOf(Of(path), lane);
  group.own = With(group.own, static_cast<std::uint16_t>(path.warp->id), 1u << lane, cta.tick);
  Group passed = group;  // what a fence has made known to the asynchronous proxy
  if (bulk && !write) {
    const ClockRef& proxied =
        object.kind == Object::Kind::kShared ? group.proxied.shared : group.proxied.global;
    passed.own = proxied != nullptr ? proxied->Of(cta.agent) : nullptr;
    Clock chains;
    if (group.others != nullptr) chains.chains = group.others->chains;
    passed.others = join_(Interned<Clock>::Of(std::move(chains)), proxied);
  }
  if (by.by == Completion::By::kBulkGroup && !write && object.kind == Object::Kind::kShared)
    cta.sources[{path.warp->id, lane}] = {cta.tick, lane, path.pc};
  if (by.by == Completion::By::kMbarrier && !write && object.kind == Object::Kind::kShared)
    cta.pushes[CopyWarp(cta, path, by, write)] = {cta.tick, lane, path.pc};
  Shadow& shadow = ShadowOf(object);
  const auto touch = [&](std::uint64_t from, std::uint64_t length) {
    for (std::uint64_t at = from; at < from + length;) {
      Entry entry;
      entry.agent = cta.agent;
      entry.tick = cta.tick;
      entry.pc = path.pc;
      entry.warp = CopyWarp(cta, path, by, write);
      entry.lane = static_cast<std::uint8_t>(by.by == Completion::By::kMbarrier ? 0 : lane);
      entry.first = static_cast<std::uint8_t>(at % kLineBytes);
      const std::uint64_t part =
          std::min<std::uint64_t>(kLineBytes - entry.first, from + length - at);
      entry.width = entry.stride = static_cast<std::uint8_t>(part);
      entry.kind = write ? Entry::kWrite : 0;
      if (reduces != 0) {  // PTX ISA, cp.reduce.async.bulk: each element as by red.relaxed.gpu
        entry.kind |= static_cast<std::uint8_t>(
            Entry::kStrong | Entry::kAtomic | static_cast<int>(Scope::kGpu) << Entry::kScopeShift |
            std::countr_zero(reduces) << Entry::kElementShift);
      }
      Line& line = shadow.At(at / kLineBytes);
      if (line.Mbarriers() != 0) CheckMbarriers(line, entry, object, at / kLineBytes);
      Check(line, entry, group, cta, object, at / kLineBytes);
      if (bulk && !write) {
        line.ForWrites([&](const Entry& e) {
          if (e.warp >= kBulkReads) return;  // by way of the same proxy
          if (!e.Overlaps(entry) || Unordered(e, entry, group, cta) != 0) return;
          const std::uint32_t lanes = Unordered(e, entry, passed, cta);
          if (lanes != 0) ReportRace(e, entry, lanes, &cta, object, at / kLineBytes, true);
        });
      }
      if (write) {
        line.AddWrite(entry, [&](const Entry& old) { return Stays(old, entry, group, cta); });
        if (line.history != nullptr) line.history->Erase(entry.first, entry.end());
      } else {
        line.AddRead(entry, [&](const Entry& old) { return Ordered(old, entry, group, cta); });
      }
      at += part;
    }
  };
  ForChosen(object, offset, size, touch);
}

void Checker::CopyReads(const Path& path, int lane, const Completion& by, Object& object,
                        std::uint64_t offset, std::uint64_t size) {
  CopyTouches(path, lane, by, object, offset, size, false, 0);
}

void Checker::CopyWrites(const Path& path, int lane, const Completion& by, Object& object,
                         std::uint64_t offset, std::uint64_t size, std::uint32_t reduces) {
  CopyTouches(path, lane, by, object, offset, size, true, reduces);
}

ClockRef Checker::CopyDone(const Path& path, int lane, const Completion& by) {
  CtaClocks& cta = *path.warp->cta->clocks;
  const bool group = by.by == Completion::By::kCopyGroup;
  const KnownRef done =
      With(nullptr, CopyWarp(cta, path, by, true), group ? 1u << lane : 1u, cta.tick);
  ++cta.tick;
  return With(nullptr, cta.agent, done);
}

void Checker::GroupCommits(const Path& path, std::uint32_t lanes, bool bulk) {
  constexpr std::size_t kMostGroups = 64;
  CtaClocks& cta = *path.warp->cta->clocks;
  ForLanes(lanes, [&](int l) {
    LaneState& state = StateOf(Of(path), l);
    std::vector<Tick>& groups = bulk ? state.bulks : state.copies;
    if (groups.size() >= kMostGroups) groups.erase(groups.begin());
    groups.push_back(cta.tick);
  });
  ++cta.tick;
}

void Checker::GroupWaits(const Path& path, std::uint32_t lanes, bool bulk, std::uint32_t pending,
                         bool all, bool read) {
  CtaClocks& cta = *path.warp->cta->clocks;
  WarpClocks& warp = Of(path);
  const auto number = static_cast<std::uint16_t>(path.warp->id);
  std::uint32_t left = lanes;
  while (left != 0) {
    const auto until = [&](int l) -> Tick {
      if (all) return cta.tick;
      if (warp.lanes == nullptr) return 0;
      const LaneState& state = (*warp.lanes)[static_cast<std::size_t>(l)];
      const std::vector<Tick>& groups = bulk ? state.bulks : state.copies;
      return groups.size() > pending ? groups[groups.size() - 1 - pending] : 0;
    };
    const Tick tick = until(std::countr_zero(left));
    std::uint32_t same = 0;
    ForLanes(left, [&](int l) { same |= until(l) == tick ? 1u << l : 0; });
    left &= ~same;
    if (tick == 0) continue;
    // Each lane has waited for its own copies only.
    ForLanes(same, [&](int l) {
      Separate(warp, 1u << l);
      KnownRef& own = GroupOf(warp, l).own;
      if (!bulk) {
        own = With(own, kCopyWarps + number, 1u << l, tick);
        return;
      }
      own = With(own, kBulkReads + number, 1u << l, tick);
      if (!read) own = With(own, kBulkWrites + number, 1u << l, tick);
    });
  }
}

}  // namespace allranks::node::check
