// Edits of host code (src/node/check/host_remedy.h): which statement they belong to, and what
// stands for $at.stream and the like, by the text of the calls.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"

namespace allranks::remedies {

Result<std::string> ApplyHostEdit(const nlohmann::json& edit, const std::string& file,
                                  const std::string& text);

}  // namespace allranks::remedies
