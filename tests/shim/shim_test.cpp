// The host library in a real process, against a scripted node: what is told to the node, and that
// the program notices nothing.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "fake_node.h"

namespace allranks::wire {
namespace {

class HostLibrary : public testing::Test {
 protected:
  HostLibrary() : path_("/tmp/allranks-shim-test-" + std::to_string(getpid())), node_(path_) {}

  // The wait status of `shim_probe what`.
  static int Run(const std::string& what, const std::string& socket) {
    const pid_t pid = fork();
    if (pid == 0) {
      if (!socket.empty()) setenv("ALLRANKS_SOCKET", socket.c_str(), 1);
      setenv("LD_PRELOAD", HOST_LIBRARY, 1);
      alarm(20);
      execl(PROBE, PROBE, what.c_str(), nullptr);
      _exit(127);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    return status;
  }
  int Run(const std::string& what) { return Run(what, path_); }

  std::string path_;
  FakeNode node_;
};

TEST_F(HostLibrary, ThreadsAreAnnouncedAndJoined) {
  EXPECT_EQ(Run("threads"), 0);
  EXPECT_EQ(node_.Hellos(Hello::Kind::kRoot), 1);
  EXPECT_EQ(node_.Hellos(Hello::Kind::kThread), 4);
  EXPECT_EQ(node_.Count(Op::kNewThread), 4);
  EXPECT_EQ(node_.Count(Op::kThreadExit), 4);
  EXPECT_EQ(node_.Count(Op::kWaitThread), 4);
}

TEST_F(HostLibrary, ForkedChildHasItsOwnLink) {
  EXPECT_EQ(Run("fork"), 0);
  EXPECT_EQ(node_.Hellos(Hello::Kind::kRoot), 1);
  EXPECT_EQ(node_.Hellos(Hello::Kind::kChild), 1);
  EXPECT_EQ(node_.Count(Op::kProcessStarted), 1);
  EXPECT_EQ(node_.Count(Op::kWaitProcess), 1);
  EXPECT_GE(node_.Count(Op::kWaitFd), 1);
}

TEST_F(HostLibrary, SpawnedShellJoinsByEnvironment) {
  EXPECT_EQ(Run("spawn"), 0);
  EXPECT_EQ(node_.Hellos(Hello::Kind::kRoot), 1);
  EXPECT_EQ(node_.Hellos(Hello::Kind::kChild), 1);
}

TEST_F(HostLibrary, TimeIsVirtual) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(Run("time"), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  EXPECT_GE(node_.Count(Op::kYield), 4);
}

TEST_F(HostLibrary, LocksWork) { EXPECT_EQ(Run("locks"), 0); }

TEST_F(HostLibrary, LocksInSharedMemoryWork) {
  EXPECT_EQ(Run("shared"), 0);
  EXPECT_EQ(node_.Count(Op::kBarrierWait), 2);
}

TEST_F(HostLibrary, SpinOnPinnedMemoryBecomesAMessage) {
  EXPECT_EQ(Run("spin"), 0);
  const auto polls = node_.polls();
  ASSERT_EQ(polls.size(), 30u);
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(polls[static_cast<std::size_t>(i)].watches.size(), 1u);
    const auto& watch = polls[static_cast<std::size_t>(i)].watches[0];
    EXPECT_EQ(watch.address, 0x2000'0000'0000u);
    EXPECT_EQ(watch.size, 4u);
    EXPECT_EQ(watch.seen, static_cast<std::uint64_t>(i));
  }
  EXPECT_EQ(polls[25].watches.size(), 2u);
}

TEST_F(HostLibrary, DoubtedLoopsRunFreely) {
  EXPECT_EQ(Run("count_elsewhere"), 0);
  const auto polls = node_.polls();
  EXPECT_GE(polls.size(), 1u);
  EXPECT_LE(polls.size(), 3u);
}

TEST_F(HostLibrary, LoopsThatCountWaitForAWhile) {
  EXPECT_EQ(Run("count"), 0);
  const auto polls = node_.polls();
  ASSERT_EQ(polls.size(), 4u);
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(polls[i].watches.size(), 1u);
    EXPECT_EQ(polls[i].watches[0].seen, i);
    EXPECT_GT(polls[i].timeout_ps, 0);
  }
  EXPECT_LT(polls[3].timeout_ps, 0);  // a spin that proves itself
}

TEST_F(HostLibrary, FaultsOfTheProgramAreItsOwn) {
  const int handled = Run("own_fault");
  EXPECT_TRUE(WIFEXITED(handled) && WEXITSTATUS(handled) == 55);
  const int killed = Run("crash");
  EXPECT_TRUE(WIFSIGNALED(killed) && WTERMSIG(killed) == SIGSEGV);
}

TEST_F(HostLibrary, NodeThatDiesGivesErrorsAtOnce) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(Run("node_dies"), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST_F(HostLibrary, ForkAfterCudaLosesIt) { EXPECT_EQ(Run("fork_after_cuda"), 0); }

TEST_F(HostLibrary, ClosingEveryDescriptorDoesNotCutTheLink) {
  EXPECT_EQ(Run("close_all"), 0);
  EXPECT_EQ(node_.Count(Op::kSleep), 1);
}

TEST_F(HostLibrary, WithoutANodeEverythingIsNative) {
  EXPECT_EQ(Run("threads", ""), 0);
  EXPECT_EQ(Run("shared", ""), 0);
  EXPECT_EQ(node_.Hellos(Hello::Kind::kRoot), 0);
}

}  // namespace
}  // namespace allranks::wire
