// The memory model by its axioms, for programs so small that every execution can be written down:
// strong and weak accesses of whole words, atomics, fences, scopes. Knows nothing of the checker;
// random_test.cpp holds the two against each other.
//
// An execution is given by what each read reads from. The order of writes to a location (coherence)
// and that of fence.sc are not seen from outside: an outcome is permitted if some choice of them
// satisfies every axiom of the PTX ISA's chapter on memory consistency. Races need neither.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

namespace allranks::litmus {

enum class Reach : std::uint8_t { kBlock, kDevice, kSystem };

struct Event {
  enum class Kind : std::uint8_t { kLoad, kStore, kAtomic, kFence };
  Kind kind = Kind::kLoad;
  int thread = 0;
  int location = -1;
  bool strong = false, acquires = false, releases = false;  // a fence does both
  bool sc = false;                                          // fence.sc
  Reach reach = Reach::kSystem;

  bool reads() const { return kind == Kind::kLoad || kind == Kind::kAtomic; }
  bool writes() const { return kind == Kind::kStore || kind == Kind::kAtomic; }
};

struct Standing {
  int device = 0, block = 0;
};

// Events of a thread are in program order, those of different threads in any.
struct SmallProgram {
  std::vector<Standing> threads;
  std::vector<Event> events;  // at most 32
  int locations = 0;
};

// By event: the event that it reads from; kFirst: the value before all. By location: who wrote
// last.
struct Seen {
  static constexpr int kFirst = -1;
  std::vector<int> from;
  std::vector<int> last;
};

bool Permitted(const SmallProgram& program, const Seen& seen);

// Pairs of conflicting events that nothing orders and that are not morally strong. An order that is
// only that of two fence.sc does not count: in another run it may be the other way round.
std::set<std::pair<int, int>> Races(const SmallProgram& program, const Seen& seen);

}  // namespace allranks::litmus
