// Strong stores and atomics: what is kept of a write for those who read it (history.h). strong.cpp
// has the loads.
#include <algorithm>
#include <bit>
#include <cstring>

#include "node/check/checker.h"
#include "node/code/lanes.h"

namespace allranks::node::check {

namespace {

constexpr std::size_t kMostRecords = std::size_t{1} << 20;

}  // namespace

void Checker::Store(const Access& access, const std::byte* old, bool settled) {
  if (sample_ != 0 && records_ > kSampledRecords) given_up_ = true;
  if (Ignores(access)) return;
  const Path& path = *access.path;
  CtaClocks& cta = *path.warp->cta->clocks;
  WarpClocks& warp = Of(path);
  ++accesses;
  bytes += static_cast<std::uint64_t>(std::popcount(access.lanes)) * access.bytes;
  Object& object = *access.object;
  Shadow& shadow = ShadowOf(object);
  const MemoryOp& op = *access.op;
  const bool atomic = op.kind == MemoryOpKind::kAtomic || op.kind == MemoryOpKind::kReduce;
  ++writes_;
  const bool says = op.Releases();
  // A release publishes what comes before it: of a vector's elements none is before another.
  const Tick before_it = cta.tick;
  if (says && op.count > 1) ++cta.tick;
  ForLanes(access.lanes, [&](int l) {
    Line& line = shadow.At(access.offset[l] / kLineBytes);
    if (line.history == nullptr) line.history = std::make_unique<class History>();
    class History& history = *line.history;
    const auto begin = static_cast<std::uint32_t>(access.offset[l] % kLineBytes);
    const std::uint32_t end = begin + access.bytes;
    // What it follows on: what an atomic has read, and what its own thread has released here
    // before.
    const Message *before = nullptr, *said = nullptr;
    ClockRef fenced;
    auto& writes = history.writes();
    std::size_t source = writes.size();
    for (std::size_t i = writes.size(); i-- > 0 && said == nullptr;) {
      const StrongWrite& older = writes[i];
      if (!older.Overlaps(begin, end)) continue;
      if (source == writes.size()) source = i;
      if (older.by.agent == cta.agent && older.by.warp == path.warp->id && older.by.lane == l)
        said = &older.own;
    }
    if (source < writes.size()) {
      StrongWrite& last = writes[source];
      const Scope common = cta.position.Common(last.from);
      const bool follows =
          atomic && op.scope >= common && last.scope >= common && op.bytes == last.element;
      if (follows) before = &last.message;
      if (follows) fenced = last.fenced;
      if (follows) {
        last.Read({cta.agent, cta.tick, static_cast<std::uint16_t>(path.warp->id),
                   static_cast<std::uint8_t>(l)},
                  last.Elements(begin, end));
      }
      // A reduction gives nothing back: it acquires nothing, with or without a fence.
      if (op.kind == MemoryOpKind::kAtomic)
        Observe(cta, path, 1u << l, op, last, object, access.offset[l]);
    } else if (atomic && object.HostVisible()) {
      ObserveHost(cta, path, 1u << l, op, object, access.offset[l]);
    }
    Message own = Say(cta, path, l, GroupOf(warp, l), says, op.scope, before_it);
    if (said != nullptr)
      for (const Part& part : *said) Merge(join_, own, part);
    Message message = own;
    if (before != nullptr)
      for (const Part& part : *before) Merge(join_, message, part);
    if (object.HostVisible() && !hosts_speak_) {
      // A host that polls will see it.
      for (const Part& part : message) {
        if (part.scope == Scope::kSys && op.scope == Scope::kSys)
          HostKnows(object.owner, part.Whole());
      }
    }
    // So many strong writes are remembered: beyond that a place has one, which says all that the
    // earlier ones said, and is there only if that is something.
    const std::size_t kept = history.writes().size();
    const bool crowded = records_ > kMostRecords;
    if (crowded) {
      for (const StrongWrite& older : history.writes())
        if (older.Overlaps(begin, end))
          for (const Part& part : older.message) Merge(join_, message, part);
      history.Erase(begin, end);
      history.Lose();
      if (message.empty()) {
        records_ -= kept - history.writes().size();
        return;
      }
    }
    StrongWrite& write =
        history.Add(join_, seed_ != 0 ? History::kDepth : std::size_t{1}, state_.now);
    records_ += history.writes().size();
    records_ -= kept;
    write.base = crowded;
    write.number = writes_;
    write.first = static_cast<std::uint8_t>(begin);
    write.size = static_cast<std::uint8_t>(access.bytes);
    write.vector = op.count > 1;
    write.atomic = atomic;
    write.element = op.bytes;
    write.scope = op.scope;
    std::memcpy(write.old, old + static_cast<std::size_t>(l) * kMaxKept, access.bytes);
    std::memcpy(write.now, object.data + access.offset[l],
                std::min<std::size_t>(sizeof write.now, access.bytes));
    write.by = {cta.agent, cta.tick, static_cast<std::uint16_t>(path.warp->id),
                static_cast<std::uint8_t>(l)};
    write.from = cta.position;
    write.pc = path.pc;
    write.message = std::move(message);
    write.own = std::move(own);
    write.fenced = GroupOf(warp, l).sc.fenced;
    if (fenced != nullptr) write.fenced = join_(write.fenced, fenced);
    if (settled || crowded) write.visible = state_.now;
  });
  RememberStrong(*this, cta, warp, access);
  RecordWrite(cta, path, access.lanes, access);
  // What comes behind a flag is told apart from what comes before it.
  ++cta.tick;
}

void Checker::Close(const Object& object, std::uint32_t lanes, const std::uint64_t* offset,
                    Time visible) {
  std::uint64_t last = ~std::uint64_t{0};
  ForLanes(lanes, [&](int l) {
    const std::uint64_t number = offset[l] / kLineBytes;
    if (number == last) return;
    last = number;
    Line* line = object.shadow != nullptr ? object.shadow->Find(number) : nullptr;
    if (line != nullptr && line->history != nullptr) line->history->Close(visible);
  });
}

}  // namespace allranks::node::check
