// Parts of documents that a tool writes: tables between two marks, each a line of its own.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace allranks::tools {

// Puts `text` between the marks, if `write`. The result: whether it stood there already.
Result<bool> PutBetween(const std::string& begin, const std::string& end, const std::string& text,
                        const std::filesystem::path& document, bool write);

// Today, as documents say it.
std::string Today();

}  // namespace allranks::tools
