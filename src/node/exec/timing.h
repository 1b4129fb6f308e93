// What accesses and copies cost: which servers they pass and how long they are on their way.
//
// An access leaves its SM through the SM's port, goes to the L2 of the memory's home (over the
// fabric, if that is another device or the host) and on to HBM if its lines are not there. Reads
// and changes nothing but the servers, the L2's stamps and the fabric of `State`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "node/hardware/fabric.h"
#include "node/state/launch.h"
#include "node/state/memory.h"
#include "node/state/state.h"
#include "node/time.h"

namespace allranks::node {

// An access moves whole sectors; the L2 holds lines of four.
inline constexpr std::uint64_t kSectorBytes = 32, kLineBytesOfL2 = 128;

// What an access reaches: bytes in whole sectors, lines, and how many of the lines were not in the
// home's L2.
struct Reach {
  std::uint64_t bytes = 0;
  std::uint32_t lines = 0, missed = 0;
};

struct CopyTimes {
  Time sent = 0;     // its engine is free again
  Time arrived = 0;  // the last byte is there
};

class Timing {
 public:
  explicit Timing(State& state) : state_(state) {}

  // Nothing is in any L2 from here on.
  void CoolCaches();

  // The L2 is kept as a stamp per line: how much the L2 of its home had been filled when the line
  // was last used. A line is there as long as less than the L2's size has come in since.
  Reach Touch(const Object& object, std::uint64_t offset, std::uint64_t size);
  bool InL2(const Object& object, std::uint64_t line) {  // and it is now
    return MissedLines(object, line, line) == 0;
  }
  // Charges an access of a CTA. Returns when a load's value is there, or when a store has reached
  // its home.
  Time ChargeLoad(const Cta& cta, Mover mover, const Object& object, const Reach& reach, Time at);
  Time ChargeStore(const Cta& cta, Mover mover, const Object& object, const Reach& reach, Time at);
  // The same for all replicas of a multicast object at once; a load reduces.
  Time ChargeMulticastStore(const Cta& cta, std::span<const Replica> replicas, const Reach& reach,
                            Time at);
  Time ChargeMulticastLoad(const Cta& cta, std::span<const Replica> replicas, const Reach& reach,
                           Time at);
  // Atomics on one sector leave the L2 one after the other: when the last of these does.
  Time AtomicTurn(const Object& object, std::uint64_t offset, std::uint32_t operations,
                  Time arrival);
  // From issue at `device` to being performed at the object's home.
  Time DelayTo(const Device& device, const Object& object);
  // From there back: a release waits until its stores are known to have arrived.
  Time AckDelay(const Device& device, const Object& object);
  const Route& WayTo(const Device& device, const Object& object);
  const Route& WayFrom(const Device& device, const Object& object);
  // False: a link on the way, or to a replica, is dead. Only asked while faulty_links is set.
  bool Reachable(const Device& device, const Mapping& mapping);
  bool CanCopy(int from, int to);  // the same between memories (-1: host)
  bool faulty_links = false;
  // What the launch has used of links and HBM so far.
  void SumUp(const Launch& launch, KernelRecord* record) const;
  // Bytes from one memory to another (device number, or -1: host) by an engine of `runner`.
  CopyTimes ChargeCopy(Device& runner, int engine, int from, int to, std::uint64_t bytes, Time at);

 private:
  // How many of these lines are not in the L2; all are now.
  std::uint32_t MissedLines(const Object& object, std::uint64_t first, std::uint64_t last);
  Time AtHome(const Cta& cta, const Object& object, const Reach& reach, Time at);
  std::uint64_t* LedgerOf(const Cta& cta);
  Time LeaveSm(const Cta& cta, std::uint64_t bytes, Time at);

  static constexpr std::size_t kAtomicLines = 4096;
  State& state_;
};

}  // namespace allranks::node
