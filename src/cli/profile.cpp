// `allranks profile list|show|diff`. The figures come from the profile as the node reads it; values
// and sources one by one, and differences, from the file's own text.
#include "cli/profile.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/drawing.h"
#include "cli/exec.h"
#include "cli/places.h"
#include "node/hardware/profile.h"

namespace allranks::cli {

namespace {

namespace fs = std::filesystem;

// One file of a profile; it may extend another.
struct File {
  std::vector<std::string> lines;
  toml::table table;
};

struct Loaded {
  node::Profile profile;
  std::vector<std::unique_ptr<File>> files;  // its own first, then the one that extends, ...
};

Result<Loaded> Load(const std::string& name) {
  Loaded loaded;
  const Result<std::string> path = FindProfile(name);
  if (!path) return Fail(path.error());
  Result<node::Profile> profile = node::LoadProfile(*path);
  if (!profile) return Fail(profile.error());
  loaded.profile = std::move(*profile);
  // From here on nothing can be wrong: the node has read them all.
  for (fs::path at = *path;;) {
    auto file = std::make_unique<File>();
    std::ifstream text(at);
    for (std::string line; std::getline(text, line);) file->lines.push_back(line);
    file->table = toml::parse_file(at.string());
    const std::string base = file->table["extends"].value_or(std::string());
    loaded.files.push_back(std::move(file));
    if (base.empty()) return loaded;
    at = at.parent_path() / (base + ".toml");
  }
}

int Complain(const Error& error) {
  fmt::print(stderr, "allranks: {}\n", error.message);
  return kExitUsage;
}

// The comment behind a value, or an empty string.
std::string SourceOf(const File& file, const toml::node& value) {
  const auto number = static_cast<std::size_t>(value.source().begin.line);
  if (number == 0 || number > file.lines.size()) return "";
  const std::string& line = file.lines[number - 1];
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') quoted = !quoted;
    if (line[i] == '#' && !quoted) return line.substr(std::min(line.size(), i + 2));
  }
  return "";
}

std::string Text(const toml::node& value) {
  if (const auto* number = value.as_floating_point()) return fmt::format("{}", number->get());
  std::ostringstream out;
  value.visit([&](const auto& it) { out << it; });
  std::string text = out.str();
  // Long arrays come in several lines.
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at)) {
    const std::size_t end = text.find_first_not_of(" \n", at);
    text.replace(at, (end == std::string::npos ? text.size() : end) - at, " ");
  }
  return text;
}

struct Entry {
  std::string key;
  const toml::node* value;
  const File* file;
};

// Every value of a file by its dotted key.
void Flatten(const File& file, const toml::table& table, const std::string& prefix,
             std::vector<Entry>* entries) {
  for (const auto& [key, value] : table) {
    const std::string name = prefix + std::string(key.str());
    if (const toml::table* inner = value.as_table()) {
      Flatten(file, *inner, name + ".", entries);
    } else if (name != "extends") {
      entries->push_back({name, &value, &file});
    }
  }
}

Entry* Find(std::vector<Entry>& entries, const std::string& key) {
  const auto it =
      std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.key == key; });
  return it == entries.end() ? nullptr : &*it;
}

// All values in the order of the files, each from the file that has the say.
std::vector<Entry> Flatten(const Loaded& loaded) {
  std::vector<Entry> all;
  for (auto file = loaded.files.rbegin(); file != loaded.files.rend(); ++file) {
    std::vector<Entry> entries;
    Flatten(**file, (*file)->table, "", &entries);
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
      return a.value->source().begin.line < b.value->source().begin.line;
    });
    for (const Entry& entry : entries) {
      if (Entry* known = Find(all, entry.key)) {
        *known = entry;
      } else {
        all.push_back(entry);
      }
    }
  }
  return all;
}

// 85899345920 → "80 GiB".
std::string Size(std::int64_t bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.4g} {}", value, units[unit]);
}

