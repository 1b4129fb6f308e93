// See clock.h.
#include "node/check/clock.h"

#include <algorithm>

namespace allranks::node::check {
namespace {

bool Before(const Beyond& a, const Beyond& b) {
  return a.warp != b.warp ? a.warp < b.warp : a.tick > b.tick;
}

// Of entries in order: every lane by its highest tick, and nothing that the base says already.
void Tidy(Known& known) {
  std::uint32_t taken = 0, warp = ~0u;
  std::size_t kept = 0;
  for (Beyond entry : known.beyond) {
    if (entry.warp != warp) taken = 0;
    warp = entry.warp;
    entry.lanes &= ~taken;
    taken |= entry.lanes;
    if (entry.lanes == 0 ||
        (entry.tick <= known.base && (entry.warp < kFirstCopyWarp || known.base == kOver)))
      continue;
    Beyond* last = kept > 0 ? &known.beyond[kept - 1] : nullptr;
    if (last != nullptr && last->warp == entry.warp && last->tick == entry.tick) {
      last->lanes |= entry.lanes;
    } else {
      known.beyond[kept++] = entry;
    }
  }
  known.beyond.resize(kept);
}

}  // namespace

void Known::Free(const Known* known) { Interned<Known>::Drop(known); }
void Clock::Free(const Clock* clock) { Interned<Clock>::Drop(clock); }

std::uint32_t Known::Lanes(std::uint16_t warp, std::uint32_t lanes, Tick tick) const {
  if (tick <= base && (warp < kFirstCopyWarp || base == kOver)) return lanes;
  std::uint32_t known = 0;
  const Beyond highest{warp, 0, ~Tick{0}};
  for (auto entry = std::lower_bound(beyond.begin(), beyond.end(), highest, Before);
       entry != beyond.end() && entry->warp == warp && entry->tick >= tick; ++entry) {
    known |= entry->lanes;
  }
  return known & lanes;
}

bool Known::Covers(const Known& other) const {
  if (other.base > base) return false;
  return std::all_of(other.beyond.begin(), other.beyond.end(), [&](const Beyond& theirs) {
    return Lanes(theirs.warp, theirs.lanes, theirs.tick) == theirs.lanes;
  });
}

std::size_t Known::Hash() const {
  std::size_t hash = base;
  for (const Beyond& entry : beyond)
    hash = MixHash(MixHash(hash, std::size_t{entry.warp} << 32 | entry.lanes), entry.tick);
  return hash;
}

KnownRef Merged(const KnownRef& a, const KnownRef& b) {
  if (b == nullptr || a == b) return a;
  if (a == nullptr) return b;
  if (a->Covers(*b)) return a;
  if (b->Covers(*a)) return b;
  Known joined;
  joined.base = std::max(a->base, b->base);
  joined.beyond.resize(a->beyond.size() + b->beyond.size());
  std::merge(a->beyond.begin(), a->beyond.end(), b->beyond.begin(), b->beyond.end(),
             joined.beyond.begin(), Before);
  Tidy(joined);
  return Interned<Known>::Of(std::move(joined));
}

KnownRef MergedAll(const std::vector<const KnownRef*>& all) {
  const auto less = [](const Known& a, const Known& b) {
    return a.base != b.base ? a.base < b.base : a.beyond.size() < b.beyond.size();
  };
  const KnownRef* most = nullptr;
  for (const KnownRef* known : all)
    if (*known != nullptr && (most == nullptr || (*known != *most && less(**most, **known))))
      most = known;
  if (most == nullptr) return nullptr;
  // Mostly it covers all others, and most of those are the same.
  Known joined;
  const Known* before = most->get();
  bool covers = true;
  for (const KnownRef* known : all) {
    if (*known == nullptr || *known == *most || known->get() == before) continue;
    before = known->get();
    if ((*most)->Covers(*before)) continue;
    if (covers) joined = **most;
    covers = false;
    joined.beyond.insert(joined.beyond.end(), before->beyond.begin(), before->beyond.end());
  }
  if (covers) return *most;
  std::sort(joined.beyond.begin(), joined.beyond.end(), Before);
  Tidy(joined);
  return Interned<Known>::Of(std::move(joined));
}

KnownRef With(const KnownRef& known, std::uint16_t warp, std::uint32_t lanes, Tick tick) {
  if (LanesOf(known, warp, lanes, tick) == lanes) return known;
  Known made = known != nullptr ? *known : Known();
  const Beyond entry{warp, lanes, tick};
  made.beyond.insert(std::lower_bound(made.beyond.begin(), made.beyond.end(), entry, Before),
                     entry);
  Tidy(made);
  return Interned<Known>::Of(std::move(made));
}

KnownRef WithBase(const KnownRef& known, Tick base) {
  Known made = known != nullptr ? *known : Known();
  made.base = std::max(made.base, base);
  Tidy(made);
  return Interned<Known>::Of(std::move(made));
}

// Whether an agent is not known to be over by `chains`. Those of one launch follow each other.
class Joins::Live {
 public:
  Live(const Trie<std::uint32_t>& chains, const Places& places)
      : clock_(chains, {}), places_(places) {}
  bool operator()(Agent agent) {
    const ChainPlace& place = places_.of[agent];
    if (place.chain != last_.chain || place.number != last_.number) {
      last_ = place;
      live_ = !clock_.Over(place, places_);
    }
    return live_;
  }

