// Livelock: kernels that run for ever and get nowhere. wait.h parks the loops it understands; this
// is for all others.
//
// Theory of operation. After many instructions without a milestone (a thread that exits, a copy,
// whatever else has a time of its own) a few warps are *probed*: while their registers differ at
// nearly every back edge they get somewhere, and looking at all others would cost more than running
// them. Once most of what they show is known an *audit* begins. At every back edge it takes the
// state of the lanes that took it: where they are, their registers, and the bytes their warp has
// changed since the audit began. If for long enough no warp shows a state that it has not shown
// before, each runnable path has come round several times, and nothing in between depended on time,
// the future is like the past: no path will leave its loop unless somebody outside acts. That is no
// proof, since states of several warps could still combine anew; hence the long confirmation, in
// which a count of any kind, kept in whatever register or word, shows as a new state.
//
// Programs that wait for luck, such as an unfair lock, can go in circles only because all of their
// times repeat exactly, which no machine's do. So what looks like a livelock is *shaken* before it
// counts: paths are late by up to two microseconds now and then, for another confirmation.
//
// Asynchronous units (copies to shared memory, arrivals at mbarriers) have no registers: what they
// write, and who starts them where, are states as well. One that was started before the last new
// state is no repetition of anything, so nothing is confirmed before it is done.
//
// An audit ends at the first sign of progress: a milestone, a clock that is read (its value ends
// the loop some day), bulk copies to global memory, work of matrix units, or more states than a
// wait has. It is counted in instructions and virtual time, so that verdicts are the same in every
// run. While neither is on, its cost is one comparison per turn of a path.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "node/time.h"

namespace allranks::node {

struct State;
struct Object;
struct Path;
struct Warp;

class Livelock {
 public:
  // What a warp looked at last: what it waits for, if it waits.
  struct Look {
    const Object* object = nullptr;
    std::uint64_t offset = 0, value = 0;
    std::uint32_t pc = 0;
  };

  explicit Livelock(State& state) : state_(state) {}

  bool auditing() const { return auditing_; }
  bool watching() const { return auditing_ || probing_; }  // it is told of back edges
  bool found() const { return found_; }
  void Begin();  // with a probe
  void End();    // there is progress
  // Somebody outside may have acted: what was found counts again when all have come round once
  // more.
  void Enter();
  bool stands() const { return found_ && round_; }

  // How much later the path goes on.
  Time OnBackEdge(const Path& path);
  void OnRead(const Path& path, const Object& object, std::uint64_t offset, const std::byte* value,
              std::uint32_t size);
  void OnWrite(const Path& path, const std::byte* place, const std::byte* old, std::uint32_t size);
  // A copy or an mbarrier instruction of the path; bytes that such a unit has just written.
  void OnUnit(const Path& path);
  void OnUnitWrite(const std::byte* place, std::size_t size);
  // A unit's work is scheduled, and done: the answer of the one is for the other.
  std::uint64_t UnitScheduled();
  void UnitDone(std::uint64_t scheduled);
  // Whether all work of units that is under way repeats earlier one.
  bool UnitsRepeat() const;
  const Look* LookOf(const Warp& warp) const;

 private:
  struct Seen {
    std::unordered_set<std::uint64_t> states;
    std::uint64_t changes = 0;  // hash of what the warp has changed
    std::uint64_t visits = 0;   // since the last new state of any warp, its `period`
    std::uint64_t period = 0;
    std::uint64_t entered = 0;  // since the `entry` of that number
    std::uint64_t entry = 0;
    Look look;
  };
  static constexpr std::size_t kProbed = 8;
  // A warp that is probed.
  struct Probed {
    const Warp* warp = nullptr;
    std::unordered_set<std::uint64_t> states;
  };
  void Probe(const Path& path);
  void Choose();  // other warps
  void Audit();
  void NewState();
  void NewUnitState(std::uint64_t state);
  bool AllGoRound(bool since_entry) const;
  bool Confirmed() const;
  void Conclude();

  State& state_;
  bool probing_ = false, auditing_ = false, found_ = false, round_ = false;
  std::array<Probed, kProbed> probed_;
  std::uint64_t patience_ = 0;                       // back edges until others are chosen
  std::uint64_t probed_edges_ = 0, probed_new_ = 0;  // of these warps, since the last look
  std::unordered_map<const Warp*, Seen> warps_;
  std::size_t limit_ = 256;                 // states of a warp
  std::uint64_t edges_ = 0, last_new_ = 0;  // back edges, and those before the last new state
  std::uint64_t began_ = 0;                 // warp instructions
  std::uint64_t period_ = 0, entry_ = 0;
  std::unordered_set<std::uint64_t> unit_states_;
  std::uint64_t units_ = 0;         // under way
  std::uint64_t recent_units_ = 0;  // of these, since `recent_period_` began
  std::uint64_t recent_period_ = 0;
  Time quiet_since_ = 0;
  bool shaking_ = false;
  std::uint64_t shaken_from_ = 0;  // back edges before that
};

}  // namespace allranks::node
