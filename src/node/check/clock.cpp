// See clock.h.
#include "node/check/clock.h"

#include <algorithm>

namespace allranks::node::check {
namespace {

template <class List, class Key, class F>
auto Lower(List& list, Key key, F of) {
  return std::lower_bound(list.begin(), list.end(), key,
                          [&](const auto& entry, Key k) { return of(entry) < k; });
}

Agent CtaOf(const Known& known) { return known.cta; }
std::uint32_t ChainOf(const ChainPlace& place) { return place.chain; }

// Whether `b` has nothing that `a` has not.
bool Contains(const Clock& a, const Clock& b, const Places& places) {
  for (const ChainPlace& place : b.chains) {
    if (!a.Over(place, places)) return false;
  }
  for (const Known& known : b.ctas) {
    if (a.Over(known.cta, places)) continue;
    const Known* mine = a.Of(known.cta);
    if (mine == nullptr || !mine->Covers(known)) return false;
  }
  return true;
}

}  // namespace

void Known::Add(std::uint16_t warp, std::uint32_t lanes, Tick tick) {
  if ((tick <= base && warp < kFirstCopyWarp) || lanes == 0) return;
  for (Beyond& entry : beyond) {
    if (entry.warp != warp) continue;
    if (entry.tick >= tick) {
      lanes &= ~entry.lanes;
      if (lanes == 0) return;
    } else {
      entry.lanes &= ~lanes;  // the new entry says more of these
    }
  }
  std::erase_if(beyond, [](const Beyond& entry) { return entry.lanes == 0; });
  for (Beyond& entry : beyond) {
    if (entry.warp == warp && entry.tick == tick) {
      entry.lanes |= lanes;
      return;
    }
  }
  beyond.push_back({warp, lanes, tick});
}

void Known::Join(const Known& other) {
  if (other.base > base) {
    base = other.base;
    Tidy();
  }
  for (const Beyond& entry : other.beyond) Add(entry.warp, entry.lanes, entry.tick);
}

void Known::Tidy() {
  std::erase_if(beyond, [&](const Beyond& entry) {
    return entry.tick <= base && entry.warp < kFirstCopyWarp;
  });
}

std::uint32_t Known::Lanes(std::uint16_t warp, std::uint32_t lanes, Tick tick) const {
  if (tick <= base && warp < kFirstCopyWarp) return lanes;
  std::uint32_t known = 0;
  for (const Beyond& entry : beyond) {
    if (entry.warp == warp && entry.tick >= tick) known |= entry.lanes;
  }
  return known & lanes;
}

bool Known::Covers(const Known& other) const {
  if (other.base > base) return false;
  return std::all_of(other.beyond.begin(), other.beyond.end(), [&](const Beyond& entry) {
    return Lanes(entry.warp, entry.lanes, entry.tick) == entry.lanes;
  });
}

std::uint32_t Clock::On(std::uint32_t chain) const {
  const auto it = Lower(chains, chain, ChainOf);
  return it != chains.end() && it->chain == chain ? it->number : 0;
}

const Known* Clock::Of(Agent cta) const {
  const auto it = Lower(ctas, cta, CtaOf);
  return it != ctas.end() && it->cta == cta ? &*it : nullptr;
}

ClockRef Join(const ClockRef& a, const ClockRef& b, const Places& places) {
  if (b == nullptr || a == b) return a;
  if (a == nullptr) return b;
  if (Contains(*a, *b, places)) return a;
  if (Contains(*b, *a, places)) return b;
  auto joined = std::make_shared<Clock>();
  joined->chains.reserve(a->chains.size() + b->chains.size());
  auto x = a->chains.begin(), y = b->chains.begin();
  while (x != a->chains.end() || y != b->chains.end()) {
    if (y == b->chains.end() || (x != a->chains.end() && x->chain < y->chain)) {
      joined->chains.push_back(*x++);
    } else if (x == a->chains.end() || y->chain < x->chain) {
      joined->chains.push_back(*y++);
    } else {
      joined->chains.push_back({x->chain, std::max(x->number, y->number)});
      ++x, ++y;
    }
  }
  std::erase_if(joined->chains, [&](const ChainPlace& place) {
    const ChainPlace& end = places.ends[place.chain];
    return end.chain != 0 && joined->On(end.chain) >= end.number;
  });
  auto p = a->ctas.begin(), q = b->ctas.begin();
  const auto take = [&](const Known& known) {
    if (!joined->Over(known.cta, places)) joined->ctas.push_back(known);
  };
  while (p != a->ctas.end() || q != b->ctas.end()) {
    if (q == b->ctas.end() || (p != a->ctas.end() && p->cta < q->cta)) {
      take(*p++);
    } else if (p == a->ctas.end() || q->cta < p->cta) {
      take(*q++);
    } else {
      if (!joined->Over(p->cta, places)) {
        joined->ctas.push_back(*p);
        joined->ctas.back().Join(*q);
      }
      ++p, ++q;
    }
  }
  return joined;
}

ClockRef With(const ClockRef& clock, const ChainPlace& place, const Places& places) {
  if (clock != nullptr && clock->Over(place, places)) return clock;
  auto one = std::make_shared<Clock>();
  one->chains.push_back(place);
  return Join(clock, one, places);
}

ClockRef With(const ClockRef& clock, const Known& known) {
  auto made = clock != nullptr ? std::make_shared<Clock>(*clock) : std::make_shared<Clock>();
  const auto it = Lower(made->ctas, known.cta, CtaOf);
  if (it != made->ctas.end() && it->cta == known.cta) {
    it->Join(known);
  } else {
    made->ctas.insert(it, known);
  }
  return made;
}

ClockRef Without(const ClockRef& clock, Agent cta) {
  if (clock == nullptr || clock->Of(cta) == nullptr) return clock;
  auto made = std::make_shared<Clock>(*clock);
  std::erase_if(made->ctas, [&](const Known& known) { return known.cta == cta; });
  return made;
}

}  // namespace allranks::node::check
