// PCIe as programs find it: NCCL's topology files of shipped profiles.
#include "node/hardware/pcie.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace allranks::node {
namespace {

Profile Shipped(const std::string& name) {
  const auto path = std::filesystem::path(ALLRANKS_SOURCE_DIR) / "profiles" / (name + ".toml");
  return LoadProfile(path.string()).value();
}

TEST(PcieTest, TopologyOfPcieSwitches) {
  EXPECT_EQ(NcclTopology(Shipped("l40s-pcie8")), R"(<system version="1">
  <cpu numaid="0" affinity="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="0000:80:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
        <pci busid="0000:01:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"/>
        <pci busid="0000:02:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"/>
    </pci>
    <pci busid="0000:81:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
        <pci busid="0000:03:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"/>
        <pci busid="0000:04:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"/>
    </pci>
  </cpu>
  <cpu numaid="1" affinity="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="0000:82:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
        <pci busid="0000:05:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"/>
        <pci busid="0000:06:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"/>
    </pci>
    <pci busid="0000:83:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
        <pci busid="0000:07:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"/>
        <pci busid="0000:08:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"/>
    </pci>
  </cpu>
</system>
)");
}

// Devices at their CPU by NVLink-C2C have no switches above them.
TEST(PcieTest, TopologyOfSuperchips) {
  EXPECT_EQ(NcclTopology(Shipped("gb200nvl72")), R"(<system version="1">
  <cpu numaid="0" affinity="0" arch="arm64">
        <pci busid="0000:01:00.0" class="0x030200" link_speed="64.0 GT/s PCIe" link_width="16"/>
        <pci busid="0000:02:00.0" class="0x030200" link_speed="64.0 GT/s PCIe" link_width="16"/>
  </cpu>
  <cpu numaid="1" affinity="0" arch="arm64">
        <pci busid="0000:03:00.0" class="0x030200" link_speed="64.0 GT/s PCIe" link_width="16"/>
        <pci busid="0000:04:00.0" class="0x030200" link_speed="64.0 GT/s PCIe" link_width="16"/>
  </cpu>
</system>
)");
}

// Two levels of switches: one at the CPU, and the device's own.
TEST(PcieTest, SwitchesBehindSwitches) {
  Profile profile = Shipped("l40s-pcie8");
  TopologyText text;
  text.names[static_cast<int>(Topology::Kind::kCpu)] = {"cpu0"};
  text.names[static_cast<int>(Topology::Kind::kPcieSwitch)] = {"root", "leaf[0-1]"};
  text.wires = {
      {"gpu[0-7]", "leaf[0-1]", "pcie"}, {"leaf[0-1]", "root", "pcie"}, {"root", "cpu0", "pcie"}};
  profile.topology.vertices.clear();
  profile.topology.links.clear();
  ASSERT_TRUE(BuildTopology(text, 1, 8, &profile.topology));
  const std::string topology = NcclTopology(profile);
  const auto count = [&](const std::string& word) {
    int found = 0;
    for (std::size_t at = 0; (at = topology.find(word, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  EXPECT_EQ(count("0x060400"), 3);
  EXPECT_EQ(count("0x030200"), 8);
  EXPECT_EQ(count("</pci>"), 3);
  const PcieParents parents = PcieParentsOf(profile.topology, 7);
  EXPECT_EQ(profile.topology.vertices[static_cast<std::size_t>(parents.nearest)].name, "leaf1");
  EXPECT_EQ(profile.topology.vertices[static_cast<std::size_t>(parents.root)].name, "root");
}

}  // namespace
}  // namespace allranks::node
