// `allranks problems new`: the folder of a new problem. What it writes (share/starter) is a
// complete small problem, so that its author changes something that works.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "cli/exec.h"
#include "cli/places.h"
#include "cli/problems.h"
#include "problem/problem.h"
#include "problem/reader.h"

namespace allranks::cli {
namespace {

namespace fs = std::filesystem;

struct StarterFile {
  const char* path;
  const char* text;
};
constexpr StarterFile kStarter[] = {
#include <starter.inc>
};

std::string Filled(std::string text, const std::string& category, const std::string& slug) {
  const auto replace = [&](const std::string& from, const std::string& to) {
    for (std::size_t at = text.find(from); at != std::string::npos;
         at = text.find(from, at + to.size())) {
      text.replace(at, from.size(), to);
    }
  };
  replace("CATEGORY_OF_PROBLEM", category);
  replace("SLUG_OF_PROBLEM", slug);
  return text;
}

}  // namespace

int ProblemsNew(const ProblemsOptions& options) {
  const auto fail = [](const std::string& message) {
    fmt::print(stderr, "allranks: {}\n", message);
    return kExitUsage;
  };
  const std::size_t slash = options.name.find('/');
  const std::string category = options.name.substr(0, slash);
  const std::string slug = slash == std::string::npos ? "" : options.name.substr(slash + 1);
  const auto& categories = problem::Categories();
  if (!problem::IsName(slug) ||
      std::find(categories.begin(), categories.end(), category) == categories.end()) {
    return fail(
        fmt::format("'{}' is not CATEGORY/SLUG: a category is one of {}, a slug [a-z][a-z0-9_]*",
                    options.name, problem::Join(categories)));
  }
  const fs::path folder = fs::path(ProblemFolders(options.folder).back()) / category / slug;
  std::error_code error;
  if (fs::exists(folder, error)) return fail(fmt::format("{} already exists", folder.string()));
  for (const StarterFile& file : kStarter) {
    const fs::path path = folder / file.path;
    fs::create_directories(path.parent_path(), error);
    std::ofstream stream(path, std::ios::binary);
    stream << Filled(file.text, category, slug);
    if (!stream.flush()) return fail(fmt::format("cannot write {}", path.string()));
  }
  fmt::print("{} is a complete problem (a peer copy). Change it into your own.\n", folder.string());
  return 0;
}

}  // namespace allranks::cli
