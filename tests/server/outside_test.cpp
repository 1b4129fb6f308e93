// What /proc shows of threads that wait for each other.
#include "server/outside.h"

#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <climits>
#include <thread>

namespace allranks::server {
namespace {

using Clock = std::chrono::steady_clock;

// Two threads that take turns: at every moment one of them runs or has been woken.
class Turns {
 public:
  Turns() {
    for (int me : {0, 1}) threads_[me] = std::thread([this, me] { TakeTurns(me); });
    while (tids_[0] == 0 || tids_[1] == 0) std::this_thread::yield();
  }
  ~Turns() {
    stop_ = true;
    ++turn_;
    Futex(FUTEX_WAKE_PRIVATE, INT_MAX);
    for (std::thread& thread : threads_) thread.join();
  }
  std::optional<std::uint64_t> Asleep(int which) const {
    return WaitsForThread(getpid(), tids_[which]);
  }
  int turns() const { return turn_; }

 private:
  void TakeTurns(int me) {
    tids_[me] = static_cast<pid_t>(syscall(SYS_gettid));
    while (!stop_) {
      const int turn = turn_;
      if (turn % 2 != me) {
        Futex(FUTEX_WAIT_PRIVATE, turn);
        continue;
      }
      turn_ = turn + 1;
      Futex(FUTEX_WAKE_PRIVATE, INT_MAX);
    }
    turn_ += 1;
    Futex(FUTEX_WAKE_PRIVATE, INT_MAX);
  }
  void Futex(int operation, int value) {
    syscall(SYS_futex, &turn_, operation, value, nullptr, nullptr, 0);
  }

  std::atomic<int> turn_ = 0;
  std::atomic<bool> stop_ = false;
  std::array<std::atomic<pid_t>, 2> tids_ = {};
  std::array<std::thread, 2> threads_;
};

// A thread that was woken and waits for its core is not asleep, or a run ends as a deadlock.
TEST(OutsideTest, OneOfTwoThreadsThatTakeTurnsIsAwake) {
  Turns turns;
  int looks = 0, both = 0;
  const Clock::time_point end = Clock::now() + std::chrono::seconds(4);
  while (Clock::now() < end) {
    const auto first = turns.Asleep(0), second = turns.Asleep(1);
    if (!first || !second) continue;
    ++looks;
    if (turns.Asleep(0) == first && turns.Asleep(1) == second) ++both;
  }
  EXPECT_EQ(both, 0) << "of " << looks << " times that each was seen asleep";
  EXPECT_GT(turns.turns(), 100);
}

TEST(OutsideTest, AThreadThatNobodyWakesIsAsleep) {
  std::atomic<int> word = 0;
  std::atomic<pid_t> tid = 0;
  std::thread thread([&] {
    tid = static_cast<pid_t>(syscall(SYS_gettid));
    while (word == 0) syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
  });
  std::optional<std::uint64_t> asleep;
  while (!asleep) {
    std::this_thread::yield();
    if (tid != 0) asleep = WaitsForThread(getpid(), tid);
  }
  EXPECT_EQ(WaitsForThread(getpid(), tid), asleep);
  word = 1;
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  thread.join();
}

}  // namespace
}  // namespace allranks::server
