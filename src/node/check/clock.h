// Who knows of what: the clocks behind happens-before.
//
// Theory of operation. What happens is done by *agents*: the CTAs of launches, operations of
// streams, hosts. Every CTA has a counter, its *tick*, which moves on whenever something of it can
// become known to others: at barriers, releases, fences. An access is stamped with its CTA, tick,
// warp and lanes. To know a CTA is to know all its threads up to a tick (`base`, after a barrier),
// and some lanes of some warps beyond that. Operations of a stream stand on a *chain*: to know one
// is to know all before it on its chain, with all their CTAs, so what is known of CTAs is dropped
// when their launch becomes known to be over, or some time after. Numbers of agents, chains and
// ticks are not reused while anything remembers them: a hardware slot that two launches share hides
// nothing.
//
// Clocks and what they are made of are immutable and shared (trie.h); equal ones are one object.
// Threads of a warp mostly know the same and share one (Group); they are split where lanes part, by
// what each lane has acquired.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "node/check/trie.h"

namespace allranks::node::check {

using Agent = std::uint32_t;  // 0: nobody
using Tick = std::uint32_t;

// Numbers of warps from here on are not threads but their copies under way (meet.cpp): a barrier
// of threads says nothing of them.
inline constexpr std::uint16_t kFirstCopyWarp = 0x2000;
// The base of a CTA that is over, and its copies with it.
inline constexpr Tick kOver = ~Tick{0};

// Where an agent stands in the order of streams.
struct ChainPlace {
  std::uint32_t chain = 0, number = 0;
};

// Lanes of a warp that are known up to a tick beyond the base of their CTA.
struct Beyond {
  std::uint16_t warp = 0;
  std::uint32_t lanes = 0;
  Tick tick = 0;
  bool operator==(const Beyond&) const = default;
};

// What is known of one CTA.
struct Known : Counted {
  static void Free(const Known* known);
  Tick base = 0;
  std::vector<Beyond> beyond;  // by warp, the highest tick first; every lane at most once
  bool operator==(const Known&) const = default;

  // Those of `lanes` of the warp whose accesses at `tick` are known.
  std::uint32_t Lanes(std::uint16_t warp, std::uint32_t lanes, Tick tick) const;
  bool Covers(const Known& other) const;
  std::size_t Hash() const;
};
using KnownRef = Ref<Known>;  // null: nothing

// The arguments themselves where there is nothing to add.
KnownRef Merged(const KnownRef& a, const KnownRef& b);
KnownRef MergedAll(const std::vector<const KnownRef*>& all);
KnownRef With(const KnownRef& known, std::uint16_t warp, std::uint32_t lanes, Tick tick);
KnownRef WithBase(const KnownRef& known, Tick base);
inline std::uint32_t LanesOf(const KnownRef& known, std::uint16_t warp, std::uint32_t lanes,
                             Tick tick) {
  return known != nullptr ? known->Lanes(warp, lanes, tick) : 0;
}
inline Tick BaseOf(const KnownRef& known) { return known != nullptr ? known->base : 0; }

// Where each agent stands, and where chains end that others go on with: a graph's node has a chain
// of its own, which nobody need remember once the end of the graph's launch is known. Filled by the
// Checker.
struct Places {
  std::vector<ChainPlace> of;    // by agent
  std::vector<ChainPlace> ends;  // by chain; chain 0: it goes on
};

class Clock : public Counted {
 public:
  Clock() = default;
  Clock(Trie<std::uint32_t> of_chains, Trie<KnownRef> of_ctas)
      : chains(std::move(of_chains)), ctas(std::move(of_ctas)) {}
  static void Free(const Clock* clock);

  // The highest number on a chain that is known; 0: none.
  std::uint32_t On(std::uint32_t chain) const { return chains.Get(chain); }
  KnownRef Of(Agent cta) const { return ctas.Get(cta); }
  bool Over(const ChainPlace& place, const Places& places) const {
    if (On(place.chain) >= place.number) return true;
    const ChainPlace& end = places.ends[place.chain];
    return end.chain != 0 && On(end.chain) >= end.number;
  }
  bool Over(Agent agent, const Places& places) const { return Over(places.of[agent], places); }

  Trie<std::uint32_t> chains;
  Trie<KnownRef> ctas;

  bool operator==(const Clock&) const = default;
  std::size_t Hash() const { return MixHash(chains.Hash(), ctas.Hash()); }
};
using ClockRef = Ref<Clock>;  // null: knows nothing

// The clock with one more thing known; what is known of the CTA before is replaced.
ClockRef With(const ClockRef& clock, const ChainPlace& place);
ClockRef With(const ClockRef& clock, Agent cta, const KnownRef& known);
// The clock with this known of a CTA, too; itself if it has that.
ClockRef Plus(const ClockRef& clock, Agent cta, const KnownRef& known);
// Without what follows from the rest: CTAs of launches that are over, and chains that have ended.
ClockRef Compacted(const ClockRef& clock, const Places& places);

// What several clocks know together. Most of what a clock knows of CTAs is of launches that are
// over for whoever learns of another rank: it is forgotten, not joined.
class Joins {
 public:
  explicit Joins(const Places& places) : places_(places) {}

  // One of the two itself if that is all.
  ClockRef operator()(const ClockRef& a, const ClockRef& b) const;
  ClockRef operator()(std::vector<ClockRef> clocks) const;
  // Agents' numbers have a new meaning.
  void Forget() { latest_ = {}; }

 private:
  class Live;
  ClockRef Anew(const Clock& a, const Clock& b) const;

  // Threads of a warp learn the same one after the other, and those that poll learn it again and
  // again.
  struct Latest {
    ClockRef a, b, joined;
  };
  const Places& places_;
  mutable std::array<Latest, 512> latest_;
};

}  // namespace allranks::node::check
