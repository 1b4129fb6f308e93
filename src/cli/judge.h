// `allranks judge`: one candidate, or two against each other, on one problem.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace allranks::cli {

struct JudgeOptions {
  std::string problem;  // a slug, or a folder
  std::string solution;
  std::vector<std::string> compare;
  std::string profile = "h100x8";
  std::string only_case, seed, problems_dir, trace, cache;
  bool json = false, drain = false, no_cache = false, keep_going = false, visible = false;
  double rank_wall_s = 60;
};

inline constexpr int kExitPass = 0;
inline constexpr int kExitNoPass = 1;

// The command with its options; tells itself to `app`.
class JudgeCommand {
 public:
  explicit JudgeCommand(CLI::App* app);
  bool parsed() const { return command_->parsed(); }
  std::string help() const { return command_->help(); }
  int Run() const;  // an exit code

 private:
  JudgeOptions options_;
  CLI::App* command_;
};

}  // namespace allranks::cli
