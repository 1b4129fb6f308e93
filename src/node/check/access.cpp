// Accesses of warps and of operations against what is remembered of memory: who is not ordered
// after whom. See shadow.h.
#include <algorithm>
#include <bit>

#include "node/check/checker.h"
#include "node/code/lanes.h"

namespace allranks::node::check {
namespace {

std::uint8_t Log2(std::uint32_t bytes) {
  return static_cast<std::uint8_t>(std::countr_zero(std::max(1u, bytes)));
}

}  // namespace

// The entries of one instruction: all are checked before the first is remembered, so that lanes of
// one instruction do not meet each other.
class AccessWalk {
 public:
  AccessWalk(Checker& checker, CtaClocks& cta, const Path& path, const MemoryOp& op, Object& object)
      : checker_(checker), cta_(cta), shadow_(checker.ShadowOf(object)), object_(object) {
    made_.agent = cta.agent;
    made_.tick = cta.tick;
    made_.pc = path.pc;
    made_.warp = static_cast<std::uint16_t>(path.warp->id);
    made_.kind = static_cast<std::uint8_t>(
        (op.Strong() ? Entry::kStrong : 0) | (op.kind != MemoryOpKind::kLoad ? Entry::kWrite : 0) |
        (op.atomic != AtomicOp::kNone ? Entry::kAtomic : 0) |
        static_cast<int>(op.scope) << Entry::kScopeShift |
        std::min<int>(Log2(op.bytes), 7) << Entry::kElementShift);
  }

  // Accesses must be ordered by what this knows as well.
  void Before(const Group& before) { before_ = &before; }

  void Lanes(const Group& group, std::uint32_t lanes, const std::uint64_t* offset,
             std::uint32_t bytes) {
    Entry entry;
    std::uint64_t line = 0;
    int last = 0;
    bool open = false;
    const auto close = [&] {
      if (open) Take(group, line, entry);
      open = false;
    };
    ForLanes(lanes, [&](int l) {
      const std::uint64_t at = offset[l] / kLineBytes;
      const auto first = static_cast<std::uint8_t>(offset[l] % kLineBytes);
      if (open && at == line && l == last + 1) {
        const int step = first - (entry.first + (entry.count - 1) * entry.stride);
        if (entry.count == 1 && step >= 0) {
          entry.stride = static_cast<std::uint8_t>(step);
          ++entry.count;
          last = l;
          return;
        }
        if (entry.count > 1 && step == entry.stride) {
          ++entry.count;
          last = l;
          return;
        }
      }
      close();
      entry = made_;
      entry.first = first;
      entry.width = static_cast<std::uint8_t>(bytes);
      entry.stride = entry.width;
      entry.lane = static_cast<std::uint8_t>(l);
      line = at;
      last = l;
      open = true;
    });
    close();
  }

  // All lanes, one behind the other.
  void Dense(const Group& group, std::uint64_t offset, std::uint32_t bytes) {
    const std::uint32_t per_line = kLineBytes / bytes;
    std::uint64_t at = offset;
    for (std::uint32_t lane = 0; lane < kLanes;) {
      Entry entry = made_;
      entry.first = static_cast<std::uint8_t>(at % kLineBytes);
      const std::uint32_t room = (kLineBytes - entry.first) / bytes;
      const std::uint32_t count = std::min({kLanes - lane, per_line, room});
      entry.width = entry.stride = static_cast<std::uint8_t>(bytes);
      entry.lane = static_cast<std::uint8_t>(lane);
      entry.count = static_cast<std::uint8_t>(count);
      Take(group, at / kLineBytes, entry);
      lane += count;
      at += std::uint64_t{count} * bytes;
    }
  }

  // The bytes of one line in ranges of lanes, as an instruction stores them.
  void Ranges(const Group& group, std::uint32_t lanes, std::uint64_t number,
              const std::uint64_t* offset, const std::uint64_t* size) {
    Entry entry;
    bool open = false;
    const std::uint64_t from = number * kLineBytes, to = from + kLineBytes;
    ForLanes(lanes, [&](int l) {
      const std::uint64_t begin = std::max(offset[l], from);
      const std::uint64_t end = std::min(offset[l] + size[l], to);
      if (begin >= end) return;
      const auto first = static_cast<std::uint8_t>(begin - from);
      const auto width = static_cast<std::uint8_t>(end - begin);
      if (open && l == entry.lane + entry.count && first == entry.first && width == entry.width) {
        entry.stride = 0;
        ++entry.count;
        return;
      }
      if (open) Take(group, number, entry);
      entry = made_;
      entry.first = first;
      entry.width = entry.stride = width;
      entry.lane = static_cast<std::uint8_t>(l);
      open = true;
    });
    if (open) Take(group, number, entry);
  }

