// Both tables are made from the answers that the node gives to programs (server/device_info.h,
// wire/device_facts.h), so they cannot differ from what NVML says.
#include "cli/smi.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/drawing.h"
#include "cli/places.h"
#include "cli/usage.h"
#include "node/hardware/profile.h"
#include "server/device_info.h"
#include "wire/device_facts.h"

namespace allranks::cli {
namespace {

using nlohmann::ordered_json;
using node::Topology;

constexpr char kHelp[] =
    R"(Prints the devices of a profile in the form of nvidia-smi. `allranks smi topo` prints the matrix of
links between devices and NICs in the form of `nvidia-smi topo -m`. Numbers, names, bus ids, memory
and links are those that programs get from NVML and CUDA under `allranks exec`.

The machine that is shown is idle: no memory is used and there are no processes. A running
`allranks exec` cannot be observed from outside; within it NVML reports the memory in use, the calling
process and the bytes that NVLinks have carried. Simulated devices have no temperature, power or fans,
and their utilisation is not sampled: there are no columns for these, and NVML returns
NVML_ERROR_NOT_SUPPORTED. A profile has CPUs but no cores: `topo` shows the CPU of each device instead
of an affinity, and two ports of one CPU are NODE, never PHB.

Hosts of a profile that have equal tables are printed once.

The JSON has the members
  version, profile, driver_version, cuda_version
  hosts[]:  name, gpus[]: index, name, uuid, bus_id, memory_total, memory_used (bytes),
            compute_capability, sms, clock_mhz, nvlinks
With topo:
  version, profile
  hosts[]:  name, vertices[]: name (GPU0, NIC0, ...), profile_name, cpu
            links[][]: the matrix, in the order of the vertices

Exit codes: 0; 2 wrong usage, or a profile that is missing or invalid.)";

constexpr char kLegend[] =
    R"(
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the interconnect between CPUs
  NODE = Connection traversing PCIe as well as a CPU
  PXB  = Connection traversing several PCIe switches (without a CPU)
  PIX  = Connection traversing one PCIe switch
  NV#  = Connection traversing # NVLinks
)";

// A row or a column of the matrix.
struct Vertex {
  std::string name;          // "GPU0", "NIC0"
  std::string profile_name;  // "gpu0", "nic0"
  std::string cpu;
  wire::PciePlace place;
};

struct Host {
  std::string name;
  std::vector<wire::DeviceInfo> devices;
  std::vector<Vertex> vertices;  // devices first
};

// "node1.gpu3" → "gpu3".
std::string OnItsHost(const std::string& name) { return name.substr(name.find('.') + 1); }

Vertex MakeVertex(const Topology& topology, std::size_t vertex, const char* kind,
                  std::size_t number) {
  Vertex made;
  made.name = fmt::format("{}{}", kind, number);
  made.profile_name = OnItsHost(topology.vertices[vertex].name);
  made.place = server::PlaceOf(topology, static_cast<int>(vertex));
  if (made.place.cpu >= 0)
    made.cpu = OnItsHost(topology.vertices[static_cast<std::size_t>(made.place.cpu)].name);
  return made;
}

std::vector<Host> HostsOf(const node::Profile& profile) {
  const Topology& topology = profile.topology;
  std::vector<Host> hosts(static_cast<std::size_t>(profile.machine.hosts));
  for (std::size_t h = 0; h < hosts.size(); ++h) hosts[h].name = fmt::format("node{}", h);
  for (std::size_t v = 0; v < topology.vertices.size(); ++v) {
    const Topology::Vertex& vertex = topology.vertices[v];
    if (vertex.host < 0) continue;
    Host& host = hosts[static_cast<std::size_t>(vertex.host)];
    if (vertex.kind == Topology::Kind::kDevice) {
      host.vertices.push_back(MakeVertex(topology, v, "GPU", host.devices.size()));
      host.devices.push_back(server::DescribeDevice(profile, vertex.index));
    } else if (vertex.kind == Topology::Kind::kNic) {
      host.vertices.push_back(
          MakeVertex(topology, v, "NIC", host.vertices.size() - host.devices.size()));
    }
  }
  return hosts;
}

