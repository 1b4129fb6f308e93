// What a warp is while it runs: its paths, where they meet again, and its registers. Plain data;
// exec/divergence.cpp splits and rejoins paths, engine.h executes them.
//
// A warp is a list of *paths*: a path is a set of lanes at one pc with one clock. Lanes part at a
// divergent branch and meet again at its reconvergence point (a Join). A path that blocks does not
// hold back the lanes that wait for it at a Join (independent thread scheduling).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "node/code/op.h"
#include "node/state/zero_pages.h"
#include "node/time.h"

namespace allranks::node {

struct Cta;
struct Warp;
struct SpinState;  // wait.h

// Where a function's registers, predicates and local memory begin on the warp's stacks. Lanes of a
// warp may stand at different depths: each uses only its own column of the stacks.
struct Frame {
  std::uint32_t slots = 0, predicates = 0, local = 0;
  std::uint32_t function = 0;  // index into Code::functions
  std::uint32_t depth = 0;
  std::int32_t call = -1;  // index into Warp::joins of the call that made it; -1: the entry's
};

struct Path {
  enum class State : std::uint8_t {
    kQueued,  // has an event in its device's queue
    kRunning,
    kParked,    // spinning; woken by a write or a timer
    kBarrier,   // waits in bar.sync, an mbarrier, a cluster barrier, griddepcontrol.wait
    kWarpSync,  // waits for other lanes of its warp
    kGone,
  };
  Warp* warp = nullptr;
  std::uint32_t mask = 0;
  std::uint32_t pc = 0;
  Time clock = 0;
  Time quantum_end = 0;
  std::int32_t join = -1;  // index into Warp::joins
  Frame frame;
  State state = State::kQueued;
  std::uint32_t back_edges = 0;  // taken since the last yield to lanes waiting at a join
  std::uint64_t ticket = 0;      // number of its live event; older ones in the queue are void
  std::vector<std::unique_ptr<SpinState>> spins;  // loops being watched, outermost first
  SpinState* parked = nullptr;                    // the one it is parked in
  Time release_goal = 0;  // of a release that waits for its turn: when stores have arrived
  Time wait_until = 0;    // of an mbarrier.try_wait under way: when it gives up
  bool overdue = false;   // lanes at its joins no longer wait for it
  bool ordered = false;   // stands at an operation that must wait for its turn among all devices
};

// A place where lanes meet again: behind a branch that parted them, or behind a call.
struct Join {
  std::uint32_t pc = 0;
  std::uint32_t expected = 0, arrived = 0;
  std::int32_t outer = -1;
  Time latest = 0;
  bool used = false;
  bool parted = false;  // lanes came here by another path: what it read is in nobody's notes
  Frame frame;          // of the function that `pc` is in
};

// Asynchronous copies of one thread: when its groups are complete, oldest first. Groups that are
// over are dropped, the `open` one is not committed yet.
struct ThreadCopies {
  struct Group {
    Time read = 0;  // sources have been read
    Time done = 0;
  };
  std::vector<Time> groups;  // cp.async
  Time open = 0, all = 0;    // all: of every cp.async so far
  std::vector<Group> bulk_groups;
  Group bulk_open;
};

// Register files of one size. A warp takes one when it first runs and gives it back when its last
// lane has ended: a warp that runs to its end in one turn finds its registers in the cache, however
// many warps are resident.
struct RegisterPool {
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  using File = std::unique_ptr<Line[]>;
  std::size_t lines = 0;  // of one file
  std::vector<File> spare;
};

struct Warp {
  Cta* cta = nullptr;
  std::uint32_t id = 0;
  std::uint32_t live = 0;  // lanes that have not exited
  RegisterPool::File file;
  std::byte* registers = nullptr;  // null: it has not run yet, or is over
  std::uint32_t* predicates = nullptr;
  Time* ready = nullptr;     // per slot: when its value is there
  Time pending_until = 0;    // the latest of them
  std::vector<Path*> paths;  // alive; owned by the Simulator's pool
  std::vector<Join> joins;
  std::vector<std::byte> local;  // [lane][local_bytes]
  std::uint32_t local_bytes = 0;
  std::uint64_t grown_local = 0;                 // bytes of `local` that calls have added
  std::uint32_t slots = 0, predicate_count = 0;  // what the stacks have room for
  ZeroPages stack;                    // registers, once a call has outgrown the CTA's store
  std::vector<ThreadCopies> copies;   // by lane, made on first use
  std::uint32_t seldom_edges = 0;     // back edges of loops that are watched seldom
  std::uint32_t cluster_arrived = 0;  // lanes that have arrived at the cluster barrier's phase
};

// The registers of a path's function.
inline std::byte* RegistersOf(const Path& path) {
  return path.warp->registers + std::size_t{path.frame.slots} * kSlotBytes;
}
inline std::uint32_t* PredicatesOf(const Path& path) {
  return path.warp->predicates + path.frame.predicates;
}
inline Time* ReadyOf(const Path& path) { return path.warp->ready + path.frame.slots; }

}  // namespace allranks::node
