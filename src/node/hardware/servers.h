// Capacity servers: issue slots, L2, HBM, links, copy engines. A server has so many units (bytes,
// instructions) per bucket of time and hands them out bucket by bucket. Buckets, not a "next free"
// time: a warp that runs ahead of the others within its quantum takes capacity of *its* time and
// leaves the present free for those behind it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "node/time.h"

namespace allranks::node {

class Server {
 public:
  Server() = default;
  // `units_per_bucket` may be fractional in truth; it is kept as an integer of 1/16 units. The
  // bucket is widened to a power of two, so that finding one takes no division.
  Server(Time bucket, double units_per_bucket, std::size_t ring = 4096)
      : shift_(std::bit_width(static_cast<std::uint64_t>(std::max<Time>(bucket, 2) - 1))),
        ring_(ring) {
    const auto width = static_cast<double>(Time{1} << shift_);
    const double units = units_per_bucket * width / static_cast<double>(bucket);
    capacity_ = static_cast<std::int32_t>(std::clamp(units * kScale, 1.0, 2e9));
    per_unit_ = static_cast<std::int64_t>(width * (1 << kFraction) / capacity_);
  }

  // Takes `units` at or after `at`; the time at which the last of them is served. Never earlier
  // than `at`.
  Time Take(Time at, std::int64_t units) {
    const std::int64_t want = units * kScale;
    total_ += units;
    const std::int64_t index = std::max(at >> shift_, floor_);
    if (!slots_.empty()) {
      // Nearly always the bucket of this time is in use and has room.
      Bucket& bucket = slots_[Slot(index)];
      if (bucket.index == index && capacity_ - bucket.used >= want) {
        bucket.used += static_cast<std::int32_t>(want);
        return std::max(at, Served(index, bucket));
      }
    }
    return TakeLate(at, index, want);
  }

  // How long so many units take when nobody else asks.
  Time Span(std::int64_t units) const { return units * kScale * per_unit_ >> kFraction; }

  std::int64_t total() const { return total_; }

 private:
  static constexpr std::int64_t kScale = 16;
  static constexpr int kFraction = 20;

  struct Bucket {
    std::int64_t index = -1;  // which bucket of time this entry stands for
    std::int32_t used = 0;
    std::int32_t next = 0;  // when full: how many buckets further to look (path-compressed)
  };

  Time Served(std::int64_t index, const Bucket& bucket) const {
    return (index << shift_) + (bucket.used * per_unit_ >> kFraction);
  }

  __attribute__((noinline)) Time TakeLate(Time at, std::int64_t index, std::int64_t want) {
    if (slots_.empty()) slots_.resize(ring_);  // most servers of a machine are never asked
    // Far beyond the ring nothing is remembered; the future is free there.
    for (;;) {
      Bucket* bucket = &At(index);
      if (bucket->used == capacity_) {
        index = NextFree(index);
        bucket = &At(index);
      }
      const std::int64_t free = capacity_ - bucket->used;
      if (free >= want) {
        bucket->used += static_cast<std::int32_t>(want);
        return std::max(at, Served(index, *bucket));
      }
      bucket->used = capacity_;
      want -= free;
      bucket->next = 1;
      ++index;
    }
  }

  Bucket& At(std::int64_t index) {
    Bucket& bucket = slots_[Slot(index)];
    if (bucket.index != index) {
      // An older bucket is forgotten: nobody can ask for it again without being treated as if it
      // asked at the ring's start.
      if (bucket.index > index) return slots_[Slot(bucket.index)];
      floor_ = std::max(floor_, index - static_cast<std::int64_t>(ring_) + 1);
      bucket = {index, 0, 1};
    }
    return bucket;
  }

  std::int64_t NextFree(std::int64_t index) {
    std::int64_t at = index;
    while (true) {
      const Bucket& bucket = At(at);
      if (bucket.used < capacity_) break;
      at += std::max(bucket.next, 1);
    }
    // Compress: everything on the way now points to the free bucket.
    std::int64_t walk = index;
    while (walk < at) {
      Bucket& bucket = At(walk);
      const std::int64_t next = walk + std::max(bucket.next, 1);
      bucket.next = static_cast<std::int32_t>(at - walk);
      walk = next;
    }
    return at;
  }

  std::size_t Slot(std::int64_t index) const {
    return static_cast<std::size_t>(index) & (ring_ - 1);
  }

  int shift_ = 1;
  std::size_t ring_ = 4096;  // a power of two
  std::int32_t capacity_ = 1;
  std::int64_t per_unit_ = 1;  // time of 1/16 unit, in 2^-20 ps
  std::int64_t floor_ = 0;
  std::int64_t total_ = 0;
  std::vector<Bucket> slots_;
};

}  // namespace allranks::node