std::string LinkBetween(const Host& host, std::size_t a, std::size_t b) {
  if (a == b) return "X";
  if (a < host.devices.size() && b < host.devices.size()) {
    const std::uint32_t links = wire::NvLinksBetween(host.devices, a, b);
    if (links > 0) return fmt::format("NV{}", links);
  }
  switch (wire::AncestorOf(host.vertices[a].place, host.vertices[b].place)) {
    case wire::Ancestor::kSwitch:
      return "PIX";
    case wire::Ancestor::kSwitches:
      return "PXB";
    case wire::Ancestor::kNode:
      return "NODE";
    case wire::Ancestor::kSystem:
      break;
  }
  return "SYS";
}

std::string Mebibytes(std::uint64_t bytes) { return fmt::format("{}MiB", bytes >> 20); }

std::string CudaVersion() {
  return fmt::format("{}.{}", wire::kCudaVersion / 1000, wire::kCudaVersion % 1000 / 10);
}

std::string Compute(const wire::DeviceInfo& device) {
  return fmt::format("{}.{}", device.compute_major, device.compute_minor);
}

// Rows of cells; the first is the head. Names are aligned left, figures right.
std::string DevicesText(const Host& host) {
  std::vector<std::vector<std::string>> rows = {
      {"GPU", "Name", "Bus-Id", "Memory-Usage", "SMs", "Clock", "Compute", "NVLinks"}};
  for (std::size_t i = 0; i < host.devices.size(); ++i) {
    const wire::DeviceInfo& device = host.devices[i];
    rows.push_back({fmt::format("{}", i), device.name,
                    wire::BusIdText(device.pci_domain, device.pci_bus),
                    "0MiB / " + Mebibytes(device.memory_bytes), fmt::format("{}", device.sms),
                    fmt::format("{}MHz", device.clock_khz / 1000), Compute(device),
                    fmt::format("{}", wire::NvLinkCount(device))});
  }
  std::vector<std::size_t> widths(rows[0].size());
  std::size_t inner = widths.size() - 1;  // between the outer bars, with those between the columns
  for (std::size_t c = 0; c < widths.size(); ++c) {
    for (const auto& row : rows) widths[c] = std::max(widths[c], row[c].size());
    inner += widths[c] + 2;
  }
  const auto rule = [&](char line, char end) {
    std::string text(1, end);
    for (std::size_t c = 0; c < widths.size(); ++c)
      text += std::string(widths[c] + 2, line) + (c + 1 < widths.size() ? '+' : end);
    return text + "\n";
  };
  const std::string bar = "+" + std::string(inner, '-') + "+\n";
  const std::string versions =
      fmt::format("Driver Version: {}   CUDA Version: {}", wire::kDriverVersion, CudaVersion());
  std::string out =
      bar + fmt::format("| {:<{}}{} |\n", "ALLRANKS-SMI", inner - 2 - versions.size(), versions);
  out += rule('-', '|');
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t c = 0; c < widths.size(); ++c)
      out += c == 1 ? fmt::format("| {:<{}} ", rows[r][c], widths[c])
                    : fmt::format("| {:>{}} ", rows[r][c], widths[c]);
    out += "|\n";
    if (r == 0) out += rule('=', '|');
  }
  out += rule('-', '+');
  return out;
}

std::string MatrixText(const Host& host) {
  std::string out = "      ";
  for (const Vertex& vertex : host.vertices) out += fmt::format(" {:<5}", vertex.name);
  out += " CPU\n";
  for (std::size_t a = 0; a < host.vertices.size(); ++a) {
    out += fmt::format("{:<6}", host.vertices[a].name);
    for (std::size_t b = 0; b < host.vertices.size(); ++b)
      out += fmt::format(" {:<5}", LinkBetween(host, a, b));
    out += fmt::format(" {}\n", host.vertices[a].cpu);
  }
  return out;
}

// Hosts with the same text once.
std::string PerHost(const std::vector<Host>& hosts, std::string (*text_of)(const Host&)) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;  // text, hosts
  for (const Host& host : hosts) {
    const std::string text = text_of(host);
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& known) { return known.first == text; });
    if (group == groups.end()) group = groups.insert(group, {text, {}});
    group->second.push_back(host.name);
  }
  std::string out;
  for (const auto& [text, names] : groups) {
    if (hosts.size() > 1)
      out += fmt::format("{}{}:\n", RangeText(names), names.size() > 1 ? ", each" : "");
    out += text;
  }
  return out;
}

