// Looks for profiles, problems and the shim.
#include "cli/places.h"

#include <unistd.h>
#include <climits>
#include <cstdlib>
#include <filesystem>

#include "problem/reader.h"

namespace allranks::cli {

namespace fs = std::filesystem;

std::string OwnPath() {
  char buffer[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", buffer, sizeof buffer);
  return length <= 0 ? std::string() : std::string(buffer, static_cast<std::size_t>(length));
}

std::vector<std::string> ProfileFolders() {
  std::vector<std::string> folders;
  if (const char* own = std::getenv("ALLRANKS_PROFILES"); own != nullptr && *own != '\0')
    folders.emplace_back(own);
  folders.push_back(fs::path(OwnPath()).parent_path().parent_path() / "share/allranks/profiles");
  folders.emplace_back(ALLRANKS_PROFILE_DIR);
  return folders;
}

Result<std::string> FindProfile(const std::string& name) {
  std::error_code error;
  if (name.find('/') != std::string::npos || name.ends_with(".toml")) {
    if (!fs::is_regular_file(name, error)) return Fail("no profile at '{}'", name);
    return fs::absolute(name).string();
  }
  std::string tried;
  for (const fs::path folder : ProfileFolders()) {
    const fs::path path = folder / (name + ".toml");
    if (fs::is_regular_file(path, error)) return fs::absolute(path).string();
    tried += "\n  " + path.string();
  }
  return Fail("no profile named '{}'; looked for{}", name, tried);
}

std::vector<std::string> ProblemFolders(const std::string& own) {
  if (!own.empty()) return {own};
  std::vector<std::string> folders;
  if (const char* named = std::getenv("ALLRANKS_PROBLEMS"); named != nullptr && *named != '\0')
    folders.emplace_back(named);
  folders.push_back(fs::path(OwnPath()).parent_path().parent_path() / "share/allranks/problems");
  folders.emplace_back(ALLRANKS_PROBLEM_DIR);
  return folders;
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
  std::string tried;
  std::vector<std::string> known;
  for (const fs::path root : ProblemFolders(own)) {
    if (slug.find('/') != std::string::npos && is_problem(root / slug))
      return problem::Load(root / slug, variant);
    for (const fs::path& folder : problem::Find(root)) {
      if (folder.filename() == slug) return problem::Load(folder, variant);
      known.push_back(folder.filename().string());
    }
    tried += "\n  " + root.string();
  }
  if (slug.find('/') != std::string::npos && is_problem(slug)) return problem::Load(slug, variant);
  return Fail("no problem named '{}'{}; looked in{}", name, problem::DidYouMean(name, known),
              tried);
}

std::string IncludeFolder() {
  std::error_code error;
  const fs::path installed = fs::path(OwnPath()).parent_path().parent_path() / "include";
  if (fs::is_directory(installed / "allranks", error)) return installed.string();
  return ALLRANKS_INCLUDE_DIR;
}

std::string ShareFolder() {
  std::error_code error;
  const fs::path installed = fs::path(OwnPath()).parent_path().parent_path() / "share/allranks";
  if (fs::is_directory(installed / "prompts", error)) return installed.string();
  return ALLRANKS_SHARE_DIR;
}

Result<std::string> FindModelsFile(const std::string& own) {
  std::error_code error;
  std::string named = own;
  if (const char* variable = std::getenv("ALLRANKS_MODELS"); named.empty() && variable != nullptr)
    named = variable;
  if (!named.empty()) {
    if (!fs::is_regular_file(named, error)) return Fail("no models file at '{}'", named);
    return named;
  }
  if (fs::is_regular_file("models.toml", error)) return std::string("models.toml");
  std::string shared = (fs::path(ShareFolder()) / "models.toml").string();
  if (!fs::is_regular_file(shared, error))
    return Fail("no models file: neither ./models.toml nor {} exists", shared);
  return shared;
}

Result<std::string> FindShim() {
  std::vector<fs::path> folders;
  folders.push_back(fs::path(OwnPath()).parent_path().parent_path() / "lib/allranks");
  folders.emplace_back(ALLRANKS_SHIM_DIR);
  std::string tried;
  std::error_code error;
  for (const fs::path& folder : folders) {
    if (fs::exists(folder / "liballranks_host.so", error)) return fs::absolute(folder).string();
    tried += "\n  " + folder.string();
  }
  return Fail("liballranks_host.so is missing; looked in{}", tried);
}

}  // namespace allranks::cli