  void Remember() {
    for (std::size_t i = 0; i < count_; ++i) {
      const auto& [line, entry, group] = taken_[i];
      if (entry.write()) {
        line->AddWrite(entry,
                       [&](const Entry& old) { return checker_.Stays(old, entry, *group, cta_); });
        if (!entry.strong() && line->history != nullptr) {
          line->history->Erase(entry.first, entry.end());
        }
      } else {
        line->AddRead(entry,
                      [&](const Entry& old) { return checker_.Ordered(old, entry, *group, cta_); });
      }
    }
    count_ = 0;
  }

 private:
  struct Taken {
    Line* line;
    Entry entry;
    const Group* group;
  };
  void Take(const Group& group, std::uint64_t number, const Entry& entry) {
    Line& line = shadow_.At(number);
    if (line.Mbarriers() != 0) checker_.CheckMbarriers(line, entry, object_, number);
    checker_.Check(line, entry, group, cta_, object_, number);
    if (before_ != nullptr && !line.Empty())
      checker_.Check(line, entry, *before_, cta_, object_, number);
    if (count_ == taken_.size()) Remember();
    taken_[count_++] = {&line, entry, &group};
  }

  Checker& checker_;
  CtaClocks& cta_;
  Shadow& shadow_;
  Object& object_;
  const Group* before_ = nullptr;
  Entry made_;
  std::array<Taken, kLanes> taken_;
  std::size_t count_ = 0;
};

std::uint32_t Checker::Unordered(const Entry& e, const Entry& a, const Group& group,
                                 const CtaClocks& cta) const {
  if (e.agent != cta.agent) {
    if (group.others == nullptr) return e.lanes();
    if (group.others->Over(e.agent, places_)) return 0;
    const KnownRef known = group.others->Of(e.agent);
    if (known != nullptr && e.tick <= known->base && e.warp < kFirstCopyWarp) return 0;
    std::uint32_t lanes = 0;
    bool crossed = false;
    a.Common(e, &lanes, &crossed);
    return known == nullptr ? lanes : lanes & ~known->Lanes(e.warp, lanes, e.tick);
  }
  if (e.tick <= BaseOf(group.own) && e.warp < kFirstCopyWarp) return 0;
  if (e.warp == a.warp && e.SameShape(a)) return 0;  // each thread meets itself
  std::uint32_t lanes = 0;
  bool crossed = false;
  const std::uint32_t mine = a.Common(e, &lanes, &crossed);
  lanes &= ~LanesOf(group.own, e.warp, lanes, e.tick);
  if (e.warp != a.warp || lanes == 0) return lanes;
  if (!crossed) return 0;
  // Lanes that only meet themselves do not count.
  std::uint32_t met = 0;
  for (std::uint32_t i = 0; i < a.count; ++i) {
    if ((mine >> (a.lane + i) & 1) == 0) continue;
    Entry one = a;
    one.first = static_cast<std::uint8_t>(a.first + i * a.stride);
    one.lane = static_cast<std::uint8_t>(a.lane + i);
    one.count = 1;
    std::uint32_t theirs = 0;
    bool other = false;
    one.Common(e, &theirs, &other);
    met |= theirs & ~(1u << one.lane);
  }
  return lanes & met;
}

bool Checker::Ordered(const Entry& e, const Entry& a, const Group& group,
                      const CtaClocks& cta) const {
  // A line that all blocks read: nothing is known of most of them.
  if (e.agent != cta.agent && group.others != nullptr && group.others->Of(e.agent) == nullptr)
    return group.others->Over(e.agent, places_);
  return Unordered(e, a, group, cta) == 0;
}

bool Checker::MorallyStrong(const Entry& e, const Entry& a) const {
  if (e.strong() != a.strong()) {
    // A flag: by which order a host looks at it is its own affair.
    const Entry& strong = e.strong() ? e : a;
    return positions_[(e.strong() ? a : e).agent].native && strong.scope() == Scope::kSys;
  }
  if (!e.strong() || e.element() != a.element()) return false;
  if ((e.warp >= kBulkReads) != (a.warp >= kBulkReads)) return false;  // of different proxies
  const Scope common = positions_[e.agent].Common(positions_[a.agent]);
  return e.scope() >= common && a.scope() >= common;
}

// Whoever is ordered after a read of a strong write is ordered after that write, and so he is if an
// atomic has read it that was read (causality order: observation, then base causality). Each lane
// of `a` must be, for the bytes that it touches.
bool Checker::Observed(const Line& line, const Entry& e, const Entry& a, const Group& group,
                       const CtaClocks& cta) const {
  if (line.history == nullptr || !e.strong() || !e.write()) return false;
  Group sober = group;  // the order of fence.sc is luck
  sober.seen = nullptr;
  const auto& writes = line.history->writes();
  // Along the atomics behind it, each of which has read the one before.
  const auto read = [&](std::size_t i, int lane, std::uint32_t begin, std::uint32_t end) {
    for (std::size_t next = i + 1;; ++next) {
      const std::uint8_t wanted = writes[i].Elements(begin, end);
      if ((wanted & ~ElementsRead(sober, cta, a.warp, lane, writes[i])) == 0) return true;
      if (a.strong() && (!a.write() || a.atomic())) return false;  // he may be the access itself
      const StrongWrite& old = writes[i];
      while (next < writes.size() && !writes[next].Overlaps(old.first, old.first + old.size))
        ++next;
      if (next == writes.size()) return false;
      const StrongWrite& atomic = writes[next];
      const Scope common = old.from.Common(atomic.from);
      const bool same = old.by.agent == atomic.by.agent && old.by.warp == atomic.by.warp &&
                        old.by.lane == atomic.by.lane;
      const bool strong = old.scope >= common && atomic.scope >= common;
      const bool whole = old.first == atomic.first && old.size == atomic.size;
      if (!atomic.atomic || !whole || !(same || strong)) return false;
      i = next;
    }
  };
  bool any = false;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    const StrongWrite& write = writes[i];
    if (write.by.agent != e.agent || write.by.warp != e.warp || write.by.tick != e.tick ||
        !write.Overlaps(a.first, a.end())) {
      continue;
    }
    for (std::uint32_t n = 0; n < a.count; ++n) {
      const std::uint32_t begin = a.first + n * a.stride, end = begin + a.width;
      if (!write.Overlaps(begin, end)) continue;
      if (!read(i, a.lane + static_cast<int>(n), begin, end)) return false;
      any = true;
    }
  }
  return any;
}

