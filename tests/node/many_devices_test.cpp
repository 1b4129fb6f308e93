// Machines of many devices and of several hosts: who sees which device, whose handles mean
// something to whom, and that peer access has no limit at 64.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "node/faults.h"
#include "node/hardware/profile.h"
#include "node/machine.h"
#include "test_machine.h"

namespace allranks::node {
namespace {

std::unique_ptr<Machine> Make(int hosts, int devices_per_host, int devices = 0) {
  auto profile = LoadProfile(ALLRANKS_SOURCE_DIR "/profiles/h100x8.toml");
  EXPECT_TRUE(profile);
  profile->machine.hosts = hosts;
  profile->machine.devices_per_host = devices_per_host;
  profile->topology = OneSwitch(profile->topology.kinds, "nvlink", "pcie", hosts, devices_per_host);
  MachineOptions options;
  options.devices = devices;
  auto machine = Machine::Create(*profile, options);
  return machine ? std::move(*machine) : nullptr;
}

// Each device stores its number into the memory of the one before it.
constexpr const char* kStore = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 to, .param .u32 value)
{
  .reg .b64 %rd<2>;
  .reg .b32 %r<2>;
  ld.param.u64 %rd0, [to];
  ld.param.u32 %r0, [value];
  st.release.sys.global.u32 [%rd0], %r0;
  ret;
}
)";

TEST(ManyDevicesTest, SeventyTwoReachEachOther) {
  constexpr int kDevices = 72;
  const auto machine = Make(1, kDevices);
  ASSERT_NE(machine, nullptr);
  const ProcessId process = machine->AddProcess(0, 0);
  ASSERT_EQ(machine->DeviceCount(process), kDevices);
  Address memory[kDevices];
  for (int d = 0; d < kDevices; ++d)
    ASSERT_EQ(machine->Allocate(process, d, 4, &memory[d]), Status::kSuccess);
  const std::string text = kStore;
  for (int d = 0; d < kDevices; ++d) {
    const int peer = (d + kDevices - 1) % kDevices;
    ASSERT_EQ(machine->EnablePeer(process, d, peer), Status::kSuccess);
    ASSERT_EQ(machine->EnablePeer(process, d, peer), Status::kPeerAccessAlreadyEnabled);
    Status status;
    auto module = machine->LoadModule(process, d, std::as_bytes(std::span(text)), &status);
    ASSERT_TRUE(module);
    KernelInfo info;
    ASSERT_EQ(machine->GetKernel(*module, "k", &info), Status::kSuccess);
    LaunchRequest request;
    request.kernel = info.id;
    request.grid = request.block = request.cluster = {1, 1, 1};
    request.params.resize(info.param_bytes);
    std::memcpy(request.params.data() + info.param_offsets[0], &memory[peer], 8);
    std::memcpy(request.params.data() + info.param_offsets[1], &d, 4);
    OpId op = 0;
    ASSERT_EQ(
        machine->Launch(process, machine->DefaultStream(process, d), request, machine->now(), &op),
        Status::kSuccess);
    ASSERT_TRUE(WaitFor(*machine, op));
  }
  EXPECT_TRUE(machine->TakeFaults().empty());
  for (int d = 0; d < kDevices; ++d) {
    auto copy = std::make_shared<CopyRequest>();
    copy->src = memory[d];
    copy->size = 4;
    OpId op = 0;
    ASSERT_EQ(machine->Copy(process, machine->DefaultStream(process, d), copy, machine->now(), &op),
              Status::kSuccess);
    ASSERT_TRUE(WaitFor(*machine, op));
    int value = -1;
    std::memcpy(&value, copy->bytes.data(), 4);
    EXPECT_EQ(value, (d + 1) % kDevices);
  }
  EXPECT_EQ(machine->DisablePeer(process, 71, 70), Status::kSuccess);
  EXPECT_EQ(machine->DisablePeer(process, 71, 7), Status::kPeerAccessNotEnabled);
}

TEST(ManyDevicesTest, MoreThanASetCanNameAreRefused) {
  EXPECT_NE(Make(1, 128), nullptr);
  EXPECT_EQ(Make(1, 129), nullptr);
  EXPECT_EQ(Make(17, 8), nullptr);
  EXPECT_NE(Make(17, 8, 4), nullptr);
}

TEST(ManyDevicesTest, AProcessSeesItsHostOnly) {
  const auto machine = Make(2, 3);
  ASSERT_NE(machine, nullptr);
  const ProcessId here = machine->AddProcess(0, 0), beside = machine->AddProcess(1, 0),
                  there = machine->AddProcess(2, 1);
  EXPECT_EQ(machine->DeviceCount(here), 3);
  EXPECT_EQ(machine->DeviceCount(there), 3);
  EXPECT_FALSE(machine->CanAccessPeer(here, 0, 3));

  const std::uint64_t before = machine->FreeMemory(there, 1);
  Address memory = 0, opened = 0;
  ASSERT_EQ(machine->Allocate(here, 1, 1 << 20, &memory), Status::kSuccess);
  EXPECT_EQ(machine->FreeMemory(there, 1), before);
  EXPECT_EQ(machine->FreeMemory(beside, 1), before - (1 << 20));

  IpcHandle handle;
  ASSERT_EQ(machine->IpcExport(here, memory, &handle), Status::kSuccess);
  EXPECT_EQ(machine->IpcOpen(beside, 0, handle, &opened), Status::kSuccess);
  EXPECT_EQ(machine->IpcOpen(there, 0, handle, &opened), Status::kInvalidValue);

  EventId event = 0, other = 0;
  int device = 0;
  ASSERT_EQ(machine->CreateEvent(here, 1, false, &event), Status::kSuccess);
  ASSERT_EQ(machine->ExportEvent(here, event, &handle), Status::kSuccess);
  EXPECT_EQ(machine->OpenEvent(beside, handle, &device, &other), Status::kSuccess);
  EXPECT_EQ(machine->OpenEvent(there, handle, &device, &other), Status::kInvalidValue);
}

