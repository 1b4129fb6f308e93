// `allranks profile`: which hardware can be simulated, what it looks like, and how two differ.
#pragma once

#include <string>

namespace allranks::cli {

// Each returns an exit code: 0, or 2 if there is no such profile or it cannot be read.
int ProfileList();
// `constants`: every key with its value and source instead of the drawing.
int ProfileShow(const std::string& name, bool constants);
int ProfileDiff(const std::string& a, const std::string& b);

}  // namespace allranks::cli
