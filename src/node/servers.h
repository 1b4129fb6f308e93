// Capacity servers: issue slots, L2, HBM, links, copy engines. A server has so many units (bytes,
// instructions) per bucket of time and hands them out bucket by bucket. Buckets, not a "next free"
// time: a warp that runs ahead of the others within its quantum takes capacity of *its* time and
// leaves the present free for those behind it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "node/time.h"

namespace allranks::node {

class Server {
 public:
  Server() = default;
  // `units_per_bucket` may be fractional in truth; it is kept as an integer of 1/16 units.
  Server(Time bucket, double units_per_bucket)
      : bucket_(bucket),
        capacity_(std::max<std::int64_t>(1, static_cast<std::int64_t>(units_per_bucket * kScale))) {
  }

  // Takes `units` at or after `at`; the time at which the last of them is served. Never earlier
  // than `at`.
  Time Take(Time at, std::int64_t units) {
    if (slots_.empty()) slots_.resize(kRing);  // most servers of a machine are never asked
    std::int64_t want = units * kScale;
    total_ += units;
    std::int64_t index = at / bucket_;
    if (index < floor_) index = floor_;
    // Far beyond the ring nothing is remembered; the future is free there.
    for (;;) {
      index = NextFree(index);
      Bucket& bucket = At(index);
      const std::int64_t free = capacity_ - bucket.used;
      if (free >= want) {
        bucket.used += want;
        const Time served = index * bucket_ + bucket.used * bucket_ / capacity_;
        return std::max(at, served);
      }
      bucket.used = capacity_;
      want -= free;
      bucket.next = index + 1;
      ++index;
    }
  }

  std::int64_t total() const { return total_; }

 private:
  static constexpr std::int64_t kScale = 16;
  static constexpr std::size_t kRing = 4096;

  struct Bucket {
    std::int64_t index = -1;  // which bucket of time this entry stands for
    std::int64_t used = 0;
    std::int64_t next = 0;  // when full: where to look on (path-compressed)
  };

  Bucket& At(std::int64_t index) {
    Bucket& bucket = slots_[static_cast<std::size_t>(index) % kRing];
    if (bucket.index != index) {
      // An older bucket is forgotten: nobody can ask for it again without being treated as if it
      // asked at the ring's start.
      if (bucket.index > index) return slots_[static_cast<std::size_t>(bucket.index) % kRing];
      if (index - static_cast<std::int64_t>(kRing) >= floor_) {
        floor_ = index - static_cast<std::int64_t>(kRing) + 1;
      }
      bucket = {index, 0, index + 1};
    }
    return bucket;
  }

  std::int64_t NextFree(std::int64_t index) {
    std::int64_t at = index;
    while (true) {
      const Bucket& bucket = At(at);
      if (bucket.used < capacity_) break;
      at = std::max(bucket.next, at + 1);
    }
    // Compress: everything on the way now points to the free bucket.
    std::int64_t walk = index;
    while (walk < at) {
      Bucket& bucket = At(walk);
      const std::int64_t next = std::max(bucket.next, walk + 1);
      bucket.next = at;
      walk = next;
    }
    return at;
  }

  Time bucket_ = 1;
  std::int64_t capacity_ = 1;
  std::int64_t floor_ = 0;
  std::int64_t total_ = 0;
  std::vector<Bucket> slots_;
};

}  // namespace allranks::node
