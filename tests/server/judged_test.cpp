// A judged run at the level of messages: what ranks are told, what they may ask for and when, where
// memory is, and what a window does around a call. tests/judged has whole runs of a program.
#include "server/judged.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "node/hardware/profile.h"
#include "server/core.h"
#include "tests/server/client.h"

namespace allranks::server {
namespace {

using Do = wire::JudgeNextReply::Do;
using End = wire::JudgeRunReply::End;
using NewsKind = wire::JudgeNews::Kind;

constexpr int kWorld = 2;
constexpr std::int32_t kNotPermitted = 800;

struct Args {
  std::int32_t rank, world;
  std::uint64_t in, out, peers[kWorld], team;
};
enum Tensor { kIn, kOut, kShared };
constexpr std::uint64_t kBytes = 40;

wire::JudgePlan PlanOf(bool setup) {
  wire::JudgePlan plan;
  plan.world = kWorld;
  plan.rules.setup = setup;
  wire::JudgeCase& one = plan.cases.emplace_back();
  one.args.resize(sizeof(Args));
  one.tensors.resize(3);
  one.tensors[kIn].bytes = one.tensors[kOut].bytes = kBytes;
  one.tensors[kShared].bytes = 100;
  one.tensors[kShared].peers = one.tensors[kShared].multicast = true;
  using Field = wire::JudgeField;
  one.fields = {{Field::Pointer::kOwn, offsetof(Args, in), kIn, 0},
                {Field::Pointer::kOwn, offsetof(Args, out), kOut, 0},
                {Field::Pointer::kPeer, offsetof(Args, peers), kShared, 0},
                {Field::Pointer::kPeer, offsetof(Args, peers) + 8, kShared, 1},
                {Field::Pointer::kMulticast, offsetof(Args, team), kShared, 0}};
  return plan;
}

Args ArgsOf(const wire::JudgeNextReply& reply) {
  Args args{};
  EXPECT_EQ(reply.args.size(), sizeof args);
  std::memcpy(&args, reply.args.data(), std::min(sizeof args, reply.args.size()));
  return args;
}

class JudgedTest : public ::testing::Test {
 protected:
  JudgedTest() : inputs(4'096), outputs(4'096) {
    const auto profile = node::LoadProfile(ALLRANKS_SOURCE_DIR "/profiles/h100x8.toml");
    EXPECT_TRUE(profile.has_value());
    node::MachineOptions machine;
    machine.devices = kWorld;
    CoreOptions options;
    options.judged.emplace();
    options.judged->world = kWorld;
    options.judged->inputs = inputs;
    options.judged->outputs = outputs;
    options.judged->send = [this](wire::Op op, std::uint64_t, const wire::Blob& payload) {
      if (op == wire::Op::kJudgeNews) {
        const auto decoded = wire::Decode<wire::JudgeNews>(payload);
        ASSERT_TRUE(decoded.has_value());
        news.push_back(*decoded);
      } else {
        replies.push_back(payload);
      }
    };
    auto made = node::Machine::Create(*profile, machine);
    EXPECT_TRUE(made.has_value());
    core = std::make_unique<Core>(std::move(*made), std::move(options));
    for (int r = 0; r < kWorld; ++r) rank[r] = std::make_unique<Client>(*core, 0, r);
  }

