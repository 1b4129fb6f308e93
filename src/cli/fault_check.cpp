// See fault_check.h. The node takes any name for any kind; here a name has to fit its kind, so that
// a fault of the wrong links is not injected unnoticed.
#include "cli/fault_check.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/words.h"
#include "node/faults.h"
#include "node/hardware/topology.h"

namespace allranks::cli {
namespace {

using node::Topology;

constexpr std::size_t kMostNamed = 16;  // names in a message

std::vector<std::string> Vertices(const Topology& topology, std::string_view kind) {
  std::vector<std::string> names;
  for (const Topology::Vertex& vertex : topology.vertices) {
    if (kind == "gpu" && vertex.kind != Topology::Kind::kDevice) continue;
    if (kind == "nic" && vertex.kind != Topology::Kind::kNic) continue;
    names.push_back(vertex.name);
  }
  return names;
}

// The links at a vertex, as "gpu0-nvswitch"; of all vertices if it is empty.
std::vector<std::string> Links(const Topology& topology, std::string_view at) {
  std::vector<std::string> names;
  for (const Topology::Link& link : topology.links) {
    const std::string& a = topology.vertices[static_cast<std::size_t>(link.a)].name;
    const std::string& b = topology.vertices[static_cast<std::size_t>(link.b)].name;
    if (at.empty() || at == a) names.push_back(a + "-" + b);
    if (at == b) names.push_back(b + "-" + a);
  }
  return names;
}

std::string Some(std::vector<std::string> names) {
  if (names.size() <= kMostNamed) return names.empty() ? "none" : Join(names);
  const std::size_t more = names.size() - kMostNamed;
  names.resize(kMostNamed);
  return fmt::format("{} and {} more", Join(names), more);
}

}  // namespace

Status CheckFault(const std::string& text, const node::Profile& profile, int ranks) {
  const auto fault = node::ParseFault(text);
  if (!fault) return Fail(fault.error());
  if (fault->rank >= 0) {
    if (ranks == 0 || fault->rank < ranks) return Ok();
    return Fail("--fault {}: with --ranks {} the ranks are 0 to {}", text, ranks, ranks - 1);
  }
  const Topology& topology = profile.topology;
  const std::string kind = text.substr(0, text.find(':'));
  const std::string& name = fault->name;
  const auto wrong = [&](const std::string& why) -> Status {
    return Fail("--fault {}: {}; `allranks profile show {}` draws them", text, why, profile.name);
  };
  const std::vector<std::string> all = Vertices(topology, "");
  const bool vertex = std::find(all.begin(), all.end(), name) != all.end();
  if (kind == "link") {
    if (vertex)
      return wrong(fmt::format("a link has two ends; the links of {} are {}", name,
                               Some(Links(topology, name))));
    if (!node::LinksNamed(topology, name).empty()) return Ok();
    const std::string end = name.substr(0, name.find('-'));
    const bool known = std::find(all.begin(), all.end(), end) != all.end();
    const auto links = Links(topology, known ? end : "");
    return wrong(fmt::format("{} has no such link{}; {} {}", profile.name, DidYouMean(name, links),
                             known ? "those of " + end + " are" : "it has", Some(links)));
  }
  const std::vector<std::string> fitting = Vertices(topology, kind);
  if (std::find(fitting.begin(), fitting.end(), name) != fitting.end()) return Ok();
  const std::string kinds =
      fmt::format("{} of {}", kind == "gpu" ? "the devices" : "the NICs", profile.name);
  if (vertex && kind != "gpu" && std::find(fitting.begin(), fitting.end(), name) == fitting.end()) {
    const auto devices = Vertices(topology, "gpu");
    const bool device = std::find(devices.begin(), devices.end(), name) != devices.end();
    if (device)
      return wrong(
          fmt::format("{0} is a device: write gpu:{0}; {1} are {2}", name, kinds, Some(fitting)));
  }
  // A bare number.
  const std::string whole = kind + name;
  const bool number = std::find(fitting.begin(), fitting.end(), whole) != fitting.end();
  return wrong(fmt::format(
      "{} are {}{}", kinds, Some(fitting),
      number ? fmt::format(" (did you mean '{}'?)", whole) : DidYouMean(name, fitting)));
}

}  // namespace allranks::cli
