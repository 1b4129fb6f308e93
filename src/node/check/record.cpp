// What blocks do that may be a link of a chain, for remedies: their trails (trail.h).
#include <bit>
#include <memory>
#include <utility>

#include "node/check/checker.h"
#include "node/check/trail.h"

namespace allranks::node::check {

Trail* Checker::TrailOf(const CtaClocks& cta) {
  AgentInfo& agent = agents_[cta.agent];
  if (agent.trail == nullptr) {
    agent.trail = std::make_unique<Trail>();
    trails_.push_back(cta.agent);
    if (trails_.size() > kMostTrails) {
      agents_[trails_.front()].trail.reset();
      trails_.pop_front();
    }
  }
  return agent.trail.get();
}

// Something that lanes of a path do now.
Event Checker::EventOf(Event::Kind kind, const CtaClocks& cta, const Path& path,
                       std::uint32_t lanes) {
  Event event;
  event.kind = kind;
  event.warp = static_cast<std::uint16_t>(path.warp->id);
  event.lanes = lanes;
  event.pc = path.pc;
  event.tick = cta.tick;
  event.moment = ++moment_;
  return event;
}

void Checker::RecordRead(const CtaClocks& cta, const Path& path, std::uint32_t lanes,
                         const MemoryOp& op, const StrongWrite& write, std::uint32_t object,
                         std::uint64_t offset) {
  if (write.by.agent == 0) return;
  if (const LaunchInfo& by = *agents_[write.by.agent].info; by.code == nullptr) {
    agents_[cta.agent].told = by.site;
    return;
  }
  const auto warp = static_cast<std::uint16_t>(path.warp->id);
  if (write.by.agent == cta.agent && write.by.warp == warp && lanes == 1u << write.by.lane) return;
  Trail& trail = *TrailOf(cta);
  if (trail.Polled(warp, lanes, path.pc, write.number)) return;
  Event event = EventOf(Event::Kind::kRead, cta, path, lanes);
  event.acquires = op.Acquires();
  event.atomic = write.atomic;
  event.vector = op.count > 1;
  event.scope = op.scope;
  event.element = op.bytes;
  event.object = object;
  event.offset = offset;
  event.number = write.number;
  event.writer = write.by;
  event.write_pc = write.pc;
  event.write_scope = write.scope;
  event.write_element = write.element;
  trail.Add(std::move(event));
}

// A poll is recorded once, with the last that it has seen.
void Checker::RecordHostRead(const CtaClocks& cta, const Path& path, std::uint32_t lanes,
                             const MemoryOp& op, const Object& object, std::uint64_t offset,
                             const ClockRef& knows) {
  const auto warp = static_cast<std::uint16_t>(path.warp->id);
  Trail& trail = *TrailOf(cta);
  Event event = EventOf(Event::Kind::kRead, cta, path, lanes);
  event.host = true;
  event.acquires = op.Acquires();
  event.vector = op.count > 1;
  event.scope = op.scope;
  event.element = op.bytes;
  event.object = object.id;
  event.offset = offset;
  event.others = knows;
  if (Event* const known = trail.LastPoll(warp, lanes, path.pc)) {
    *known = std::move(event);
  } else {
    trail.Add(std::move(event));
  }
}

void Checker::RecordPoll(const CtaClocks& cta, const Path& path, std::uint32_t lanes,
                         const Access& access) {
  if (access.object->kind == Object::Kind::kShared || access.op->count > 1) return;
  const auto warp = static_cast<std::uint16_t>(path.warp->id);
  Trail& trail = *TrailOf(cta);
  if (trail.Polled(warp, lanes, path.pc, 0)) return;
  Event event = EventOf(Event::Kind::kRead, cta, path, lanes);
  event.object = access.object->id;
  event.offset = access.offset[static_cast<std::size_t>(std::countr_zero(lanes))];
  trail.Add(std::move(event));
}

void Checker::RecordWrite(const CtaClocks& cta, const Path& path, std::uint32_t lanes,
                          const Access& access) {
  const MemoryOp& op = *access.op;
  const auto first = static_cast<std::size_t>(std::countr_zero(lanes));
  const WarpClocks& warp = cta.warps[path.warp->id];
  Event event = EventOf(Event::Kind::kWrite, cta, path, lanes);
  event.releases = op.Releases();
  event.atomic = op.kind == MemoryOpKind::kAtomic || op.kind == MemoryOpKind::kReduce;
  event.vector = op.count > 1;
  event.scope = op.scope;
  event.element = op.bytes;
  event.object = access.object->id;
  event.offset = access.offset[first];
  event.number = writes_;
  event.host = access.object->HostVisible();
  for (const Group& group : warp.groups) {
    if ((group.lanes >> first & 1) == 0) continue;
    event.own = group.own;
    event.others = group.others;
  }
  if (warp.lanes != nullptr) event.fences = (*warp.lanes)[first].fences;
  TrailOf(cta)->Add(std::move(event));
}

void Checker::RecordFence(const CtaClocks& cta, const Path& path, const MemoryOp& op,
                          std::uint32_t mask) {
  Event event = EventOf(Event::Kind::kFence, cta, path, mask);
  event.releases = op.order != Order::kAcquire;
  event.acquires = op.order != Order::kRelease;
  event.sequential = op.order == Order::kSc;
  event.scope = op.scope;
  TrailOf(cta)->Add(std::move(event));
}

void Checker::RecordBarrier(const CtaClocks& cta, std::uint64_t warps) {
  Trail* const trail = agents_[cta.agent].trail.get();
  if (trail == nullptr) return;
  Event event;
  event.kind = Event::Kind::kBarrier;
  event.tick = cta.tick;
  event.moment = ++moment_;
  event.warps = warps;
  trail->Add(std::move(event));
}

}  // namespace allranks::node::check
