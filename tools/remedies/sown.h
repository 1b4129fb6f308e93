// The bugs of tools/mutants as sources to be cured: sown and judged by that tool's own code.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "mutants/corpus.h"
#include "remedies/cure.h"

namespace allranks::remedies {

// Those that are no equivalents and whose ids begin with one of `only`, if any.
Result<std::vector<mutants::Mutant>> Sown(bool by_hand, const std::vector<std::string>& only);

Cure TrySown(const mutants::Mutant& mutant, const std::string& command,
             const std::filesystem::path& folder, nlohmann::json* first);

}  // namespace allranks::remedies
