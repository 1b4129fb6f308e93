// mbarriers: 64 bits of shared memory that count arrivals and bytes.
//
// PTX leaves the layout open; ours is below. Whoever waits looks at the byte with the phase only,
// so that parked waiters (wait.h) are not disturbed by every arrival. What does not fit into the
// 64 bits (whether there is an mbarrier at all, when its phase ended, who waits in try_wait) is
// kept beside the CTA, as an MbarrierNote.
#pragma once

#include <cstdint>
#include <string>

#include "node/time.h"
#include "node/world.h"

namespace allranks::node {

inline constexpr std::uint32_t kMbarrierMaxCount = (1u << 20) - 1;
inline constexpr std::int64_t kMbarrierMaxTx = (1 << 20) - 1;
// How long a try_wait without a hint waits, and the longest hint that is honoured.
inline constexpr Time kTryWaitLimit = Us(20);
inline constexpr Time kTryWaitMostLimit = Ms(100);

// pending: bits 0-19, expected: 20-39, transactions + 2^20: 40-60, phase: 63. With the bias the
// byte that holds the phase changes only when a transaction count crosses multiples of 64 KiB.
struct Mbarrier {
  static constexpr std::uint32_t kPhaseByte = 7;
  std::uint32_t pending = 0, expected = 0;
  std::int64_t tx = 0;
  std::uint32_t phase = 0;

  std::uint64_t Pack() const {
    return pending | std::uint64_t{expected} << 20 |
           static_cast<std::uint64_t>(tx + (1 << 20)) << 40 | std::uint64_t{phase} << 63;
  }
  static Mbarrier Unpack(std::uint64_t word) {
    Mbarrier m;
    m.pending = word & kMbarrierMaxCount;
    m.expected = word >> 20 & kMbarrierMaxCount;
    m.tx = static_cast<std::int64_t>(word >> 40 & 0x1fffff) - (1 << 20);
    m.phase = static_cast<std::uint32_t>(word >> 63);
    return m;
  }
};

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
std::string ChangeMbarrier(World& world, Cta& cta, std::uint32_t offset,
                           const MbarrierChange& change, Time at, Time visible,
                           std::uint64_t* before = nullptr);

// Where in its CTA's shared memory the mbarrier is that a blocked path waits for; -1: for none.
std::int64_t MbarrierWaitedFor(const Path& path);
// What the present phase of an mbarrier still waits for, for reports.
std::string DescribePhase(const Cta& cta, std::uint32_t offset);

// One instruction of the mbarrier family for `lanes` of a path.
World::AsyncNext ExecuteMbarrier(World& world, Path& path, const Op& op, const AsyncOp& a,
                                 std::uint32_t lanes);

}  // namespace allranks::node
