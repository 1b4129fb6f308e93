// See clock.h.
#include "node/check/clock.h"

#include <algorithm>
#include <bit>

namespace allranks::node::check {
namespace {

template <class List, class Key, class F>
auto Lower(List& list, Key key, F of) {
  return std::lower_bound(list.begin(), list.end(), key,
                          [&](const auto& entry, Key k) { return of(entry) < k; });
}

std::uint16_t WarpOf(const Beyond& beyond) { return beyond.warp; }
Agent CtaOf(const Known& known) { return known.cta; }
std::uint32_t ChainOf(const ChainPlace& place) { return place.chain; }

// Whether `b` has nothing that `a` has not. One walk through both: this is what joining mostly
// comes to.
bool Contains(const Clock& a, const Clock& b, const Places& places) {
  auto chain = a.chains.begin();
  for (const ChainPlace& place : b.chains) {
    while (chain != a.chains.end() && chain->chain < place.chain) ++chain;
    const bool has = chain != a.chains.end() && chain->chain == place.chain;
    if (has && chain->number >= place.number) continue;
    if (!a.Over(place, places)) return false;
  }
  auto mine = a.ctas.begin();
  for (const Known& known : b.ctas) {
    while (mine != a.ctas.end() && mine->cta < known.cta) ++mine;
    const bool has = mine != a.ctas.end() && mine->cta == known.cta;
    if (has && mine->Covers(known)) continue;
    if (!a.Over(known.cta, places)) return false;
  }
  return true;
}

}  // namespace

void Known::Add(std::uint16_t warp, std::uint32_t lanes, Tick tick) {
  if ((tick <= base && warp < kFirstCopyWarp) || lanes == 0) return;
  auto it = Lower(beyond, warp, WarpOf);
  if (it == beyond.end() || it->warp != warp) it = beyond.insert(it, {warp, {}});
  for (; lanes != 0; lanes &= lanes - 1) {
    Tick& known = it->ticks[static_cast<std::size_t>(std::countr_zero(lanes))];
    known = std::max(known, tick);
  }
}

void Known::Join(const Known& other) {
  // Mostly the other has no warps that this one has not.
  auto mine = beyond.begin();
  for (const Beyond& theirs : other.beyond) {
    while (mine != beyond.end() && mine->warp < theirs.warp) ++mine;
    if (mine == beyond.end() || mine->warp != theirs.warp) {
      mine = beyond.insert(mine, theirs);
    } else {
      for (std::size_t i = 0; i < theirs.ticks.size(); ++i)
        mine->ticks[i] = std::max(mine->ticks[i], theirs.ticks[i]);
    }
  }
  base = std::max(base, other.base);
  Tidy();
}

void Known::Tidy() {
  std::erase_if(beyond, [&](const Beyond& entry) {
    return entry.warp < kFirstCopyWarp &&
           std::all_of(
               entry.ticks.begin(), entry.ticks.end(), [&](Tick tick) { return tick <= base; });
  });
}

std::uint32_t Known::Lanes(std::uint16_t warp, std::uint32_t lanes, Tick tick) const {
  if (tick <= base && warp < kFirstCopyWarp) return lanes;
  const auto it = Lower(beyond, warp, WarpOf);
  if (it == beyond.end() || it->warp != warp) return 0;
  std::uint32_t known = 0;
  for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
    if (it->ticks[static_cast<std::size_t>(std::countr_zero(left))] >= tick) known |= left & -left;
  }
  return known;
}

bool Known::Covers(const Known& other) const {
  if (other.base > base) return false;
  auto mine = beyond.begin();
  for (const Beyond& theirs : other.beyond) {
    while (mine != beyond.end() && mine->warp < theirs.warp) ++mine;
    const bool has = mine != beyond.end() && mine->warp == theirs.warp;
    const Tick least = theirs.warp < kFirstCopyWarp ? base : 0;
    bool more = false;
    for (std::size_t i = 0; i < theirs.ticks.size(); ++i)
      more |= theirs.ticks[i] > std::max(least, has ? mine->ticks[i] : 0);
    if (more) return false;
  }
  return true;
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
  const bool more = b->ctas.size() + b->chains.size() >= a->ctas.size() + a->chains.size();
  if (more && Contains(*b, *a, places)) return b;
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
