// Folders of one judgement, and files by content hash that outlive it.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace allranks::judge {

// A folder that others can pass through but not list or change, gone when this object is. Its name
// tells the process that made it, so that SweepScratch finds what a killed one has left.
class Scratch {
 public:
  static Result<Scratch> Make();
  Scratch(Scratch&& other) noexcept;
  Scratch& operator=(Scratch&& other) noexcept;
  ~Scratch();

  const std::string& path() const { return path_; }

 private:
  Scratch() = default;
  std::string path_;
};

// Removes folders of processes that are gone.
void SweepScratch();

// SHA-256 of the parts, each with its length, as 64 hexadecimal digits.
std::string HashOf(std::initializer_list<std::string_view> parts);
Result<std::string> HashOfFile(const std::string& path);

// Files that can be made again, named by what they were made of. Writers put a whole file in place
// at once, so readers need no locks and two writers do no harm.
class Cache {
 public:
  explicit Cache(std::string folder) : folder_(std::move(folder)) {}

  // The file's path, or empty if there is none.
  std::string Find(const std::string& kind, const std::string& hash) const;
  // Copies `file` into the cache; its path there.
  Result<std::string> Put(const std::string& kind, const std::string& hash,
                          const std::string& file) const;
  bool enabled() const { return !folder_.empty(); }

 private:
  std::string folder_;
};

}  // namespace allranks::judge
