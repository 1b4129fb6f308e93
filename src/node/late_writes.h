// Strong writes that have been performed but have not reached every observer yet: until its time a
// strong load from another CTA still gets the old bytes. Kept by lines of 128 bytes, because
// protocols that mix flags into their data have whole buffers of them on their way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "node/time.h"

namespace allranks::node {

class LateWrites {
 public:
  static constexpr std::uint32_t kMaxBytes = 16;  // of one write

  // `size` bytes at `offset`, within a line, have replaced `old`. `writer` is a CTA number, or 0
  // for a host or copy engine. When they can be seen is said by Close, for all added since.
  void Add(std::uint64_t offset, std::uint32_t size, const std::byte* old, std::uint64_t writer,
           Time now);
  void Close(Time visible);
  // Whether a reader at this time or later might miss something.
  bool Pending(Time at) const { return count_ != 0 && latest_ > at; }
  // Somebody has seen the newest value of these bytes: from now on everybody may.
  void Reveal(std::uint64_t offset, std::uint32_t size, Time now);
  // Undoes in `value` (at most 64 bytes) what a reader at `sampled` cannot see yet; for each byte
  // only back to the newest write that it can see or has made itself: nothing older may come back
  // (coherence).
  void Hide(std::uint64_t offset, std::uint32_t size, std::byte* value, Time sampled,
            std::uint64_t reader) const;
  // The first time after `now` at which one of these bytes changes for others; kTimeNever if none.
  Time Next(std::uint64_t offset, std::uint32_t size, Time now) const;
  std::size_t size() const { return count_; }

 private:
  struct Write {
    std::uint64_t offset = 0;
    std::uint8_t size = 0;
    std::uint8_t old[kMaxBytes] = {};
    Time visible = 0;
    std::uint64_t writer = 0;
    std::uint64_t end() const { return offset + size; }
  };
  using Line = std::vector<Write>;  // oldest first

  // Calls f(line) for the lines that the bytes are in, if there are any.
  template <class Lines, class F>
  static void ForLines(Lines& lines, std::uint64_t offset, std::uint32_t size, F f);
  void Prune(Line& line, Time now);
  void Sweep(Time now);

  std::unordered_map<std::uint64_t, Line> lines_;
  std::vector<std::uint64_t> open_;  // lines with writes whose time is not known yet
  std::size_t count_ = 0;
  std::size_t sweep_at_ = 4096;
  Time latest_ = 0;
};

}  // namespace allranks::node
