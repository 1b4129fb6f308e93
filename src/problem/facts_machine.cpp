// Facts of a prompt about the hardware: devices, and what the granted links can do.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "node/hardware/fabric.h"
#include "problem/facts.h"

namespace allranks::problem {
namespace {

using node::Topology;

// The most ranks that a case can have.
int LargestWorld(const Problem& problem) {
  int most = problem.drawn.count > 0 ? problem.drawn.world_high : 1;
  for (const Case& one : problem.cases) most = std::max(most, one.world);
  return most;
}

bool Granted(const Problem& problem, const std::string& kind) {
  return std::find(problem.links.begin(), problem.links.end(), kind) != problem.links.end();
}

struct Range {
  node::Time low = node::kTimeNever, high = 0;
  void Add(node::Time time) {
    low = std::min(low, time);
    high = std::max(high, time);
  }
  bool empty() const { return low > high; }
  std::string Us() const {
    const auto us = [](node::Time time) { return static_cast<double>(time) / 1e6; };
    return low == high ? fmt::format("{:.2f}", us(low))
                       : fmt::format("{:.2f} to {:.2f}", us(low), us(high));
  }
};

// One way by granted links alone: between devices, and between a device and its host's memory.
struct Latencies {
  Range devices, host;
};

Latencies LatenciesOf(const Problem& problem, const node::Profile& profile, int devices) {
  node::Fabric fabric(profile, profile.CyclesToTime(profile.time.bucket_cycles));
  const Topology& topology = profile.topology;
  const auto usable = [&](const node::Route& route) {
    return !route.ports.empty() &&
           std::all_of(route.ports.begin(), route.ports.end(), [&](std::uint16_t port) {
             const auto link = static_cast<std::size_t>(fabric.ports()[port].link);
             const auto kind = static_cast<std::size_t>(topology.links[link].kind);
             return Granted(problem, topology.kinds[kind].name);
           });
  };
  Latencies found;
  for (int a = 0; a < devices; ++a) {
    for (int b = 0; b < devices; ++b) {
      if (a == b) continue;
      if (const node::Route& route = fabric.Way(a, b); usable(route))
        found.devices.Add(route.latency);
    }
    if (fabric.HostOf(a) < 0) continue;
    if (const node::Route& route = fabric.Way(a, fabric.HostOf(a)); usable(route))
      found.host.Add(route.latency);
  }
  return found;
}

// The rate of a kind of link at device 0: all its wires together, or each where they lead to other
// devices.
std::string RateFact(const node::Profile& profile, std::size_t kind, int devices) {
  const Topology& topology = profile.topology;
  const node::LinkKind& link_kind = topology.kinds[kind];
  const double rate = link_kind.gbs * link_kind.efficiency;
  int shared = 0, pairs = 0;
  for (const Topology::Link& link : topology.links) {
    if (static_cast<std::size_t>(link.kind) != kind || (link.a != 0 && link.b != 0)) continue;
    const Topology::Vertex& other =
        topology.vertices[static_cast<std::size_t>(link.a == 0 ? link.b : link.a)];
    if (other.kind != Topology::Kind::kDevice) ++shared;
    if (other.kind == Topology::Kind::kDevice && other.index < devices) ++pairs;
  }
  if (pairs > 0) {
    return fmt::format("`{}` may carry payload: {:.4g} GB/s in each direction between two devices.",
                       link_kind.name, rate);
  }
  if (shared > 0) {
    return fmt::format("`{}` may carry payload: {:.4g} GB/s in each direction of a device.",
                       link_kind.name, rate * shared);
  }
  return fmt::format(
      "`{}` may carry payload, beyond the devices' own ports: {:.4g} GB/s in each "
      "direction of a link.",
      link_kind.name, rate);
}

// What the steps of a call cost apart from bytes.
std::string CostFact(const Problem& problem, const node::Profile& profile) {
  const auto us = [](node::Time time) {
    return fmt::format("{:.2g} µs", static_cast<double>(time) / 1e6);
  };
  std::vector<std::string> costs;
  if (problem.window == Window::kGraph)
    costs.push_back(fmt::format("the launch of a graph {}", us(profile.launch.graph)));
  if (Allows(problem, "kernel")) {
    costs.push_back(fmt::format("a kernel {} to start, and {} after another one",
                                us(profile.launch.kernel), us(profile.launch.between)));
    costs.push_back(fmt::format("a fence of system scope {} with nothing under way",
                                us(profile.CyclesToTime(profile.latency.fence_sys))));
  }
  if (Allows(problem, "memcpy"))
    costs.push_back(fmt::format("a copy {} to start, at {:.4g} GB/s on each of {} engines",
                                us(profile.copy_engine.startup), profile.copy_engine.gbs,
                                profile.copy_engine.count));
  if (Allows(problem, "values"))
    costs.push_back(fmt::format("a stream memory operation {}", us(profile.launch.event)));
  return fmt::format("What a step costs: {}.", fmt::join(costs, "; "));
}

}  // namespace

std::vector<std::string> MachineFacts(const Problem& problem, const node::Profile& profile) {
  const node::Profile::Device& device = profile.device;
  std::vector<std::string> facts;
  facts.push_back(fmt::format("{}: {}.", profile.name, profile.what));
  facts.push_back(fmt::format(
      "Each device: {}, compute capability {}.{}, {} SMs at {} MHz, {:.4g} GiB of memory at {:.4g} "
      "GB/s, {:.3g} MiB of L2.",
      device.name, device.compute_major, device.compute_minor, device.sms, device.clock_mhz,
      static_cast<double>(device.memory_bytes) / (1 << 30), profile.bandwidth.hbm_gbs,
      static_cast<double>(device.l2_bytes) / (1 << 20)));
  facts.push_back(fmt::format(
      "An SM holds {} threads and {} registers; a block has at most {} threads and {} KiB of "
      "shared memory ({} KiB without opting in).",
      profile.sm.max_threads, profile.sm.registers, device.max_threads_per_cta,
      profile.sm.shared_per_cta_bytes >> 10, profile.sm.shared_default_bytes >> 10));
  for (const std::string& fault : problem.faults)
    facts.push_back(fmt::format("Not all of it is well: `{}`.", fault));
  if (Allows(problem, "multicast")) {
    facts.emplace_back(profile.multicast.supported
                           ? "Its switches reduce and replicate (`multimem` instructions)."
                           : "It has no switch that reduces or replicates: `multimem` "
                             "instructions cannot be used on it.");
  }
  return facts;
}

std::vector<std::string> LinkFacts(const Problem& problem, const node::Profile& profile) {
  std::vector<std::string> facts;
  const Topology& topology = profile.topology;
  const int devices = std::min(LargestWorld(problem), static_cast<int>(profile.DeviceCount()));
  for (const std::string& name : problem.links) {
    std::size_t kind = 0;
    while (kind < topology.kinds.size() && topology.kinds[kind].name != name) ++kind;
    const bool wired =
        kind < topology.kinds.size() && std::any_of(
                                            topology.links.begin(), topology.links.end(),
                                            [&](const Topology::Link& link) {
                                              return static_cast<std::size_t>(link.kind) == kind;
                                            });
    facts.push_back(wired
                        ? RateFact(profile, kind, devices)
                        : fmt::format("`{}` may carry payload, but this machine has none.", name));
  }
  const Latencies latencies = LatenciesOf(problem, profile, devices);
  if (!latencies.devices.empty()) {
    facts.push_back(fmt::format("One way between two devices by these links takes {} µs.",
                                latencies.devices.Us()));
  }
  if (!latencies.host.empty()) {
    facts.push_back(
        fmt::format("One way between a device and its host's memory by these links takes {} µs.",
                    latencies.host.Us()));
  }
  facts.emplace_back("Bytes over any other kind of link are `forbidden_api`.");
  facts.push_back(CostFact(problem, profile));
  return facts;
}

}  // namespace allranks::problem
