// Who knows of what: the clocks behind happens-before.
//
// Theory of operation. What happens is done by *agents*: the CTAs of launches, operations of
// streams, hosts. Every CTA has a counter, its *tick*, which moves on whenever something of it can
// become known to others: at barriers, releases, fences. An access is stamped with its CTA, tick,
// warp and lanes. To know a CTA is to know all its threads up to a tick (`base`, after a barrier),
// and some lanes of some warps beyond that. Operations of a stream stand on a *chain*: to know one
// is to know all before it on its chain, with all their CTAs, so what is known of CTAs is dropped
// when their launch is known to be over. Numbers of agents, chains and ticks are never reused: a
// hardware slot that two launches share hides nothing.
//
// A Clock is immutable and shared. Threads of a warp mostly know the same and share one (Group);
// they are split where lanes part, by what each lane has acquired.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace allranks::node::check {

using Agent = std::uint32_t;  // 0: nobody
using Tick = std::uint32_t;

// Numbers of warps from here on are not threads but their copies under way (meet.cpp): a barrier
// of threads says nothing of them.
inline constexpr std::uint16_t kFirstCopyWarp = 0x2000;

// Where an agent stands in the order of streams.
struct ChainPlace {
  std::uint32_t chain = 0, number = 0;
};

// Up to which tick each lane of a warp is known, beyond the base of its CTA; 0: not beyond it.
struct Beyond {
  std::uint16_t warp = 0;
  std::array<Tick, 32> ticks{};
};

// What is known of one CTA.
struct Known {
  Agent cta = 0;
  Tick base = 0;
  std::vector<Beyond> beyond;  // by warp

  void Add(std::uint16_t warp, std::uint32_t lanes, Tick tick);
  void Join(const Known& other);
  // Drops what the base says already.
  void Tidy();
  // Those of `lanes` of the warp whose accesses at `tick` are known.
  std::uint32_t Lanes(std::uint16_t warp, std::uint32_t lanes, Tick tick) const;
  bool Covers(const Known& other) const;
};

// Where each agent stands, and where chains end that others go on with: a graph's node has a chain
// of its own, which nobody need remember once the end of the graph's launch is known. Filled by the
// Checker.
struct Places {
  std::vector<ChainPlace> of;    // by agent
  std::vector<ChainPlace> ends;  // by chain; chain 0: it goes on
};

class Clock {
 public:
  // The highest number on a chain that is known; 0: none.
  std::uint32_t On(std::uint32_t chain) const;
  const Known* Of(Agent cta) const;
  bool Over(const ChainPlace& place, const Places& places) const {
    if (On(place.chain) >= place.number) return true;
    const ChainPlace& end = places.ends[place.chain];
    return end.chain != 0 && On(end.chain) >= end.number;
  }
  bool Over(Agent agent, const Places& places) const { return Over(places.of[agent], places); }

  std::vector<ChainPlace> chains;  // by chain
  std::vector<Known> ctas;         // by agent
};
using ClockRef = std::shared_ptr<const Clock>;  // null: knows nothing

// What either knows; one of the two itself if that is all.
ClockRef Join(const ClockRef& a, const ClockRef& b, const Places& places);
// The clock with one more thing known.
ClockRef With(const ClockRef& clock, const ChainPlace& place, const Places& places);
ClockRef With(const ClockRef& clock, const Known& known);
ClockRef Without(const ClockRef& clock, Agent cta);

}  // namespace allranks::node::check
