// gnuplot as a process: a script in, drawings out. Nothing passes through a shell, and no text from
// outside reaches a script but through Quoted().
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace allranks::report {

// A gnuplot string of this text: in single quotes, where gnuplot expands nothing. Control
// characters and what is no UTF-8 are replaced; more than `longest` characters are cut.
std::string Quoted(std::string_view text, std::size_t longest = 1000);

// Characters, not bytes, of what Quoted() leaves.
std::size_t LengthOf(std::string_view text, std::size_t longest = 1000);

// Runs FOLDER/SCRIPT in that folder. Fails with gnuplot's words, and with the remedy if there is no
// gnuplot. Ends it after `seconds`.
Status RunGnuplot(const std::filesystem::path& folder, const std::string& script, int seconds);

}  // namespace allranks::report
