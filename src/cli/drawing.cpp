// Topologies as trees. Every link has an upper and a lower end (network, switches and CPUs, PCIe
// switches, NICs, devices), so a vertex with two upper ends, such as a device behind both NVLink
// and PCIe, stands in two trees. Links between equals are listed apart.
#include "cli/drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

namespace allranks::cli {

namespace {

using node::Topology;

// More equal siblings than this are drawn once.
constexpr std::size_t kMostEqual = 4;

struct Name {
  int host = -1;  // -1: none is named
  std::string stem;
  int number = -1;  // -1: none
};

Name Split(const std::string& text) {
  Name name;
  std::string rest = text;
  if (const std::size_t dot = text.find('.'); dot != std::string::npos) {
    std::from_chars(text.data() + 4, text.data() + dot, name.host);
    rest = text.substr(dot + 1);
  }
  std::size_t digits = rest.size();
  while (digits > 0 && rest[digits - 1] >= '0' && rest[digits - 1] <= '9') --digits;
  name.stem = rest.substr(0, digits);
  if (digits < rest.size())
    std::from_chars(rest.data() + digits, rest.data() + rest.size(), name.number);
  return name;
}

// "x0", "x[0-3]", or both with commas between.
std::string Numbers(const std::string& stem, const std::set<int>& numbers) {
  std::string out;
  for (auto it = numbers.begin(); it != numbers.end();) {
    const int first = *it;
    int last = first;
    while (++it != numbers.end() && *it == last + 1) ++last;
    if (!out.empty()) out += ", ";
    out += first < 0       ? stem
           : first == last ? fmt::format("{}{}", stem, first)
                           : fmt::format("{}[{}-{}]", stem, first, last);
  }
  return out;
}

class Drawing {
 public:
  explicit Drawing(const Topology& topology)
      : topology_(topology),
        below_(topology.vertices.size()),
        has_upper_(topology.vertices.size()) {
    for (const Topology::Link& link : topology.links) {
      const int a = Level(link.a), b = Level(link.b);
      if (a == b) {
        equals_.push_back(link);
        continue;
      }
      const int upper = a > b ? link.a : link.b, lower = a > b ? link.b : link.a;
      below_[std::size_t(upper)].push_back({lower, link.kind});
      has_upper_[std::size_t(lower)] = true;
    }
  }

  std::string Run() {
    std::string out;
    // Trees that no host owns, then those of hosts; equal hosts once.
    Trees(-1, &out);
    std::map<std::string, std::vector<std::string>> hosts;
    std::vector<std::string> order;
    for (int host = 0; host <= LastHost(); ++host) {
      std::string text = Peers(host);
      Trees(host, &text);
      if (text.empty()) continue;
      const std::string prefix = fmt::format("node{}.", host);
      for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at))
        text.erase(at, prefix.size());
      if (hosts[text].empty()) order.push_back(text);
      hosts[text].push_back(fmt::format("node{}", host));
    }
    for (const std::string& text : order) {
      if (LastHost() > 0) {
        out +=
            fmt::format("{}{}:\n", RangeText(hosts[text]), hosts[text].size() > 1 ? ", each" : "");
      }
      out += text;
    }
    return out;
  }

 private:
  struct Below {
    int vertex, kind;
  };

  int Level(int vertex) const {
    switch (topology_.vertices[std::size_t(vertex)].kind) {
      case Topology::Kind::kNetwork:
        return 5;
      case Topology::Kind::kCpu:
      case Topology::Kind::kNvswitch:
        return 4;
      case Topology::Kind::kPcieSwitch:
        return 3;
      case Topology::Kind::kNic:
        return 2;
      case Topology::Kind::kDevice:
        return 1;
    }
    return 0;
  }

  const std::string& NameOf(int vertex) const {
    return topology_.vertices[std::size_t(vertex)].name;
  }
  const std::string& KindName(int kind) const { return topology_.kinds[std::size_t(kind)].name; }
  bool IsRoot(std::size_t v) const { return !has_upper_[v] && !below_[v].empty(); }
  int LastHost() const {
    int last = 0;
    for (const auto& vertex : topology_.vertices) last = std::max(last, vertex.host);
    return last;
  }

  // What a subtree looks like without its names.
  std::string Shape(int vertex) const {
    std::string shape = fmt::format("{}", int(topology_.vertices[std::size_t(vertex)].kind));
    if (below_[std::size_t(vertex)].empty()) return shape;
    shape += "(";
    for (const Below& below : below_[std::size_t(vertex)])
      shape += fmt::format("{}:{},", below.kind, Shape(below.vertex));
    return shape + ")";
  }

  // Siblings that are joined alike and look alike.
  std::vector<std::vector<Below>> Groups(int vertex) const {
    std::vector<std::vector<Below>> groups;
    std::map<std::string, std::size_t> known;
    for (const Below& below : below_[std::size_t(vertex)]) {
      const std::string key = fmt::format("{}:{}", below.kind, Shape(below.vertex));
      const auto [it, added] = known.emplace(key, groups.size());
      if (added) groups.emplace_back();
      groups[it->second].push_back(below);
    }
    return groups;
  }

