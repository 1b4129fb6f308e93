// The seeds of fuzz/wire.cpp: valid conversations, recorded by holding them. The files under
// fuzz/corpus/wire must be what this test records, so that they stay valid when messages change.
// ALLRANKS_WRITE_SEEDS=1 in the environment writes them anew.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "tests/server/wire_recorder.h"

namespace allranks::server {
namespace {

void KernelAndCopies(Recorder& r) {
  r.Call(0, wire::Hello{});
  r.Call(0, wire::Init{});
  wire::Alloc alloc;
  alloc.size = 256;
  const std::uint64_t memory = r.Call(0, alloc).address;
  wire::Launch launch;
  launch.kernel = r.Kernel(0);
  launch.params.resize(16);
  std::memcpy(launch.params.data(), &memory, 8);
  r.Call(0, launch);
  EXPECT_EQ(r.header.status, 0);
  r.Call(0, wire::StreamSync{});
  wire::CopyIn in;
  in.dst = memory;
  in.size = 8;
  in.rows.height = 2;
  in.rows.dst_pitch = 16;
  in.bytes.resize(16);
  r.Call(0, in);
  EXPECT_EQ(r.header.status, 0);
  wire::Memset memset;
  memset.dst = memory;
  memset.count = 8;
  memset.width = 4;
  memset.wait = true;
  r.Call(0, memset);
  wire::CopyOut out;
  out.src = memory;
  out.size = 4;
  out.rows.height = 2;
  out.rows.src_pitch = 8;
  out.rows.depth = 2;
  out.rows.src_slice = 32;
  EXPECT_EQ(r.Call(0, out).bytes.size(), 16u);
  EXPECT_EQ(r.header.status, 0);
  r.Call(0, wire::Describe{memory});
  r.Call(0, wire::MemInfo{});
  r.Call(0, wire::LinkTraffic{1});
  r.Call(0, wire::Occupancy{launch.kernel, 64, 0});
  r.Call(0, wire::SetMaxDynamicShared{launch.kernel, 1024});
  r.Call(0, wire::SetLimit{0, 2, 1 << 20});
  r.Call(0, wire::StickyError{});
  r.Call(0, wire::Free{memory});
  r.Call(0, wire::DropImage{1});
  r.Call(0, wire::ResetDevice{});
  r.Close(0);
}

// Memory by handles and multicast objects; the end is a wait for a team that never comes.
void MemoryByHandles(Recorder& r) {
  constexpr std::uint64_t kGranule = node::VirtualMemory::kGranularity;
  const auto ok = [&] { EXPECT_EQ(r.header.status, 0); };
  r.Call(0, wire::Hello{});
  r.Call(0, wire::Init{});
  const std::uint64_t memory = r.Call(0, wire::CreateMemory{0, kGranule, 9}).handle;
  ok();
  const std::uint64_t other = r.Call(0, wire::CreateMemory{1, kGranule, 9}).handle;
  r.Call(0, wire::MemoryInfo{memory});
  const std::uint64_t range = r.Call(0, wire::ReserveAddress{3 * kGranule, 0, 0}).address;
  ok();
  r.Call(0, wire::MapMemory{range, kGranule, 0, memory});
  ok();
  r.Call(0, wire::MapMemory{range + kGranule, kGranule, 0, other});
  ok();
  r.Call(0, wire::SetMemoryAccess{range, 2 * kGranule, 0, 3});
  ok();
  r.Call(0, wire::GetMemoryAccess{range, 0});
  wire::Memset memset;
  memset.dst = range + kGranule - 8;
  memset.count = 16;
  memset.wait = true;
  r.Call(0, memset);
  ok();
  r.Call(0, wire::RetainMemory{range});
  r.Call(0, wire::Describe{range + 2 * kGranule});
  r.Call(0, wire::ExportMemory{memory, wire::ShareBy::kDescriptor});
  ok();
  const auto fabric = r.Call(0, wire::ExportMemory{memory, wire::ShareBy::kFabric}).fabric;
  ok();
  const std::uint64_t imported =
      r.Call(0, wire::ImportMemory{wire::ShareBy::kFabric, fabric}).handle;
  ok();
  r.Call(0, wire::ImportMemory{wire::ShareBy::kDescriptor, {}});
  const std::uint64_t multicast = r.Call(0, wire::CreateMulticast{2, kGranule, 8}).handle;
  ok();
  for (const int device : {0, 1}) {
    r.Call(0, wire::AddMulticastDevice{multicast, device});
    ok();
  }
  r.Call(0, wire::BindMulticast{multicast, 0, imported, 0, kGranule});
  ok();
  r.Call(0, wire::BindMulticast{multicast, 0, 0, range + kGranule, kGranule});
  ok();
  const std::uint64_t all = r.Call(0, wire::ReserveAddress{kGranule, 0, range}).address;
  r.Call(0, wire::MapMemory{all, kGranule, 0, multicast});
  ok();
  r.Call(0, wire::SetMemoryAccess{all, kGranule, 1, 3});
  ok();
  memset.dst = all;
  memset.stream.device = 1;
  r.Call(0, memset);
  ok();
  r.Call(0, wire::UnbindMulticast{multicast, 1, 0, kGranule});
  ok();
  r.Call(0, wire::ReleaseMemory{imported});
  r.Call(0, wire::UnmapMemory{range, 2 * kGranule});
  ok();
  r.Call(0, wire::FreeAddress{range, 3 * kGranule});
  ok();
  const std::uint64_t lonely = r.Call(0, wire::CreateMulticast{2, kGranule, 0}).handle;
  r.Call(0, wire::AddMulticastDevice{lonely, 0});
  ok();
  r.Ask(0, wire::BindMulticast{lonely, 0, memory, 0, kGranule}, true);
  r.Close(0);
}

// Memory of the host by handles, and descriptors of ranges.
void HostMemoryAndRanges(Recorder& r) {
  constexpr std::uint64_t kGranule = node::VirtualMemory::kGranularity;
  const auto ok = [&] { EXPECT_EQ(r.header.status, 0); };
  r.Call(0, wire::Hello{});
  r.Call(0, wire::Init{});
  const std::uint64_t host =
      r.Call(0, wire::CreateMemory{0, kGranule, 1, wire::MemoryPlace::kHostNuma}).handle;
  ok();
  EXPECT_EQ(r.Call(0, wire::MemoryInfo{host}).place, wire::MemoryPlace::kHostNuma);
  const std::uint64_t device = r.Call(0, wire::CreateMemory{0, kGranule, 0}).handle;
  const std::uint64_t range = r.Call(0, wire::ReserveAddress{2 * kGranule, 0, 0}).address;
  EXPECT_EQ(r.Call(0, wire::MapMemory{range, kGranule, 0, host}).mapped, kGranule);
  EXPECT_EQ(r.Call(0, wire::MapMemory{range + kGranule, kGranule, 0, device}).mapped, 0u);
  r.Call(0, wire::SetMemoryAccess{range, 2 * kGranule, 0, 3});
  ok();
  r.Call(0, wire::SetMemoryAccess{range, kGranule, 0, 3, wire::MemoryPlace::kHost});
  ok();
  r.Call(0, wire::SetMemoryAccess{range, 2 * kGranule, 0, 3, wire::MemoryPlace::kHost});
  EXPECT_NE(r.header.status, 0);
  EXPECT_EQ(r.Call(0, wire::GetMemoryAccess{range, 0, wire::MemoryPlace::kHost}).flags, 3);
  wire::Copy copy;
  copy.dst = range + kGranule;
  copy.src = range;
  copy.size = 64;
  copy.wait = true;
  r.Call(0, copy);
  ok();
  r.Call(0, wire::ExportMemory{host, wire::ShareBy::kDescriptor});
  ok();
  r.Call(0, wire::ExportRange{range + kGranule, 4096});
  ok();
  r.Call(0, wire::ExportRange{range, 4096});
  EXPECT_NE(r.header.status, 0);
  r.Call(0, wire::UnmapMemory{range, 2 * kGranule});
  ok();
  r.Call(0, wire::ReleaseMemory{host});
  r.Close(0);
}

void StreamsAndEvents(Recorder& r) {
  r.Call(0, wire::Hello{});
  r.Call(0, wire::Init{});
  wire::CreateStream create;
  create.non_blocking = true;
  const std::uint64_t stream = r.Call(0, create).stream;
  const std::uint64_t first = r.Call(0, wire::CreateEvent{}).event;
  const std::uint64_t second = r.Call(0, wire::CreateEvent{}).event;
  wire::StreamRef ref;
  ref.stream = stream;
  r.Call(0, wire::RecordEvent{ref, first});
  wire::AllocPinned pinned;
  pinned.size = 4096;
  const std::uint64_t host = r.Call(0, pinned).address;
  wire::Alloc alloc;
  alloc.device = 1;
  alloc.size = 4096;
  const std::uint64_t memory = r.Call(0, alloc).address;
  wire::Copy copy;
  copy.stream = ref;
  copy.dst = memory;
  copy.src = host;
  copy.size = 512;
  r.Call(0, copy);
  r.Call(0, wire::RecordEvent{ref, second});
  for (int i = 0; i < 20; ++i) r.Call(0, wire::EventQuery{second});
  r.Call(0, wire::StreamQuery{ref});
  r.Call(0, wire::WaitEvent{{}, second});
  r.Call(0, wire::RecordContext{0, first});
  EXPECT_EQ(r.header.status, 0);
  r.Call(0, wire::WaitContext{1, first});
  EXPECT_EQ(r.header.status, 0);
  r.Call(0, wire::EventSync{second});
  r.Call(0, wire::EventElapsed{first, second});
  EXPECT_EQ(r.header.status, 0);
  r.Call(0, wire::DeviceSync{1});
  r.Call(0, wire::CanAccessPeer{0, 1});
  r.Call(0, wire::EnablePeer{0, 1});
  r.Call(0, wire::DisablePeer{0, 1});
  r.Call(0, wire::FreePinned{host});
  r.Call(0, wire::DestroyEvent{first});
  r.Call(0, wire::DestroyStream{stream});
  r.Close(0);
}

void ThreadsAndKeys(Recorder& r) {
  r.Call(0, wire::Hello{});
  wire::Hello hello;
  hello.kind = wire::Hello::Kind::kThread;
  hello.token = 1;  // the first that was handed out
  hello.thread = r.Call(0, wire::NewThread{}).thread;
  wire::Key key;
  key.where = 64;
  r.Ask(1, hello, false);
  r.Call(0, wire::WatchKey{key});
  r.Ask(0, wire::WaitKey{key, -1}, true);
  r.Answer<wire::Hello>(1);
  r.Call(1, wire::WakeKey{key, 1});
  r.Ask(1, wire::BarrierWait{key, 2}, true);
  EXPECT_TRUE(r.Answer<wire::WaitKey>(0).woken);
  r.Ask(0, wire::BarrierWait{key, 2}, true);
  EXPECT_TRUE(r.Answer<wire::BarrierWait>(1).last);
  r.Ask(1, wire::Sleep{1'000'000}, true);
  r.Answer<wire::BarrierWait>(0);
  r.Ask(0, wire::WaitThread{hello.thread}, true);
  r.Answer<wire::Sleep>(1);
  r.Call(1, wire::Yield{});
  r.Call(1, wire::ThreadExit{});
  r.Close(1);
  r.Answer<wire::WaitThread>(0);
  r.Call(0, wire::WaitKey{key, 1'000});
  r.Call(0, wire::UnwatchKey{key});
  r.Close(0);
}

void Processes(Recorder& r) {
  r.Call(0, wire::Hello{});
  r.Call(0, wire::NewProcess{});
  wire::Hello hello;
  hello.kind = wire::Hello::Kind::kChild;
  hello.token = 2;
  r.Ask(2, hello, false);
  r.Ask(0, wire::Yield{}, true);
  EXPECT_EQ(r.Answer<wire::Hello>(2).rank, 1);
  r.Ask(2, wire::BootstrapBarrier{"b", 2}, true);
  r.Answer<wire::Yield>(0);
  wire::Alloc alloc;
  alloc.size = 128;
  wire::IpcExport exported{r.Call(0, alloc).address};
  wire::IpcOpen opened;
  opened.handle = r.Call(0, exported).handle;
  EXPECT_TRUE(r.Call(0, wire::BootstrapBarrier{"b", 2}).last);
  r.Ask(0, wire::Sleep{1'000'000'000}, true);
  r.Answer<wire::BootstrapBarrier>(2);
  r.Call(2, wire::Init{});
  const std::uint64_t theirs = r.Call(2, opened).address;
  EXPECT_EQ(r.header.status, 0);
  r.Call(2, wire::IpcClose{theirs});
  const wire::Endpoint near{{}, 1}, far{{}, 2};
  r.Call(2, wire::NetworkOpen{near, far, 1});
  r.Call(2, wire::NetworkOpen{far, near, 2});
  r.Call(2, wire::NetworkSend{near, far, 100});
  r.Call(2, wire::NetworkReceive{far, near, 100});
  r.Call(2, wire::NetworkFull{});
  EXPECT_EQ(r.header.status, 0);
  using Mark = wire::RangeEvent::Kind;
  r.ranges = {{Mark::kPush, 5, 0, "d", "a"}, {Mark::kPop, 6, 0, "d", ""},
              {Mark::kStart, 7, 1, "", "b"}, {Mark::kEnd, 8, 1, "", ""},
              {Mark::kMark, 9, 0, "", "c"},  {Mark::kNameThread, 9, 1001, "", "t"}};
  r.Call(2, wire::Ranges{});
  EXPECT_EQ(r.header.status, 0);
  r.Call(2, wire::Exec{});
  r.Close(2);
  hello.kind = wire::Hello::Kind::kExec;
  hello.token = 4;
  r.Call(2, hello);
  r.Close(2);
  r.Answer<wire::Sleep>(0);
  EXPECT_EQ(r.Call(0, wire::WaitProcess{-1, true}).pid, 1002);
  r.Close(0);
}

void PolledMemory(Recorder& r) {
  r.Call(0, wire::Hello{});
  wire::AllocPinned pinned;
  pinned.size = 64;
  const std::uint64_t host = r.Call(0, pinned).address;
  const std::uint64_t kernel = r.Kernel(0);
  wire::Launch launch;
  launch.kernel = kernel;
  launch.params.resize(16);
  std::memcpy(launch.params.data(), &host, 8);
  launch.params[8] = std::byte{5};
  r.Call(0, launch);
  wire::HostPoll poll;
  poll.watches.push_back({host, 4, 0});
  r.Call(0, poll);
  EXPECT_EQ(r.header.status, 0);
  r.Close(0);
}

void PoolsAndHostMemory(Recorder& r) {
  r.Call(0, wire::Hello{});
  r.Call(0, wire::Init{});
  wire::CreatePool create;
  create.device = 1;
  const std::uint64_t pool = r.Call(0, create).pool;
  const std::uint64_t standard = r.Call(0, wire::DefaultPool{}).pool;
  r.Call(0, wire::SetPoolAttribute{pool, 4, 1000});
  r.Call(0, wire::SetPoolAccess{pool, 0, true});
  EXPECT_TRUE(r.Call(0, wire::GetPoolAccess{pool, 0}).access);
  wire::AllocAsync alloc;
  alloc.pool = pool;
  alloc.size = 2000;
  const std::uint64_t first = r.Call(0, alloc).address;
  EXPECT_EQ(r.header.status, 0);
  alloc.pool = standard;
  const std::uint64_t second = r.Call(0, alloc).address;
  wire::Copy copy;
  copy.dst = first;
  copy.src = second;
  copy.size = 100;
  r.Call(0, copy);
  r.Call(0, wire::FreeAsync{{}, first});
  r.Call(0, wire::FreeAsync{{}, second});
  alloc.pool = 0;
  EXPECT_EQ(r.Call(0, alloc).address, second);
  r.Call(0, wire::DeviceSync{});
  EXPECT_EQ(r.Call(0, wire::GetPoolAttribute{pool, 5}).value, 1000u);
  create.share = 9;
  const std::uint64_t shared = r.Call(0, create).pool;
  r.Call(0, wire::ExportPool{shared, wire::ShareBy::kDescriptor});
  const auto fabric = r.Call(0, wire::ExportPool{shared, wire::ShareBy::kFabric}).fabric;
  EXPECT_EQ(r.header.status, 0);
  const std::uint64_t imported = r.Call(0, wire::ImportPool{wire::ShareBy::kFabric, fabric}).pool;
  EXPECT_EQ(r.header.status, 0);
  alloc.pool = shared;
  const auto pointer = r.Call(0, wire::ExportPointer{r.Call(0, alloc).address}).handle;
  const std::uint64_t theirs = r.Call(0, wire::ImportPointer{imported, pointer}).address;
  EXPECT_EQ(r.header.status, 0);
  r.Call(0, wire::FreeAsync{{}, theirs});
  EXPECT_EQ(r.header.status, 0);
  r.Call(0, wire::RegisterHost{0x5555'5555'5000, 8192});
  EXPECT_EQ(r.header.status, 0);
  r.Call(0, wire::FreePinned{0x5555'5555'5000});
  EXPECT_EQ(r.header.status, 0);
  wire::AllocPinned managed;
  managed.size = 5000;
  managed.managed = true;
  wire::Prefetch prefetch;
  prefetch.address = r.Call(0, managed).address;
  prefetch.size = 5000;
  prefetch.device = 1;
  r.Call(0, prefetch);
  EXPECT_EQ(r.header.status, 0);
  r.Call(0, wire::TrimPool{pool, 0});
  r.Call(0, wire::DestroyPool{pool});
  EXPECT_EQ(r.header.status, 0);
  r.Close(0);
}

void ValuesAndGraphs(Recorder& r) {
  r.Call(0, wire::Hello{});
  r.Call(0, wire::Init{});
  wire::SetVisible visible;
  visible.devices = {1, 0};
  r.Call(0, visible);
  EXPECT_EQ(r.header.status, 0);
  const std::uint64_t kernel = r.Kernel(0);
  wire::Alloc alloc;
  alloc.size = 4096;
  const std::uint64_t memory = r.Call(0, alloc).address;
  wire::CreateStream create;
  create.non_blocking = true;
  wire::StreamRef ref;
  ref.stream = r.Call(0, create).stream;
  const std::uint64_t event = r.Call(0, wire::CreateEvent{}).event;
  wire::ExportEvent give;
  give.event = event;
  wire::OpenEvent open;
  open.handle = r.Call(0, give).handle;
  r.Call(0, open);
  EXPECT_EQ(r.header.status, 0);

  wire::StreamValues values;
  values.stream = ref;
  values.values.push_back(
      {wire::ValueOp::Kind::kWait, wire::ValueOp::Compare::kEqual, 4, memory, 7});
  values.values.push_back(
      {wire::ValueOp::Kind::kWrite, wire::ValueOp::Compare::kEqual, 8, memory + 8, 9});
  r.Call(0, values);
  wire::PutGraph put;
  put.nodes.resize(6);
  put.nodes[0].kind = wire::GraphNode::Kind::kKernel;
  put.nodes[0].launch.kernel = kernel;
  put.nodes[0].launch.params.resize(12);
  std::memcpy(put.nodes[0].launch.params.data(), &memory, 8);
  put.nodes[0].launch.params[8] = std::byte{7};
  put.nodes[1].kind = wire::GraphNode::Kind::kCopy;
  put.nodes[1].copy.dst = memory + 64;
  put.nodes[1].copy.src = memory;
  put.nodes[1].copy.size = 32;
  put.nodes[1].after = {0};
  put.nodes[2].kind = wire::GraphNode::Kind::kMemset;
  put.nodes[2].memset.dst = memory + 128;
  put.nodes[2].memset.count = 16;
  put.nodes[3].kind = wire::GraphNode::Kind::kRecord;
  put.nodes[3].event = event;
  put.nodes[3].after = {1, 2};
  put.nodes[4].kind = wire::GraphNode::Kind::kValues;
  put.nodes[4].values = {values.values[1]};
  put.nodes[5].kind = wire::GraphNode::Kind::kHost;
  put.nodes[5].host = {1, 2, false};
  put.nodes[5].after = {3, 4};
  const std::uint64_t graph = r.Call(0, put).graph;
  EXPECT_EQ(r.header.status, 0);
  wire::UpdateGraph update;
  update.graph = graph;
  update.places = {2};
  update.nodes = {put.nodes[2]};
  r.Call(0, update);
  r.Call(0, wire::LaunchGraph{{}, graph});
  EXPECT_EQ(r.header.status, 0);
  r.Call(0, wire::CallHost{ref, {3, 4, true}});
  wire::NextHostCall next;
  next.done = r.Call(0, next).call;
  EXPECT_NE(next.done, 0u);
  next.done = r.Call(0, next).call;
  r.Call(0, wire::DropGraph{graph});
  wire::Occupancy occupancy;
  occupancy.kernel = kernel;
  occupancy.threads = 64;
  occupancy.cluster = 2;
  r.Call(0, occupancy);
  r.Ask(0, next, true);
  r.Close(0);
}

struct Seed {
  const char* name;
  std::function<void(Recorder&)> hold;
};

class WireSeedsTest : public ::testing::TestWithParam<Seed> {};

TEST_P(WireSeedsTest, FileIsTheConversation) {
  Recorder recorder;
  GetParam().hold(recorder);
  EXPECT_FALSE(recorder.violation()) << "a seed must be valid";
  const std::filesystem::path path =
      std::filesystem::path(ALLRANKS_SOURCE_DIR) / "fuzz/corpus/wire" / GetParam().name;
  if (std::getenv("ALLRANKS_WRITE_SEEDS") != nullptr) {
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(recorder.recorded.data()),
               static_cast<std::streamsize>(recorder.recorded.size()));
  }
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> stored{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(std::vector<char>(recorder.recorded.begin(), recorder.recorded.end()), stored)
      << "ALLRANKS_WRITE_SEEDS=1 writes it anew";
}

INSTANTIATE_TEST_SUITE_P(Seeds, WireSeedsTest,
                         ::testing::Values(Seed{"kernel_and_copies", KernelAndCopies},
                                           Seed{"streams_and_events", StreamsAndEvents},
                                           Seed{"threads_and_keys", ThreadsAndKeys},
                                           Seed{"processes", Processes},
                                           Seed{"polled_memory", PolledMemory},
                                           Seed{"pools_and_host_memory", PoolsAndHostMemory},
                                           Seed{"values_and_graphs", ValuesAndGraphs},
                                           Seed{"memory_by_handles", MemoryByHandles},
                                           Seed{"host_memory_and_ranges", HostMemoryAndRanges}),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace allranks::server
