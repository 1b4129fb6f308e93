// Virtual time: integer picoseconds since the start of a simulation, the same unit for hosts,
// devices and links. Integers, so that sums do not depend on the order of addition; picoseconds, so
// that a cycle of any clock up to a few GHz is a few hundred units; 63 bits last 106 days.
#pragma once

#include <cstdint>
#include <limits>

namespace allranks::node {

using Time = std::int64_t;  // ps

inline constexpr Time kTimeNever = std::numeric_limits<Time>::max();

constexpr Time Ps(std::int64_t ps) { return ps; }
constexpr Time Ns(std::int64_t ns) { return ns * 1'000; }
constexpr Time Us(std::int64_t us) { return us * 1'000'000; }
constexpr Time Ms(std::int64_t ms) { return ms * 1'000'000'000; }

// Whole nanoseconds, rounded down: what %globaltimer and the statistics show.
constexpr std::int64_t ToNs(Time time) { return time / 1'000; }

}  // namespace allranks::node