  // All trees of a host (-1: of none), equal ones once if they are many.
  void Trees(int host, std::string* out) const {
    std::map<std::string, std::vector<int>> shapes;
    std::vector<std::string> order;
    for (std::size_t v = 0; v < topology_.vertices.size(); ++v) {
      if (topology_.vertices[v].host != host || !IsRoot(v)) continue;
      auto& alike = shapes[Shape(int(v))];
      if (alike.empty()) order.push_back(Shape(int(v)));
      alike.push_back(int(v));
    }
    for (const std::string& shape : order) {
      const std::vector<int>& alike = shapes[shape];
      const std::size_t drawn = alike.size() > kMostEqual ? 1 : alike.size();
      std::vector<std::string> names;
      for (std::size_t i = 0; i < alike.size(); ++i) {
        if (i < drawn) {
          Tree(alike[i], "", "", out);
        } else {
          names.push_back(NameOf(alike[i]));
        }
      }
      if (names.empty()) continue;
      *out += fmt::format("{}, each like {}\n", RangeText(names), NameOf(alike[0]));
    }
  }

  void Tree(int vertex, const std::string& first, const std::string& rest, std::string* out) const {
    *out += first + NameOf(vertex) + "\n";
    const auto groups = Groups(vertex);
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const bool last_group = g + 1 == groups.size();
      const auto& group = groups[g];
      const std::string link = KindName(group[0].kind);
      if (below_[std::size_t(group[0].vertex)].empty()) {
        std::vector<std::string> names;
        for (const Below& below : group) names.push_back(NameOf(below.vertex));
        *out +=
            fmt::format("{}{} {} ─ {}\n", rest, last_group ? "└─" : "├─", link, RangeText(names));
        continue;
      }
      const std::size_t drawn = group.size() > kMostEqual ? 1 : group.size();
      for (std::size_t i = 0; i < drawn; ++i) {
        const bool last = last_group && i + 1 == group.size();
        const std::string indent(link.size() + 4, ' ');
        Tree(group[i].vertex, fmt::format("{}{} {} ─ ", rest, last ? "└─" : "├─", link),
             rest + (last ? " " : "│") + " " + indent, out);
      }
      if (drawn == group.size()) continue;
      std::vector<std::string> names;
      for (std::size_t i = drawn; i < group.size(); ++i) names.push_back(NameOf(group[i].vertex));
      *out += fmt::format("{}{} {} ─ {}, each like {}\n", rest, last_group ? "└─" : "├─", link,
                          RangeText(names), NameOf(group[0].vertex));
    }
  }

  // Links between equals: a mesh in one line, others pair by pair.
  std::string Peers(int host) const {
    std::string out;
    std::map<int, std::vector<std::pair<int, int>>> by_kind;
    for (const Topology::Link& link : equals_)
      if (topology_.vertices[std::size_t(link.a)].host == host)
        by_kind[link.kind].push_back({link.a, link.b});
    for (const auto& [kind, pairs] : by_kind) {
      std::set<int> ends;
      for (const auto& [a, b] : pairs) ends.insert({a, b});
      if (ends.size() > 2 && pairs.size() == ends.size() * (ends.size() - 1) / 2) {
        std::vector<std::string> names;
        for (const int end : ends) names.push_back(NameOf(end));
        out += fmt::format("{}: {} between each two\n", RangeText(names), KindName(kind));
        continue;
      }
      for (const auto& [a, b] : pairs)
        out += fmt::format("{} ─ {} ─ {}\n", NameOf(a), KindName(kind), NameOf(b));
    }
    return out;
  }

  const Topology& topology_;
  std::vector<std::vector<Below>> below_;
  std::vector<bool> has_upper_;
  std::vector<Topology::Link> equals_;
};

}  // namespace

std::string RangeText(const std::vector<std::string>& names) {
  // Hosts with the same names on them share one text.
  std::map<int, std::vector<std::pair<std::string, std::set<int>>>> hosts;
  for (const std::string& text : names) {
    const Name name = Split(text);
    auto& stems = hosts[name.host];
    const auto it =
        std::find_if(stems.begin(), stems.end(), [&](auto& s) { return s.first == name.stem; });
    if (it == stems.end()) {
      stems.push_back({name.stem, {name.number}});
    } else {
      it->second.insert(name.number);
    }
  }
  std::vector<std::pair<std::string, std::set<int>>> texts;
  for (const auto& [host, stems] : hosts) {
    for (const auto& [stem, numbers] : stems) {
      const std::string text = Numbers(stem, numbers);
      const auto it =
          std::find_if(texts.begin(), texts.end(), [&](auto& t) { return t.first == text; });
      if (it == texts.end()) {
        texts.push_back({text, {host}});
      } else {
        it->second.insert(host);
      }
    }
  }
  std::string out;
  for (const auto& [text, of] : texts) {
    if (!out.empty()) out += ", ";
    out += of.contains(-1) ? text : Numbers("node", of) + "." + text;
  }
  return out;
}

std::string DrawTopology(const Topology& topology) { return Drawing(topology).Run(); }

}  // namespace allranks::cli
