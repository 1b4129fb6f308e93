// Strong loads: what one may return, and from which write it learns (release.cpp says
// what). See history.h; strong_store.cpp has the stores.
//
// Which write a load reads from is known, because the value is taken from the history: the newest
// that has arrived by then, or under a schedule an older one. Not permitted are values older than a
// write that the thread knows of, or than one that it or somebody it knows has read.
#include <algorithm>
#include <array>
#include <bit>
#include <bitset>
#include <cstring>

#include "base/splitmix.h"
#include "node/check/checker.h"
#include "node/code/lanes.h"

namespace allranks::node::check {

namespace {

constexpr std::size_t kMaxHints = 12;

}  // namespace

std::uint64_t Checker::Random() { return Mix(seed_, ++draws_); }

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

// Elements of the write that the lane is ordered after a read of.
std::uint8_t Checker::ElementsRead(const Group& group, const CtaClocks& cta, std::uint16_t warp,
                                   int lane, const StrongWrite& write) const {
  if (write.read_by_many) return 0xff;
  std::uint8_t elements = 0;
  for (const StrongWrite::Reader& reader : write.readers) {
    if ((reader.elements & ~elements) == 0) continue;
    bool known = false;
    ForLanes(reader.lanes, [&](int l) {
      known =
          known || Knows(group, cta, warp, lane,
                         {reader.agent, reader.tick, reader.warp, static_cast<std::uint8_t>(l)});
    });
    if (known) elements |= reader.elements;
  }
  return elements;
}

// Lanes have read from `write`.
void Checker::Observe(CtaClocks& cta, const Path& path, std::uint32_t lanes, const MemoryOp& op,
                      const StrongWrite& write, const Object& object, std::uint64_t offset) {
  const Scope common = cta.position.Common(write.from);
  const bool strong = op.scope >= common && write.scope >= common && op.bytes == write.element;
  bool learned = false;
  WarpClocks& warp = cta.warps[path.warp->id];
  if (write.fenced != nullptr && write.by.agent != cta.agent && op.kind != MemoryOpKind::kReduce) {
    const std::size_t count = warp.groups.size();
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t inside = warp.groups[i].lanes & lanes;
      if (inside == 0 || join_(warp.groups[i].others, write.fenced) == warp.groups[i].others)
        continue;
      const ClockRef read = join_(warp.groups[i].sc.read, write.fenced);
      if (read == warp.groups[i].sc.read) continue;
      Separate(warp, lanes);
      for (Group& group : warp.groups)
        if ((group.lanes & lanes) != 0) group.sc.read = join_(group.sc.read, write.fenced);
      break;
    }
  }
  if (strong) {
    learned = Hear(cta, warp, lanes, write.message, op.Acquires(), op.scope, object.id, offset);
    if (op.Acquires() && warp.lanes != nullptr) {
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
  if (!learned && write.by.agent != cta.agent) {
    Hint hint;
    hint.writer = write.by;
    hint.reader = {cta.agent, cta.tick, static_cast<std::uint16_t>(path.warp->id),
                   static_cast<std::uint8_t>(std::countr_zero(lanes))};
    hint.write_pc = write.pc;
    hint.read_pc = path.pc;
    hint.need = common;
    hint.released = !write.message.empty();
    hint.narrow = !strong || (hint.released && op.Acquires());
    hint.acquired = op.Acquires();
    hint.object = NameIn(state_, object);
    std::erase_if(cta.hints, [&](const Hint& old) {
      return old.write_pc == hint.write_pc && old.read_pc == hint.read_pc &&
             old.writer.agent == hint.writer.agent;
    });
    if (cta.hints.size() >= kMaxHints) cta.hints.erase(cta.hints.begin());
    cta.hints.push_back(std::move(hint));
  }
  RecordRead(cta, path, lanes, op, write, object.id, offset);
}

// Under a directed schedule: whether this load is the one that gets old values.
bool Checker::StaleHere(const Path& path) {
  const Cta& cta = *path.warp->cta;
  return state_.delays.At({Delays::Kind::kStale, cta.launch->code.get(), path.pc,
                           cta.launch->device->number, cta.index.x, path.warp->id},
                          0, 0) != 0;
}

// Which writes of a line a load does not read under a schedule. Lanes of one instruction see the
// line at one moment: of each instruction that has written to it all, or nothing. Those that have
// not arrived are not read; a few more may be left out, the newest first, or one that is older than
// another which does not say that it is there.
Checker::Unread Checker::Choose(CtaClocks& cta, WarpClocks& warp, const Access& access,
                                std::uint32_t here, Line& line, Time sampled, Choice how) {
  const auto own_warp = static_cast<std::uint16_t>(access.path->warp->id);
  std::vector<StrongWrite>& writes = line.history->writes();
  struct Candidate {
    std::uint64_t number = 0;
    bool must = false, arrived = false;
    std::size_t newest = 0, oldest = 0;  // of its writes
    std::bitset<kLineBytes> bytes;       // that the load would see of it
  };
  std::bitset<kLineBytes> open;  // not written by anything newer
  open.set();
  Candidate all[16];
  int count = 0;
  for (std::size_t i = writes.size(); i-- > 0;) {
    const StrongWrite& write = writes[i];
    bool read = false, must = false;
    std::bitset<kLineBytes> found;
    ForLanes(here, [&](int l) {
      const auto begin = static_cast<std::uint32_t>(access.offset[l] % kLineBytes);
      const std::uint32_t end = begin + access.bytes;
      if (!write.Overlaps(begin, end)) return;
      read = true;
      for (std::uint32_t at = std::max<std::uint32_t>(begin, write.first);
           at < std::min<std::uint32_t>(end, std::uint32_t{write.first} + write.size); ++at) {
        found[at] = open[at];
      }
      const Group& group = GroupOf(warp, l);
      must = must || write.base || Knows(group, cta, own_warp, l, write.by) ||
             (ElementsRead(group, cta, own_warp, l, write) & write.Elements(begin, end)) != 0;
    });
    if (!read) continue;
    if (count == 0 || all[count - 1].number != write.number) {
      if (count == 16) break;
      all[count++] = {write.number, false, false, i, i, {}};
    }
    Candidate& candidate = all[count - 1];
    candidate.must |= must;
    candidate.arrived |= write.visible <= sampled || write.by.agent == cta.agent || write.base;
    candidate.oldest = i;
    candidate.bytes |= found;
    if (candidate.must || candidate.arrived) open &= ~found;
  }
  // all[0 .. free) may be left out; all[0 .. least) have to be.
  int free = 0, least = 0;
  while (free < count && !all[free].must) ++free;
  while (least < free && !all[least].arrived) ++least;
  Unread unread;
  if (least > 0) unread.cut = all[least - 1].number;
  // One behind another that may be read without it.
  int parts[16], apart = 0;
  for (int i = least + 1; i < count; ++i) {
    if (!all[i].must && all[i].arrived && all[i].bytes.any()) parts[apart++] = i;
  }
  const bool drawn = how == Choice::kDrawn;
  // Drawn ones take the whole line as one place, which keeps polls short.
  const auto at =
      drawn ? 0u : static_cast<std::uint32_t>(access.offset[std::countr_zero(here)] % kLineBytes);
  if ((free <= least && apart == 0) ||
      (how != Choice::kOldest && !line.history->Stubborn(cta.agent, own_warp, at)) ||
      (drawn && (Random() & 1) == 0)) {
    line.history->Yielded(cta.agent, own_warp, at);
    return unread;
  }
  unread.chosen = true;
  ++chosen_;
  if (apart > 0 && (free <= least || (drawn && (Random() & 1) != 0))) {
    const auto says = [&](const Candidate& newer, const Candidate& older) {
      for (std::size_t i = newer.oldest; i <= newer.newest; ++i) {
        if (writes[i].number != newer.number) continue;
        for (const Part& part : writes[i].message) {
          Group told;
          told.others = part.Whole();
          for (std::size_t j = older.oldest; j <= older.newest; ++j) {
            if (writes[j].number == older.number && Knows(told, {}, 0, 0, writes[j].by))
              return true;
          }
        }
      }
      return false;
    };
    int left[16], lefts = 0;
    left[lefts++] = parts[drawn ? Random() % static_cast<std::uint64_t>(apart)
                                : static_cast<std::uint64_t>(apart - 1)];
    bool permitted = true;
    for (int i = left[0]; i-- > least && permitted;) {
      bool told = false;
      for (int j = 0; j < lefts; ++j) told = told || says(all[i], all[left[j]]);
      if (told) left[lefts++] = i;
      permitted = !(told && all[i].must);
    }
    if (permitted) {
      for (int i = 0; i < lefts; ++i) unread.apart[unread.count++] = all[left[i]].number;
      return unread;
    }
  }
  if (free > least) {
    const int leave =
        drawn ? least + 1 + static_cast<int>(Random() % static_cast<std::uint64_t>(free - least))
              : free;
    unread.cut = all[leave - 1].number;
  }
  return unread;
}

bool Checker::Load(const Access& access, std::byte* values, Time sampled) {
  if (Ignores(access)) return false;
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
  const bool loads = access.op->kind == MemoryOpKind::kLoad;
  const bool stopped = loads && state_.delays.TakeStale(access.path);
  const bool oldest = stopped || (loads && state_.delays.on() &&
                                  (state_.delays.Standing(sampled) || StaleHere(path)));
  const bool chooses = oldest || (loads && Perturbed(sampled));
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
        ObserveHost(cta, path, here, *access.op, object, access.offset[std::countr_zero(here)]);
      }
      RecordPoll(cta, path, here, access);
      continue;
    }
    std::vector<StrongWrite>& writes = line.history->writes();
    // Where writes are missing only the engine knows what has arrived.
    const bool choose = chooses && !line.history->lossy();
    const Unread hidden = choose ? Choose(cta, warp, access, here, line, sampled,
                                          stopped  ? Choice::kOldest
                                          : oldest ? Choice::kOldestOften
                                                   : Choice::kDrawn)
                                 : Unread{};
    chosen |= hidden.chosen;
    std::array<std::size_t, kLanes> sources;
    std::vector<std::pair<int, std::size_t>> more;  // of lanes that read from several writes
    std::uint32_t observe = 0, of_host = 0, unwritten = 0;
    const StrongWrite* vector = nullptr;  // the first that a vector load takes as a whole
    int vector_lane = 0;
    ForLanes(here, [&](int l) {
      const auto begin = static_cast<std::uint32_t>(access.offset[l] % kLineBytes);
      const std::uint32_t end = begin + access.bytes;
      std::byte* value = values + static_cast<std::size_t>(l) * kMaxKept;
      if (choose) std::memcpy(value, object.data + access.offset[l], access.bytes);
      // Bytes whose write is not found yet.
      std::uint32_t open = access.bytes >= 32 ? ~0u : (1u << access.bytes) - 1;
      for (std::size_t i = writes.size(); i-- > 0 && open != 0;) {
        StrongWrite& write = writes[i];
        if (!write.Overlaps(begin, end)) continue;
        const bool unread = choose ? hidden.Has(write.number)
                                   : write.visible > sampled && write.by.agent != cta.agent &&
                                         !write.base;  // it stands for those before it
        if (unread && !choose) continue;               // the engine has hidden it
        const std::uint32_t from = std::max<std::uint32_t>(begin, write.first);
        const std::uint32_t to =
            std::min<std::uint32_t>(end, std::uint32_t{write.first} + write.size);
        if (unread) {
          for (std::uint32_t at = from; at < to; ++at) {
            if ((open >> (at - begin) & 1) != 0) value[at - begin] = write.old[at - write.first];
          }
          continue;
        }
        const auto mine =
            static_cast<std::uint32_t>(((std::uint64_t{1} << (to - from)) - 1) << (from - begin));
        if ((open & mine) == 0) continue;
        open &= ~mine;
        const Scope common = cta.position.Common(write.from);
        if (access.op->scope >= common && write.scope >= common &&
            access.op->bytes == write.element) {
          write.Read({cta.agent, cta.tick, own_warp, static_cast<std::uint8_t>(l)},
                     write.Elements(begin, end));
        }
        if ((observe >> l & 1) != 0) {
          more.emplace_back(l, i);
          continue;
        }
        if (write.vector && access.op->count > 1 && vector == nullptr &&
            write.by.agent != cta.agent && !Knows(GroupOf(warp, l), cta, own_warp, l, write.by)) {
          vector = &write;
          vector_lane = l;
        }
        sources[static_cast<std::size_t>(l)] = i;
        observe |= 1u << l;
      }
      if ((observe >> l & 1) == 0) unwritten |= 1u << l;
      if (!object.HostVisible()) return;
      if ((observe >> l & 1) == 0) {
        of_host |= 1u << l;
        return;
      }
      const StrongWrite& write = writes[sources[static_cast<std::size_t>(l)]];
      if (write.first == begin &&
          std::memcmp(write.now, value,
                      std::min<std::size_t>({sizeof write.now, write.size, access.bytes})) != 0) {
        of_host |= 1u << l;
      }
    });
    if (vector != nullptr) {
      // Another instruction of the same warp has stored another part of what is read here.
      const auto read = [&](const StrongWrite& other) {
        bool any = false;
        ForLanes(here, [&](int l) {
          const auto begin = static_cast<std::uint32_t>(access.offset[l] % kLineBytes);
          any = any || other.Overlaps(begin, begin + access.bytes);
        });
        return any;
      };
      const auto apart = std::find_if(writes.begin(), writes.end(), [&](const StrongWrite& other) {
        return other.number != vector->number && other.pc != vector->pc &&
               other.by.agent == vector->by.agent && other.by.warp == vector->by.warp &&
               !other.Overlaps(vector->first, vector->first + std::uint32_t{vector->size}) &&
               read(other);
      });
      ReportVector(*vector, apart != writes.end() ? &*apart : nullptr, path, vector_lane, object,
                   access.offset[vector_lane], access.bytes);
    }
    if (of_host != 0)
      ObserveHost(cta, path, of_host, *access.op, object, access.offset[std::countr_zero(of_host)]);
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
    for (const auto& [l, source] : more)
      Observe(cta, path, 1u << l, *access.op, writes[source], object, access.offset[l]);
  }
  if (warp.groups.size() > 1) Coalesce(warp);
  // Behind what it has acquired: that is ordered before the load itself.
  RememberStrong(*this, cta, warp, access);
  return chosen;
}

