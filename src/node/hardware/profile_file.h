// The file of a profile as TOML, before anybody asks what its values mean: profile.h reads it into
// a Profile, and who wants a profile like another one changes the table and writes it out.
#pragma once

#include <toml++/toml.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace allranks::node {

// `origin` stands for the path in messages.
Result<toml::table> ParseToml(std::string_view text, const std::string& origin);

// With what it extends put in, so that the table stands alone.
Result<toml::table> ReadProfileFile(const std::string& path);

}  // namespace allranks::node
