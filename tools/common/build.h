// Which build of `allranks` a result is of: what is kept from run to run goes by it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace allranks::tools {

// FNV-1a: names of files, nothing that anybody attacks.
class Hash {
 public:
  void Add(const std::string& text) {
    for (const char c : text) value_ = (value_ ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }
  std::string Text() const;

 private:
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

// The command and the libraries that it puts under programs, of a build's folder or installed.
std::vector<std::filesystem::path> FilesOf(const std::filesystem::path& command);
// Changes with their contents.
std::string BuildOf(const std::filesystem::path& command);
// Changes with the files, at the cost of looking at their dates.
std::string DatesOf(const std::filesystem::path& command);

}  // namespace allranks::tools
