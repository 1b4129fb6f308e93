// What strong writes say and who hears it: releases, acquires, fences. See history.h.
//
// A release is what the thread knew at its release, at its last fence of each scope, and what the
// write says that it follows on (a read-modify-write goes on with the sequence it has read from).
// An acquire learns it if both scopes have the other's thread; a relaxed load keeps it until a
// fence follows.
#include <algorithm>
#include <bit>

#include "node/check/checker.h"
#include "node/code/lanes.h"

namespace allranks::node::check {
namespace {

constexpr std::size_t kMaxPending = 64;

// One more thing that a fence will acquire.
void Keep(const Joins& join, std::vector<Pending>& pending, const Pending& heard) {
  const Part& part = heard.part;
  const auto alike = [&](const Pending& old) {
    return old.part.scope == part.scope && old.part.from.device == part.from.device;
  };
  auto known = std::find_if(pending.begin(), pending.end(), [&](const Pending& old) {
    return old.object == heard.object && old.offset == heard.offset && alike(old) &&
           old.part.from.cta == part.from.cta;
  });
  // Too many flags to tell apart: one more joins another of its kind.
  const bool full = pending.size() >= kMaxPending;
  if (full && known == pending.end()) known = std::find_if(pending.begin(), pending.end(), alike);
  if (known != pending.end()) return Absorb(join, known->part, part);
  if (full) pending.erase(pending.begin());
  pending.push_back(heard);
}

}  // namespace

ClockRef Checker::Full(Agent agent, const Group& group, std::uint16_t warp, std::uint32_t lanes,
                       Tick tick) {
  return With(group.others, agent, With(group.own, warp, lanes, tick));
}

void Checker::Learn(CtaClocks& cta, Group& group, const Part& part) {
  group.seen = join_(group.seen, part.seen);
  group.sc = Join(join_, group.sc, part.sc);
  group.proxied = Join(join_, group.proxied, part.proxied);
  // Who knows a thread at its release has learned it from that one or a later one of the thread,
  // and with it all that the thread knew.
  if (part.own != nullptr && group.others != nullptr && part.agent != cta.agent) {
    const KnownRef known = group.others->Of(part.agent);
    if (known != nullptr && known->Covers(*part.own)) return;
  }
  if (part.clock != nullptr && part.clock != group.others) {
    group.own = Merged(group.own, part.clock->Of(cta.agent));
    group.others = join_(group.others, part.clock);
  }
  if (part.own != nullptr && part.agent == cta.agent) {
    group.own = Merged(group.own, part.own);
  } else if (part.own != nullptr) {
    group.others = Plus(group.others, part.agent, part.own);
  }
}

// What a strong write of a lane says.
Message Checker::Say(const CtaClocks& cta, const Path& path, int lane, const Group& group,
                     bool releases, Scope scope, Tick tick) const {
  Message message;
  const auto warp = static_cast<std::uint16_t>(path.warp->id);
  if (releases) {
    message.push_back({scope, cta.position, group.others, group.seen, group.proxied, cta.agent,
                       With(group.own, warp, 1u << lane, tick), group.sc});
  }
  const WarpClocks& clocks = cta.warps[path.warp->id];
  if (clocks.lanes == nullptr) return message;
  if (const Tick inits = (*clocks.lanes)[static_cast<std::size_t>(lane)].inits;
      inits != 0 && !(releases && scope >= Scope::kCluster)) {
    const auto own = static_cast<std::uint16_t>(kMbarrierInits + path.warp->id);
    message.push_back({Scope::kCluster,
                       cta.position,
                       nullptr,
                       nullptr,
                       {},
                       cta.agent,
                       With(nullptr, own, 1u << lane, inits)});
  }
  for (const auto& fence : (*clocks.lanes)[static_cast<std::size_t>(lane)].fences) {
    if (releases && fence->scope <= scope) continue;
    const Group& knew = fence->knew;
    message.push_back({fence->scope, cta.position, knew.others, knew.seen, knew.proxied, cta.agent,
                       With(knew.own, warp, 1u << lane, fence->tick), knew.sc});
  }
  return message;
}

// Lanes have got what a release says. True: they have acquired some of it; the rest waits for a
// fence.
bool Checker::Hear(CtaClocks& cta, WarpClocks& warp, std::uint32_t lanes, const Message& message,
                   bool acquires, Scope scope, std::uint32_t object, std::uint64_t offset) {
  bool learned = false;
  for (const Part& part : message) {
    const Scope between = cta.position.Common(part.from);
    if (part.scope < between) continue;
    if (!acquires || scope < between) {
      ForLanes(lanes,
               [&](int l) { Keep(join_, StateOf(warp, l).pending, {part, object, offset}); });
      continue;
    }
    learned = true;
    const std::size_t count = warp.groups.size();
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t inside = warp.groups[i].lanes & lanes;
      if (inside == 0) continue;
      Group more = warp.groups[i];
      Learn(cta, more, part);
      if (more.Same(warp.groups[i])) continue;
      more.lanes = inside;
      if (inside == warp.groups[i].lanes) {
        warp.groups[i] = std::move(more);
      } else {  // whoever shares the group has not read it
        warp.groups[i].lanes &= ~inside;
        warp.groups.push_back(std::move(more));
      }
    }
  }
  return learned;
}

