// See build.h.
#include "common/build.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/run.h"

namespace allranks::tools {

namespace fs = std::filesystem;

std::string Hash::Text() const { return fmt::format("{:016x}", value_); }

std::vector<fs::path> FilesOf(const fs::path& command) {
  std::vector<fs::path> files = {command};
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(command.parent_path() / "../lib/allranks", none))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::string BuildOf(const fs::path& command) {
  Hash hash;
  for (const fs::path& file : FilesOf(command)) hash.Add(ReadText(file));
  return hash.Text().substr(0, 12);
}

std::string DatesOf(const fs::path& command) {
  std::string dates;
  std::error_code gone;
  for (const fs::path& file : FilesOf(command))
    dates += fmt::format("{} {}\n", file.string(),
                         fs::last_write_time(file, gone).time_since_epoch().count());
  return dates;
}

}  // namespace allranks::tools
