// What is known of a loop that a path spins in: the notes of its iterations, and of a parked path
// what it waits for. exec/wait.h has the theory.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "node/code/code.h"
#include "node/hardware/fabric.h"
#include "node/ids.h"
#include "node/state/memory.h"
#include "node/state/watches.h"
#include "node/time.h"

namespace allranks::node {

struct SpinRead {
  Object* object = nullptr;
  std::uint64_t offset = 0;
  std::uint32_t size = 0;       // of all lanes whose bytes are one behind the other ...
  std::uint32_t lane_size = 0;  // ... and of the first of them
  std::array<std::uint64_t, Watches::kMaxBytes / 8> value = {};  // as read
  Time time = 0;                                                 // of the load
  Time delay = 0;            // from the load's issue to its sampling
  Time change = kTimeNever;  // when a write that is under way changes it for the reader
  Time span = 0;             // how long it went on looking: a try_wait sees a later write
  std::uint32_t pc = 0;
  const Route* way = nullptr;  // while parked: that its polls load; null for own memory

  bool SameAs(const SpinRead& other) const {
    return pc == other.pc && time == other.time && object == other.object &&
           offset == other.offset && size == other.size && value == other.value;
  }
  // Whether memory still holds what was read.
  bool Current() const { return std::memcmp(object->data + offset, value.data(), size) == 0; }
};

// Whose write ends waits, and when it was made: for listeners. op 0: not known, or no operation's.
struct WaitWriter {
  OpId op = 0;
  Time time = 0;
};

struct SpinState {
  const SpinCode* loop = nullptr;
  std::uint32_t mask = 0;
  int iterations = 0;
  Time head = 0;    // when the current iteration began
  Time period = 0;  // length of the last one
  bool reads_clock = false;
  bool nonlinear = false;
  std::vector<std::uint64_t> signature, previous;
  std::size_t effort = 0;       // reads of lanes and branches of the current iteration
  std::vector<SpinRead> reads;  // of the current iteration
  SpinRead looked;              // the first of the last iteration that read something, for reports
  // Operands of compares in the current iteration and the two before it: pc, then a and b per lane.
  std::vector<std::uint64_t> compares[3];
  std::vector<std::uint64_t> carried[3];  // at the head: now, one and two iterations ago

  // While parked.
  std::uint64_t skip = 0;  // iterations until the next wake-up that is due
  bool due = false;
  std::vector<std::int64_t> step;  // per carried value
  // What that wake-up is for: a compare, a write that was under way already, or a new one.
  enum class Wake : std::uint8_t { kTimer, kArrival, kWrite } wake = Wake::kTimer;
  WaitWriter by;  // whose write that is
  // A write under way ends this wait, or this part of it, soon.
  bool Arriving() const {
    return std::any_of(reads.begin(), reads.end(),
                       [](const SpinRead& read) { return read.change != kTimeNever; });
  }
};

}  // namespace allranks::node
