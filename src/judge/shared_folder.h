// The /dev/shm that ranks of a library have in common.
//
// They can put files there and cannot remove them (filter.cpp), so that every file counts for as
// long as its folder exists. Their size is bounded by the limit on any file of a rank.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"
#include "wire/frame.h"

namespace allranks::judge {

class SharedFolder {
 public:
  static constexpr std::size_t kMostFiles = 64;

  // An empty one in the place of what is there.
  static Result<SharedFolder> Make(const std::string& path);

  const std::string& path() const { return path_; }
  // Readable when there is something for Overfull() to count.
  int descriptor() const { return news_.get(); }
  bool Overfull();

 private:
  SharedFolder(std::string path, wire::Fd news) : path_(std::move(path)), news_(std::move(news)) {}

  std::string path_;
  wire::Fd news_;  // of inotify
  std::size_t files_ = 0;
};

}  // namespace allranks::judge
