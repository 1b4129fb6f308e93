// Stalls: under a schedule a few blocks stop in the middle of what they do, for so long that
// everybody else can go on until they wait for them, often through a whole call. Nothing on a
// device promises that warps make their ways equally fast, so any correct program must bear it.
//
// One block in eight stalls, once: one warp, before a strong access, or one copy that completes on
// an mbarrier. Where is drawn by instruction and not by count, so that a store behind a loop of
// thousands is as likely as those in the loop. How long is drawn for the launch: 2 us to 1 ms (if
// stalls are to be brief: to 16 us), each
// magnitude as likely as the others, so that mostly one rank is far behind. Time that nobody works
// in costs nothing, and what is stalled goes on by itself: there is nothing to deadlock.
#pragma once

#include <cstdint>

#include "node/time.h"

namespace allranks::node {

// Of a block.
struct Stall {
  std::uint64_t key = 0;     // 0: it does not stall, or has done so
  std::uint32_t passes = 0;  // how often it still passes the instructions at which it may stall
  Time length = 0;

  // It comes to an instruction: how long it stops there, mostly 0.
  Time At(std::uint32_t pc, std::uint32_t warp);
};

class Stalls {
 public:
  void SetSeed(std::uint64_t seed, bool brief = false);  // 0: none
  // The next launch's key, by which all that a schedule does to its blocks is drawn; 0: nothing.
  std::uint64_t OfLaunch();
  Stall OfBlock(std::uint64_t launch, std::uint64_t block, std::uint64_t blocks) const;

 private:
  std::uint64_t seed_ = 0, launches_ = 0;
  bool brief_ = false;
};

}  // namespace allranks::node
