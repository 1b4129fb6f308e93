// The server without sockets, and without devices: threads and processes as they come and go, and
// their waits for each other, for descriptors and for time.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>

#include "tests/server/core_fixture.h"

namespace allranks::server {
namespace {

using node::Ms;
using node::Ns;
using node::Us;

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

// A rank that has used a device, and then has only slept and asked for longer than an idle span.
class CoreIdleTest : public CoreTest {
 protected:
  void SetUp() override {
    rank = Root(100);
    rank->Call(wire::Alloc{.size = 64});
    wire::Sleep sleep;
    sleep.ps = Ms(11);
    for (int i = 0; i < 1'100; ++i) rank->Call(sleep);
    log.clear();
  }
  std::unique_ptr<Client> rank;
};

TEST_F(CoreIdleTest, WhoOnlyAsksIsNamedOnce) {
  for (std::int64_t ms = 0; ms <= 10'000; ms += 50) {
    core->Tick(ms);
    if (ms < 3'000) {
      EXPECT_TRUE(log.empty()) << ms;
    }
    rank->Call(wire::Yield{});
  }
  ASSERT_EQ(log.size(), 1u);
  EXPECT_NE(log[0].find("for 3 s everybody has only waited"), std::string::npos) << log[0];
  EXPECT_NE(log[0].find("\n  thread 1: "), std::string::npos) << log[0];
}

TEST_F(CoreIdleTest, WhoComputesIsNot) {
  rank->Call(wire::Yield{});
  for (std::int64_t ms = 0; ms <= 10'000; ms += 50) core->Tick(ms);
  EXPECT_TRUE(log.empty()) << log[0];
}

TEST_F(CoreIdleTest, WhoHasActedIsNot) {
  for (std::int64_t ms = 0; ms <= 10'000; ms += 50) {
    core->Tick(ms);
    rank->Call(wire::Yield{});
    if (ms % 1'000 == 0) rank->Call(wire::MemInfo{});
  }
  EXPECT_TRUE(log.empty()) << log[0];
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

}  // namespace
}  // namespace allranks::server
