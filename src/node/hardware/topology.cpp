// Names and ranges of a profile's [topology] → vertices and links. See topology.h.
#include "node/hardware/topology.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/words.h"

namespace allranks::node {
namespace {

constexpr int kMostOfARange = 1024;

using Names = std::map<std::string, int>;  // name within its host → vertex

// The vertices that a name with a range means on one host.
Result<std::vector<int>> VerticesOf(const std::string& text, const Names& names) {
  const auto expanded = ExpandRange(text);
  if (!expanded) return Fail(expanded.error());
  std::vector<int> found;
  for (const std::string& name : *expanded) {
    const auto it = names.find(name);
    if (it == names.end()) {
      std::vector<std::string> known;
      for (const auto& [one, vertex] : names) known.push_back(one);
      return Fail(
          "\"{}\" is not a vertex: expected gpu0 ... of the host's devices or a name that is "
          "declared{}",
          name, DidYouMean(name, known));
    }
    found.push_back(it->second);
  }
  return found;
}

class Builder {
 public:
  Builder(const TopologyText& text, int hosts, int devices, Topology* out)
      : text_(text), hosts_(hosts), devices_(devices), out_(out), names_(std::size_t(hosts)) {}

  Result<void> Run() {
    for (int host = 0; host < hosts_; ++host) {
      for (int d = 0; d < devices_; ++d) {
        Add(Topology::Kind::kDevice, host, fmt::format("gpu{}", d), host * devices_ + d);
      }
    }
    for (const std::string& name : text_.machine_wide) {
      const auto expanded = ExpandRange(name);
      if (!expanded) return Fail(expanded.error());
      wide_.insert(expanded->begin(), expanded->end());
    }
    for (int kind = 1; kind < 6; ++kind) {
      for (const std::string& name : text_.names[kind]) {
        if (auto ok = Declare(static_cast<Topology::Kind>(kind), name); !ok) return ok;
      }
    }
    if (!wide_.empty()) {
      return Fail("machine_wide names \"{}\", which is not declared", *wide_.begin());
    }
    for (int host = 0; host < hosts_; ++host) {
      for (const auto& wire : text_.wires) {
        if (auto ok = Join(wire, host); !ok) return ok;
      }
      for (const auto& mesh : text_.meshes) {
        if (auto ok = Mesh(mesh, host); !ok) return ok;
      }
    }
    return Connected();
  }

 private:
  // Every device must have a way to the others of its host and to a CPU there, none of it through
  // devices.
  Result<void> Connected() const {
    std::vector<std::vector<int>> beside(out_->vertices.size());
    for (const Topology::Link& link : out_->links) {
      beside[std::size_t(link.a)].push_back(link.b);
      beside[std::size_t(link.b)].push_back(link.a);
    }
    for (int from = 0; from < hosts_ * devices_; ++from) {
      const int host = from / devices_;
      std::vector<char> reached(out_->vertices.size());
      std::vector<int> open = {from};
      reached[std::size_t(from)] = 1;
      bool cpu = false;
      while (!open.empty()) {
        const int at = open.back();
        open.pop_back();
        const Topology::Vertex& vertex = out_->vertices[std::size_t(at)];
        cpu |= vertex.kind == Topology::Kind::kCpu && vertex.host == host;
        if (at != from && vertex.kind == Topology::Kind::kDevice) continue;
        for (const int other : beside[std::size_t(at)]) {
          if (std::exchange(reached[std::size_t(other)], 1) == 0) open.push_back(other);
        }
      }
      const std::string& name = out_->vertices[std::size_t(from)].name;
      for (int d = host * devices_; d < (host + 1) * devices_; ++d) {
        if (reached[std::size_t(d)] == 0) {
          return Fail("{} has no route to {}", name, out_->vertices[std::size_t(d)].name);
        }
      }
      if (!cpu) return Fail("{} has no route to a CPU of its host", name);
    }
    return {};
  }

  int Add(Topology::Kind kind, int host, const std::string& name, int index) {
    const int vertex = static_cast<int>(out_->vertices.size());
    const bool prefixed = hosts_ > 1 && host >= 0;
    out_->vertices.push_back(
        {kind, prefixed ? fmt::format("node{}.{}", host, name) : name, host, index});
    for (int h = 0; h < hosts_; ++h) {
      if (host < 0 || h == host) names_[std::size_t(h)][name] = vertex;
    }
    return vertex;
  }

  Result<void> Declare(Topology::Kind kind, const std::string& text) {
    const auto expanded = ExpandRange(text);
    if (!expanded) return Fail(expanded.error());
    int index = 0;
    for (const std::string& name : *expanded) {
      if (names_[0].contains(name)) return Fail("\"{}\" is declared twice", name);
      if (wide_.erase(name) != 0) {
        Add(kind, -1, name, index++);
        continue;
      }
      for (int host = 0; host < hosts_; ++host) Add(kind, host, name, index);
      ++index;
    }
    return {};
  }

  Result<int> KindOf(const std::string& name) const {
    for (std::size_t k = 0; k < out_->kinds.size(); ++k) {
      if (out_->kinds[k].name == name) return static_cast<int>(k);
    }
    return Fail("\"{}\" is not a kind of link: expected one of [links]", name);
  }

  void Link(int a, int b, int kind) {
    // A wire between machine-wide vertices stands once, however many hosts there are.
    const bool wide =
        out_->vertices[std::size_t(a)].host < 0 && out_->vertices[std::size_t(b)].host < 0;
    const auto same = [&](const Topology::Link& link) {
      return link.a == a && link.b == b && link.kind == kind;
    };
    if (wide && std::any_of(out_->links.begin(), out_->links.end(), same)) return;
    out_->links.push_back({a, b, kind});
  }

