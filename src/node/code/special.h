// Special registers by the names that PTX has for them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "node/code/code.h"
#include "node/machine.h"

namespace allranks::node {

std::optional<Special> SpecialFromName(std::string_view name);

// The value of a register that is the same for all threads of a launch; nullopt for all others.
std::optional<std::uint32_t> LaunchWide(Special special, const Dim3& grid, const Dim3& block);

}  // namespace allranks::node
