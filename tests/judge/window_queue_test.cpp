// Results come in the order of the list, whoever executes them, and nobody is left behind.
#include "judge/window_queue.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace allranks::judge {
namespace {

struct Task {
  int weight = 0;
};
using Queue = WindowQueue<Task, int>;

std::vector<Task> Numbers(int count) {
  std::vector<Task> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back({i});
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
    helpers.emplace_back([&] {
      queue.Help(Squared);
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
    queue.Help([&](const Task& task) {
      begun = true;
      while (!queue.closed()) std::this_thread::yield();
      return task.weight;
    });
    queue.Leave();
  });
  while (!begun) std::this_thread::yield();
  queue.Close();
  EXPECT_FALSE(queue.Enter());
}

TEST(WindowQueue, AHelperBeginsWithTheLongest) {
  Queue queue;
  queue.Fill({{3}, {9}, {5}});
  ASSERT_TRUE(queue.Enter());
  std::vector<int> executed;
  std::atomic<int> count{0};
  std::jthread helper([&] {
    queue.Help([&](const Task& task) {
      executed.push_back(task.weight);
      ++count;
      return Squared(task);
    });
    queue.Leave();
  });
  while (count < 3) std::this_thread::yield();
  EXPECT_EQ(queue.Obtain(0, Squared), 9);
  EXPECT_EQ(queue.Obtain(1, Squared), 81);
  EXPECT_EQ(queue.Obtain(2, Squared), 25);
  queue.Close();
  EXPECT_EQ(executed, (std::vector<int>{9, 5, 3}));
}

TEST(WindowQueue, NobodyComesForNothing) {
  Queue queue;
  queue.Fill({{7}});
  EXPECT_EQ(queue.Obtain(0, Squared), 49);
  // There may be a second list.
  EXPECT_TRUE(queue.Enter());
  queue.Leave();
  queue.Fill({{8}});
  EXPECT_TRUE(queue.Enter());
  queue.Leave();
  EXPECT_EQ(queue.Obtain(0, Squared), 64);
  EXPECT_FALSE(queue.Enter());
}

}  // namespace
}  // namespace allranks::judge
