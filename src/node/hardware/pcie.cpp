#include "node/hardware/pcie.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>
#include <vector>

namespace allranks::node {

namespace {

const Topology::Vertex& VertexOf(const Topology& topology, int vertex) {
  return topology.vertices[static_cast<std::size_t>(vertex)];
}

// The vertex at the other end of a link, or -1: the link is not one of `vertex`.
int OtherEnd(const Topology::Link& link, int vertex) {
  return link.a == vertex ? link.b : link.b == vertex ? link.a : -1;
}

constexpr int kSwitchBuses = 0x80;  // switches have buses from here on, behind those of devices

// A port of 16 lanes of the generation that has such a rate, in NCCL's words. One without PCIe (a
// device at its CPU by NVLink-C2C) counts as the fastest.
std::string SpeedOf(const Topology& topology, int vertex) {
  double gbs = 0;
  for (const Topology::Link& link : topology.links) {
    const LinkKind& kind = topology.kinds[static_cast<std::size_t>(link.kind)];
    if (OtherEnd(link, vertex) >= 0 && kind.name.starts_with("pcie") && kind.gbs > gbs)
      gbs = kind.gbs;
  }
  const char* rate = gbs == 0 || gbs > 64 ? "64.0" : gbs > 32 ? "32.0" : gbs > 16 ? "16.0" : "8.0";
  return fmt::format("link_speed=\"{} GT/s PCIe\" link_width=\"16\"", rate);
}

class Writer {
 public:
  explicit Writer(const Profile& profile) : profile_(profile), topology_(profile.topology) {}

  std::string Write() {
    std::string text = "<system version=\"1\">\n";
    int number = 0;
    for (int v = 0; v < Count(); ++v) {
      if (Is(v, Topology::Kind::kCpu)) text += Cpu(v, number++);
    }
    return text + "</system>\n";
  }

 private:
  int Count() const { return static_cast<int>(topology_.vertices.size()); }
  bool Is(int vertex, Topology::Kind kind) const {
    return VertexOf(topology_, vertex).host == 0 && VertexOf(topology_, vertex).kind == kind;
  }

  std::string Cpu(int cpu, int number) {
    bool grace = false;
    std::string inside;
    std::vector<std::pair<PcieParents, int>> devices;
    for (int v = 0; v < Count(); ++v) {
      if (!Is(v, Topology::Kind::kDevice)) continue;
      const PcieParents parents = PcieParentsOf(topology_, v);
      if (parents.cpu == cpu) devices.emplace_back(parents, v);
    }
    for (const Topology::Link& link : topology_.links) {
      const LinkKind& kind = topology_.kinds[static_cast<std::size_t>(link.kind)];
      grace = grace || (OtherEnd(link, cpu) >= 0 && kind.name == "c2c");
    }
    for (const int root : RootsOf(devices)) inside += Below(devices, root);
    // An empty affinity binds no thread: the cores are those of another machine.
    return fmt::format("  <cpu numaid=\"{}\" affinity=\"0\" {}>\n{}  </cpu>\n", number,
                       grace ? "arch=\"arm64\""
                             : "arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" "
                               "modelid=\"143\"",
                       inside);
  }

  static std::vector<int> RootsOf(const std::vector<std::pair<PcieParents, int>>& devices) {
    std::vector<int> roots;
    for (const auto& [parents, device] : devices) {
      if (roots.empty() || roots.back() != parents.root) roots.push_back(parents.root);
    }
    return roots;
  }

  std::string Below(const std::vector<std::pair<PcieParents, int>>& devices, int root) {
    std::string inside;
    int open = root;
    for (const auto& [parents, device] : devices) {
      if (parents.root != root) continue;
      if (parents.nearest != open) {
        if (open != root) inside += "      </pci>\n";
        if (parents.nearest != root) inside += "      " + Switch(parents.nearest);
        open = parents.nearest;
      }
      inside += fmt::format("        <pci busid=\"0000:{:02x}:00.0\" class=\"0x030200\" {}/>\n",
                            PciBusOf(profile_, device), SpeedOf(topology_, device));
    }
    if (open != root) inside += "      </pci>\n";
    return root < 0 ? inside : "    " + Switch(root) + inside + "    </pci>\n";
  }

  std::string Switch(int vertex) {
    return fmt::format("<pci busid=\"0000:{:02x}:00.0\" class=\"0x060400\" {}>\n",
                       kSwitchBuses + switches_++, SpeedOf(topology_, vertex));
  }

  const Profile& profile_;
  const Topology& topology_;
  int switches_ = 0;
};

}  // namespace

PcieParents PcieParentsOf(const Topology& topology, int vertex) {
  // The shortest way to a CPU through nothing but switches. Each entry is where it leads so far.
  std::vector<std::pair<int, PcieParents>> open = {{vertex, {}}};
  std::vector<bool> seen(topology.vertices.size());
  for (std::size_t next = 0; next < open.size(); ++next) {
    const auto [at, parents] = open[next];
    for (const Topology::Link& link : topology.links) {
      const int other = OtherEnd(link, at);
      if (other < 0 || seen[static_cast<std::size_t>(other)]) continue;
      seen[static_cast<std::size_t>(other)] = true;
      const Topology::Kind kind = VertexOf(topology, other).kind;
      PcieParents reached = parents;
      if (kind == Topology::Kind::kCpu) {
        reached.cpu = other;
        return reached;
      }
      if (kind != Topology::Kind::kPcieSwitch) continue;
      if (reached.nearest < 0) reached.nearest = other;
      reached.root = other;
      open.emplace_back(other, reached);
    }
  }
  return {};
}

int PciBusOf(const Profile& profile, int device) {
  return device % static_cast<int>(profile.machine.devices_per_host) + 1;
}

std::string NcclTopology(const Profile& profile) { return Writer(profile).Write(); }

}  // namespace allranks::node
