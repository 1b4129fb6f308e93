// The matrix of ways, as `nvidia-smi topo -m` has it: one letter per kind of way, and what each
// letter means below.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/drawing.h"
#include "node/hardware/fabric.h"

namespace allranks::cli {

namespace {

using node::Topology;

// A wider matrix has one row for all devices from which everything looks the same.
constexpr std::size_t kMostColumns = 110;
constexpr std::size_t kMostGroups = 16;

class Ways {
 public:
  explicit Ways(const node::Profile& profile)
      : topology_(profile.topology), fabric_(profile, 100'000) {}

  // The letter of the way; "." to itself, "-" if there is none.
  std::string Letter(int from, int to) {
    if (from == to) return ".";
    const node::Route& route = fabric_.Way(from, to);
    if (route.latency == node::kTimeNever) return "-";
    std::string what;
    double rate = 0;
    std::string last;
    int repeated = 0;
    const auto flush = [&] {
      if (repeated == 0) return;
      what += fmt::format("{}{}{}", what.empty() ? "" : ", ", last,
                          repeated > 1 ? fmt::format(" x {}", repeated) : "");
      repeated = 0;
    };
    for (const std::uint16_t p : route.ports) {
      const node::Port& port = fabric_.ports()[p];
      const auto& kind = topology_.kinds[std::size_t(topology_.links[std::size_t(port.link)].kind)];
      if (kind.name != last) flush();
      last = kind.name;
      ++repeated;
      const double own = kind.gbs * kind.efficiency;
      if (rate == 0 || own < rate) rate = own;
    }
    flush();
    const Row row{what, route.ports.size(), route.latency, rate};
    const auto found = std::find(rows_.begin(), rows_.end(), row);
    const auto index = found - rows_.begin();
    if (found == rows_.end()) rows_.push_back(row);
    return index < 26 ? std::string(1, static_cast<char>('A' + index)) : "?";
  }

  std::string Legend() const {
    std::size_t width = 5;
    for (const Row& row : rows_) width = std::max(width, row.what.size());
    std::string out =
        fmt::format("   {:<{}} {:>6} {:>9} {:>9}\n", "route", width, "links", "latency", "GB/s");
    for (std::size_t r = 0; r < rows_.size() && r < 26; ++r) {
      const Row& row = rows_[r];
      out += fmt::format("{}  {:<{}} {:>6} {:>9} {:>9.1f}\n", static_cast<char>('A' + r), row.what,
                         width, row.links, fmt::format("{} ns", node::ToNs(row.latency)), row.gbs);
    }
    return out;
  }

 private:
  struct Row {
    std::string what;
    std::size_t links;
    node::Time latency;
    double gbs;  // of the narrowest link
    bool operator==(const Row&) const = default;
  };

  const Topology& topology_;
  node::Fabric fabric_;
  std::vector<Row> rows_;
};

using Cells = std::vector<std::vector<std::string>>;

std::string Table(const Cells& cells) {
  std::vector<std::size_t> widths;
  for (const auto& row : cells) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string out;
  for (const auto& row : cells) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c)
      line += fmt::format("{:<{}}", row[c], c + 1 == row.size() ? 0 : widths[c] + 1);
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

std::vector<int> Of(const Topology& topology, Topology::Kind kind) {
  std::vector<int> found;
  for (std::size_t v = 0; v < topology.vertices.size(); ++v)
    if (topology.vertices[v].kind == kind) found.push_back(int(v));
  return found;
}

// Sets of devices from which the ways to all others are the same.
std::vector<std::vector<int>> Groups(const std::vector<int>& devices, Ways& ways) {
  std::vector<std::vector<std::string>> letters(devices.size());
  for (std::size_t i = 0; i < devices.size(); ++i)
    for (const int to : devices) letters[i].push_back(ways.Letter(devices[i], to));
  const auto alike = [&](std::size_t i, std::size_t k) {
    for (std::size_t to = 0; to < devices.size(); ++to)
      if (to != i && to != k && letters[i][to] != letters[k][to]) return false;
    return true;
  };
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto found =
        std::find_if(groups.begin(), groups.end(), [&](auto& group) { return alike(group[0], i); });
    if (found == groups.end()) {
      groups.push_back({i});
    } else {
      found->push_back(i);
    }
  }
  std::vector<std::vector<int>> result;
  for (const auto& group : groups) {
    result.emplace_back();
    for (const std::size_t i : group) result.back().push_back(devices[i]);
  }
  return result;
}

}  // namespace

std::string DrawRoutes(const node::Profile& profile) {
  const Topology& topology = profile.topology;
  const auto name = [&](int vertex) { return topology.vertices[std::size_t(vertex)].name; };
  Ways ways(profile);
  const std::vector<int> devices = Of(topology, Topology::Kind::kDevice);
  Cells cells(1, {""});
  std::string more;
  std::vector<int> columns = devices;
  for (const auto kind : {Topology::Kind::kCpu, Topology::Kind::kNic})
    for (const int vertex : Of(topology, kind)) columns.push_back(vertex);
  const auto width = [&] {
    std::size_t sum = name(devices[0]).size();
    for (const int column : columns) sum += name(column).size() + 1;
    return sum;
  };
  if (width() > kMostColumns) columns = devices;
  if (width() <= kMostColumns) {
    for (const int column : columns) cells[0].push_back(name(column));
    for (const int from : devices) {
      cells.push_back({name(from)});
      for (const int to : columns) cells.back().push_back(ways.Letter(from, to));
    }
  } else {
    const auto groups = Groups(devices, ways);
    const std::size_t shown = std::min(groups.size(), kMostGroups);
    for (std::size_t g = 0; g < shown; ++g) {
      std::vector<std::string> names;
      for (const int vertex : groups[g]) names.push_back(name(vertex));
      cells[0].push_back(fmt::format("({})", g + 1));
      cells.push_back({fmt::format("({}) {}", g + 1, RangeText(names))});
      for (std::size_t h = 0; h < shown; ++h) {
        // Within a group: from one to another of it.
        const int to = h != g ? groups[h][0] : groups[g].back();
        cells.back().push_back(ways.Letter(groups[g][0], to));
      }
    }
    if (shown < groups.size()) more = fmt::format("and {} more\n", groups.size() - shown);
  }
  return Table(cells) + more + "\n" + ways.Legend();
}

}  // namespace allranks::cli
