// A wish to end, from a signal handler or another thread, that long work looks at.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace allranks {

class Stop {
 public:
  // Safe in a signal handler.
  void Request() { requested_.store(true, std::memory_order_relaxed); }
  bool requested() const { return requested_.load(std::memory_order_relaxed); }

  // Sleeps at most that long. True if the end is wished for: then it returns within 20 ms.
  bool Sleep(std::chrono::milliseconds time) const {
    const auto end = std::chrono::steady_clock::now() + time;
    for (;;) {
      if (requested()) return true;
      const auto left = end - std::chrono::steady_clock::now();
      if (left <= std::chrono::steady_clock::duration::zero()) return false;
      std::this_thread::sleep_for(
          std::min<std::chrono::steady_clock::duration>(left, std::chrono::milliseconds(20)));
    }
  }

 private:
  std::atomic<bool> requested_ = false;
};

}  // namespace allranks
