// See clock.h.
#include "node/check/clock.h"

#include <algorithm>
#include <array>

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

// The latest joins: threads of a warp learn the same one after the other, and those that poll learn
// it again and again.
struct Memo {
  ClockRef a, b, joined;
};

Memo& MemoOf(const ClockRef& a, const ClockRef& b) {
  static thread_local std::array<Memo, 512> memos;
  const auto x = reinterpret_cast<std::uintptr_t>(a.get());
  const auto y = reinterpret_cast<std::uintptr_t>(b.get());
  return memos[(x * 0x9e3779b97f4a7c15u ^ y * 0xbf58476d1ce4e5b9u) >> 40 & 511];
}

ClockRef JoinAnew(const ClockRef& a, const ClockRef& b) {
  Clock joined{Trie<std::uint32_t>::Joined(a->chains, b->chains),
               Trie<KnownRef>::Joined(a->ctas, b->ctas)};
  return Interned<Clock>::Of(std::move(joined));
}

}  // namespace

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

KnownRef Merged(std::vector<KnownRef> all) {
  std::erase(all, nullptr);
  if (all.empty()) return nullptr;
  const auto more = [](const KnownRef& a, const KnownRef& b) {
    return a->base != b->base ? a->base < b->base : a->beyond.size() < b->beyond.size();
  };
  KnownRef most = *std::max_element(all.begin(), all.end(), more);
  std::erase_if(all, [&](const KnownRef& known) { return most->Covers(*known); });
  if (all.empty()) return most;
  Known joined = *most;
  for (const KnownRef& known : all)
    joined.beyond.insert(joined.beyond.end(), known->beyond.begin(), known->beyond.end());
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

ClockRef Join(const ClockRef& a, const ClockRef& b) {
  if (b == nullptr || a == b) return a;
  if (a == nullptr) return b;
  Memo& memo = MemoOf(a, b);
  if (memo.a == a && memo.b == b) return memo.joined;
  memo = {a, b, JoinAnew(a, b)};
  return memo.joined;
}

ClockRef Join(std::vector<ClockRef> clocks) {
  std::erase(clocks, nullptr);
  std::sort(clocks.begin(), clocks.end());
  clocks.erase(std::unique(clocks.begin(), clocks.end()), clocks.end());
  if (clocks.empty()) return nullptr;
  if (clocks.size() <= 2) return Join(clocks.front(), clocks.back());
  std::vector<Trie<std::uint32_t>> chains;
  std::vector<Trie<KnownRef>> ctas;
  for (const ClockRef& clock : clocks) {
    chains.push_back(clock->chains);
    ctas.push_back(clock->ctas);
  }
  Clock joined{Trie<std::uint32_t>::Joined(chains), Trie<KnownRef>::Joined(ctas)};
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
