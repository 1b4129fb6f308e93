// See host_place.h.
#include "server/host_place.h"

#include <fmt/format.h>

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <map>

namespace allranks::server {
namespace {

// Programs that are not relocated begin at 4 MiB; all others far above this.
constexpr std::uint64_t kLowest = 0x10000000;

std::string Name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

}  // namespace

std::string HostPlace(pid_t pid, std::uint64_t pc, std::uint64_t caller) {
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  std::map<std::string, std::uint64_t> begins;  // the lowest address of each file
  std::string of_pc, of_caller, line;
  while (std::getline(maps, line)) {
    std::uint64_t begin = 0, end = 0;
    char access[5] = {};
    int at = 0;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s %*s %*s %*s %n", &begin, &end,
                    access, &at) < 3 ||
        at == 0 || line[static_cast<std::size_t>(at)] != '/') {
      continue;
    }
    const std::string path = line.substr(static_cast<std::size_t>(at));
    begins.emplace(path, begin);
    if (access[2] != 'x') continue;
    if (pc >= begin && pc < end) of_pc = path;
    if (caller >= begin && caller < end) of_caller = path;
  }
  const bool library =
      Name(of_pc).rfind("libc.so", 0) == 0 || Name(of_pc).rfind("libstdc++", 0) == 0;
  const bool called = library && !of_caller.empty();
  const std::string& path = called ? of_caller : of_pc;
  if (path.empty()) return "host code";
  const std::uint64_t address = called ? caller : pc;
  const std::uint64_t begin = begins[path];
  return fmt::format("{}+{:#x}", Name(path), begin < kLowest ? address : address - begin);
}

}  // namespace allranks::server
