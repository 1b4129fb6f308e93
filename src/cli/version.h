// Which AllRanks this is.
#pragma once

#include <string>

namespace allranks::cli {

// Semantic versioning of commands, files and problem folders.
std::string Version();
// With the commit, the sources that times and verdicts depend on, and the protocol between a
// program and the node: runs with the same node are the same.
std::string LongVersion();

}  // namespace allranks::cli