TEST(ManyDevicesTest, HostsSendEachOtherBytesByTheirNics) {
  const auto profile = LoadProfile(ALLRANKS_SOURCE_DIR "/profiles/h100x8x2-ib.toml");
  ASSERT_TRUE(profile);
  auto made = Machine::Create(*profile, {});
  ASSERT_TRUE(made);
  Machine& machine = **made;
  constexpr std::uint64_t kBytes = 64 << 20;
  // 50 GB/s, of which 97 % are left, in packets of 4,096 bytes with 30 more.
  const double span = kBytes / (50 * 0.97) * (4096 + 30) / 4096 * 1000;
  const auto first = static_cast<double>(machine.SendBetweenHosts(0, 1, kBytes, Us(5)) - Us(5));
  EXPECT_NEAR(first, span, span * 0.02);
  EXPECT_GT(first, span);
  const auto second = static_cast<double>(machine.SendBetweenHosts(0, 1, kBytes, Us(5)) - Us(5));
  EXPECT_NEAR(second, 2 * span, span * 0.02) << "they share the NIC";
  const auto back = static_cast<double>(machine.SendBetweenHosts(1, 0, kBytes, Us(5)) - Us(5));
  EXPECT_NEAR(back, span, span * 0.02) << "directions do not";
  std::vector<std::string> nics;
  for (const LinkRecord& link : machine.stats().links) {
    if (link.kind != "network") continue;
    nics.push_back(link.name);
    EXPECT_EQ(link.directions[0].bytes[static_cast<std::size_t>(Mover::kNic)] +
                  link.directions[1].bytes[static_cast<std::size_t>(Mover::kNic)],
              3 * kBytes);
  }
  EXPECT_EQ(nics, (std::vector<std::string>{"node0.nic0-leaf", "node1.nic0-leaf"}));
  EXPECT_EQ(Make(2, 2)->SendBetweenHosts(0, 1, kBytes, Us(5)), Us(5)) << "there is no network";
}

TEST(ManyDevicesTest, WhatHostsSendOnADeadLinkNeverArrives) {
  const auto profile = LoadProfile(ALLRANKS_SOURCE_DIR "/profiles/h100x8x2-ib.toml");
  ASSERT_TRUE(profile);
  MachineOptions options;
  options.faults.push_back(*ParseFault("nic:node0.nic0=dead"));
  auto made = Machine::Create(*profile, options);
  ASSERT_TRUE(made);
  EXPECT_EQ((*made)->SendBetweenHosts(0, 1, 1000, Us(5)), kTimeNever);
}

TEST(ManyDevicesTest, FewerDevicesKeepTheirLinks) {
  TopologyText text;
  text.names[static_cast<int>(Topology::Kind::kCpu)] = {"cpu"};
  text.names[static_cast<int>(Topology::Kind::kNvswitch)] = {"nvswitch"};
  text.wires = {{"gpu[0-3]", "nvswitch", "nvlink"}, {"gpu[0-3]", "cpu", "nvlink"}};
  text.meshes = {{"gpu[0-3]", "", "nvlink"}};
  Topology topology;
  topology.kinds.push_back({.name = "nvlink"});
  ASSERT_TRUE(BuildTopology(text, 2, 4, &topology));
  const Topology fewer = FewerDevices(topology, 4, 2);
  ASSERT_EQ(fewer.vertices.size(), 8u);
  for (int d = 0; d < 4; ++d) {
    EXPECT_EQ(fewer.vertices[static_cast<std::size_t>(d)].index, d);
    EXPECT_EQ(fewer.vertices[static_cast<std::size_t>(d)].host, d / 2);
  }
  EXPECT_EQ(fewer.links.size(), 10u);  // of each host four wires and one pair
  for (const Topology::Link& link : fewer.links)
    EXPECT_EQ(fewer.vertices[static_cast<std::size_t>(link.a)].host,
              fewer.vertices[static_cast<std::size_t>(link.b)].host);
}

TEST(ManyDevicesTest, FewerDevicesAreFewerOnEveryHost) {
  const auto machine = Make(2, 8, 2);
  ASSERT_NE(machine, nullptr);
  EXPECT_EQ(machine->DeviceCount(machine->AddProcess(0, 0)), 2);
  EXPECT_EQ(machine->DeviceCount(machine->AddProcess(1, 1)), 2);
}

}  // namespace
}  // namespace allranks::node
