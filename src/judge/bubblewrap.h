// The arguments of bubblewrap for a sandbox: what there is inside, and where it comes from.
#pragma once

#include <string>
#include <vector>

#include "judge/sandbox.h"

namespace allranks::judge {

// A bind mount that root prepares before it becomes an ordinary user: the source may lie in folders
// that only root can enter.
struct Staged {
  std::string from;
  std::string at;  // under `stage`
  bool folder = false;
};

struct BubblewrapPlan {
  std::string arguments;  // each ended by a zero, as --args takes them
  std::string stage;      // an empty tmpfs is mounted here first, in a namespace of its own
  std::vector<Staged> staged;
};

// Where the launcher lies inside.
inline constexpr char kLauncherPath[] = "/.launch";

// `as_root`: sources are staged. `files` are descriptors with the contents of spec.files.
Result<BubblewrapPlan> PlanBubblewrap(const SandboxSpec& spec, bool as_root, int launcher_fd,
                                      int filter_fd, int info_fd, const std::vector<int>& files);

}  // namespace allranks::judge
