#include "problem/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace allranks::problem {
namespace {

std::set<std::string> KindsOf(const node::Topology& topology) {
  std::set<std::string> kinds;
  for (const node::Topology::Link& link : topology.links)
    kinds.insert(topology.kinds[static_cast<std::size_t>(link.kind)].name);
  return kinds;
}

}  // namespace

Result<Problem> On(Problem problem, const node::Profile& profile) {
  const auto devices = static_cast<std::int64_t>(profile.DeviceCount());
  const auto fits = [&](std::int64_t world, const std::string& name) -> Status {
    if (world <= devices) return Ok();
    return Fail("{} has {} device{}, and {} of {} needs {}: choose another profile", profile.name,
                devices, devices == 1 ? "" : "s", name, problem.slug, world);
  };
  for (const Case& one : problem.cases) {
    if (!one.profile.empty()) continue;  // a machine of its own
    if (const Status status = fits(one.world, one.name); !status) return Fail(status.error());
  }
  if (problem.drawn.count > 0) {
    if (const Status status = fits(problem.drawn.world_high, "a drawn case"); !status)
      return Fail(status.error());
  }
  const std::set<std::string> kinds = KindsOf(profile.topology);
  std::erase_if(problem.links, [&](const std::string& link) { return !kinds.contains(link); });
  if (problem.links.empty()) problem.links.assign(kinds.begin(), kinds.end());
  if (!profile.multicast.supported) {
    for (const Tensor& tensor : problem.tensors) {
      if (tensor.multicast)
        return Fail("{} has no multicast, and `{}` of {} needs it: choose another profile",
                    profile.name, tensor.name, problem.slug);
    }
    std::erase(problem.allow, "multicast");
  }
  return problem;
}

std::string ArchOf(const Problem& problem, const node::Profile& profile) {
  const node::Profile::Device& device = profile.device;
  // Before Hopper no architecture has instructions of its own.
  const bool own = problem.arch_specific && device.compute_major >= 9;
  return fmt::format("sm_{}{}{}", device.compute_major, device.compute_minor, own ? "a" : "");
}

}  // namespace allranks::problem
