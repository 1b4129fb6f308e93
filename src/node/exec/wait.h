// Waiting: how a path that spins is recognised, parked and woken, so that waiting costs nothing
// however long it lasts.
//
// Theory of operation. flow.h has marked the back edges of loops that could be waits. When a path
// takes such an edge the loop is *watched*: branches taken, bytes read, operands of compares and
// lengths of sleeps are written down (a signature of the iteration). An iteration that changes
// memory, or in which lanes of several paths meet, is no waiting: the notes are thrown away. A
// store that finds its own value is noted like a load: should somebody else change those bytes, the
// loop would write them again. When two
// iterations in a row have the same signature and every register carried around the loop is either
// unchanged or has moved twice by the same amount, the future is known: the loop goes on like this
// until a byte it read changes, or until a compare whose operands move (with the clock, or by
// count) changes its outcome. The path is *parked* with watches on the bytes and, if there is such
// a compare, a timer set a little before the change, from where it is executed again. Bytes that
// have been written and are still on their way to the path change for it at a time that is known:
// it is woken for that.
//
// Waking puts the path onto the grid of its polls: it resumes at the start of the iteration whose
// load is the first to see the write, its carried registers moved on by the skipped iterations.
// So parking cannot be noticed by the program, except by its speed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "node/code/code.h"
#include "node/state/memory.h"
#include "node/state/spin_state.h"
#include "node/state/warp.h"
#include "node/time.h"

namespace allranks::node {

class Simulator;
struct WaitEvent;  // listener.h

class Waiting {
 public:
  explicit Waiting(Simulator& sim) : sim_(sim) {}

  // A spin loop's back edge was taken by the whole path, which stands at the loop's head. Not null:
  // it can be parked in that state, until `skip` iterations later or what it reads changes.
  SpinState* SpinBackEdge(Path& path, const SpinCode& spin);
  void Park(Path& path, SpinState& spin);
  // Whether a loop that is watched only now and then is watched at this back edge of the warp.
  static bool WatchesNow(Warp& warp);
  static void EndWatch(Warp& warp);  // until the next time
  // What an iteration of a watched loop did; called only while path.spins is not empty.
  void RecordBranch(Path& path, bool taken);
  void RecordRead(Path& path, Object& object, std::uint64_t offset, std::uint32_t size,
                  const std::byte* value, Time time, Time delay, Time span = 0,
                  std::uint32_t lanes = 1);
  void RecordTracked(Path& path, const Op& op, std::uint32_t mask);
  void RecordSleep(Path& path, std::uint64_t length);
  void RecordExchange(Path& path);  // between lanes of this path alone
  void RecordClock(Path& path);
  // Memory was changed, or state that is not recorded: the iteration was no mere waiting.
  void RecordChange(Path& path);
  // Bytes of an object have changed at `time`; others can see it from `visible` on. `by`: the
  // operation that has written them; 0: none has.
  void NotifyWrite(Object& object, std::uint64_t offset, std::uint64_t size, Time time,
                   Time visible, OpId by = 0);
  void Unpark(Path& path);
  // Something about the memory that a parked path polls has changed beside its bytes.
  void Disturb(Path& path);
  // Its time has come: sets clock and counters as if it had polled all the while.
  void Wake(Path& path);
  void WakeAll(Object& object);       // the object is about to go
  void Forget(const Object& object);  // nobody's notes of an iteration may name it any more
  std::function<void(std::uint64_t host, Time visible)> on_host_watch;

 private:
  std::uint64_t StableSpin(const Path& path, SpinState& spin) const;
  static bool FindsTheSame(const Path& path, SpinState& spin);
  // Polls of a parked path load the links: from now on, or (sign -1) no longer.
  void LoadLinks(const SpinState& spin, int sign);
  void Schedule(Path& path, std::uint64_t skip, SpinState::Wake wake, WaitWriter by = {});
  void Tell(const Path& path, bool parked, Time at) const;  // the listener
  void NameWriter(const SpinState& spin, WaitEvent* event) const;

  Simulator& sim_;
};

// How many further iterations certainly have the outcome the compare has now, when its operands
// a, b move by da, db in each (and may be off by `slack`). kForever if it never changes.
inline constexpr std::uint64_t kForever = ~std::uint64_t{0};
std::uint64_t StableIterations(const CompareCode& compare, std::uint64_t a, std::uint64_t b,
                               std::int64_t da, std::int64_t db, std::int64_t slack);

}  // namespace allranks::node