  // A request of the judge's; its reply's status.
  template <class M>
  std::int32_t Judge(const M& message, typename M::Reply* reply = nullptr) {
    wire::Frame frame;
    frame.op = wire::kOpOf<M>;
    frame.payload = wire::EncodePayload(wire::RequestHeader{}, message);
    EXPECT_TRUE(core->judged()->Received(frame));
    core->Run();
    if (replies.empty()) return -1;
    const wire::Blob payload = replies.front();
    replies.pop_front();
    std::span<const std::byte> bytes = payload;
    wire::ReplyHeader header;
    typename M::Reply ignored;
    EXPECT_TRUE(wire::DecodeFrom(bytes, &header));
    EXPECT_TRUE(wire::DecodeFrom(bytes, reply != nullptr ? reply : &ignored));
    return header.status;
  }
  // Each time twice as long: whoever wakes has as much time to itself.
  void Doze(int r) { rank[r]->Ask(wire::Sleep{doze *= 2}); }
  // Time stands still while a rank runs, so one runs and the others sleep. After this it is `r`.
  void SwitchTo(int r) {
    if (running == r) return;
    if (running >= 0) Doze(running);
    core->Run();
    EXPECT_TRUE(rank[r]->Take<wire::Sleep>().has_value());
    running = r;
  }
  // Asks, as rank r; nothing if it is left waiting, and another one runs.
  template <class M>
  std::optional<typename M::Reply> Ask(int r, const M& message) {
    SwitchTo(r);
    rank[r]->Ask(message);
    core->Run();
    auto reply = rank[r]->Take<M>();
    if (!reply) running = -1;
    return reply;
  }
  template <class M>
  typename M::Reply Call(int r, const M& message) {
    auto reply = Ask(r, message);
    EXPECT_TRUE(reply.has_value()) << wire::OpName(wire::kOpOf<M>);
    return reply.value_or(typename M::Reply{});
  }
  void Join(const wire::JudgePlan& plan) {
    ASSERT_EQ(Judge(plan), 0);
    for (auto& one : rank) one->Ask(wire::Hello{});
    core->Run();
    token[0] = rank[0]->Take<wire::Hello>()->token;
    Doze(0);
    core->Run();
    token[1] = rank[1]->Take<wire::Hello>()->token;
    running = 1;
  }
  // What both ranks are told first.
  std::vector<wire::JudgeNextReply> Next() {
    return {Call(0, wire::JudgeNext{}), Call(1, wire::JudgeNext{})};
  }
  template <class M>
  void ExpectForbidden(const M& message, const std::string& words) {
    news.clear();
    Call(0, message);
    EXPECT_EQ(rank[0]->header.status, kNotPermitted) << wire::OpName(wire::kOpOf<M>);
    ASSERT_EQ(news.size(), 1u) << wire::OpName(wire::kOpOf<M>);
    EXPECT_EQ(news[0].kind, NewsKind::kForbidden);
    EXPECT_EQ(news[0].rank, 0);
    EXPECT_NE(news[0].text.find(words), std::string::npos) << news[0].text;
  }
  std::vector<std::byte> BytesAt(int r, std::uint64_t address, std::size_t size) {
    std::vector<std::byte> bytes(size, std::byte{0xee});
    // Processes of the machine are numbered from 1, in the ranks' order.
    EXPECT_TRUE(core->machine().Peek(static_cast<node::ProcessId>(r + 1), address, bytes));
    return bytes;
  }
  // Rank r delivers a graph of nothing.
  void Deliver(int r) {
    wire::JudgeNext next;
    next.graph = Call(r, wire::PutGraph{}).graph;
    EXPECT_FALSE(Ask(r, next).has_value() && r == 0) << "it is told before all have delivered";
  }