// Whether the write `a`, which covers `e`, leaves somebody who may be in a race with `e` alone.
// What an RMW has read it hands on: whoever is ordered after it is ordered after that, too.
bool Checker::Stays(const Entry& e, const Entry& a, const Group& group,
                    const CtaClocks& cta) const {
  if (!a.strong()) return false;
  if (Unordered(e, a, group, cta) != 0) return e.strong() && !(e.write() && a.atomic());
  return e.scope() < a.scope() || !MorallyStrong(e, a);
}

void Checker::Check(Line& line, const Entry& a, const Group& group, const CtaClocks& cta,
                    const Object& object, std::uint64_t number) {
  const auto look = [&](const Entry& e) {
    if (e.agent == cta.agent && e.tick <= BaseOf(group.own) && e.warp < kFirstCopyWarp) return;
    if (!e.Overlaps(a)) return;
    if (MorallyStrong(e, a)) return;
    const std::uint32_t lanes = Unordered(e, a, group, cta);
    if (lanes == 0 || Observed(line, e, a, group, cta)) return;
    ReportRace(e, a, lanes, &cta, object, number, false, Boundary(e, a, group, cta));
  };
  line.ForWrites(look);
  if (a.write()) line.ForReads(look);
}

Shadow& Checker::ShadowOf(Object& object) {
  if (object.shadow == nullptr) {
    object.shadow = std::make_shared<Shadow>();
    if (object.kind != Object::Kind::kShared) {
      std::erase_if(shadows_, [](const std::weak_ptr<Shadow>& shadow) { return shadow.expired(); });
      shadows_.push_back(object.shadow);
    }
  }
  return *object.shadow;
}

std::uint32_t Checker::ChosenLanes(const Access& access) const {
  const auto page = [&](int lane) { return access.offset[lane] / kSampledPage; };
  if (access.dense && page(0) == page(kLanes - 1))
    return IsChosen(*access.object, access.offset[0]) ? access.lanes : 0;
  std::uint32_t chosen = 0;
  ForLanes(access.lanes, [&](int lane) {
    if (IsChosen(*access.object, access.offset[lane])) chosen |= 1u << lane;
  });
  return chosen;
}

