// Directed schedules: everything happens as under schedule 0, but at one place something is late,
// for so long that everybody else goes on until they wait for it or are done.
//
// A *place* is where threads of different blocks meet: a strong access (a load, a store before it
// is performed, a store on its way, an atomic), a fence.sc, a copy that completes on an mbarrier,
// the beginning of a block, an operation of a stream. Places are numbered in the order in which a
// run first comes to them. Since nothing is disturbed before the delay, the n-th place of a run is
// the n-th place of every run, and its number alone says what is late. What counts as another place
// depends on the level: another instruction in the source, however often the compiler has copied it
// (1: what is late at every time, 2: what stops once), or the same one on another device (3), at
// another time that the device comes there, up to the eighth (4), or in another warp (5).
//
// What happens at the place:
//   stale      a load, whenever it is executed, gets the oldest value that the model permits
//   flight     a store, whenever it is executed, takes long to arrive; fences and releases wait
//   swap       a compare-and-swap, whenever it is executed but by the warp that came first, waits
//              until its word has changed and become what it expects again (ABA), for a while
//   load       its warp stops before it, and then gets the oldest value
//   later      its warp stops before it and gets the newest; its next loads get the oldest
//   store, atomic   its warp stops before it; its next loads get the oldest
//   fence      its warp stops before a fence.sc; until it goes on, the loads of all others get the
//              oldest value
//   transfer, block, operation   complete or begin late
// At level 1 `whenever` means everywhere; at level 3 on one device, so that its peers' stores
// overtake its own, and at 5 in one warp. What stops does so at the first time. When that is over,
// up to sixteen shorter stops follow, at places and times drawn by the schedule's number: the first
// round of a protocol often has nothing to lose, and two delays show more than one.
// So a single place shows store buffering (flight, store, fence), message passing without order
// (stale), ABA (swap), waits for equality and counters that others reset (load, atomic), and
// buffers that are reused too early.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "node/checking.h"
#include "node/code/code.h"
#include "node/time.h"

namespace allranks::node {

class Delays {
 public:
  // Up to kSwap: at every time, else once.
  enum class Kind : std::uint8_t {
    kStale,
    kFlight,
    kSwap,
    kAtomic,
    kLoad,
    kLater,
    kStore,
    kFence,
    kTransfer,
    kBlock,
    kOperation
  };

  // Where somebody is. `code` tells programs apart, `pc` their instructions.
  struct Place {
    Kind kind = Kind::kLoad;
    const Code* code = nullptr;
    std::uint32_t pc = 0;
    int device = -1;
    std::uint64_t block = 0;
    std::uint32_t warp = 0;
  };

  // Level 0: nothing is late, places are only counted. `brief`: what stops once does so for 200 us
  // instead of 2 ms, or for four times its launch's age.
  void Set(std::uint32_t level, std::uint64_t index, bool brief = false);
  bool on() const { return on_; }
  bool directed() const { return on_ && level_ != 0; }
  // How many places of each level, from 1 on, the run has come to.
  const PlaceCounts& counts() const { return counts_; }

  // Somebody comes to a place: how long it is late, mostly 0. `began`: when its launch did. What is
  // said of kStale is whether, not how long.
  Time At(const Place& place, Time now, Time began);
  // A compare-and-swap of `path` is late: it looks at its word now and then.
  void Watch(const void* path);
  bool Watches(const void* path) const { return watches_.contains(path); }
  // How much longer it is late; 0: it goes on. `same`: its word is as it expects.
  Time Again(const void* path, bool same);
  // The path is no more.
  void Gone(const void* path) {
    if (stale_ == path) stale_ = nullptr;
    if (later_ == path) later_ = nullptr;
    watches_.erase(path);
  }
  // The load that was late gets old values.
  void SetStale(const void* path) { stale_ = path; }
  // Its next loads do; with `newest` all but the first.
  void SetLater(const void* path, bool newest) { later_ = path, loads_ = newest ? 0 : 1; }
  // Until then, loads of all get old values.
  void SetStanding(Time until) { standing_ = until; }
  bool Standing(Time now) const { return now < standing_; }
  bool TakeStale(const void* path) {
    if (later_ == path && path != nullptr) {
      const bool over = ++loads_ > kLaterLoads;
      if (over) later_ = nullptr;
      return loads_ > 1 && !over;
    }
    if (stale_ != path) return false;
    stale_ = nullptr;
    return true;
  }

 private:
  Time Least() const;  // how long what stops once does so
  Time LengthOf(Kind kind, Time so_far) const;
  // The instruction's place in the source; without one the instruction itself.
  std::uint64_t SiteOf(const Code& code, std::uint32_t pc);

  bool on_ = false;
  std::uint32_t level_ = 0;
  std::uint64_t index_ = 0;
  bool brief_ = false;
  int lates_ = 0;
  std::array<std::unordered_set<std::uint64_t>, kPlaceLevels> seen_;
  std::unordered_map<std::uint64_t, std::uint32_t> times_;
  std::unordered_map<const Code*, std::vector<std::uint64_t>> sites_;
  PlaceCounts counts_{};
  bool over_ = false;
  // What is late at every time.
  Kind always_kind_ = Kind::kOperation;
  std::uint64_t always_ = 0;
  // Stops after the first, and when the last of them ends.
  int stops_ = 0;
  Time until_ = 0;
  Time standing_ = 0;
  std::uint64_t spared_ = 0;  // the warp of a swap that goes on
  const void* stale_ = nullptr;
  static constexpr int kLaterLoads = 24;
  const void* later_ = nullptr;
  int loads_ = 0;
  struct Watched {
    bool changed = false;
    Time left = 0;
  };
  std::unordered_map<const void*, Watched> watches_;
};

}  // namespace allranks::node
