// `allranks problems export`: a problem and a solution as a program for a machine with GPUs.
#include <fmt/format.h>

#include <fstream>

#include "cli/exec.h"
#include "cli/places.h"
#include "cli/problems.h"
#include "problem/hardware.h"
#include "problem/source.h"

namespace allranks::cli {

namespace fs = std::filesystem;

int ProblemsExport(const ProblemsOptions& options) {
  const auto fail = [](const std::string& message) {
    fmt::print(stderr, "allranks: {}\n", message);
    return kExitUsage;
  };
  const auto problem = FindProblem(options.name, options.folder);
  if (!problem) return fail(problem.error().message);
  const auto solution = problem::ReadFile(options.solution);
  if (!solution) return fail(solution.error().message);
  const auto files = problem::ExportForHardware(*problem, *solution);
  if (!files) return fail(files.error().message);
  const fs::path out = options.out;
  std::error_code error;
  if (fs::exists(out, error)) return fail(fmt::format("{} already exists", out.string()));
  fs::create_directories(out / "include", error);
  for (const auto& [name, text] : *files) {
    std::ofstream stream(out / name, std::ios::binary);
    stream << text;
    if (!stream.flush()) return fail(fmt::format("cannot write {}", (out / name).string()));
  }
  fs::permissions(out / "build.sh", fs::perms::owner_exec, fs::perm_options::add, error);
  fs::copy(fs::path(IncludeFolder()) / "allranks", out / "include/allranks",
           fs::copy_options::recursive, error);
  if (error) return fail(fmt::format("cannot copy the headers: {}", error.message()));
  fmt::print("{}/build.sh builds {}/run\n", out.string(), out.string());
  return 0;
}

}  // namespace allranks::cli
