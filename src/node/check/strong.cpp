// Strong loads and stores: what a load may return, and from which write it learns (release.cpp says
// what). See history.h.
//
// Which write a load reads from is known, because the value is taken from the history: the newest
// that has arrived by then, or under a schedule an older one. Not permitted are values older than a
// write that the thread knows of, or than one that it or somebody it knows has read.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "node/check/checker.h"
#include "node/lanes.h"

namespace allranks::node::check {

void RememberStrong(Checker& checker, CtaClocks& cta, WarpClocks& warp, const Access& access);

namespace {

constexpr std::size_t kMostRecords = std::size_t{1} << 20;

bool Acquires(const MemoryOp& op) {
  return op.what != MemoryOp::What::kReduce && op.what != MemoryOp::What::kStore &&
         (op.order == Order::kAcquire || op.order == Order::kAcqRel || op.order == Order::kSc);
}

}  // namespace

std::uint64_t Checker::Random() {
  std::uint64_t x = seed_ * 0x9e3779b97f4a7c15u + ++draws_ * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

bool Checker::Knows(const Group& group, const CtaClocks& cta, std::uint16_t warp, int lane,
                    const Stamp& stamp) const {
  const std::uint32_t bit = 1u << stamp.lane;
  if (stamp.agent == cta.agent) {
    if (stamp.warp == warp && stamp.lane == lane) return true;
    if (LanesOf(group.own, stamp.warp, bit, stamp.tick) != 0) return true;
  }
  for (const ClockRef& clock : {group.others, group.seen}) {
    if (clock == nullptr) continue;
    if (clock->Over(stamp.agent, places_)) return true;
    if (LanesOf(clock->Of(stamp.agent), stamp.warp, bit, stamp.tick) != 0) return true;
  }
  return false;
}

bool Checker::KnowsReader(const Group& group, const CtaClocks& cta, std::uint16_t warp, int lane,
                          const StrongWrite& write) const {
  if (write.read_by_many) return true;
  return std::any_of(
      write.readers.begin(), write.readers.end(), [&](const StrongWrite::Reader& reader) {
        bool known = false;
        ForLanes(reader.lanes, [&](int l) {
          known = known ||
                  Knows(group, cta, warp, lane,
                        {reader.agent, reader.tick, reader.warp, static_cast<std::uint8_t>(l)});
        });
        return known;
      });
}

// Lanes have read from `write`.
void Checker::Observe(CtaClocks& cta, const Path& path, std::uint32_t lanes, const MemoryOp& op,
                      const StrongWrite& write, const Object& object, std::uint64_t offset) {
  const Scope common = cta.position.Common(write.from);
  const bool strong = op.scope >= common && write.scope >= common && op.bytes == write.element;
  WarpClocks& warp = cta.warps[path.warp->id];
  if (strong) {
    Hear(cta, warp, lanes, write.message, Acquires(op), op.scope, object.id, offset);
    if (Acquires(op) && warp.lanes != nullptr) {
      // A strong read, then an acquire of the same place.
      ForLanes(lanes, [&](int l) {
        for (const Pending& old : StateOf(warp, l).pending) {
          if (old.object != object.id || old.offset != offset ||
              op.scope < cta.position.Common(old.part.from)) {
            continue;
          }
          Separate(warp, 1u << l);
          Learn(cta, GroupOf(warp, l), old.part);
        }
      });
    }
  }
  RecordRead(cta, path, lanes, op, write, object.id, offset);
}

bool Checker::Load(const Access& access, std::byte* values, Time sampled) {
  const Path& path = *access.path;
  CtaClocks& cta = *path.warp->cta->clocks;
  WarpClocks& warp = Of(path);
  ++accesses;
  bytes += static_cast<std::uint64_t>(std::popcount(access.lanes)) * access.bytes;
  Object& object = *access.object;
  Shadow& shadow = ShadowOf(object);
  const auto own_warp = static_cast<std::uint16_t>(path.warp->id);
  bool chosen = false;
  // An atomic that only reads reads the write before it, whatever the schedule.
  const bool chooses = Perturbed(sampled) && access.op->what == MemoryOp::What::kLoad;
  std::uint32_t left = access.lanes;
  while (left != 0) {
    // Lanes of one line see it as it was at one moment.
    const std::uint64_t number = access.offset[std::countr_zero(left)] / kLineBytes;
    std::uint32_t here = 0;
    ForLanes(left, [&](int l) { here |= access.offset[l] / kLineBytes == number ? 1u << l : 0; });
    left &= ~here;
    Line& line = shadow.At(number);
    if (line.history == nullptr) {
      // A host may have written what nobody else has.
      if (object.HostVisible()) {
        ObserveHost(cta, path, here, *access.op, object);
      }
      RecordPoll(cta, path, here, access);
      continue;
    }
    std::vector<StrongWrite>& writes = line.history->writes();
    // Where writes are missing only the engine knows what has arrived.
    const bool choose = chooses && !line.history->lossy();
    // From the newest back: those that have not arrived yet are not read; under a schedule a few
    // more may be left out, up to the first that a lane must see.
    std::uint64_t cut = ~std::uint64_t{0};  // writes with this number and above are not read
    if (choose) {
      std::uint64_t numbers[16];
      int count = 0, arrived = -1;
      for (std::size_t i = writes.size(); i-- > 0 && count < 16;) {
        const StrongWrite& write = writes[i];
        bool read = false, must = false;
        ForLanes(here, [&](int l) {
          const auto begin = static_cast<std::uint32_t>(access.offset[l] % kLineBytes);
          if (!write.Overlaps(begin, begin + access.bytes)) return;
          read = true;
          const Group& group = GroupOf(warp, l);
          must = must || write.base || Knows(group, cta, own_warp, l, write.by) ||
                 KnowsReader(group, cta, own_warp, l, write);
        });
        if (!read) continue;
        if (must) break;
        if (count == 0 || numbers[count - 1] != write.number) numbers[count++] = write.number;
        if (arrived < 0 && (write.visible <= sampled || write.by.agent == cta.agent))
          arrived = count - 1;
      }
      // numbers[0 .. count) may be left out; numbers[0 .. arrived) have to be.
      const int least = arrived < 0 ? count : arrived;
      int leave = least;
      if (count > least && line.history->Stubborn(cta.agent, own_warp) && (Random() & 1) != 0) {
        leave = least + 1 + static_cast<int>(Random() % static_cast<std::uint64_t>(count - least));
        chosen = true;
        ++chosen_;
      } else {
        line.history->Yielded(cta.agent, own_warp);
      }
      if (leave > 0) cut = numbers[leave - 1];
    }
    std::array<std::size_t, kLanes> sources;
    std::uint32_t observe = 0, of_host = 0, unwritten = 0;
    ForLanes(here, [&](int l) {
      const auto begin = static_cast<std::uint32_t>(access.offset[l] % kLineBytes);
      const std::uint32_t end = begin + access.bytes;
      std::byte* value = values + static_cast<std::size_t>(l) * kMaxKept;
      if (choose) std::memcpy(value, object.data + access.offset[l], access.bytes);
      std::size_t source = writes.size();
      for (std::size_t i = writes.size(); i-- > 0;) {
        const StrongWrite& write = writes[i];
        if (!write.Overlaps(begin, end)) continue;
        const bool unread =
            choose ? write.number >= cut : write.visible > sampled && write.by.agent != cta.agent;
        if (!unread) {
          source = i;
          break;
        }
        if (!choose) continue;  // the engine has hidden it
        for (std::uint32_t at = std::max<std::uint32_t>(begin, write.first);
             at < std::min<std::uint32_t>(end, std::uint32_t{write.first} + write.size); ++at) {
          value[at - begin] = write.old[at - write.first];
        }
      }
      if (source == writes.size()) {
        if (object.HostVisible()) of_host |= 1u << l;
        unwritten |= 1u << l;
        return;
      }
      StrongWrite& write = writes[source];
      if (object.HostVisible() && write.first == begin &&
          std::memcmp(write.now, value,
                      std::min<std::size_t>({sizeof write.now, write.size, access.bytes})) != 0) {
        of_host |= 1u << l;
      }
      const Scope common = cta.position.Common(write.from);
      if (access.op->scope >= common && write.scope >= common &&
          access.op->bytes == write.element) {
        write.Read({cta.agent, cta.tick, own_warp, static_cast<std::uint8_t>(l)});
      }
      const bool known = Knows(GroupOf(warp, l), cta, own_warp, l, write.by);
      if (write.vector && access.op->count > 1 && !known && write.by.agent != cta.agent) {
        ReportVector(write, path, l, object, access.offset[l], access.bytes);
      }
      sources[static_cast<std::size_t>(l)] = source;
      observe |= 1u << l;
    });
    if (of_host != 0) ObserveHost(cta, path, of_host, *access.op, object);
    if (unwritten != 0) RecordPoll(cta, path, unwritten, access);
    while (observe != 0) {
      const int first = std::countr_zero(observe);
      const std::size_t source = sources[static_cast<std::size_t>(first)];
      std::uint32_t same = 0;
      ForLanes(observe, [&](int l) {
        if (sources[static_cast<std::size_t>(l)] == source &&
            access.offset[l] == access.offset[first]) {
          same |= 1u << l;
        }
      });
      observe &= ~same;
      Observe(cta, path, same, *access.op, writes[source], object, access.offset[first]);
    }
  }
  if (warp.groups.size() > 1) Coalesce(warp);
  // Behind what it has acquired: that is ordered before the load itself.
  RememberStrong(*this, cta, warp, access);
  return chosen;
}

// What stands in memory that hosts see was written by one: it has said what it knows.
void Checker::ObserveHost(CtaClocks& cta, const Path& path, std::uint32_t lanes, const MemoryOp& op,
                          const Object& object) {
  if (hosts_speak_) return;
  const auto host = hosts_.find(object.owner);
  if (host == hosts_.end() || host->second == nullptr || op.scope != Scope::kSys) return;
  StrongWrite write;
  write.scope = Scope::kSys;
  write.element = op.bytes;
  write.by.agent = 0;  // nobody to give advice to
  write.message.push_back({Scope::kSys, Position{}, host->second, nullptr, {}});
  Observe(cta, path, lanes, op, write, object, ~std::uint64_t{0});
}

void Checker::Store(const Access& access, const std::byte* old, bool settled) {
  const Path& path = *access.path;
  CtaClocks& cta = *path.warp->cta->clocks;
  WarpClocks& warp = Of(path);
  ++accesses;
  bytes += static_cast<std::uint64_t>(std::popcount(access.lanes)) * access.bytes;
  Object& object = *access.object;
  Shadow& shadow = ShadowOf(object);
  const MemoryOp& op = *access.op;
  const bool atomic = op.what == MemoryOp::What::kAtomic || op.what == MemoryOp::What::kReduce;
  ++writes_;
  ForLanes(access.lanes, [&](int l) {
    Line& line = shadow.At(access.offset[l] / kLineBytes);
    if (line.history == nullptr) line.history = std::make_unique<class History>();
    class History& history = *line.history;
    const auto begin = static_cast<std::uint32_t>(access.offset[l] % kLineBytes);
    const std::uint32_t end = begin + access.bytes;
    // What it follows on: what an atomic has read, and what its own thread has released here
    // before.
    const Message *before = nullptr, *said = nullptr;
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
      if (follows) {
        last.Read({cta.agent, cta.tick, static_cast<std::uint16_t>(path.warp->id),
                   static_cast<std::uint8_t>(l)});
      }
      // A reduction gives nothing back: it acquires nothing, with or without a fence.
      if (op.what == MemoryOp::What::kAtomic)
        Observe(cta, path, 1u << l, op, last, object, access.offset[l]);
    } else if (atomic && object.HostVisible()) {
      ObserveHost(cta, path, 1u << l, op, object);
    }
    Message own = Say(cta, path, l, GroupOf(warp, l), op.Releases(), op.scope);
    if (said != nullptr)
      for (const Part& part : *said) Merge(own, part);
    Message message = own;
    if (before != nullptr)
      for (const Part& part : *before) Merge(message, part);
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
          for (const Part& part : older.message) Merge(message, part);
      history.Erase(begin, end);
      history.Lose();
      if (message.empty()) {
        records_ -= kept - history.writes().size();
        return;
      }
    }
    StrongWrite& write = history.Add(seed_ != 0 ? History::kDepth : std::size_t{1}, world_.now);
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
    if (settled || crowded) write.visible = world_.now;
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