void Checker::Fence(const Path& path, const MemoryOp& op, std::uint32_t mask) {
  CtaClocks& cta = *path.warp->cta->clocks;
  WarpClocks& warp = Of(path);
  const auto number = static_cast<std::uint16_t>(path.warp->id);
  if (op.inits) {
    ForLanes(mask, [&](int l) { StateOf(warp, l).inits = cta.tick; });
    ++cta.tick;
    return;
  }
  if (op.proxy) {
    Separate(warp, mask);
    for (Group& group : warp.groups) {
      if ((group.lanes & mask) == 0) continue;
      const ClockRef all = Full(cta.agent, group, number, group.lanes, cta.tick);
      const bool global = op.space == ptx::Space::kNone || op.space == ptx::Space::kGlobal;
      const bool shared = op.space == ptx::Space::kNone || op.space == ptx::Space::kShared;
      const Proxied passed{global ? all : nullptr, shared ? all : nullptr};
      group.proxied = Join(join_, group.proxied, passed);
    }
    ++cta.tick;
    return;
  }
  RecordFence(cta, path, op, mask);
  // It acquires what its thread has read before.
  const auto covers = [&](const Part& part) { return op.scope >= cta.position.Common(part.from); };
  if (warp.lanes != nullptr && op.order != Order::kRelease) {
    ForLanes(mask, [&](int l) {
      std::vector<Pending>& pending = StateOf(warp, l).pending;
      bool any = false;
      for (const Pending& old : pending) any |= covers(old.part);
      if (!any) return;
      Separate(warp, 1u << l);
      Group& group = GroupOf(warp, l);
      for (const Pending& old : pending) {
        if (covers(old.part)) Learn(cta, group, old.part);
      }
      std::erase_if(pending, [&](const Pending& old) { return covers(old.part); });
    });
    Coalesce(warp);
  }
  if (op.order == Order::kSc && op.scope == Scope::kSys) {
    Separate(warp, mask);
    for (Group& group : warp.groups) {
      if ((group.lanes & mask) == 0) continue;
      // A fence.sc before a write that was read before this one comes before this one in every run:
      // the other way round the read would be ordered before the write that it has read.
      if (group.sc.read != nullptr) {
        group.own = Merged(group.own, group.sc.read->Of(cta.agent));
        group.others = join_(group.others, group.sc.read);
        group.sc.read = nullptr;
      }
      group.sc.fenced = Full(cta.agent, group, number, group.lanes, cta.tick);
    }
  }
  if (op.order == Order::kSc && seed_ != 0) {
    // The order in which they are executed is the order of fence.sc.
    Separate(warp, mask);
    for (Group& group : warp.groups) {
      if ((group.lanes & mask) == 0) continue;
      // One by CTA, cluster, device and system: those whose scopes have each other meet in one.
      const std::uint64_t places[] = {std::uint64_t{1} << 62 | cta.agent,
                                      std::uint64_t{1} << 61 | cta.position.cluster,
                                      static_cast<std::uint64_t>(cta.position.device) + 1, 0};
      ClockRef all;
      const ClockRef mine =
          join_(Full(cta.agent, group, number, group.lanes, cta.tick), group.seen);
      for (int level = 0; level <= static_cast<int>(op.scope); ++level) {
        if (level == static_cast<int>(Scope::kCluster) && cta.position.cluster == 0) continue;
        ClockRef& met = fence_sc_[places[level]];
        all = join_(all, met);
        met = join_(met, mine);
      }
      group.seen = join_(group.seen, all);
    }
  }
  if (op.order != Order::kAcquire) {
    for (const Group& group : warp.groups) {
      const std::uint32_t lanes = group.lanes & mask;
      if (lanes == 0) continue;
      auto snapshot = std::make_shared<Snapshot>();
      snapshot->scope = op.scope;
      snapshot->tick = cta.tick;
      snapshot->knew = group;
      ForLanes(lanes, [&](int l) {
        auto& fences = StateOf(warp, l).fences;
        std::erase_if(fences, [&](const auto& old) { return old->scope <= op.scope; });
        fences.push_back(snapshot);
      });
    }
  }
  ++cta.tick;
}

}  // namespace allranks::node::check