  std::vector<std::byte> inputs, outputs;
  std::deque<wire::JudgeNews> news;
  std::deque<wire::Blob> replies;
  std::unique_ptr<Core> core;
  std::unique_ptr<Client> rank[kWorld];
  std::uint64_t token[kWorld] = {};
  int running = -1;
  std::int64_t doze = node::Ms(1);
};

TEST_F(JudgedTest, ArgsNameMemoryThatIsZeroAndTheSameForAll) {
  Join(PlanOf(false));
  const auto told = Next();
  const Args first = ArgsOf(told[0]), second = ArgsOf(told[1]);
  EXPECT_EQ(told[0].what, Do::kCapture);
  EXPECT_EQ(first.rank, 0);
  EXPECT_EQ(second.rank, 1);
  EXPECT_EQ(BytesAt(0, first.in, kBytes), std::vector<std::byte>(kBytes));
  const std::vector<std::byte> word = {std::byte{1}, std::byte{2}, std::byte{3}};
  // Rank 1's memory, by both addresses of it; then all of it by the team's.
  EXPECT_TRUE(core->machine().Poke(1, first.peers[1], word));
  EXPECT_EQ(BytesAt(1, second.peers[1], 3), word);
  EXPECT_EQ(BytesAt(0, first.peers[0], 3), std::vector<std::byte>(3));
  const std::vector<std::byte> other = {std::byte{9}, std::byte{8}, std::byte{7}};
  EXPECT_TRUE(core->machine().Poke(2, second.team, other));
  EXPECT_EQ(BytesAt(0, first.peers[0], 3), other);
  EXPECT_EQ(BytesAt(1, second.peers[1], 3), other);
}

TEST_F(JudgedTest, NothingHappensBeforeThePlan) {
  rank[0]->Ask(wire::Hello{});
  rank[1]->Ask(wire::Hello{});
  core->Run();
  EXPECT_FALSE(rank[0]->Answered());
  EXPECT_EQ(Judge(wire::JudgeRun{}), 600);
  EXPECT_EQ(Judge(PlanOf(false)), 0);
  EXPECT_TRUE(rank[0]->Answered());
  EXPECT_NE(Judge(PlanOf(false)), 0) << "a second plan";
}

TEST_F(JudgedTest, WhatIsAllowedInSetupAndInTheCapture) {
  Join(PlanOf(true));
  const wire::JudgeNextReply told = Call(0, wire::JudgeNext{});
  ASSERT_EQ(told.what, Do::kSetup);
  const Args args = ArgsOf(told);
  wire::Alloc alloc;
  alloc.size = 64;
  const std::uint64_t mine = Call(0, alloc).address;
  EXPECT_EQ(rank[0]->header.status, 0);
  Call(0, wire::Free{mine});
  EXPECT_EQ(rank[0]->header.status, 0);
  EXPECT_TRUE(news.empty());
  ExpectForbidden(wire::Free{args.in}, "cudaFree of memory that the problem gives");
  ExpectForbidden(wire::IpcClose{args.peers[1]}, "of memory that the problem gives");
  ExpectForbidden(wire::UnmapMemory{args.team, 2 << 20}, "cuMemUnmap");
  ExpectForbidden(wire::RetainMemory{args.team}, "cuMemRetainAllocationHandle");
  ExpectForbidden(wire::ResetDevice{}, "cudaDeviceReset is not allowed in setup");
  ExpectForbidden(wire::NewProcess{}, "fork");
  ExpectForbidden(wire::Exec{}, "exec");
  ExpectForbidden(wire::AllocPinned{4'096, false}, "pinned");
  // Libraries do not even try what is not offered.
  const std::vector<wire::DeviceInfo> devices = Call(0, wire::Init{}).devices;
  ASSERT_FALSE(devices.empty());
  EXPECT_FALSE(devices[0].host_handles || devices[0].ranges);
  wire::CreateMemory host;
  host.size = 2 << 20;
  for (const auto place : {wire::MemoryPlace::kHost, wire::MemoryPlace::kHostNuma}) {
    host.place = place;
    ExpectForbidden(host, "cuMemCreate of host memory is not allowed");
  }
  ExpectForbidden(wire::ExportRange{args.in, 4'096}, "cuMemGetHandleForAddressRange");
  ExpectForbidden(wire::UpdateGraph{}, "update");
  ExpectForbidden(wire::SetVisible{}, "CUDA_VISIBLE_DEVICES");
  ExpectForbidden(wire::JudgeOpen{}, "judge_open");
  EXPECT_EQ(BytesAt(0, args.in, kBytes), std::vector<std::byte>(kBytes));
  // In the capture nothing is started and nothing is made.
  news.clear();
  EXPECT_EQ(Call(0, wire::JudgeNext{}).what, Do::kCapture);
  ExpectForbidden(alloc, "cudaMalloc is not allowed in the capture");
  ExpectForbidden(wire::Launch{}, "outside the given stream");
  ExpectForbidden(wire::CopyOut{}, "cudaMemcpy device to host");
  ExpectForbidden(wire::JudgeGather{}, "Boot");
  wire::PutGraph graph;
  graph.nodes.resize(1);
  graph.nodes[0].kind = wire::GraphNode::Kind::kKernel;
  graph.nodes[0].device = 1;
  ExpectForbidden(graph, "a kernel on device 1");
}

TEST_F(JudgedTest, ALibraryMayPinMemoryAndConnectInTheCapture) {
  wire::JudgePlan plan = PlanOf(true);
  plan.rules.library = true;
  Join(plan);
  ASSERT_EQ(Call(0, wire::JudgeNext{}).what, Do::kSetup);
  EXPECT_NE(Call(0, wire::AllocPinned{4'096, false}).address, 0u);
  EXPECT_EQ(Call(0, wire::JudgeNext{}).what, Do::kCapture);
  wire::Alloc alloc;
  alloc.size = 64;
  EXPECT_NE(Call(0, alloc).address, 0u);
  EXPECT_NE(Call(0, wire::AllocPinned{4'096, false}).address, 0u);
  wire::PutGraph graph;
  graph.nodes.resize(1);
  graph.nodes[0].kind = wire::GraphNode::Kind::kRecord;
  Call(0, graph);
  EXPECT_TRUE(news.empty()) << news[0].text;
  // It is not trusted with more.
  ExpectForbidden(wire::NewProcess{}, "fork");
  ExpectForbidden(wire::ResetDevice{}, "cudaDeviceReset");
  ExpectForbidden(wire::UpdateGraph{}, "update");
  wire::FileImage file;
  file.path = "/etc/passwd";
  file.parts = {{0, 1}};
  EXPECT_FALSE(Call(0, file).known);
  graph.nodes[0].kind = wire::GraphNode::Kind::kHost;
  ExpectForbidden(graph, "host function");
}

TEST_F(JudgedTest, GatheredBytesComeInTheOrderOfRanks) {
  for (const bool equal : {true, false}) {
    if (equal) {
      Join(PlanOf(true));
      Next();
    }
    wire::JudgeGather gather;
    gather.bytes.assign(2, std::byte{6});
    EXPECT_FALSE(Ask(1, gather).has_value());
    gather.bytes.assign(equal ? 2 : 1, std::byte{5});
    // Both are answered now, rank 0 first.
    const wire::JudgeGatherReply first = Call(0, gather);
    Doze(0);
    core->Run();
    const auto second = rank[1]->Take<wire::JudgeGather>();
    running = 1;
    ASSERT_TRUE(second.has_value());
    EXPECT_EQ(first.bytes, second->bytes);
    EXPECT_EQ(rank[1]->header.status, equal ? 0 : 1);
    const wire::Blob expected = {std::byte{5}, std::byte{5}, std::byte{6}, std::byte{6}};
    EXPECT_EQ(first.bytes, equal ? expected : wire::Blob{});
  }
}

TEST_F(JudgedTest, ARankThatWaitsForOneThatWentOnIsADeadlock) {
  Join(PlanOf(true));
  Next();
  EXPECT_FALSE(Ask(0, wire::JudgeGather{}).has_value());
  EXPECT_EQ(Call(1, wire::JudgeNext{}).what, Do::kCapture);
  Deliver(1);
  EXPECT_EQ(core->Run(), Core::Standing::kDeadlock);
  EXPECT_TRUE(news.empty());
  core->judged()->Deadlocked();
  ASSERT_EQ(news.size(), 1u);
  EXPECT_EQ(news[0].kind, NewsKind::kDeadlock);
  EXPECT_NE(news[0].text.find("Boot (1 of 2 ranks have arrived)"), std::string::npos)
      << news[0].text;
}

TEST_F(JudgedTest, ARankThatHasDeliveredIsNotNeededAnyMore) {
  Join(PlanOf(false));
  Next();
  Deliver(0);
  rank[0]->Gone();  // while it waits for rank 1
  Deliver(1);
  ASSERT_EQ(news.size(), 1u);
  EXPECT_EQ(news[0].kind, NewsKind::kReady);
  wire::JudgeRun run;
  run.calls = 1;
  run.by_rank.resize(kWorld);
  wire::JudgeRunReply reply;
  EXPECT_EQ(Judge(run, &reply), 0);
  EXPECT_EQ(reply.end, End::kDone);
}

TEST_F(JudgedTest, ARankThatEndsWhileItIsAskedIsLost) {
  Join(PlanOf(false));
  Next();
  rank[running]->Gone();
  core->Run();
  ASSERT_EQ(news.size(), 1u);
  EXPECT_EQ(news[0].kind, NewsKind::kLost);
  EXPECT_EQ(news[0].rank, running);
}

TEST_F(JudgedTest, OnlyTheFirstProcessOfASocketIsTheRank) {
  Join(PlanOf(false));
  Client again(*core, 0, 1);
  again.Ask(wire::Hello{});
  EXPECT_TRUE(again.closed);
  Client stranger(*core, 0, 1);
  wire::Hello hello;
  hello.kind = wire::Hello::Kind::kThread;
  hello.token = token[0];
  hello.thread = 2;
  stranger.Ask(hello);
  EXPECT_TRUE(stranger.closed);
  Client child(*core, 0, 0);
  hello.kind = wire::Hello::Kind::kChild;
  child.Ask(hello);
  EXPECT_TRUE(child.closed);
  ASSERT_EQ(news.size(), 3u);
  for (const wire::JudgeNews& one : news) EXPECT_EQ(one.kind, NewsKind::kTampered);
  EXPECT_EQ(news[0].rank, 1);
  // The ranks themselves go on.
  EXPECT_EQ(Next()[0].what, Do::kCapture);
}

TEST_F(JudgedTest, AGraphThatWasNeverMadeCannotBeDelivered) {
  Join(PlanOf(false));
  Next();
  wire::JudgeNext next;
  next.graph = 77;
  EXPECT_EQ(Call(0, next).what, Do::kEnd);
  ASSERT_EQ(news.size(), 1u);
  EXPECT_EQ(news[0].kind, NewsKind::kTampered);
}

TEST_F(JudgedTest, AFailedCaptureIsTold) {
  Join(PlanOf(false));
  Next();
  wire::JudgeNext next;
  next.status = 900;
  next.text = "launch: cudaErrorStreamCaptureUnsupported\x1b[31m";
  Call(0, next);
  ASSERT_EQ(news.size(), 1u);
  EXPECT_EQ(news[0].kind, NewsKind::kRefused);
  EXPECT_EQ(news[0].text, "launch: cudaErrorStreamCaptureUnsupported?[31m");
}

TEST_F(JudgedTest, AWindowDrawsPoisonsAndKeeps) {
  constexpr node::Time kDelay = 53 << 17;  // delays are whole buckets of time
  Join(PlanOf(false));
  Next();
  Deliver(0);
  Deliver(1);
  ASSERT_EQ(news.size(), 1u);
  EXPECT_EQ(news[0].kind, NewsKind::kReady);
  for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = static_cast<std::byte>(i % 251);
  wire::JudgeRun run;
  run.calls = 2;
  run.by_rank.resize(4);
  for (std::uint32_t i = 0; i < 4; ++i) {
    run.by_rank[i].draw.push_back({kIn, i * 100, kBytes});
    run.by_rank[i].poison.push_back({kOut, 0x01020304});
    run.by_rank[i].keep.push_back({kIn, i * 200, kBytes});
    run.by_rank[i].keep.push_back({kOut, i * 200 + 100, 6});
  }
  run.by_rank[1].delay_ps = kDelay;
  wire::JudgeRunReply reply;
  ASSERT_EQ(Judge(run, &reply), 0);
  EXPECT_EQ(reply.end, End::kDone);
  EXPECT_EQ(reply.opened_ps[0], 0);
  EXPECT_EQ(reply.opened_ps[1], kDelay);
  EXPECT_EQ(reply.opened_ps[3], reply.closed_ps[1]);
  EXPECT_EQ(reply.changed, std::vector<std::uint8_t>(4));
  EXPECT_TRUE(reply.links.empty());
  const std::byte poison[] = {std::byte{4}, std::byte{3}, std::byte{2},
                              std::byte{1}, std::byte{4}, std::byte{3}};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(std::memcmp(outputs.data() + i * 200, inputs.data() + i * 100, kBytes), 0);
    EXPECT_EQ(std::memcmp(outputs.data() + i * 200 + 100, poison, sizeof poison), 0);
  }
  EXPECT_TRUE(rank[0]->closed) << "ranks are not listened to any more";
  run.by_rank[2].keep[0].place = outputs.size() - kBytes + 1;
  EXPECT_EQ(Judge(run), 1);
  run.by_rank.pop_back();
  EXPECT_EQ(Judge(run), 1);
}

}  // namespace
}  // namespace allranks::server