  Result<void> Join(const TopologyText::Wire& wire, int host) {
    const auto a = VerticesOf(wire.a, names_[std::size_t(host)]);
    if (!a) return Fail(a.error());
    const auto b = VerticesOf(wire.b, names_[std::size_t(host)]);
    if (!b) return Fail(b.error());
    const auto kind = KindOf(wire.kind);
    if (!kind) return Fail(kind.error());
    if (a->size() % b->size() != 0) {
      return Fail("\"{}\" are {} and \"{}\" are {}: expected a multiple", wire.a, a->size(), wire.b,
                  b->size());
    }
    const std::size_t group = a->size() / b->size();
    for (std::size_t i = 0; i < a->size(); ++i) {
      if ((*a)[i] == (*b)[i / group]) return Fail("\"{}\" is wired to itself", wire.a);
      Link((*a)[i], (*b)[i / group], *kind);
    }
    return {};
  }

  Result<void> Mesh(const TopologyText::Wire& mesh, int host) {
    const auto all = VerticesOf(mesh.a, names_[std::size_t(host)]);
    if (!all) return Fail(all.error());
    const auto kind = KindOf(mesh.kind);
    if (!kind) return Fail(kind.error());
    for (std::size_t i = 0; i < all->size(); ++i) {
      for (std::size_t k = i + 1; k < all->size(); ++k) Link((*all)[i], (*all)[k], *kind);
    }
    return {};
  }

  const TopologyText& text_;
  const int hosts_, devices_;
  Topology* out_;
  std::vector<Names> names_;  // by host
  std::set<std::string> wide_;
};

}  // namespace

const char* NameOf(Topology::Kind kind) {
  static constexpr const char* kNames[] = {"device",      "cpu", "nvswitch",
                                           "pcie switch", "nic", "network"};
  return kNames[static_cast<std::size_t>(kind)];
}

Result<std::vector<std::string>> ExpandRange(std::string_view text) {
  const auto wrong = [&] {
    return Fail(
        "\"{}\" is not a name: expected letters and digits, with a range such as [0-7] at the "
        "end for several vertices",
        text);
  };
  const std::size_t open = text.find('[');
  const std::string stem(text.substr(0, open));
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  if (stem.empty() || !std::all_of(stem.begin(), stem.end(), plain)) return wrong();
  if (open == std::string_view::npos) return std::vector<std::string>{stem};
  const char* at = text.data() + open + 1;
  const char* end = text.data() + text.size();
  int first = 0, last = 0;
  auto read = std::from_chars(at, end, first);
  if (read.ec != std::errc() || read.ptr == end || *read.ptr != '-') return wrong();
  read = std::from_chars(read.ptr + 1, end, last);
  if (read.ec != std::errc() || read.ptr + 1 != end || *read.ptr != ']') return wrong();
  if (first < 0 || last < first || last - first >= kMostOfARange) return wrong();
  std::vector<std::string> names;
  for (int i = first; i <= last; ++i) names.push_back(fmt::format("{}{}", stem, i));
  return names;
}

Result<void> BuildTopology(const TopologyText& text, int hosts, int devices_per_host,
                           Topology* topology) {
  return Builder(text, hosts, devices_per_host, topology).Run();
}

Topology FewerDevices(const Topology& topology, int devices_per_host, int keep) {
  Topology fewer;
  fewer.kinds = topology.kinds;
  std::vector<int> number(topology.vertices.size(), -1);
  for (std::size_t v = 0; v < topology.vertices.size(); ++v) {
    Topology::Vertex vertex = topology.vertices[v];
    if (vertex.kind == Topology::Kind::kDevice) {
      if (vertex.index % devices_per_host >= keep) continue;
      vertex.index = vertex.host * keep + vertex.index % devices_per_host;
    }
    number[v] = static_cast<int>(fewer.vertices.size());
    fewer.vertices.push_back(std::move(vertex));
  }
  for (const Topology::Link& link : topology.links) {
    const int a = number[static_cast<std::size_t>(link.a)],
              b = number[static_cast<std::size_t>(link.b)];
    if (a >= 0 && b >= 0) fewer.links.push_back({a, b, link.kind});
  }
  return fewer;
}

Topology OneSwitch(std::vector<LinkKind> kinds, const std::string& to_switch,
                   const std::string& to_cpu, int hosts, int devices_per_host) {
  const std::string all =
      devices_per_host == 1 ? "gpu0" : fmt::format("gpu[0-{}]", devices_per_host - 1);
  TopologyText text;
  text.names[static_cast<std::size_t>(Topology::Kind::kCpu)] = {"cpu"};
  text.names[static_cast<std::size_t>(Topology::Kind::kNvswitch)] = {"nvswitch"};
  text.wires = {{all, "nvswitch", to_switch}, {all, "cpu", to_cpu}};
  Topology topology;
  topology.kinds = std::move(kinds);
  const auto built = BuildTopology(text, hosts, devices_per_host, &topology);
  CHECK(built.has_value());
  return topology;
}

std::vector<int> LinksNamed(const Topology& topology, const std::string& name) {
  std::vector<int> found;
  for (std::size_t l = 0; l < topology.links.size(); ++l) {
    const std::string& a = topology.vertices[static_cast<std::size_t>(topology.links[l].a)].name;
    const std::string& b = topology.vertices[static_cast<std::size_t>(topology.links[l].b)].name;
    if (name == a || name == b || name == a + "-" + b || name == b + "-" + a) {
      found.push_back(static_cast<int>(l));
    }
  }
  return found;
}

}  // namespace allranks::node