std::string Figures(const node::Profile& profile) {
  const auto& device = profile.device;
  const auto& sm = profile.sm;
  const auto& latency = profile.latency;
  const auto ns = [&](std::int64_t cycles) {
    return fmt::format("{} ns", node::ToNs(profile.CyclesToTime(cycles)));
  };
  std::string out;
  out += fmt::format("{}, compute capability {}.{}, {} SMs at {} MHz\n", device.name,
                     device.compute_major, device.compute_minor, device.sms, device.clock_mhz);
  out += fmt::format(
      "memory {} at {:.0f} GB/s, L2 {} at {:.0f} GB/s, {} copy engines of {:.0f} GB/s\n",
      Size(device.memory_bytes), profile.bandwidth.hbm_gbs * profile.bandwidth.hbm_efficiency,
      Size(device.l2_bytes), profile.bandwidth.l2_gbs, profile.copy_engine.count,
      profile.copy_engine.gbs);
  out += fmt::format("an SM: {} threads, {} registers, {} shared memory, {} instructions a cycle\n",
                     sm.max_threads, sm.registers, Size(sm.shared_bytes), sm.issue_per_cycle);
  out += fmt::format("latencies: L2 {}, memory {}, fence.gpu {}, fence.sys {}\n", ns(latency.l2),
                     ns(latency.hbm), ns(latency.fence_gpu), ns(latency.fence_sys));
  out += fmt::format("a launch: {} ns of the host, {} ns to the first instruction; ",
                     node::ToNs(profile.launch.host_call), node::ToNs(profile.launch.kernel));
  out += fmt::format("{} ns between kernels of a stream\n", node::ToNs(profile.launch.between));
  out += profile.multicast.supported ? "multicast objects: yes\n" : "multicast objects: no\n";
  return out;
}

// Rates of one direction: raw, and what is left of it for payload, by what is sent.
std::string Links(const node::Topology& topology) {
  std::string out =
      fmt::format("{:<10} {:>5} {:>9} {:>9}   {:>7} {:>7} {:>7} {:>7}\n", "link", "count",
                  "latency", "raw GB/s", "loads", "stores", "bulk", "engine");
  for (std::size_t k = 0; k < topology.kinds.size(); ++k) {
    const node::LinkKind& kind = topology.kinds[k];
    const auto count =
        std::count_if(topology.links.begin(), topology.links.end(),
                      [&](const auto& link) { return link.kind == static_cast<int>(k); });
    if (count == 0) continue;
    const auto payload = [&](std::int32_t packet, std::int32_t cost) {
      return kind.gbs * kind.efficiency * packet / (packet + cost);
    };
    out += fmt::format("{:<10} {:>5} {:>9} {:>9.1f}   {:>7.1f} {:>7.1f} {:>7.1f} {:>7.1f}\n",
                       kind.name, count, fmt::format("{} ns", node::ToNs(kind.latency)), kind.gbs,
                       payload(kind.packet_bytes, kind.answer_bytes),
                       payload(kind.store_packet_bytes, kind.write_bytes),
                       payload(kind.packet_bytes, kind.write_bytes),
                       payload(kind.engine_packet_bytes, kind.write_bytes));
  }
  return out;
}

// Arrays are told apart by their elements.
std::pair<std::string, std::string> Difference(const toml::node& a, const toml::node& b) {
  const toml::array* left = a.as_array();
  const toml::array* right = b.as_array();
  if (left == nullptr || right == nullptr || left->empty() || right->empty() ||
      !left->front().is_array() || !right->front().is_array())
    return {Text(a), Text(b)};
  const auto only = [](const toml::array& in, const toml::array& not_in) {
    std::set<std::string> known;
    for (const toml::node& value : not_in) known.insert(Text(value));
    std::string out;
    for (const toml::node& value : in)
      if (!known.contains(Text(value))) out += (out.empty() ? "" : "\n") + Text(value);
    return out;
  };
  return {only(*left, *right), only(*right, *left)};
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  if (lines.empty()) lines.emplace_back();
  return lines;
}

}  // namespace

