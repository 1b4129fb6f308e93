// What an access to shared memory costs: passes over its 32 banks of four bytes. A pass gives one
// word of each bank, to any number of lanes. Wide accesses go by halves or quarters of the warp.
#pragma once

#include <cstdint>

namespace allranks::node {

// `bytes` per lane at `offset`. With `serial`, lanes on the same word take turns too: atomics.
std::uint32_t BankPasses(std::uint32_t lanes, const std::uint64_t* offset, std::uint32_t bytes,
                         bool serial);

}  // namespace allranks::node
