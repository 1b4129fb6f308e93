// mbarriers: 64 bits of shared memory that count arrivals and bytes.
//
// PTX leaves the layout open; ours is in state/mbarrier_word.h. Whoever waits looks at the byte
// with the phase only, so that parked waiters (wait.h) are not disturbed by every arrival. What
// does not fit into the 64 bits (whether there is an mbarrier at all, when its phase ended, who
// waits in try_wait) is kept beside the CTA, as an MbarrierNote.
#pragma once

#include <cstdint>
#include <string>

#include "node/exec/simulator.h"
#include "node/state/mbarrier_word.h"
#include "node/time.h"

namespace allranks::node {

// How long a try_wait without a hint waits, and the longest hint that is honoured.
inline constexpr Time kTryWaitLimit = Us(20);
inline constexpr Time kTryWaitMostLimit = Ms(100);

// What one operation does to an mbarrier, in the order of the fields.
struct MbarrierChange {
  std::uint32_t increment = 0;  // of the pending count (cp.async.mbarrier.arrive)
  std::int64_t tx = 0;
  std::uint32_t drop = 0;  // of the expected count, from the next phase on
  std::uint32_t arrive = 0;
  bool no_complete = false;
};

// Applies `change` to the mbarrier at `offset` of the CTA's shared memory at time `at`; others see
// it from `visible` on. Returns what is wrong, or an empty string. `before`: the state before the
// arrival, which is what mbarrier.arrive returns.
std::string ChangeMbarrier(Simulator& sim, Cta& cta, std::uint32_t offset,
                           const MbarrierChange& change, Time at, Time visible,
                           std::uint64_t* before = nullptr);

// One instruction of the mbarrier family for `lanes` of a path.
Simulator::AsyncNext ExecuteMbarrier(Simulator& sim, Path& path, const Op& op, const AsyncOp& a,
                                     std::uint32_t lanes);

}  // namespace allranks::node
