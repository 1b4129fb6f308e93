#include "cli/judge_tools.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/check.h"
#include "cli/places.h"

namespace allranks::cli {

namespace fs = std::filesystem;

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string CacheFolder() {
  if (const std::string own = Environment("ALLRANKS_CACHE"); !own.empty()) return own;
  if (const std::string xdg = Environment("XDG_CACHE_HOME"); !xdg.empty()) return xdg + "/allranks";
  if (const std::string home = Environment("HOME"); !home.empty()) return home + "/.cache/allranks";
  return "";
}

// The toolkit is the folder above the nvcc that a shell would start.
std::string FindCuda() {
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
    if (const std::string given = Environment(name); !given.empty()) return given;
  std::error_code error;
  std::string path = Environment("PATH");
  path += ":/usr/local/cuda/bin";
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    const fs::path nvcc = fs::path(path.substr(at, end - at)) / "nvcc";
    if (fs::exists(nvcc, error)) {
      const fs::path real = fs::canonical(nvcc, error);
      if (!error) return real.parent_path().parent_path().string();
    }
    at = end + 1;
  }
  return "";
}

std::string FindNccl(const std::string& cuda) {
  std::vector<std::string> folders = {cuda + "/lib64", cuda + "/lib",
                                      cuda + "/targets/x86_64-linux/lib",
                                      "/usr/lib/x86_64-linux-gnu"};
  if (const std::string home = Environment("NCCL_HOME"); !home.empty())
    folders.insert(folders.begin(), home + "/lib");
  std::error_code error;
  for (const std::string& folder : folders) {
    const fs::path real = fs::canonical(fs::path(folder) / "libnccl.so.2", error);
    if (!error) return real.string();
  }
  return "";
}

Result<std::string> FindCache() {
  std::string folder = CacheFolder();
  if (folder.empty()) return Fail("there is no HOME");
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || access(folder.c_str(), W_OK | X_OK) != 0)
    return Fail("{} cannot be written", folder);
  return folder;
}

Result<judge::Tools> FindTools(bool cache) {
  judge::Tools tools;
  tools.allranks = OwnPath();
  Result<std::string> shim = FindShim();
  if (!shim) return Fail(shim.error());
  tools.shim = *shim;
  tools.include = IncludeFolder();
  tools.cuda = FindCuda();
  if (tools.cuda.empty())
    return Fail(
        "nvcc not found: install the CUDA toolkit and add its bin folder to PATH, or set "
        "CUDA_HOME");
  tools.nccl = FindNccl(tools.cuda);
  if (!cache) return tools;
  if (Result<std::string> folder = FindCache()) {
    tools.cache = std::move(*folder);
  } else {
    fmt::print(stderr,
               "allranks: {}, so nothing that is built is kept; ALLRANKS_CACHE names a folder\n",
               folder.error().message);
  }
  return tools;
}

std::string RandomSeed() {
  std::uint64_t number = 0;
  CHECK(getrandom(&number, sizeof number, 0) == sizeof number);
  return fmt::format("{:016x}", number);
}

}  // namespace allranks::cli
