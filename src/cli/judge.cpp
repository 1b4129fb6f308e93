#include "cli/judge.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "cli/exec.h"
#include "cli/judge_tools.h"
#include "cli/places.h"
#include "judge/report.h"
#include "problem/source.h"

namespace allranks::cli {
namespace {

int Usage(const std::string& message) {
  fmt::print(stderr, "allranks: {}\n", message);
  return kExitUsage;
}

int ExitCodeOf(const judge::Judgement& judgement) {
  if (judgement.verdict == judge::Verdict::kPass) return kExitPass;
  return judgement.verdict == judge::Verdict::kInternalError ? kExitInternal : kExitNoPass;
}

}  // namespace

int Judge(const JudgeOptions& options) {
  if (options.solution.empty() == options.compare.empty())
    return Usage("give the candidate with --solution FILE, or two with --compare A B");
  Result<problem::Problem> problem = FindProblem(options.problem, options.problems_dir);
  if (!problem) return Usage(problem.error().message);
  Result<std::string> profile = FindProfile(options.profile);
  if (!profile) return Usage(profile.error().message);
  Result<judge::Tools> tools = FindTools(!options.no_cache);
  if (!tools) return Usage(tools.error().message);
  tools->rank_wall_ms = static_cast<int>(options.rank_wall_s * 1e3);

  judge::Request request;
  request.problem = &*problem;
  request.profile = *profile;
  request.seed = options.seed.empty() ? RandomSeed() : options.seed;
  request.only_case = options.only_case;
  request.trace = options.trace;
  request.drain = options.drain;
  request.keep_going = options.keep_going;
  request.visible_only = options.visible;

  std::vector<std::string> files = options.compare;
  if (files.empty()) files.push_back(options.solution);
  std::vector<judge::Judgement> judgements;
  for (const std::string& file : files) {
    Result<std::string> source = problem::ReadFile(file, 64 << 20);
    if (!source) return Usage(source.error().message);
    request.source = std::move(*source);
    judgements.push_back(judge::Judge(*tools, request));
    if (options.json) fmt::print("{}", judge::ToJson(*problem, judgements.back()));
  }
  if (!options.json) {
    fmt::print("{}", judgements.size() == 2 ? judge::ToComparison(*problem, files[0], judgements[0],
                                                                  files[1], judgements[1])
                                            : judge::ToTable(*problem, judgements[0]));
  }
  std::fflush(stdout);
  for (const judge::Judgement& judgement : judgements)
    if (const int code = ExitCodeOf(judgement); code != kExitPass) return code;
  return kExitPass;
}

}  // namespace allranks::cli
