// `allranks judge`: one candidate, or two against each other, on one problem.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "judge/judge.h"

namespace allranks::cli {

struct JudgeOptions {
  std::string problem;  // a slug, or a folder
  std::string solution;
  std::vector<std::string> compare;
  std::string profile = "h100x8";
  std::string only_case, seed, seed_file, problems_dir, trace, cache;
  bool json = false, drain = false, no_cache = false, keep_going = false, visible = false,
       drawn_last = false, no_check = false, trusted = false;
  std::optional<std::uint64_t> schedule;
  std::uint64_t schedules = 0;
  int jobs = 1;
  int band = 0;
  double idle_s = 60;
  double cpu_s = judge::Tools{}.cpu_ms / 1e3;
  std::uint64_t instructions = judge::Tools{}.work;
};

inline constexpr int kExitPass = 0;
inline constexpr int kExitNoPass = 1;

std::unique_ptr<Command> MakeJudgeCommand(CLI::App* app);

}  // namespace allranks::cli