void Checker::Weak(const Access& access) {
  ++accesses;
  bytes += static_cast<std::uint64_t>(std::popcount(access.lanes)) * access.bytes;
  if (access.object == nullptr || access.object->kind == Object::Kind::kConst) return;
  const std::uint32_t chosen = IsSampled(*access.object) ? ChosenLanes(access) : access.lanes;
  if (chosen == 0) return;
  CtaClocks& cta = *access.path->warp->cta->clocks;
  WarpClocks& warp = Of(*access.path);
  AccessWalk walk(*this, cta, *access.path, *access.op, *access.object);
  Group start;
  if (access.op->proxy) {
    // ld.global.nc is for what nobody writes while the kernel runs: synchronisation is not enough.
    const LaunchClocks& launch = *access.path->warp->cta->launch->clocks;
    start.others = join_(launch.start, launch.primary);
    walk.Before(start);
  }
  for (const Group& group : warp.groups) {
    const std::uint32_t lanes = group.lanes & chosen;
    if (lanes == 0) continue;
    if (lanes == kAllLanes && access.dense && access.bytes <= kLineBytes &&
        (access.offset[0] % access.bytes) == 0) {
      walk.Dense(group, access.offset[0], access.bytes);
    } else {
      walk.Lanes(group, lanes, access.offset, access.bytes);
    }
  }
  walk.Remember();
}

// A line at a time: its entries, at most one per lane, are remembered when all are checked.
void Checker::Fill(const Path& path, std::uint32_t lanes, Object& object,
                   const std::uint64_t* offset, const std::uint64_t* size) {
  MemoryOp op;
  op.kind = MemoryOpKind::kStore;
  op.space = ptx::Space::kShared;
  std::uint64_t first = ~std::uint64_t{0}, end = 0;
  ++accesses;
  ForLanes(lanes, [&](int l) {
    if (size[l] == 0) return;
    bytes += size[l];
    first = std::min(first, offset[l] / kLineBytes);
    end = std::max(end, (offset[l] + size[l] - 1) / kLineBytes + 1);
  });
  CtaClocks& cta = *path.warp->cta->clocks;
  AccessWalk walk(*this, cta, path, op, object);
  for (std::uint64_t line = first; line < end; ++line) {
    for (const Group& group : Of(path).groups) {
      walk.Ranges(group, group.lanes & lanes, line, offset, size);
    }
    walk.Remember();
  }
}

// The threads of an operation are one, and it knows what its stream does.
void Checker::Direct(const OpClocks* op, Object& object, std::uint64_t offset, std::uint64_t size,
                     bool write, bool strong, std::uint32_t place) {
  if (size == 0 || object.kind == Object::Kind::kConst) return;
  if (op == nullptr || op->agent == 0) {
    if (write && object.shadow != nullptr) object.shadow->Forget(offset, size);
    return;
  }
  Shadow& shadow = ShadowOf(object);
  CtaClocks nobody;
  nobody.agent = op->agent;
  Group group;
  group.others = op->known;
  const auto touch = [&](std::uint64_t from, std::uint64_t length) {
    for (std::uint64_t at = from; at < from + length;) {
      Entry entry;
      entry.agent = op->agent;
      entry.tick = 1;
      entry.pc = place;
      entry.first = static_cast<std::uint8_t>(at % kLineBytes);
      const std::uint64_t part =
          std::min<std::uint64_t>(kLineBytes - entry.first, from + length - at);
      entry.width = entry.stride = static_cast<std::uint8_t>(part);
      entry.kind = write ? Entry::kWrite : 0;
      if (strong) {
        entry.kind |= static_cast<std::uint8_t>(
            Entry::kStrong | static_cast<int>(Scope::kSys) << Entry::kScopeShift |
            Log2(static_cast<std::uint32_t>(size)) << Entry::kElementShift);
      }
      Line& line = shadow.At(at / kLineBytes);
      Check(line, entry, group, nobody, object, at / kLineBytes);
      if (write) {
        line.AddWrite(entry, [&](const Entry& old) { return Stays(old, entry, group, nobody); });
        if (!strong && line.history != nullptr) line.history->Erase(entry.first, entry.end());
      } else {
        line.AddRead(entry, [&](const Entry& old) { return Ordered(old, entry, group, nobody); });
      }
      at += part;
    }
  };
  if (strong) return touch(offset, size);
  ForChosen(object, offset, size, touch);
}

// --- strong accesses as accesses: strong.cpp does what makes them strong ---
void RememberStrong(Checker& checker, CtaClocks& cta, WarpClocks& warp, const Access& access) {
  AccessWalk walk(checker, cta, *access.path, *access.op, *access.object);
  for (const Group& group : warp.groups) {
    const std::uint32_t lanes = group.lanes & access.lanes;
    if (lanes != 0) walk.Lanes(group, lanes, access.offset, access.bytes);
  }
  walk.Remember();
}

}  // namespace allranks::node::check
