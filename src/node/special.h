// Special registers by the names that PTX has for them.
#pragma once

#include <optional>
#include <string_view>

#include "node/code.h"

namespace allranks::node {

std::optional<Special> SpecialFromName(std::string_view name);

}  // namespace allranks::node
