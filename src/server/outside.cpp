// Looks through /proc for other holders of a pipe. Slow (milliseconds), but asked only when nothing
// can happen any more.
#include "server/outside.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace allranks::server {

namespace {

namespace fs = std::filesystem;

std::string Target(const std::string& link) {
  char buffer[PATH_MAX];
  const ssize_t length = readlink(link.c_str(), buffer, sizeof buffer);
  return length <= 0 ? std::string() : std::string(buffer, static_cast<std::size_t>(length));
}

}  // namespace

Reach WhoElseHolds(std::span<const int> fds, std::span<const pid_t> ours) {
  std::vector<std::string> pipes;
  Reach reach = Reach::kNobody;
  for (int fd : fds) {
    const std::string target = Target("/proc/self/fd/" + std::to_string(fd));
    if (target.starts_with("pipe:[")) {
      pipes.push_back(target);
    } else if (target.starts_with("socket:[")) {
      reach = Reach::kUnknown;
    } else if (target != "anon_inode:[eventfd]") {
      return Reach::kSomebody;
    }
  }
  if (pipes.empty()) return reach;
  std::error_code error;
  for (const fs::directory_entry& process : fs::directory_iterator("/proc", error)) {
    const std::string name = process.path().filename();
    const pid_t pid = std::atoi(name.c_str());
    if (pid <= 0 || pid == getpid() || std::find(ours.begin(), ours.end(), pid) != ours.end())
      continue;
    std::error_code ignored;
    for (const fs::directory_entry& fd : fs::directory_iterator(process.path() / "fd", ignored)) {
      const std::string target = Target(fd.path());
      if (std::find(pipes.begin(), pipes.end(), target) != pipes.end()) return Reach::kSomebody;
    }
  }
  return reach;
}

}  // namespace allranks::server
