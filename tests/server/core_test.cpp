// The server without sockets: what a host thread is answered, when in virtual time, and that a
// process that misbehaves or dies harms nobody else.
#include "server/core.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "tests/server/client.h"
#include "tests/server/fake_machine.h"

namespace allranks::server {
namespace {

using node::Ms;
using node::Ns;
using node::Us;

class CoreTest : public ::testing::Test {
 protected:
  CoreTest() {
    auto machine = std::make_unique<FakeMachine>();
    fake = machine.get();
    CoreOptions options;
    options.log = [this](const std::string& line) { log.push_back(line); };
    core = std::make_unique<Core>(std::move(machine), std::move(options));
  }

  // A new root process, its first thread running.
  std::unique_ptr<Client> Root(pid_t pid) {
    auto client = std::make_unique<Client>(*core, pid);
    token = client->Call(wire::Hello{}).token;
    return client;
  }
  std::unique_ptr<Client> Child(pid_t pid, std::uint64_t child_token) {
    auto client = std::make_unique<Client>(*core, pid);
    wire::Hello hello;
    hello.kind = wire::Hello::Kind::kChild;
    hello.token = child_token;
    client->Ask(hello);
    return client;
  }
  std::unique_ptr<Client> Thread(pid_t pid, std::uint64_t process, std::uint64_t number) {
    auto client = std::make_unique<Client>(*core, pid);
    wire::Hello hello;
    hello.kind = wire::Hello::Kind::kThread;
    hello.token = process;
    hello.thread = number;
    client->Ask(hello);
    return client;
  }
  std::uint64_t Kernel(Client& client) {
    wire::PutImage image;
    image.image = 1;
    image.total = 4;
    image.bytes.resize(4);
    client.Call(image);
    wire::LoadModule load;
    load.image = 1;
    wire::GetKernel get;
    get.module = client.Call(load).module;
    get.name = "store";
    return client.Call(get).kernel;
  }
  static wire::Launch StoreKernel(std::uint64_t kernel, std::uint64_t address, std::uint32_t value,
                                  std::uint32_t us, bool forever = false) {
    wire::Launch launch;
    launch.kernel = kernel;
    launch.grid.x = us;
    launch.grid.y = forever ? 2 : 1;
    launch.params.resize(12);
    std::memcpy(launch.params.data(), &address, 8);
    std::memcpy(launch.params.data() + 8, &value, 4);
    return launch;
  }

  FakeMachine* fake = nullptr;
  std::unique_ptr<Core> core;
  std::vector<std::string> log;
  std::uint64_t token = 0;
};

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

TEST_F(CoreTest, ThreadsAreAnnouncedAndJoined) {
  auto main = Root(100);
  const std::uint64_t number = main->Call(wire::NewThread{}).thread;
  EXPECT_EQ(number, 2u);
  wire::WaitThread join;
  join.thread = number;
  main->Ask(join);
  EXPECT_EQ(core->Run(), Core::Standing::kHeld) << "the new thread is expected";
  auto worker = Thread(100, token, number);
  core->Run();
  const auto hello = worker->Take<wire::Hello>();
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->rank, 0);
  EXPECT_EQ(worker->header.clock, Ns(100)) << "inherited";
  wire::Sleep sleep;
  sleep.ps = Ms(5);
  worker->Call(sleep);
  EXPECT_EQ(worker->header.clock, Ms(5) + Ns(200));
  EXPECT_FALSE(main->Answered());
  worker->Ask(wire::ThreadExit{});
  core->Run();
  EXPECT_TRUE(worker->Answered());
  ASSERT_TRUE(main->Take<wire::WaitThread>());
  EXPECT_EQ(main->header.clock, Ms(5) + Ns(200));
  worker->Gone();
  main->Call(wire::Yield{});
  EXPECT_TRUE(log.empty());
}

TEST_F(CoreTest, ATokenIsNeededToJoin) {
  auto main = Root(100);
  main->Call(wire::NewThread{});
  auto wrong = Thread(100, token + 1, 2);
  EXPECT_TRUE(wrong->closed);
  auto other_process = Thread(555, token, 2);
  EXPECT_TRUE(other_process->closed);
  auto twice = Thread(100, token, 1);
  EXPECT_TRUE(twice->closed);
  auto right = Thread(100, token, 2);
  EXPECT_FALSE(right->closed);
  EXPECT_FALSE(main->closed);
  EXPECT_EQ(log.size(), 3u);
}

TEST_F(CoreTest, ForkAndWait) {
  auto parent = Root(100);
  const std::uint64_t child_token = parent->Call(wire::NewProcess{}).token;
  auto child = Child(200, child_token);
  EXPECT_EQ(core->Run(), Core::Standing::kHeld) << "the parent runs";
  wire::ProcessStarted started;
  started.token = child_token;
  started.pid = 200;
  parent->Ask(started);
  core->Run();
  ASSERT_TRUE(parent->Take<wire::ProcessStarted>());
  EXPECT_FALSE(child->Answered()) << "one thread runs at a time; the parent has the smaller rank";
  wire::WaitProcess wait;
  wait.pid = 300;
  parent->Ask(wait);
  core->Run();
  const auto hello = child->Take<wire::Hello>();
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->rank, 1);
  wire::Alloc alloc;
  alloc.size = 1024;
  child->Ask(alloc);
  core->Run();
  parent->Take<wire::WaitProcess>();
  EXPECT_EQ(parent->header.status, static_cast<int>(node::Status::kNotFound)) << "no such child";
  wait.pid = -1;
  wait.no_hang = true;
  parent->Ask(wait);
  core->Run();
  EXPECT_EQ(parent->Take<wire::WaitProcess>()->pid, 0);
  wait.no_hang = false;
  parent->Ask(wait);
  core->Run();
  ASSERT_TRUE(child->Take<wire::Alloc>());
  EXPECT_EQ(fake->alive(), 1);
  child->Gone();
  core->Run();
  EXPECT_EQ(fake->alive(), 0);
  const auto ended = parent->Take<wire::WaitProcess>();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->pid, 200);
  parent->Call(wait);
  EXPECT_EQ(parent->header.status, static_cast<int>(node::Status::kNotFound));
  EXPECT_TRUE(core->hosts().deterministic());
}