int ProfileList() {
  if (const Status there = CheckProfileFolder(); !there) return Complain(there.error());
  std::map<std::string, std::string> found;  // name → path; the first folder wins
  std::error_code error;
  for (const std::string& folder : ProfileFolders())
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
      if (entry.path().extension() == ".toml") found.emplace(entry.path().stem(), entry.path());
  fmt::print("{:<14} {:>7} {:>5} {:>9}  {}\n", "name", "devices", "hosts", "validated", "what");
  int code = 0;
  for (const auto& [name, path] : found) {
    const Result<Loaded> loaded = Load(path);
    if (!loaded) {
      code = Complain(loaded.error());
      continue;
    }
    const node::Profile& profile = loaded->profile;
    fmt::print("{:<14} {:>7} {:>5} {:>9}  {}\n", name, profile.DeviceCount(), profile.machine.hosts,
               profile.validated, loaded->profile.what);
  }
  return code;
}

int ProfileShow(const std::string& name, bool constants) {
  const Result<Loaded> loaded = Load(name);
  if (!loaded) return Complain(loaded.error());
  if (constants) {
    const std::vector<Entry> entries = Flatten(*loaded);
    for (const Entry& entry : entries) {
      const std::string source = SourceOf(*entry.file, *entry.value);
      fmt::print("{} = {}{}{}\n", entry.key, Text(*entry.value), source.empty() ? "" : "  # ",
                 source);
    }
    return 0;
  }
  const node::Profile& profile = loaded->profile;
  fmt::print("{}: {}\n", profile.name, loaded->profile.what);
  fmt::print("{} devices on {} host{}, validated: {}\n\n", profile.DeviceCount(),
             profile.machine.hosts, profile.machine.hosts == 1 ? "" : "s", profile.validated);
  fmt::print("{}\n{}\n{}\n{}", Figures(profile), Links(profile.topology),
             DrawTopology(profile.topology), DrawRoutes(profile));
  return 0;
}

int ProfileDiff(const std::string& a, const std::string& b) {
  const Result<Loaded> left = Load(a), right = Load(b);
  if (!left) return Complain(left.error());
  if (!right) return Complain(right.error());
  std::vector<Entry> mine = Flatten(*left), theirs = Flatten(*right);
  std::vector<std::array<std::string, 3>> rows;
  for (const Entry& entry : mine) {
    const Entry* other = Find(theirs, entry.key);
    if (other == nullptr) {
      rows.push_back({entry.key, Text(*entry.value), "-"});
    } else if (Text(*entry.value) != Text(*other->value)) {
      const auto [own, their] = Difference(*entry.value, *other->value);
      rows.push_back({entry.key, own, their});
    }
  }
  for (const Entry& entry : theirs)
    if (Find(mine, entry.key) == nullptr) rows.push_back({entry.key, "-", Text(*entry.value)});
  std::size_t key_width = 3, value_width = a.size();
  for (const auto& row : rows) {
    key_width = std::max(key_width, row[0].size());
    for (const std::string& line : Lines(row[1])) value_width = std::max(value_width, line.size());
  }
  if (rows.empty()) return 0;
  fmt::print("{:<{}}  {:<{}}  {}\n", "key", key_width, a, value_width, b);
  for (const auto& row : rows) {
    const auto own = Lines(row[1]), their = Lines(row[2]);
    for (std::size_t i = 0; i < std::max(own.size(), their.size()); ++i) {
      std::string line =
          fmt::format("{:<{}}  {:<{}}  {}", i == 0 ? row[0] : "", key_width,
                      i < own.size() ? own[i] : "", value_width, i < their.size() ? their[i] : "");
      line.resize(line.find_last_not_of(' ') + 1);
      fmt::print("{}\n", line);
    }
  }
  return 0;
}

}  // namespace allranks::cli