 private:
  const Clock clock_;
  const Places& places_;
  ChainPlace last_{.chain = ~0u};
  bool live_ = true;
};

ClockRef Joins::Anew(const Clock& a, const Clock& b) const {
  Clock joined;
  joined.chains = Trie<std::uint32_t>::Joined(a.chains, b.chains);
  // A clock that gains no chains has no blocks to drop.
  const auto live = [&](const Clock& clock) {
    if (clock.chains == joined.chains) return clock.ctas;
    return clock.ctas.Filtered([live = Live(joined.chains, places_)](
                                   Agent cta, const KnownRef&) mutable { return live(cta); });
  };
  joined.ctas = Trie<KnownRef>::Joined(live(a), live(b));
  return Interned<Clock>::Of(std::move(joined));
}

ClockRef Joins::operator()(const ClockRef& a, const ClockRef& b) const {
  if (b == nullptr || a == b) return a;
  if (a == nullptr) return b;
  const auto x = reinterpret_cast<std::uintptr_t>(a.get());
  const auto y = reinterpret_cast<std::uintptr_t>(b.get());
  Latest& latest =
      latest_[(x * 0x9e3779b97f4a7c15u ^ y * 0xbf58476d1ce4e5b9u) >> 40 & (latest_.size() - 1)];
  if (latest.a != a || latest.b != b) latest = {a, b, Anew(*a, *b)};
  return latest.joined;
}

ClockRef Joins::operator()(std::vector<ClockRef> clocks) const {
  std::erase(clocks, nullptr);
  std::sort(clocks.begin(), clocks.end());
  clocks.erase(std::unique(clocks.begin(), clocks.end()), clocks.end());
  if (clocks.empty()) return nullptr;
  if (clocks.size() <= 2) return (*this)(clocks.front(), clocks.back());
  std::vector<const Trie<std::uint32_t>*> chains;
  std::vector<const Trie<KnownRef>*> ctas;
  for (const ClockRef& clock : clocks) {
    chains.push_back(&clock->chains);
    ctas.push_back(&clock->ctas);
  }
  Clock joined;
  joined.chains = Trie<std::uint32_t>::Joined(chains, [](std::uint32_t) { return true; });
  joined.ctas = Trie<KnownRef>::Joined(ctas, Live(joined.chains, places_));
  return Interned<Clock>::Of(std::move(joined));
}

ClockRef With(const ClockRef& clock, const ChainPlace& place) {
  if (clock != nullptr && clock->On(place.chain) >= place.number) return clock;
  Clock made = clock != nullptr ? *clock : Clock();
  made.chains = made.chains.With(place.chain, place.number);
  return Interned<Clock>::Of(std::move(made));
}

ClockRef With(const ClockRef& clock, Agent cta, const KnownRef& known) {
  Clock made = clock != nullptr ? *clock : Clock();
  made.ctas = made.ctas.With(cta, known);
  return Interned<Clock>::Of(std::move(made));
}

ClockRef Plus(const ClockRef& clock, Agent cta, const KnownRef& known) {
  const KnownRef before = clock != nullptr ? clock->Of(cta) : nullptr;
  const KnownRef after = Merged(before, known);
  return after == before ? clock : With(clock, cta, after);
}

ClockRef Compacted(const ClockRef& clock, const Places& places) {
  if (clock == nullptr) return nullptr;
  const auto ended = [&](std::uint32_t chain) {
    const ChainPlace& end = places.ends[chain];
    return end.chain != 0 && clock->On(end.chain) >= end.number;
  };
  Clock settled{
      clock->chains.Filtered([&](std::uint32_t chain, std::uint32_t) { return !ended(chain); }),
      clock->ctas.Filtered([&](Agent cta, const KnownRef&) { return !clock->Over(cta, places); })};
  return Interned<Clock>::Of(std::move(settled));
}

}  // namespace allranks::node::check
