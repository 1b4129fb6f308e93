// Results come in the order of the list, whoever executes them, and no worker is left waiting.
#include "judge/window_queue.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

namespace allranks::judge {
namespace {

struct Task {
  int weight = 0;
  std::uint32_t place = 0;
};
using Queue = WindowQueue<Task, int>;
constexpr auto kAlways = [] { return true; };

std::vector<Task> Numbers(int count) {
  std::vector<Task> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back({i, static_cast<std::uint32_t>(i)});
  return numbers;
}

int Squared(const Task& task) { return task.weight * task.weight; }

TEST(WindowQueue, TheOwnerAloneExecutesAllInOrder) {
  Queue queue;
  queue.Fill(Numbers(5));
  std::vector<int> executed;
  for (int i = 0; i < 5; ++i) {
    const int result = queue.Obtain(static_cast<std::size_t>(i), [&](const Task& task) {
      executed.push_back(task.weight);
      return Squared(task);
    });
    EXPECT_EQ(result, i * i);
  }
  EXPECT_EQ(executed, (std::vector<int>{0, 1, 2, 3, 4}));
  queue.Close();
}

TEST(WindowQueue, HelpersChangeNoResult) {
  constexpr int kTasks = 1'000;
  Queue queue;
  queue.Fill(Numbers(kTasks));
  std::vector<std::jthread> helpers;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(queue.Enter());
    helpers.emplace_back([&, i] {
      queue.Help(i + 1, Squared, kAlways);
      queue.Leave();
    });
  }
  for (int list = 0; list < 2; ++list) {
    if (list == 1) queue.Fill(Numbers(kTasks));
    for (int i = 0; i < kTasks; ++i)
      ASSERT_EQ(queue.Obtain(static_cast<std::size_t>(i), Squared), i * i);
  }
  queue.Close();
}

// A window that the owner no longer wants is not waited for longer than its helper notices.
TEST(WindowQueue, WhoExecutesSeesThatItIsClosed) {
  Queue queue;
  queue.Fill(Numbers(3));
  ASSERT_TRUE(queue.Enter());
  std::atomic<bool> begun{false};
  std::jthread helper([&] {
    queue.Help(
        1,
        [&](const Task& task) {
          begun = true;
          while (!queue.closed()) std::this_thread::yield();
          return task.weight;
        },
        kAlways);
    queue.Leave();
  });
  while (!begun) std::this_thread::yield();
  queue.Close();
  EXPECT_FALSE(queue.Enter());
}

// Runs a helper until it has executed `count` tasks; the weights of these, in order.
std::vector<int> Helped(Queue& queue, int count, const std::function<bool()>& usable = kAlways) {
  EXPECT_TRUE(queue.Enter());
  std::vector<int> executed;
  std::atomic<int> done{0};
  std::jthread helper([&] {
    queue.Help(
        1,
        [&](const Task& task) {
          executed.push_back(task.weight);
          ++done;
          return Squared(task);
        },
        usable);
    queue.Leave();
  });
  while (done < count) std::this_thread::yield();
  queue.Close();
  return executed;
}

TEST(WindowQueue, AHelperBeginsWithTheCaseOfTheLongest) {
  Queue queue;
  queue.Fill({{3, 0}, {4, 1}, {9, 1}, {5, 2}});
  EXPECT_EQ(Helped(queue, 4), (std::vector<int>{4, 9, 5, 3}));
  EXPECT_EQ(queue.Obtain(2, Squared), 81);
}

TEST(WindowQueue, WhoExecutesOneWindowOfACaseExecutesAll) {
  Queue queue;
  queue.Fill({{3, 0}, {5, 1}});
  EXPECT_EQ(queue.Obtain(0, Squared), 9);  // case 0 is the owner's now
  queue.Fill({{8, 0}, {6, 1}, {7, 0}, {5, 1}});
  EXPECT_EQ(Helped(queue, 2), (std::vector<int>{6, 5}));
  EXPECT_EQ(queue.Obtain(0, Squared), 64);
}

// Whatever it would execute after its session has ended says nothing about the candidate.
TEST(WindowQueue, AHelperWhoseSessionHasEndedLeavesItsCasesToOthers) {
  Queue queue;
  queue.Fill({{3, 0}, {4, 1}, {9, 1}});
  ASSERT_TRUE(queue.Enter());
  bool ended = false;
  queue.Help(
      1,
      [&](const Task&) {
        ended = true;
        return -1;
      },
      [&] { return !ended; });
  queue.Leave();
  EXPECT_EQ(queue.Obtain(0, Squared), 9);
  EXPECT_EQ(queue.Obtain(1, Squared), -1);  // the window with which it ended
  EXPECT_EQ(queue.Obtain(2, Squared), 81);
}

TEST(WindowQueue, NoHelperComesOnceEveryCaseHasItsWorker) {
  Queue queue;
  queue.Fill({{7, 0}, {2, 1}});
  EXPECT_EQ(queue.Obtain(0, Squared), 49);
  EXPECT_TRUE(queue.Enter());
  queue.Leave();
  EXPECT_EQ(queue.Obtain(1, Squared), 4);
  EXPECT_FALSE(queue.Enter());
  queue.Fill({{8, 0}});
  EXPECT_FALSE(queue.Enter());
}

}  // namespace
}  // namespace allranks::judge
