// Which schedules `exec --schedules N` runs after schedule 0.
//
// Two of three are directed (node/check/delays.h) while there are places at which nobody has been
// delayed yet; the run under schedule 0 has counted them. The others are drawn.
#pragma once

#include <cstdint>
#include <vector>

#include "node/checking.h"

namespace allranks::cli {

// The first `count` schedules after 0 for a program that has come to so many places. A larger count
// adds to a smaller one.
std::vector<std::uint64_t> ChooseSchedules(const node::PlaceCounts& places, int count);

}  // namespace allranks::cli
