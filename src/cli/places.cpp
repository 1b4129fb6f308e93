// Looks for profiles, problems and the shim. An installation and a build folder have the same
// layout: bin/allranks, lib/allranks, share/allranks (cmake/AllranksInstall.cmake).
#include "cli/places.h"

#include <unistd.h>
#include <algorithm>
#include <climits>
#include <cstdlib>
#include <filesystem>

#include "base/words.h"
#include "cli/paths.h"

namespace allranks::cli {

namespace fs = std::filesystem;

std::string OwnPath() {
  char buffer[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", buffer, sizeof buffer);
  return length <= 0 ? std::string() : std::string(buffer, static_cast<std::size_t>(length));
}

namespace {

// What stands there; in a build folder these are links into the source tree.
std::string Installed(const char* place) {
  const fs::path path = fs::path(OwnPath()).parent_path().parent_path() / place;
  std::error_code error;
  fs::path real = fs::canonical(path, error);
  return (error ? path : real).string();
}

// The folder that a variable names, then the installed one.
std::vector<std::string> Folders(const char* variable, const char* place) {
  std::vector<std::string> folders;
  if (const char* own = std::getenv(variable); own != nullptr && *own != '\0')
    folders.emplace_back(own);
  folders.push_back(Installed(place));
  return folders;
}

constexpr const char* kProfileVariable = "ALLRANKS_PROFILES";
constexpr const char* kProblemVariable = "ALLRANKS_PROBLEMS";

// A variable that names no folder is a mistake, not a reason to look elsewhere.
Status CheckFolder(const char* variable) {
  const char* own = std::getenv(variable);
  if (own == nullptr || *own == '\0') return Ok();
  const std::string why = WhyNoFolder(own);
  if (why.empty()) return Ok();
  return Fail("{}: {}; set it to a folder, or unset it", variable, why);
}

}  // namespace

std::vector<std::string> ProfileFolders() {
  return Folders(kProfileVariable, "share/allranks/profiles");
}

Result<std::string> FindProfile(const std::string& name) {
  std::error_code error;
  if (name.find('/') != std::string::npos || name.ends_with(".toml")) {
    if (const std::string why = WhyNotRead(name); !why.empty())
      return Fail("no profile at '{}': {}", name, why);
    return fs::absolute(name).string();
  }
  if (const Status there = CheckFolder(kProfileVariable); !there) return Fail(there.error());
  std::vector<std::string> known;
  for (const fs::path folder : ProfileFolders()) {
    const fs::path path = folder / (name + ".toml");
    if (fs::is_regular_file(path, error)) return fs::absolute(path).string();
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
      if (entry.path().extension() == ".toml") known.push_back(entry.path().stem().string());
  }
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  const bool here = fs::is_regular_file(name + ".toml", error);
  return Fail("no profile named '{0}'{1}; there are {2}; looked for {0}.toml in {3}{4}", name,
              DidYouMean(name, known), Join(known), Join(ProfileFolders()),
              here ? fmt::format("; the file in this folder is ./{}.toml", name) : "");
}

Status CheckProfileFolder() { return CheckFolder(kProfileVariable); }

Status CheckProblemFolder(const std::string& own) {
  return own.empty() ? CheckFolder(kProblemVariable) : Ok();
}

std::vector<std::string> ProblemFolders(const std::string& own) {
  return own.empty() ? Folders(kProblemVariable, "share/allranks/problems") : std::vector{own};
}

Result<problem::Problem> FindProblem(const std::string& name, const std::string& own) {
  std::error_code error;
  const auto is_problem = [&](const fs::path& folder) {
    return fs::is_regular_file(folder / "problem.toml", error);
  };
  // SLUG.VARIANT; no folder has a dot in its name.
  const std::size_t dot = name.find('.', name.find_last_of('/') + 1);
  const std::string slug = name.substr(0, dot);
  const std::string variant = dot == std::string::npos ? "" : name.substr(dot + 1);
  if (const Status there = CheckProblemFolder(own); !there) return Fail(there.error());
  const auto load = [&](const fs::path& folder) -> Result<problem::Problem> {
    const auto all = problem::LoadAll(folder);
    if (variant.empty() || !all) return problem::Load(folder, variant);
    std::vector<std::string> slugs;
    for (const problem::Problem& one : *all) slugs.push_back(one.slug);
    const std::string wanted = folder.filename().string() + "." + variant;
    if (std::find(slugs.begin(), slugs.end(), wanted) != slugs.end())
      return problem::Load(folder, variant);
    return Fail("no problem named '{}': its folder has the variants {}{}", wanted, Join(slugs),
                DidYouMean(wanted, slugs));
  };
  std::string tried;
  std::vector<std::string> known;
  for (const fs::path root : ProblemFolders(own)) {
    if (slug.find('/') != std::string::npos && is_problem(root / slug)) return load(root / slug);
    for (const fs::path& folder : problem::Find(root)) {
      if (folder.filename() == slug) return load(folder);
      known.push_back(folder.filename().string());
    }
    tried += "\n  " + root.string();
  }
  if (slug.find('/') != std::string::npos) {
    if (is_problem(slug)) return load(slug);
    const fs::path file = fs::path(name) / "problem.toml";
    if (const std::string why = WhyNoFolder(name); !why.empty())
      return Fail("no problem at '{}': {}; a problem is a folder with a problem.toml{}", name, why,
                  DidYouMean(fs::path(slug).filename().string(), known));
    return Fail("no problem at '{}': {}", name, WhyNotRead(file.string()));
  }
  return Fail("no problem named '{}'{}; looked in{}\n`allranks problems list` lists them", name,
              DidYouMean(name, known), tried);
}

Status CheckPrompt(const std::string& name) {
  if (name.find('/') == std::string::npos) return Ok();
  if (const std::string why = WhyNotRead(name, false); !why.empty())
    return Fail(
        "--prompt: {}; write a template (docs/prompts.md), or name one of the installed ones", why);
  return Ok();
}

std::string IncludeFolder() { return Installed("share/allranks/include"); }

std::string ShareFolder() { return Installed("share/allranks"); }

Result<std::vector<fs::path>> FindModelsFiles(const std::string& own) {
  std::error_code error;
  std::string named = own;
  if (const char* variable = std::getenv("ALLRANKS_MODELS"); named.empty() && variable != nullptr)
    named = variable;
  if (!named.empty()) {
    if (const std::string why = WhyNotRead(named); !why.empty())
      return Fail("{}{}", own.empty() ? "ALLRANKS_MODELS: " : "--models-file: ", why);
    return std::vector<fs::path>{named};
  }
  std::vector<fs::path> files;
  fs::path shared = fs::path(ShareFolder()) / "models.toml";
  if (fs::is_regular_file(shared, error)) files.push_back(shared);
  if (fs::is_regular_file("models.toml", error)) files.emplace_back("models.toml");
  if (files.empty())
    return Fail("no models file: neither ./models.toml nor {} exists", shared.string());
  return files;
}

Result<std::string> FindShim() {
  std::string folder = Installed("lib/allranks");
  std::error_code error;
  if (!fs::exists(fs::path(folder) / "liballranks_host.so", error))
    return Fail("{}/liballranks_host.so is missing: it is installed with this program", folder);
  return folder;
}

}  // namespace allranks::cli
