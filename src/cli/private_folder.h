// Where a command keeps what it needs while it runs.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace allranks::cli {

// A folder that only this user can enter, gone when this object is.
class PrivateFolder {
 public:
  PrivateFolder() {
    std::error_code error;
    std::filesystem::path base = std::filesystem::temp_directory_path(error);
    if (error) base = "/tmp";
    std::string pattern = (base / "allranks-XXXXXX").string();
    if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~PrivateFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace allranks::cli
