// The 64 bits of an mbarrier in shared memory: their layout, and what they say of a wait.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "node/state/launch.h"
#include "node/state/warp.h"

namespace allranks::node {

inline constexpr std::uint32_t kMbarrierMaxCount = (1u << 20) - 1;
inline constexpr std::int64_t kMbarrierMaxTx = (1 << 20) - 1;

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

// The word at `offset` of the CTA's shared memory.
inline std::uint64_t LoadMbarrier(const Cta& cta, std::uint32_t offset) {
  std::uint64_t word = 0;
  std::memcpy(&word, cta.shared.data() + offset, 8);
  return word;
}

// Where in its CTA's shared memory the mbarrier is that a blocked path waits for; -1: for none.
std::int64_t MbarrierWaitedFor(const Path& path);
// What the present phase of an mbarrier still waits for, for reports.
std::string DescribePhase(const Cta& cta, std::uint32_t offset);

}  // namespace allranks::node
