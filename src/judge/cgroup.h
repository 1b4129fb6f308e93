// Control groups for sandboxes: bounds and counts for all processes of one together. Version 1 has
// a tree per controller, version 2 one for all; where neither can be written, there are none and
// rlimits must do.
//
// A group's folder is named allranks-NAMESPACE-PID-START-NUMBER: the process that made it, so that
// a later one can tell what was left behind by a process that is gone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "wire/frame.h"

namespace allranks::judge {

// Where groups can be made, found from what /proc says.
struct CgroupPlaces {
  int version = 0;  // 0: nowhere
  // Version 2: in all three the same.
  std::filesystem::path memory, pids, cpu;
  // The tops of their trees, where leftovers are looked for.
  std::vector<std::filesystem::path> tops;
};
// `cgroup` and `mountinfo` are the texts of /proc/self/cgroup and /proc/self/mountinfo.
CgroupPlaces FindCgroupPlaces(const std::string& cgroup, const std::string& mountinfo);
// This machine's; found out once.
const CgroupPlaces& OurCgroupPlaces();

class Cgroup {
 public:
  struct Bounds {
    std::uint64_t memory_bytes = 0;
    std::uint64_t processes = 0;
  };
  static Result<std::unique_ptr<Cgroup>> Make(const CgroupPlaces& places, const Bounds& bounds);
  ~Cgroup();  // ends what is left in it, and removes it
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;

  // A process that writes "0" to each of these joins.
  const std::vector<wire::Fd>& doors() const { return doors_; }

  std::uint64_t CpuMicroseconds() const;
  std::uint64_t PeakMemory() const;
  bool OutOfMemory() const;     // something in it was killed for want of memory
  bool OutOfProcesses() const;  // a start was refused

 private:
  Cgroup() = default;

  int version_ = 0;
  std::vector<std::filesystem::path> folders_;
  std::vector<wire::Fd> doors_;
  wire::Fd cpu_, peak_, memory_events_, pids_events_;
};

// Ends and removes groups of processes that are gone.
void SweepCgroups(const CgroupPlaces& places);

inline constexpr std::string_view kMakerPrefix = "allranks-";  // all such names begin with it
// The part of a name that says which process made it, and whether that process is alive. A name of
// another PID namespace counts as alive: nothing can be known about it.
std::string MakerName();
bool MakerIsGone(const std::string& name);

}  // namespace allranks::judge
