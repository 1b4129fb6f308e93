// The fabric: routes, what passes a port, incast, packets, multicast, faults, polls; and how names
// in a profile become vertices and links.
#include "node/hardware/fabric.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "node/faults.h"

namespace allranks::node {
namespace {

Profile Load(const std::string& name) {
  const auto path = std::filesystem::path(ALLRANKS_SOURCE_DIR) / "profiles" / (name + ".toml");
  Result<Profile> profile = LoadProfile(path.string());
  EXPECT_TRUE(profile) << profile.error().message;
  return profile ? *profile : Profile();
}

Fabric Make(const Profile& profile) {
  return Fabric(profile, profile.CyclesToTime(profile.time.bucket_cycles));
}

double Gbs(std::uint64_t bytes, Time time) {
  return static_cast<double>(bytes) * 1000.0 / static_cast<double>(time);
}

std::string Shape(const Fabric& fabric, const Route& route) {
  std::string text;
  for (const std::uint16_t p : route.ports) {
    const auto to = static_cast<std::size_t>(fabric.ports()[p].to);
    text += "/" + fabric.topology().vertices[to].name;
  }
  return text;
}

TEST(TopologyTest, RangesAndGroups) {
  EXPECT_EQ(*ExpandRange("nic[2-4]"), (std::vector<std::string>{"nic2", "nic3", "nic4"}));
  EXPECT_EQ(*ExpandRange("leaf"), (std::vector<std::string>{"leaf"}));
  for (const char* bad :
       {"", "[0-1]", "a[1-0]", "a[0-]", "a[0-1", "a[0-1]b", "a b", "a[-1-2]", "a[0-99999]"}) {
    EXPECT_FALSE(ExpandRange(bad)) << bad;
  }
}

TEST(TopologyTest, MistakesAreNamed) {
  const auto message = [](TopologyText text) {
    Topology topology;
    topology.kinds.resize(1);
    topology.kinds[0].name = "wire";
    const auto built = BuildTopology(text, 1, 2, &topology);
    return built ? std::string("accepted") : built.error().message;
  };
  TopologyText good;
  good.names[1] = {"cpu0"};
  good.wires = {{"gpu[0-1]", "cpu0", "wire"}};
  EXPECT_EQ(message(good), "accepted");
  TopologyText text = good;
  text.wires.push_back({"gpu7", "cpu0", "wire"});
  EXPECT_NE(message(text).find("\"gpu7\" is not a vertex"), std::string::npos);
  text = good;
  text.wires.push_back({"gpu0", "cpu0", "rope"});
  EXPECT_NE(message(text).find("\"rope\" is not a kind of link"), std::string::npos);
  text = good;
  text.wires = {{"gpu0", "cpu0", "wire"}};
  EXPECT_EQ(message(text), "gpu0 has no route to gpu1");
  text = good;
  text.names[1] = {"cpu0", "cpu0"};
  EXPECT_EQ(message(text), "\"cpu0\" is declared twice");
  text = good;
  text.machine_wide = {"leaf"};
  EXPECT_EQ(message(text), "machine_wide names \"leaf\", which is not declared");
}

TEST(FabricTest, RoutesFollowTheWiring) {
  const Profile h100 = Load("h100x8"), mesh = Load("h100x4-mesh"), pcie = Load("l40s-pcie8");
  const Profile rack = Load("gb200nvl72"), pair = Load("h100x8x2-ib");
  Fabric a = Make(h100), b = Make(mesh), c = Make(pcie), d = Make(rack), e = Make(pair);
  EXPECT_EQ(Shape(a, a.Way(0, 7)), "/nvswitch/gpu7");
  EXPECT_EQ(Shape(a, a.Way(5, a.HostOf(5))), "/plx2/cpu1");
  EXPECT_EQ(Shape(b, b.Way(0, 3)), "/gpu3");
  EXPECT_EQ(Shape(c, c.Way(0, 1)), "/plx0/gpu1");
  EXPECT_EQ(Shape(c, c.Way(0, 7)), "/plx0/cpu0/cpu1/plx3/gpu7");
  EXPECT_EQ(Shape(d, d.Way(0, 71)), "/nvswitch/node17.gpu3");
  EXPECT_EQ(Shape(e, e.Way(0, 8)), "/node0.plx0/node0.nic0/leaf/node1.nic0/node1.plx0/node1.gpu0");
}

TEST(FabricTest, ALongTransferGetsThePayloadRateOfItsPackets) {
  const Profile profile = Load("b300x8");
  const LinkKind& nvlink = profile.topology.kinds[0];
  ASSERT_EQ(nvlink.name, "nvlink");
  const std::uint64_t bytes = 64 << 20;
  // As the profile says: stores in packets of 64 bytes, bulk copies 128, copy engines 256.
  const std::pair<Mover, double> movers[] = {
      {Mover::kSm, 64}, {Mover::kTma, 128}, {Mover::kCopyEngine, 256}};
  for (const auto& [mover, payload] : movers) {
    Fabric fabric = Make(profile);
    const Route& way = fabric.Way(0, 1);
    const std::uint32_t packets = fabric.Packets(way, mover, bytes);
    const Time there = fabric.Send(way, Packet::kWrite, bytes, packets, 0, mover);
    const double expected =
        nvlink.gbs * nvlink.efficiency * payload / (payload + nvlink.write_bytes);
    EXPECT_NEAR(Gbs(bytes, there), expected, expected * 0.01) << NameOf(mover);
    EXPECT_GE(there, way.latency);
  }
}

TEST(FabricTest, IncastSharesThePortAndSendersToDifferentOnesDoNot) {
  const Profile profile = Load("h100x8");
  const std::uint64_t bytes = 16 << 20;
  const auto last = [&](bool incast) {
    Fabric fabric = Make(profile);
    Time end = 0;
    for (std::uint64_t piece = 0; piece < bytes; piece += 1 << 16) {
      for (int from = 1; from < 5; ++from) {
        const Route& way = fabric.Way(from, incast ? 0 : (from + 1) % 5 + (from == 4 ? 5 : 0));
        end = std::max(end, fabric.Send(way, Packet::kWrite, 1 << 16, 512, 0, Mover::kSm));
      }
    }
    return end;
  };
  const double ratio = static_cast<double>(last(true)) / static_cast<double>(last(false));
  EXPECT_NEAR(ratio, 4, 0.1);
}

TEST(FabricTest, AMulticastStoreLeavesOnceAndArrivesEverywhere) {
  const Profile profile = Load("h100x8");
  Fabric fabric = Make(profile);
  const std::vector<int> members = {0, 1, 2, 3};
  EXPECT_TRUE(fabric.SharesSwitch(members));
  fabric.Replicate(0, members, 1 << 20, 8192, 0);
  for (const Port& port : fabric.ports()) {
    const std::uint64_t bytes = port.bytes[static_cast<std::size_t>(Mover::kMulticast)];
    const std::string& from = fabric.topology().vertices[static_cast<std::size_t>(port.from)].name;
    const std::string& to = fabric.topology().vertices[static_cast<std::size_t>(port.to)].name;
    if (from == "gpu0" && to == "nvswitch") {
      EXPECT_EQ(bytes, 1u << 20);
    }
    if (from == "gpu1" && to == "nvswitch") {
      EXPECT_EQ(bytes, 0u);
    }
    if (from == "nvswitch") {
      EXPECT_EQ(bytes, port.to < 4 ? 1u << 20 : 0u) << to;
    }
  }
}

TEST(FabricTest, AReductionLeavesEveryMemberAndArrivesOnce) {
  const Profile profile = Load("h100x8");
  Fabric fabric = Make(profile);
  const std::vector<int> members = {0, 1, 2, 3};
  const Time there = fabric.Reduce(2, members, 128, 1, 0, Ns(100));
  EXPECT_GE(there, 4 * profile.topology.kinds[0].latency + Ns(100));
  for (const Port& port : fabric.ports()) {
    const std::uint64_t bytes = port.bytes[static_cast<std::size_t>(Mover::kMulticast)];
    if (port.from < 4 && bytes != 0) {
      EXPECT_EQ(bytes, 128u);
    }
    if (port.to < 4 && port.to != 2) {
      EXPECT_EQ(bytes, 0u);
    }
    if (port.to == 2 && bytes != 0) {
      EXPECT_EQ(bytes, 128u);
    }
  }
  const Profile mesh = Load("h100x4-mesh");
  EXPECT_FALSE(Make(mesh).SharesSwitch(members));
}

TEST(FabricTest, FaultsSlowDownOrKillBothDirections) {
  const Profile profile = Load("h100x8");
  Fabric fabric = Make(profile);
  const std::vector<int> links = LinksNamed(fabric.topology(), "nvswitch-gpu0");
  ASSERT_EQ(links.size(), 1u);
  EXPECT_EQ(LinksNamed(fabric.topology(), "gpu0").size(), 2u);
  EXPECT_TRUE(LinksNamed(fabric.topology(), "gpu9").empty());
  const std::uint64_t bytes = 16 << 20;
  const auto rate = [&] {
    static Time start = 0;
    start += Ms(10);
    return Gbs(bytes, fabric.Send(fabric.Way(1, 0), Packet::kWrite, bytes, bytes / 128, start,
                                  Mover::kTma) -
                          start);
  };
  const double before = rate();
  fabric.SetRate(links[0], 0.25);
  EXPECT_NEAR(rate() / before, 0.25, 0.01);
  fabric.SetRate(links[0], 0);
  EXPECT_FALSE(fabric.Alive(fabric.Way(1, 0)));
  EXPECT_FALSE(fabric.Alive(fabric.Way(0, 1)));
  EXPECT_TRUE(fabric.Alive(fabric.Way(1, 2)));
}

TEST(FabricTest, PollsTakeTheirShareAndGiveItBack) {
  const Profile profile = Load("h100x8");
  Fabric fabric = Make(profile);
  const Route& way = fabric.Way(1, 0);
  const std::uint64_t bytes = 16 << 20;
  const auto span = [&](Time start) {
    return fabric.Send(way, Packet::kWrite, bytes, bytes / 128, start, Mover::kTma) - start;
  };
  const Time alone = span(Ms(1));
  fabric.Background(way, 225);
  EXPECT_NEAR(static_cast<double>(span(Ms(2))) / static_cast<double>(alone), 2, 0.05);
  fabric.Background(way, -225);
  EXPECT_NEAR(static_cast<double>(span(Ms(3))) / static_cast<double>(alone), 1, 0.01);
}

TEST(FabricTest, FewerDevicesKeepTheirLinks) {
  Profile profile = Load("h100x8x2-ib");
  profile.topology = FewerDevices(profile.topology, 8, 3);
  profile.machine.devices_per_host = 3;
  Fabric fabric = Make(profile);
  EXPECT_EQ(fabric.topology().vertices[5].name, "node1.gpu2");
  EXPECT_EQ(Shape(fabric, fabric.Way(3, 5)), "/node1.nvswitch/node1.gpu2");
  profile.topology = OneSwitch(profile.topology.kinds, "nvlink", "pcie", 1, 72);
  profile.machine = {1, 72};
  Fabric large = Make(profile);
  EXPECT_EQ(Shape(large, large.Way(0, 71)), "/nvswitch/gpu71");
}

TEST(FaultTest, TextOfTheCommandLine) {
  const auto fault = ParseFault("link:gpu0-nvswitch=0.25@10us");
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->name, "gpu0-nvswitch");
  EXPECT_EQ(fault->rate, 0.25);
  EXPECT_EQ(fault->at, Us(10));
  EXPECT_EQ(ParseFault("rank:2=dead@1.5ms")->rank, 2);
  EXPECT_EQ(ParseFault("nic:nic0=dead")->at, 0);
  for (const char* bad : {"", "link", "link:=dead", "link:a=", "link:a=2", "link:a=0", "link:a=nan",
                          "link:a=dead@5", "link:a=dead@-5us", "link:a=dead@1e30s", "rank:x=dead",
                          "rank:1=0.5", "rank:-1=dead", "door:a=dead"}) {
    EXPECT_FALSE(ParseFault(bad)) << bad;
  }
}

}  // namespace
}  // namespace allranks::node
