// The paths of a device that are to run, by time and, at equal times, by ticket: exactly the order
// of a binary heap, at a fraction of its cost when thousands of warps are resident.
//
// Time is cut into spans. Entries of later spans lie unsorted in a ring, those beyond the ring in a
// heap; a span is sorted when its turn comes. What is added to the span being worked off, or before
// it, goes to a small heap of its own.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <queue>
#include <utility>
#include <vector>

#include "node/time.h"

namespace allranks::node {

struct Path;

struct QueuedPath {
  Time time = 0;
  std::uint64_t ticket = 0;  // order among equal times: first queued first
  Path* path = nullptr;
  bool operator<(const QueuedPath& other) const {  // std::priority_queue keeps the largest on top
    return time != other.time ? time > other.time : ticket > other.ticket;
  }
};

class PathQueue {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }

  void push(const QueuedPath& entry) {
    ++size_;
    const std::int64_t span = entry.time >> kSpanBits;
    if (span <= current_) {
      late_.push(entry);
    } else if (span - current_ < static_cast<std::int64_t>(kRing)) {
      if (ring_.empty()) ring_.resize(kRing);
      auto& bucket = ring_[static_cast<std::size_t>(span) % kRing];
      if (bucket.empty()) {
        if (bucket.capacity() == 0 && !spare_.empty()) {
          bucket.swap(spare_.back());
          spare_.pop_back();
        }
        Mark(span);
      }
      bucket.push_back(entry);
    } else {
      far_.push(entry);
    }
  }

  // The queue must not be empty.
  const QueuedPath& top() {
    Settle();
    return FromLate() ? late_.top() : sorted_[next_];
  }
  void pop() {
    Settle();
    --size_;
    if (FromLate()) {
      late_.pop();
    } else {
      ++next_;
    }
  }

 private:
  static constexpr int kSpanBits = 16;  // 65.5 ns
  static constexpr std::size_t kRing = 256;

  bool FromLate() const {
    if (late_.empty()) return false;
    return next_ == sorted_.size() || sorted_[next_] < late_.top();
  }
  void Mark(std::int64_t span) {
    const std::size_t slot = static_cast<std::size_t>(span) % kRing;
    marks_[slot / 64] |= std::uint64_t{1} << (slot % 64);
  }
  // The first span behind the current one that has entries in the ring, or -1.
  std::int64_t NextInRing() const {
    for (std::size_t ahead = 1; ahead < kRing;) {
      const std::size_t slot = (static_cast<std::size_t>(current_) + ahead) % kRing;
      const std::uint64_t word = marks_[slot / 64] >> (slot % 64);
      if (word != 0) return current_ + static_cast<std::int64_t>(ahead) + std::countr_zero(word);
      ahead += 64 - slot % 64;
    }
    return -1;
  }
  // Makes the earliest entry available.
  void Settle() {
    if (next_ != sorted_.size() || !late_.empty()) return;
    std::int64_t span = NextInRing();
    if (!far_.empty()) {
      const std::int64_t far = far_.top().time >> kSpanBits;
      if (span < 0 || far < span) span = far;
    }
    sorted_.clear();
    next_ = 0;
    if (!ring_.empty()) {
      auto& bucket = ring_[static_cast<std::size_t>(span) % kRing];
      // Beyond the ring, the slot belongs to another span; then it is empty or not yet due.
      if (span - current_ < static_cast<std::int64_t>(kRing)) {
        if (sorted_.capacity() != 0) spare_.push_back(std::move(sorted_));
        sorted_ = std::exchange(bucket, {});
        const std::size_t slot = static_cast<std::size_t>(span) % kRing;
        marks_[slot / 64] &= ~(std::uint64_t{1} << (slot % 64));
      }
    }
    current_ = span;
    while (!far_.empty() && (far_.top().time >> kSpanBits) == span) {
      sorted_.push_back(far_.top());
      far_.pop();
    }
    const auto earlier = [](const QueuedPath& a, const QueuedPath& b) { return b < a; };
    if (!std::is_sorted(sorted_.begin(), sorted_.end(), earlier)) {
      std::sort(sorted_.begin(), sorted_.end(), earlier);
    }
  }

  std::int64_t current_ = -1;
  std::size_t size_ = 0;
  std::vector<QueuedPath> sorted_;  // of the current span, from next_ on
  std::size_t next_ = 0;
  std::priority_queue<QueuedPath> late_, far_;
  std::vector<std::vector<QueuedPath>> ring_;
  std::vector<std::vector<QueuedPath>> spare_;  // room once used, kept for the next span
  std::uint64_t marks_[kRing / 64] = {};
};

}  // namespace allranks::node
