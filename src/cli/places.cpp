// Looks for profiles and for the shim.
#include "cli/places.h"

#include <unistd.h>
#include <climits>
#include <cstdlib>
#include <filesystem>

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