TEST_F(CoreTest, AForkThatFailed) {
  auto parent = Root(100);
  wire::ProcessStarted started;
  started.token = parent->Call(wire::NewProcess{}).token;
  started.pid = -1;
  parent->Ask(started);
  core->Tick(0);
  core->Tick(10'000);  // the child never comes, and here nobody knows yet that it will not
  core->Run();
  ASSERT_TRUE(parent->Take<wire::ProcessStarted>());
  EXPECT_EQ(core->process_count(), 1u);
}

TEST_F(CoreTest, ExecKeepsRankAndClock) {
  auto parent = Root(100);
  const std::uint64_t child_token = parent->Call(wire::NewProcess{}).token;
  auto child = Child(200, child_token);
  wire::ProcessStarted started{child_token, 200};
  parent->Ask(started);
  core->Run();
  ASSERT_TRUE(parent->Take<wire::ProcessStarted>());
  parent->Ask(wire::WaitProcess{});
  core->Run();
  ASSERT_TRUE(child->Take<wire::Hello>());
  child->Call(wire::Init{});
  wire::Hello hello;
  hello.token = child->Call(wire::Exec{}).token;
  hello.kind = wire::Hello::Kind::kExec;
  child->Gone();
  EXPECT_EQ(core->Run(), Core::Standing::kHeld) << "the new image is expected";
  EXPECT_FALSE(parent->Answered());
  EXPECT_EQ(fake->alive(), 0) << "its CUDA context went with the old image";
  Client image(*core, 200);
  const auto answer = image.Call(hello);
  EXPECT_EQ(answer.rank, 1);
  EXPECT_EQ(answer.token, child_token);
  image.Call(wire::Init{});
  image.Gone();
  core->Run();
  EXPECT_EQ(parent->Take<wire::WaitProcess>()->pid, 200);
  EXPECT_TRUE(core->hosts().deterministic());
}

TEST_F(CoreTest, DescriptorsAreLookedAtBeforeTimePasses) {
  auto a = Root(100);
  const std::uint64_t child_token = a->Call(wire::NewProcess{}).token;
  auto b = Child(200, child_token);
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
  wire::WaitFd wait;
  wait.events = {POLLIN};
  std::vector<wire::Fd> fds;
  fds.emplace_back(ends[0]);
  a->Ask(wait, std::move(fds));
  core->Run();
  ASSERT_TRUE(b->Take<wire::Hello>());
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  wire::Sleep sleep;
  sleep.ps = Ms(1'000);
  b->Ask(sleep);
  core->Run();
  const auto ready = a->Take<wire::WaitFd>();
  ASSERT_TRUE(ready);
  EXPECT_TRUE(ready->ready);
  EXPECT_LT(a->header.clock, Us(1));
  close(ends[1]);
}

TEST_F(CoreTest, DescriptorsTimeOutInVirtualTime) {
  auto a = Root(100);
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
  wire::WaitFd wait;
  wait.events = {POLLIN};
  wait.timeout_ps = Ms(250);
  std::vector<wire::Fd> fds;
  fds.emplace_back(ends[0]);
  a->Ask(wait, std::move(fds));
  core->Run();
  EXPECT_FALSE(a->Take<wire::WaitFd>()->ready);
  EXPECT_EQ(a->header.clock, Ms(250) + Ns(100));
  close(ends[1]);
}

TEST_F(CoreTest, KeysWakeInOrderOfRegistration) {
  auto a = Root(100);
  const std::uint64_t process = token;
  a->Call(wire::NewThread{});
  auto b = Thread(100, process, 2);
  wire::Key key;
  key.where = 0x1234;
  a->Call(wire::WatchKey{key});
  a->Ask(wire::Sleep{Us(1)});
  core->Run();
  ASSERT_TRUE(b->Take<wire::Hello>());
  EXPECT_EQ(b->Call(wire::WakeKey{key, 5}).woken, 1u);
  b->Ask(wire::WaitKey{key, Us(10)});  // registers and waits
  core->Run();
  ASSERT_TRUE(a->Take<wire::Sleep>());
  EXPECT_TRUE(a->Call(wire::WaitKey{key, -1}).woken) << "the wake came between watch and wait";
  a->Ask(wire::WaitKey{key, Us(3)});
  core->Run();
  EXPECT_FALSE(a->Take<wire::WaitKey>()->woken);
  EXPECT_LT(a->header.clock, Us(5));
  a->Ask(wire::WakeKey{key, 1});
  core->Run();
  EXPECT_EQ(a->Take<wire::WakeKey>()->woken, 1u) << "a's own registration timed out";
  EXPECT_FALSE(a->Call(wire::UnwatchKey{key}).woken);
  a->Ask(wire::Yield{});
  core->Run();
  EXPECT_TRUE(b->Take<wire::WaitKey>()->woken);
}

TEST_F(CoreTest, BarriersReleaseEverybodyAtTheLastOnesTime) {
  auto a = Root(100);
  const std::uint64_t child_token = a->Call(wire::NewProcess{}).token;
  auto b = Child(200, child_token);
  wire::BootstrapBarrier barrier{"start", 2};
  a->Ask(barrier);
  core->Run();
  ASSERT_TRUE(b->Take<wire::Hello>());
  wire::Sleep sleep{Ms(3)};
  b->Call(sleep);
  b->Ask(barrier);
  core->Run();
  EXPECT_TRUE(b->Take<wire::BootstrapBarrier>()->last);
  const node::Time at = b->header.clock;
  b->Ask(wire::Yield{});
  core->Run();
  EXPECT_FALSE(a->Take<wire::BootstrapBarrier>()->last);
  EXPECT_EQ(a->header.clock, at);
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

TEST_F(CoreTest, LongWaitsByYieldingLetTimeoutsCome) {
  auto a = Root(100);
  const std::uint64_t child_token = a->Call(wire::NewProcess{}).token;
  auto b = Child(200, child_token);
  a->Ask(wire::Yield{});
  core->Run();
  ASSERT_TRUE(b->Take<wire::Hello>());
  wire::Sleep sleep;
  sleep.ps = Ms(1'000);
  b->Ask(sleep);
  core->Run();
  int yields = 1;
  node::Time before = 0, longest = 0;
  while (!b->Answered() && yields < 100'000) {
    ASSERT_TRUE(a->Take<wire::Yield>());
    longest = std::max(longest, a->header.clock - before);
    before = a->header.clock;
    if (yields < 4'000) {
      EXPECT_LT(longest, Us(1)) << "short waits are polled closely";
    }
    a->Ask(wire::Yield{});
    core->Run();
    ++yields;
  }
  EXPECT_LT(yields, 12'000) << "a second, at 100 ns each ten million";
  EXPECT_LT(longest, Us(201));
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

TEST_F(CoreTest, NoDeadlockWhileAUserMayType) {
  auto rank = Root(100);
  // The read end of a pipe that this very test holds: an outsider to the ranks' pids.
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  wire::WaitFd wait;
  wait.events = {POLLIN};
  std::vector<wire::Fd> fds;
  fds.emplace_back(open("/dev/ptmx", O_RDWR | O_NOCTTY));
  rank->Ask(wait, std::move(fds));
  EXPECT_EQ(core->Run(), Core::Standing::kIdle);
  core->Tick(0);
  core->Tick(60'000);
  EXPECT_EQ(core->Run(), Core::Standing::kIdle);
  close(ends[0]);
  close(ends[1]);
}

TEST_F(CoreTest, APipeThatOnlyRanksHoldIsADeadlock) {
  auto rank = Root(getpid());  // stands for the node and for the rank alike
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  wire::WaitFd wait;
  wait.events = {POLLIN};
  std::vector<wire::Fd> fds;
  fds.emplace_back(ends[0]);
  rank->Ask(wait, std::move(fds));
  EXPECT_EQ(core->Run(), Core::Standing::kDeadlock);
  close(ends[1]);
}

// --- failure
// ----------------------------------------------------------------------------------------

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
