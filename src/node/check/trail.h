// What threads of a CTA have done lately to tell others, or to be told: strong writes and reads,
// fences, barriers. Nothing is decided by it. When a race is found, remedy.cpp looks here for the
// chain of flags that was meant to order the two accesses, and for the link that fails to.
//
// Only strong accesses, fences and barriers are recorded, a bounded number of each CTA's, so weak
// accesses cost nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "node/check/clock.h"
#include "node/check/history.h"

namespace allranks::node::check {

struct Snapshot;

struct Event {
  enum class Kind : std::uint8_t { kWrite, kRead, kFence, kBarrier };
  Kind kind = Kind::kWrite;
  bool releases = false, acquires = false;
  bool atomic = false;  // kWrite: read-modify-write; kRead: of what one wrote
  bool vector = false;
  bool sequential = false;  // kFence: fence.sc
  bool host = false;        // kWrite: to memory that hosts see; kRead: of what a host has written
  Scope scope = Scope::kSys;
  std::uint8_t element = 4;
  std::uint16_t warp = 0;
  std::uint32_t lanes = 0;
  std::uint32_t pc = 0;
  Tick tick = 0;
  std::uint64_t moment = 0;  // counted over all events
  // kWrite, kRead: the place, and the number of the write (StrongWrite::number).
  std::uint32_t object = 0;
  std::uint64_t offset = 0, number = 0;
  // kRead: who wrote it, where and how.
  Stamp writer;
  std::uint32_t write_pc = 0;
  Scope write_scope = Scope::kSys;
  std::uint8_t write_element = 4;
  // kWrite: what the first of the lanes knew, and what at its fences. kRead of a host's flag: what
  // the host knew (`others`).
  KnownRef own;
  ClockRef others;
  std::vector<std::shared_ptr<const Snapshot>> fences;
  std::uint64_t warps = 0;  // kBarrier: who met; all ones: everybody
};

class Trail {
 public:
  static constexpr std::size_t kMost = 160;
  // A lane of the warp polls: the same value of the same place is recorded once.
  bool Polled(std::uint16_t warp, std::uint32_t lanes, std::uint32_t pc, std::uint64_t number);
  void Add(Event event);
  // The last poll by these lanes of a place that no kernel has written; null: none.
  Event* LastPoll(std::uint16_t warp, std::uint32_t lanes, std::uint32_t pc);
  void WarpMet(std::uint16_t warp, std::uint32_t lanes, std::uint64_t moment);
  const std::vector<Event>& events() const { return events_; }
  // A block or warp barrier since then that both threads took part in.
  bool Met(std::uint64_t since, std::uint64_t until, std::uint16_t warp, std::uint16_t other) const;

 private:
  std::vector<Event> events_;
  std::vector<std::uint64_t> warp_met_;  // by warp: the moment of its last barrier
};

}  // namespace allranks::node::check
