// The command that judges a candidate, for all claims about judging.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace allranks::tools {

inline std::vector<std::string> JudgeCommand(const std::filesystem::path& problem,
                                             const std::filesystem::path& solution,
                                             const std::vector<std::string>& options = {}) {
  std::vector<std::string> command = {ALLRANKS_COMMAND,  "judge",  problem.string(), "--solution",
                                      solution.string(), "--seed", "judging",        "--json"};
  command.insert(command.end(), options.begin(), options.end());
  return command;
}

}  // namespace allranks::tools
