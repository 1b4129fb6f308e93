// Where generic addresses of shared, local, parameter and code space lie.
#pragma once

#include <cstdint>

#include "node/ids.h"

namespace allranks::node {

// Generic-address windows of the spaces that are not global memory. Processes never have mappings
// there.
inline constexpr Address kSharedWindow = 0x6000'0000'0000;
inline constexpr Address kLocalWindow = 0x6100'0000'0000;
inline constexpr Address kParamWindow = 0x6200'0000'0000;
// Addresses of functions: kFunctionWindow + 16 * (number in the module + 1). Nothing can be loaded
// there.
inline constexpr Address kFunctionWindow = 0x6300'0000'0000;
inline constexpr std::uint64_t kWindowSize = 0x0100'0000'0000;

}  // namespace allranks::node
