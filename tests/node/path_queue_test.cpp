// The queue of paths gives exactly the order of a binary heap, whatever is pushed when.
#include "node/state/path_queue.h"

#include <gtest/gtest.h>

#include <queue>
#include <random>

namespace allranks::node {
namespace {

TEST(PathQueue, HasTheOrderOfAHeap) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 100; ++round) {
    PathQueue queue;
    std::priority_queue<QueuedPath> heap;
    std::uint64_t ticket = 0;
    Time now = 0;
    for (int step = 0; step < 5000; ++step) {
      if (heap.empty() || random() % 100 < 52) {
        // Near, far beyond the ring, and a little in the past: all happen.
        auto ahead = static_cast<Time>(random() % 200'000);
        if (random() % 10 == 0) ahead = static_cast<Time>(random() % Us(200));
        if (random() % 50 == 0) ahead = -static_cast<Time>(random() % 1000);
        const QueuedPath entry{std::max<Time>(0, now + ahead), ++ticket, nullptr};
        queue.push(entry);
        heap.push(entry);
        continue;
      }
      ASSERT_EQ(queue.size(), heap.size());
      ASSERT_EQ(queue.top().time, heap.top().time);
      ASSERT_EQ(queue.top().ticket, heap.top().ticket);
      now = std::max(now, heap.top().time);
      queue.pop();
      heap.pop();
    }
  }
}

}  // namespace
}  // namespace allranks::node
