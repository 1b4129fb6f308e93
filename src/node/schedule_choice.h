// Which schedules a program is run under after schedule 0.
//
// Two of three are directed (node/state/delays.h) while there are places at which nobody has been
// delayed yet; the run under schedule 0 has counted them. The others are drawn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "node/checking.h"

namespace allranks::node {

// The first `count` schedules after 0 for a program that has come to so many places. A larger count
// adds to a smaller one. `draw`: at which places they begin.
std::vector<std::uint64_t> ChooseSchedules(const PlaceCounts& places, std::size_t count,
                                           std::uint64_t draw = 0);

}  // namespace allranks::node