ordered_json DevicesJson(const Host& host) {
  ordered_json gpus = ordered_json::array();
  for (std::size_t i = 0; i < host.devices.size(); ++i) {
    const wire::DeviceInfo& device = host.devices[i];
    gpus.push_back({{"index", i},
                    {"name", device.name},
                    {"uuid", wire::UuidText(device)},
                    {"bus_id", wire::BusIdText(device.pci_domain, device.pci_bus)},
                    {"memory_total", device.memory_bytes},
                    {"memory_used", 0},
                    {"compute_capability", Compute(device)},
                    {"sms", device.sms},
                    {"clock_mhz", device.clock_khz / 1000},
                    {"nvlinks", wire::NvLinkCount(device)}});
  }
  return {{"name", host.name}, {"gpus", std::move(gpus)}};
}

ordered_json MatrixJson(const Host& host) {
  ordered_json vertices = ordered_json::array(), links = ordered_json::array();
  for (std::size_t a = 0; a < host.vertices.size(); ++a) {
    const Vertex& vertex = host.vertices[a];
    vertices.push_back(
        {{"name", vertex.name}, {"profile_name", vertex.profile_name}, {"cpu", vertex.cpu}});
    ordered_json row = ordered_json::array();
    for (std::size_t b = 0; b < host.vertices.size(); ++b) row.push_back(LinkBetween(host, a, b));
    links.push_back(std::move(row));
  }
  return {{"name", host.name}, {"vertices", std::move(vertices)}, {"links", std::move(links)}};
}

class SmiCommand : public Command {
 public:
  explicit SmiCommand(CLI::App* app);
  int Run() const override;

 private:
  void AddOptions(CLI::App* to);

  CLI::App* topo_ = nullptr;
  std::string profile_ = "h100x8";
  bool json_ = false, matrix_ = false;
};

SmiCommand::SmiCommand(CLI::App* app) {
  command_ = app->add_subcommand("smi", "Print the devices of a profile, and their links");
  command_->footer(kHelp);
  command_->formatter(std::make_shared<UsageFormatter>("smi [topo] [--profile PROFILE] [--json]"));
  AddOptions(command_);
  topo_ = command_->add_subcommand("topo", "Print the matrix of links instead");
  topo_->formatter(std::make_shared<UsageFormatter>("smi topo [-m] [--profile PROFILE] [--json]"));
  topo_->add_flag("-m", matrix_, "The matrix, as nvidia-smi names it; there is nothing else");
  AddOptions(topo_);
}

void SmiCommand::AddOptions(CLI::App* to) {
  to->add_option("--profile", profile_, "The simulated hardware: the name of a profile, or a path")
      ->option_text("PROFILE [h100x8]");
  to->add_flag("--json", json_, "Print JSON");
}

int SmiCommand::Run() const {
  const Result<std::string> path = FindProfile(profile_);
  if (!path) return Usage(path.error().message);
  const Result<node::Profile> profile = node::LoadProfile(*path);
  if (!profile) return Usage(profile.error().message);
  const std::vector<Host> hosts = HostsOf(*profile);
  const bool topo = topo_->parsed();
  if (json_) {
    ordered_json all = {{"version", 1}, {"profile", profile->name}};
    if (!topo) {
      all["driver_version"] = wire::kDriverVersion;
      all["cuda_version"] = CudaVersion();
    }
    for (const Host& host : hosts)
      all["hosts"].push_back(topo ? MatrixJson(host) : DevicesJson(host));
    fmt::print("{}\n", all.dump(2));
  } else if (topo) {
    fmt::print("{}{}", PerHost(hosts, MatrixText), kLegend);
  } else {
    fmt::print("{}", PerHost(hosts, DevicesText));
  }
  std::fflush(stdout);
  return 0;
}

}  // namespace

std::unique_ptr<Command> MakeSmiCommand(CLI::App* app) { return std::make_unique<SmiCommand>(app); }

}  // namespace allranks::cli
