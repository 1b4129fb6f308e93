// Images that lie in files of which a process has mapped them: a library of a hundred megabytes is
// read where it is, once for all processes, instead of being sent by each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "node/module_image.h"
#include "wire/messages.h"

namespace allranks::server {

class ImageFiles {
 public:
  // Only these may be opened; nullopt: every file that this process can read.
  explicit ImageFiles(std::optional<std::vector<std::string>> only) : only_(std::move(only)) {}
  ~ImageFiles();
  ImageFiles(const ImageFiles&) = delete;
  ImageFiles& operator=(const ImageFiles&) = delete;

  // Whether this is the key of an image of a file; keys of others are digests of 32 bytes.
  static bool IsKey(const std::string& key);
  // The image that has these parts; nullopt: there is no such file, it may not be opened, or it is
  // too short for them.
  std::optional<node::ModuleImage> Find(const wire::FileImage& message);

 private:
  struct Mapped {
    std::span<const std::byte> bytes;
    std::string identity;  // device, inode, size and time of the file
  };
  const Mapped* Map(const std::string& path);

  std::optional<std::vector<std::string>> only_;
  std::map<std::string, Mapped> files_;  // by path; mapped as long as this lives
};

}  // namespace allranks::server