// What stands in memory that hosts see was written by one: it has said what it knows.
void Checker::ObserveHost(CtaClocks& cta, const Path& path, std::uint32_t lanes, const MemoryOp& op,
                          const Object& object, std::uint64_t offset) {
  if (hosts_speak_ || op.scope != Scope::kSys || object.owner == 0) return;
  // What it has touched since its last call is told later, with the next one: it counts as said,
  // too.
  SpeakerOf(object.owner);
  const auto host = hosts_.find(object.owner);
  if (const Line* line =
          object.shadow != nullptr ? object.shadow->Find(offset / kLineBytes) : nullptr)
    line->ForWrites([&](const Entry& entry) {
      if (positions_[entry.agent].native) agents_[cta.agent].told = entry.pc;
    });
  const ClockRef knows = host != hosts_.end() ? host->second : nullptr;
  RecordHostRead(cta, path, lanes, op, object, offset, knows);
  if (knows == nullptr) return;
  StrongWrite write;
  write.scope = Scope::kSys;
  write.element = op.bytes;
  write.by.agent = 0;  // nobody to give advice to
  write.message.push_back({Scope::kSys, Position{}, knows, nullptr, {}});
  Observe(cta, path, lanes, op, write, object, ~std::uint64_t{0});
}

}  // namespace allranks::node::check
