// `allranks problems release`: the tree of problems as it is given away, and the tree of what is
// kept.
#include <fmt/format.h>

#include <toml++/toml.h>
#include <array>
#include <sstream>

#include "base/files.h"
#include "cli/exec.h"
#include "cli/places.h"
#include "cli/problems.h"
#include "problem/problem.h"

namespace allranks::cli {
namespace {

namespace fs = std::filesystem;
using problem::Problem;

// What the prompt of a sealed problem is made of. All else tells how it is solved or judged.
constexpr std::array kShown = {"statement.md", "operation.py", "template.cu"};

// problem.toml, which has been read before, without its mutants: their replacements quote the
// reference.
std::string Redacted(const fs::path& file) {
  toml::table table = toml::parse_file(file.string());
  table.erase("mutants");
  std::ostringstream text;
  text << toml::toml_formatter{table} << "\n";
  return text.str();
}

Result<void> Copy(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::create_directories(to.parent_path(), error);
  fs::copy(from, to, fs::copy_options::recursive, error);
  if (error) return Fail("cannot copy {} to {}: {}", from.string(), to.string(), error.message());
  return {};
}

Result<void> CopyShown(const Problem& problem, const fs::path& to) {
  std::error_code error;
  fs::create_directories(to, error);
  const auto written = WriteWhole(to / "problem.toml", Redacted(problem.folder / "problem.toml"));
  if (!written) return written;
  for (const char* name : kShown) {
    if (!fs::exists(problem.folder / name)) continue;
    if (auto copied = Copy(problem.folder / name, to / name); !copied) return copied;
  }
  return {};
}

// One problem to where it belongs.
Result<void> Release(const Problem& problem, const fs::path& out, const fs::path& held_out) {
  const fs::path place = fs::path(problem.category) / problem.folder.filename();
  if (problem.split == problem::Split::kPublic) return Copy(problem.folder, out / place);
  if (problem.split == problem::Split::kSealed) {
    if (auto shown = CopyShown(problem, out / place); !shown) return shown;
  }
  if (held_out.empty()) return {};
  return Copy(problem.folder, held_out / place);
}

}  // namespace

int ProblemsRelease(const ProblemsOptions& options) {
  const auto fail = [](const std::string& message) {
    fmt::print(stderr, "allranks: {}\n", message);
    return kExitUsage;
  };
  const fs::path out = options.out, held_out = options.held_out;
  std::error_code error;
  for (const fs::path& one : {out, held_out}) {
    if (fs::exists(one, error)) return fail(fmt::format("{} already exists", one.string()));
  }
  std::array<int, 3> counts = {};
  for (const std::string& root : ProblemFolders(options.folder)) {
    for (const fs::path& folder : problem::Find(root)) {
      const auto problem = problem::Load(folder);
      if (!problem) return fail(problem.error().message);
      if (auto released = Release(*problem, out, held_out); !released)
        return fail(released.error().message);
      ++counts.at(static_cast<std::size_t>(problem->split));
    }
  }
  const auto [shown, sealed, hidden] = counts;
  fmt::print("{}: {} public problems, {} sealed ones without their solutions and oracles\n",
             out.string(), shown, sealed);
  if (held_out.empty())
    fmt::print("left out: {} private problems\n", hidden);
  else
    fmt::print("{}: {} sealed and {} private problems, whole\n", held_out.string(), sealed, hidden);
  return 0;
}

}  // namespace allranks::cli
