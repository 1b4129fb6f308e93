// Looks through /proc for other holders of a pipe, which takes milliseconds but is asked only when
// nothing can happen any more, and for what a silent thread sleeps in.
#include "server/outside.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
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

// What `held` waits for: itself, or the members of an epoll set, by their numbers in the process
// that made it. A member that cannot be named is an empty string.
std::vector<std::string> Targets(const Held& held) {
  const std::string number = std::to_string(held.fd);
  const std::string own = Target("/proc/self/fd/" + number);
  if (own != "anon_inode:[eventpoll]") return {own};
  std::vector<std::string> targets;
  std::ifstream info("/proc/self/fdinfo/" + number);
  for (std::string word; info >> word;) {
    if (word != "tfd:") continue;
    info >> word;
    targets.push_back(Target("/proc/" + std::to_string(held.from) + "/fd/" + word));
  }
  return targets;
}

}  // namespace

Reach WhoElseHolds(std::span<const Held> fds, std::span<const pid_t> ours) {
  std::vector<std::string> pipes, targets;
  Reach reach = Reach::kNobody;
  for (const Held& held : fds) {
    const std::vector<std::string> more = Targets(held);
    targets.insert(targets.end(), more.begin(), more.end());
  }
  for (const std::string& target : targets) {
    if (target.starts_with("pipe:[")) {
      pipes.push_back(target);
    } else if (target.starts_with("socket:[")) {
      reach = Reach::kUnknown;
    } else if (target != "anon_inode:[eventfd]" && target != "/dev/null") {
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

std::optional<std::uint64_t> WaitsForThread(pid_t pid, pid_t tid) {
  const std::string folder = "/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid);
  // Number and arguments of the system call that the thread sleeps in, or "running".
  std::ifstream file(folder + "/syscall");
  long number = -1;
  std::uint64_t address = 0, operation = 0, value = 0, timeout = 0;
  if (!(file >> number >> std::hex >> address >> operation >> value >> timeout))
    return std::nullopt;
  const auto command = static_cast<int>(operation) & FUTEX_CMD_MASK;
  if (number != SYS_futex || (command != FUTEX_WAIT && command != FUTEX_WAIT_BITSET) ||
      (operation & FUTEX_PRIVATE_FLAG) == 0 || timeout != 0)
    return std::nullopt;
  std::ifstream status(folder + "/status");
  std::uint64_t switches = 0;
  int found = 0;
  bool sleeps = false;
  for (std::string line; std::getline(status, line);) {
    // A thread that was woken, but that its core has not taken up yet, still shows its system call.
    if (line.starts_with("State:")) sleeps = line.find("S (sleeping)") != std::string::npos;
    const std::size_t colon = line.find("ctxt_switches:");  // voluntary_ and nonvoluntary_
    if (colon == std::string::npos) continue;
    switches += std::strtoull(line.c_str() + colon + 14, nullptr, 10);
    ++found;
  }
  return sleeps && found == 2 ? std::optional(switches) : std::nullopt;
}

}  // namespace allranks::server
