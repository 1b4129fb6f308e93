// Applies a finding's edits to the source, to the letter.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"

namespace allranks::remedies {

// `file`: what the edits call the source. The error says which edit found no place.
Result<std::string> Apply(const nlohmann::json& edits, const std::string& file, std::string text);

}  // namespace allranks::remedies
