// The server without sockets: what a host thread is answered about devices, when in virtual time,
// and that a process that misbehaves or dies harms nobody else. core_hosts_test.cpp has the waits
// of hosts for each other.
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/server/core_fixture.h"

namespace allranks::server {
namespace {

using node::Ms;
using node::Ns;
using node::Us;

TEST_F(CoreTest, RangesComeWithMessagesAndCostNothing) {
  using Kind = wire::RangeEvent::Kind;
  auto rank = Root(100);
  rank->ranges = {{Kind::kPush, 0, 0, "", "work"}};
  wire::Alloc alloc;
  alloc.size = 64;
  rank->Call(alloc);
  EXPECT_EQ(rank->header.clock, Us(1)) << "as without it";
  rank->ranges = {{Kind::kPop, Us(1), 0, "", ""}, {Kind::kPush, Us(1), 0, "", "open"}};
  rank->Call(wire::Ranges{});
  EXPECT_EQ(rank->header.clock, Us(1)) << "a message for their sake takes no time";
  const RunReport report = core->Report();
  ASSERT_EQ(report.ranges.size(), 2u);
  EXPECT_EQ(report.ranges[0].name, "work");
  EXPECT_EQ(report.ranges[0].calls, 1u);
  EXPECT_EQ(report.ranges[0].total, Us(1));
  EXPECT_EQ(report.ranges[1].name, "open");
  rank->ranges.assign(wire::kMaxRanges + 1, {});
  rank->Ask(wire::Ranges{});
  EXPECT_TRUE(rank->closed) << "more than a shim sends";
}

TEST_F(CoreTest, AWholeConversation) {
  auto rank = Root(100);
  EXPECT_EQ(rank->header.clock, 0);
  EXPECT_EQ(rank->Call(wire::Init{}).devices.size(), 2u);
  EXPECT_EQ(rank->header.clock, 0) << "what a process finds out once is free";
  wire::Alloc alloc;
  alloc.size = 4096;
  const std::uint64_t memory = rank->Call(alloc).address;
  EXPECT_EQ(rank->header.clock, Us(1));
  const std::uint64_t kernel = Kernel(*rank);
  EXPECT_EQ(rank->header.clock, Us(1));
  rank->Call(StoreKernel(kernel, memory, 0x01020304, 50));
  EXPECT_EQ(rank->header.status, 0);
  EXPECT_EQ(rank->header.clock, Us(3));
  EXPECT_TRUE(rank->header.busy);
  rank->Call(wire::DeviceSync{});
  EXPECT_EQ(rank->header.clock, Us(3 + 50 + 3)) << "launch, kernel, return of the synchronise";
  EXPECT_FALSE(rank->header.busy);
  wire::CopyOut out;
  out.src = memory;
  out.size = 4;
  EXPECT_EQ(rank->Call(out).bytes,
            (wire::Blob{std::byte{4}, std::byte{3}, std::byte{2}, std::byte{1}}));
  wire::MemInfo info;
  EXPECT_EQ(rank->Call(info).free, (1u << 30) - 4096);
}

TEST_F(CoreTest, LinksOfDevicesThatTheHostHasNot) {
  auto rank = Root(100);
  for (const std::int32_t device : {-1, 2, 1 << 30}) {
    rank->Call(wire::LinkTraffic{device});
    EXPECT_EQ(rank->header.status, static_cast<int>(node::Status::kInvalidDevice)) << device;
  }
  EXPECT_TRUE(rank->Call(wire::LinkTraffic{1}).links.empty());  // the machine has no links
  EXPECT_EQ(rank->header.status, 0);
}

TEST_F(CoreTest, ErrorsOfTheMachineReachTheThread) {
  auto rank = Root(100);
  rank->Call(wire::Alloc{});
  EXPECT_EQ(rank->header.status, static_cast<int>(node::Status::kOutOfMemory));
  wire::Alloc alloc;
  alloc.device = 9;
  rank->Call(alloc);
  EXPECT_EQ(rank->header.status, static_cast<int>(node::Status::kInvalidDevice));
  wire::Launch launch;
  launch.kernel = 7;  // exists, but not for this process
  rank->Call(launch);
  EXPECT_EQ(rank->header.status, static_cast<int>(node::Status::kInvalidHandle));
  wire::LoadModule load;
  load.image = 5;
  rank->Call(load);
  EXPECT_EQ(rank->header.status, static_cast<int>(node::Status::kInvalidValue));
}

TEST_F(CoreTest, AnEventStandsForAWholeContext) {
  auto rank = Root(100);
  wire::Alloc alloc;
  alloc.size = 64;
  const std::uint64_t memory = rank->Call(alloc).address;
  const std::uint64_t kernel = Kernel(*rank);
  const std::uint64_t event = rank->Call(wire::CreateEvent{}).event;
  // The longer one is not in the stream that was used last.
  rank->Call(StoreKernel(kernel, memory, 1, 50));
  wire::Launch other = StoreKernel(kernel, memory + 4, 2, 10);
  other.stream.stream = rank->Call(wire::CreateStream{}).stream;
  rank->Call(other);
  const node::Time asked = rank->header.clock;
  rank->Call(wire::RecordContext{0, event});
  EXPECT_EQ(rank->header.status, 0);
  EXPECT_EQ(rank->header.clock, asked + Us(1)) << "nobody waits yet";
  rank->Call(wire::WaitContext{1, event});
  EXPECT_EQ(rank->header.status, 0);
  rank->Call(wire::EventQuery{event});
  EXPECT_EQ(rank->header.status, static_cast<int>(node::Status::kNotReady));
  rank->Call(wire::EventSync{event});
  EXPECT_EQ(rank->header.status, 0);
  EXPECT_GE(rank->header.clock, Us(50));
  EXPECT_FALSE(rank->header.busy);

  const auto refused = [&](auto message, node::Status status) {
    rank->Call(message);
    EXPECT_EQ(rank->header.status, static_cast<int>(status)) << message.device;
  };
  for (const int device : {-1, 2, 99}) {
    refused(wire::RecordContext{device, event}, node::Status::kInvalidContext);
    refused(wire::WaitContext{device, event}, node::Status::kInvalidContext);
  }
  auto stranger = Child(101, rank->Call(wire::NewProcess{}).token);
  rank->Ask(wire::Sleep{Us(100)});
  core->Run();
  ASSERT_TRUE(stranger->Take<wire::Hello>());
  const std::uint64_t foreign = stranger->Call(wire::CreateEvent{}).event;
  stranger->Ask(wire::Sleep{Ms(1)});
  core->Run();
  ASSERT_TRUE(rank->Take<wire::Sleep>());
  for (const std::uint64_t none : {std::uint64_t{0}, event + 1000, foreign}) {
    refused(wire::RecordContext{0, none}, node::Status::kInvalidHandle);
    refused(wire::WaitContext{0, none}, node::Status::kInvalidHandle);
  }
}

TEST_F(CoreTest, ImagesComeInPartsAndLoadOnce) {
  auto rank = Root(100);
  wire::PutImage part;
  part.image = 3;
  part.total = 6;
  part.bytes.resize(4);
  rank->Call(part);
  wire::LoadModule load;
  load.image = 3;
  rank->Call(load);
  EXPECT_NE(rank->header.status, 0) << "it is not whole";
  part.offset = 4;
  part.bytes.resize(3);
  rank->Call(part);
  EXPECT_NE(rank->header.status, 0) << "too much";
  part.bytes.resize(2);
  rank->Call(part);
  EXPECT_EQ(rank->header.status, 0);
  const std::uint64_t module = rank->Call(load).module;
  EXPECT_EQ(rank->Call(load).module, module);
  load.device = 1;
  EXPECT_NE(rank->Call(load).module, module);
}

TEST_F(CoreTest, HostPollWakesOnTheGrid) {
  auto rank = Root(100);
  rank->Call(wire::Init{});
  wire::AllocPinned pinned;
  pinned.size = 4096;
  const auto memory = rank->Call(pinned);
  EXPECT_GE(rank->fd, 0);
  EXPECT_EQ(memory.size, 4096u);
  const std::uint64_t kernel = Kernel(*rank);
  rank->Call(StoreKernel(kernel, memory.address + 8, 5, 40));
  const node::Time launched = rank->header.clock;
  wire::HostPoll poll;
  poll.watches.push_back({memory.address + 8, 4, 0});
  rank->Call(poll);
  EXPECT_EQ(rank->header.status, 0);
  const node::Time asked = launched + Ns(100);
  EXPECT_GE(rank->header.clock, launched + Us(40));
  EXPECT_LT(rank->header.clock, launched + Us(40) + Ns(250));
  EXPECT_EQ((rank->header.clock - asked) % Ns(250), 0);
  EXPECT_GT(fake->host_writes, 0);
}

TEST_F(CoreTest, HostPollTimesOut) {
  auto rank = Root(100);
  wire::AllocPinned pinned;
  pinned.size = 4096;
  const std::uint64_t memory = rank->Call(pinned).address;
  rank->Call(StoreKernel(Kernel(*rank), memory, 5, 40));
  const node::Time launched = rank->header.clock;
  wire::HostPoll poll;
  poll.watches.push_back({memory, 4, 0});
  poll.timeout_ps = Us(10);
  EXPECT_FALSE(rank->Call(poll).changed);
  EXPECT_EQ(rank->header.clock, launched + Us(10) + Ns(100));
  poll.timeout_ps = Us(100);
  EXPECT_TRUE(rank->Call(poll).changed);
  EXPECT_GE(rank->header.clock, launched + Us(40));
  EXPECT_LT(rank->header.clock, launched + Us(41));
}

TEST_F(CoreTest, APollIsDoubtedBeforeADeadlockIsReported) {
  auto rank = Root(100);
  wire::AllocPinned pinned;
  pinned.size = 4096;
  const std::uint64_t memory = rank->Call(pinned).address;
  wire::HostPoll poll;
  poll.watches.push_back({memory, 4, 0});
  EXPECT_TRUE(rank->Call(poll).doubt) << "it may count in memory that nobody looks at";
  poll.watches.push_back({memory + 4, 4, 0});
  EXPECT_TRUE(rank->Call(poll).doubt) << "it was no fixed point";
  std::swap(poll.watches[0], poll.watches[1]);
  rank->Ask(poll);
  EXPECT_EQ(core->Run(), Core::Standing::kDeadlock) << "it is in the same loop again";
}

TEST_F(CoreTest, ADoubtedPollThatSleepsInAFutexIsADeadlock) {
  // A real thread, so that /proc shows it asleep.
  std::atomic<int> tid{0}, word{0};
  std::thread sleeper([&] {
    tid = static_cast<int>(syscall(SYS_gettid));
    while (word == 0) syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
  });
  while (tid == 0) std::this_thread::yield();
  Client rank(*core, getpid());
  wire::Hello hello;
  hello.tid = tid;
  rank.Call(hello);
  wire::AllocPinned pinned;
  pinned.size = 4096;
  wire::HostPoll poll;
  poll.watches.push_back({rank.Call(pinned).address, 4, 0});
  EXPECT_TRUE(rank.Call(poll).doubt);
  EXPECT_EQ(core->Run(), Core::Standing::kHeld);
  bool blocked = false;
  for (int i = 0; i < 1'000 && !blocked; ++i) {
    blocked = core->FindBlocked();
    if (!blocked) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (blocked) {
    EXPECT_EQ(core->Run(), Core::Standing::kDeadlock);
  }
  word = 1;
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  sleeper.join();
  if (!blocked) GTEST_SKIP() << "/proc does not show system calls here";
}

TEST_F(CoreTest, APollLooksAgainWhenOtherThreadsHaveRun) {
  auto main = Root(100);
  wire::AllocPinned pinned;
  pinned.size = 4096;
  const std::uint64_t memory = main->Call(pinned).address;
  const std::uint64_t number = main->Call(wire::NewThread{}).thread;
  auto proxy = Thread(100, token, number);
  main->Ask(wire::Yield{});
  core->Run();
  ASSERT_TRUE(proxy->Take<wire::Hello>());
  wire::HostPoll poll;
  poll.watches.push_back({memory, 4, 0});
  proxy->Ask(poll);
  core->Run();
  ASSERT_TRUE(main->Take<wire::Yield>());
  EXPECT_FALSE(proxy->Answered());
  wire::WaitThread join;
  join.thread = number;
  main->Ask(join);
  core->Run();
  const auto woken = proxy->Take<wire::HostPoll>();
  ASSERT_TRUE(woken);
  EXPECT_FALSE(woken->changed);
  EXPECT_FALSE(woken->doubt);
  proxy->Ask(wire::ThreadExit{});
  core->Run();
  EXPECT_TRUE(main->Take<wire::WaitThread>());
}

TEST_F(CoreTest, AThreadThatMaySpinOnPinnedMemoryIsDetached) {
  auto rank = Root(100);
  rank->Call(StoreKernel(Kernel(*rank), 0, 5, 40));
  core->Tick(0);
  EXPECT_FALSE(core->Tick(10'000)) << "it computes";
  wire::AllocPinned pinned;
  pinned.size = 4096;
  const std::uint64_t memory = rank->Call(pinned).address;
  core->Tick(20'000);
  EXPECT_TRUE(core->Tick(30'000)) << "it may wait for the kernel";
  EXPECT_EQ(core->Run(), Core::Standing::kIdle);
  EXPECT_FALSE(fake->Busy()) << "the kernel could go on";
  rank->Call(wire::FreePinned{memory});
  EXPECT_FALSE(core->hosts().deterministic());
}

TEST_F(CoreTest, PollingQueriesLeap) {
  auto rank = Root(100);
  rank->Call(wire::Init{});
  wire::Alloc alloc;
  alloc.size = 64;
  const std::uint64_t memory = rank->Call(alloc).address;
  const std::uint64_t kernel = Kernel(*rank);
  rank->Call(StoreKernel(kernel, memory, 1, 100'000));
  const node::Time launched = rank->header.clock;
  int queries = 0;
  do {
    rank->Call(wire::StreamQuery{});
    ++queries;
  } while (rank->header.status == static_cast<int>(node::Status::kNotReady) && queries < 1'000);
  EXPECT_EQ(rank->header.status, 0);
  EXPECT_LT(queries, 150) << "100 ms of polls, one each microsecond";
  EXPECT_EQ(rank->header.clock, launched + Ms(100)) << "the poll that would have seen it";
}

TEST_F(CoreTest, DeadlockOfADeviceAndItsHost) {
  auto rank = Root(100);
  rank->Call(wire::Init{});
  wire::Alloc alloc;
  alloc.size = 64;
  const std::uint64_t memory = rank->Call(alloc).address;
  rank->Call(StoreKernel(Kernel(*rank), memory, 1, 1, /*forever=*/true));
  rank->Ask(wire::DeviceSync{});
  EXPECT_EQ(core->Run(), Core::Standing::kDeadlock);
  const RunReport report = core->Report();
  EXPECT_NE(DeadlockText(report).find("fake.cu:12"), std::string::npos) << DeadlockText(report);
  EXPECT_NE(DeadlockText(report).find("pinned#1 + 0x40"), std::string::npos);
  EXPECT_NE(DeadlockText(report).find("store(unsigned int*, int)"), std::string::npos);
  EXPECT_NE(DeadlockText(report).find("device_sync"), std::string::npos);
  const auto json = nlohmann::json::parse(ToJson(report));
  EXPECT_EQ(json["deadlock"]["waiters"][0]["line"], 12);
  EXPECT_EQ(json["deadlock"]["hosts"][0]["call"], "device_sync");
  EXPECT_EQ(json["deterministic"], true);
}

TEST_F(CoreTest, DeadlockOfAPoller) {
  auto rank = Root(100);
  rank->Call(wire::Init{});
  wire::Alloc alloc;
  alloc.size = 64;
  const std::uint64_t memory = rank->Call(alloc).address;
  rank->Call(StoreKernel(Kernel(*rank), memory, 1, 1, /*forever=*/true));
  int queries = 0;
  for (; queries < 100; ++queries) {
    rank->Ask(wire::StreamQuery{});
    if (core->Run() == Core::Standing::kDeadlock) break;
    ASSERT_TRUE(rank->Take<wire::StreamQuery>());
  }
  EXPECT_GE(queries, 19) << "three leaps at least";
  EXPECT_LT(queries, 30);
}

TEST_F(CoreTest, AKilledRankReturnsItsMemory) {
  auto other = Root(200);
  auto victim = Child(100, other->Call(wire::NewProcess{}).token);
  other->Ask(wire::Sleep{Us(100)});
  core->Run();
  ASSERT_TRUE(victim->Take<wire::Hello>());
  wire::Alloc alloc;
  alloc.size = 1 << 20;
  const std::uint64_t memory = victim->Call(alloc).address;
  victim->Call(StoreKernel(Kernel(*victim), memory, 1, 1'000));
  victim->Ask(wire::DeviceSync{});
  core->Run();
  ASSERT_TRUE(other->Take<wire::Sleep>());
  EXPECT_EQ(other->Call(wire::MemInfo{}).free, (1u << 30) - (1u << 20));
  EXPECT_TRUE(fake->Busy());
  EXPECT_EQ(fake->alive(), 2);
  victim->Gone();  // mid-kernel, in a wait
  EXPECT_EQ(fake->alive(), 1);
  EXPECT_EQ(other->Call(wire::MemInfo{}).free, 1u << 30);
  EXPECT_FALSE(fake->Busy());
}

TEST_F(CoreTest, GarbageEndsOnlyItsProcess) {
  auto good = Root(200);
  auto bad = Child(100, good->Call(wire::NewProcess{}).token);
  good->Ask(wire::Sleep{Us(100)});
  core->Run();
  ASSERT_TRUE(bad->Take<wire::Hello>());
  wire::Frame frame;
  frame.op = wire::Op::kAlloc;
  frame.payload.resize(3);
  core->Received(bad.get(), std::move(frame));
  EXPECT_TRUE(bad->closed);
  EXPECT_EQ(core->process_count(), 1u);
  core->Run();
  EXPECT_TRUE(good->Take<wire::Sleep>());
  EXPECT_FALSE(good->closed);
  ASSERT_EQ(log.size(), 1u);
  EXPECT_NE(log[0].find("malformed 'alloc'"), std::string::npos) << log[0];
}

TEST_F(CoreTest, AnUnannouncedProcessIsServedButNotRepeatable) {
  auto first = Root(100);
  Client second(*core, 200);
  second.Ask(wire::Hello{});
  first->Ask(wire::Sleep{Us(5)});
  core->Run();
  EXPECT_TRUE(second.Take<wire::Hello>());
  EXPECT_FALSE(core->hosts().deterministic());
}

TEST_F(CoreTest, OneRequestAtATime) {
  auto rank = Root(100);
  rank->Ask(wire::Sleep{Ms(1)});
  rank->Ask(wire::Sleep{Ms(1)});
  EXPECT_TRUE(rank->closed);
  EXPECT_EQ(core->process_count(), 0u);
}

TEST_F(CoreTest, TheSupervisorsMessagesAreNotForRanks) {
  auto rank = Root(100);
  wire::Frame frame;
  frame.op = wire::Op::kFinish;
  core->Received(rank.get(), std::move(frame));
  EXPECT_TRUE(rank->closed);
}

TEST_F(CoreTest, AProcessIsEndedByItsPid) {
  auto rank = Root(100);
  rank->Ask(wire::DeviceSync{});
  core->ProcessExited(100);
  core->Run();
  EXPECT_EQ(core->process_count(), 0u);
  EXPECT_TRUE(rank->closed);
  rank->Gone();
}

TEST_F(CoreTest, AnInterruptOnlyPauses) {
  std::atomic<bool> interrupt{true};
  auto machine = std::make_unique<FakeMachine>();
  CoreOptions options;
  options.interrupt = &interrupt;
  core = std::make_unique<Core>(std::move(machine), std::move(options));
  Client rank(*core, 100);
  rank.Ask(wire::Hello{});
  interrupt = false;
  core->Run();
  rank.Take<wire::Hello>();
  wire::Alloc alloc;
  alloc.size = 64;
  const std::uint64_t memory = rank.Call(alloc).address;
  const std::uint64_t kernel = Kernel(rank);
  for (std::uint32_t i = 0; i < 4; ++i) rank.Call(StoreKernel(kernel, memory, i, 10));
  rank.Ask(wire::DeviceSync{});
  int pauses = 0;
  do {
    interrupt = true;
    ++pauses;
  } while (core->Run() == Core::Standing::kInterrupted && pauses < 100 &&
           (interrupt = false, core->Run() == Core::Standing::kInterrupted));
  interrupt = false;
  core->Run();
  ASSERT_TRUE(rank.Take<wire::DeviceSync>());
  EXPECT_EQ(rank.header.clock, Us(1 + 2 + 4 * 10 + 3));
}

}  // namespace
}  // namespace allranks::server
