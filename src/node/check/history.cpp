// See history.h.
#include "node/check/history.h"

#include <algorithm>

namespace allranks::node::check {

void Absorb(const Joins& join, Part& into, const Part& part) {
  if (into.agent == part.agent) {
    into.clock = join(into.clock, part.clock);
    into.own = Merged(into.own, part.own);
  } else {
    into.clock = join(into.Whole(), part.Whole());
    into.agent = 0;
    into.own = nullptr;
  }
  into.seen = join(into.seen, part.seen);
  into.sc = Join(join, into.sc, part.sc);
  into.proxied = Join(join, into.proxied, part.proxied);
  if (into.from.cta != part.from.cta) into.from.cta = 0;
  if (into.from.cluster != part.from.cluster) into.from.cluster = 0;
}

void Merge(const Joins& join, Message& message, const Part& part) {
  constexpr std::size_t kMaxParts = 24;
  // At these scopes it does not matter which CTA of the device it was.
  const bool wide = part.scope >= Scope::kGpu;
  for (Part& known : message) {
    if (known.scope != part.scope || known.from.device != part.from.device) continue;
    if (wide || known.from.cta == part.from.cta) return Absorb(join, known, part);
  }
  if (wide || message.size() < kMaxParts) {
    message.push_back(part);
    return;
  }
  for (Part& known : message) {
    if (known.scope == part.scope && known.from.device == part.from.device)
      return Absorb(join, known, part);
  }
}

std::uint8_t StrongWrite::Elements(std::uint32_t begin, std::uint32_t end) const {
  if (size <= element) return 1;
  std::uint8_t mask = 0;
  for (std::uint32_t i = 0, at = first; i < 8 && at < std::uint32_t{first} + size;
       ++i, at += element) {
    if (at < end && begin < at + element) mask |= static_cast<std::uint8_t>(1u << i);
  }
  return mask;
}

void StrongWrite::Read(const Stamp& reader, std::uint8_t elements) {
  constexpr std::size_t kMaxReaders = 64;
  std::uint8_t before = 0;
  Reader* place = nullptr;
  for (Reader& known : readers) {
    if (known.agent != reader.agent || known.warp != reader.warp) continue;
    if ((known.lanes >> reader.lane & 1) != 0) before |= known.elements;
    if (known.tick == reader.tick && known.elements == elements) place = &known;
  }
  if ((elements & ~before) == 0 || read_by_many) return;
  if (place != nullptr) {
    place->lanes |= 1u << reader.lane;
  } else if (readers.size() < kMaxReaders) {
    readers.push_back({reader.agent, reader.tick, reader.warp, elements, 1u << reader.lane});
  } else {
    read_by_many = true;
  }
}

StrongWrite& History::Add(const Joins& join, std::size_t depth, Time now) {
  // From the newest back: of each place `depth` that everybody can see.
  if (writes_.size() > depth) {
    std::uint8_t settled[128] = {};
    std::size_t kept[128];  // where the last of the settled is
    const std::size_t size = writes_.size();
    std::size_t at = size;  // those that stay are moved to the end
    const auto keep = [&](std::size_t i) {
      if (--at != i) writes_[at] = std::move(writes_[i]);
    };
    for (std::size_t i = size; i-- > 0;) {
      StrongWrite& write = writes_[i];
      if (write.visible > now && size - i <= kMostOnTheirWay) {
        keep(i);
      } else if (settled[write.first] < depth) {
        ++settled[write.first];
        keep(i);
        kept[writes_[at].first] = at;
      } else {
        // What it has said would be lost on a load that got its value.
        StrongWrite& next = writes_[kept[write.first]];
        next.base = true;
        // On its way, it may be what a load gets before the next one has arrived.
        if (write.visible > now || next.visible > now)
          for (const Part& part : write.message) Merge(join, next.message, part);
      }
    }
    writes_.erase(writes_.begin(), writes_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return writes_.emplace_back();
}

void History::Close(Time visible) {
  for (auto write = writes_.rbegin(); write != writes_.rend() && write->visible == kTimeNever;
       ++write) {
    write->visible = visible;
  }
}

void History::Erase(std::uint32_t begin, std::uint32_t end) {
  std::erase_if(writes_, [&](const StrongWrite& write) { return write.Overlaps(begin, end); });
}

bool History::Stubborn(Agent agent, std::uint16_t warp, std::uint32_t at) {
  for (Stale& stale : stale_) {
    if (stale.Is(agent, warp, at)) return ++stale.times <= kMostStale;
  }
  if (stale_.size() >= kMostOnTheirWay) {
    // Not remembered, so not limited: a poll must end.
    stale_.erase(stale_.begin());
    return false;
  }
  stale_.push_back({agent, warp, at, 1});
  return true;
}

void History::Yielded(Agent agent, std::uint16_t warp, std::uint32_t at) {
  std::erase_if(stale_, [&](const Stale& stale) { return stale.Is(agent, warp, at); });
}

}  // namespace allranks::node::check
