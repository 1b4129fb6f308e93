// Strong writes that have been performed but have not reached every observer yet: until its time a
// strong load from another CTA still gets the old bytes. Kept by lines of 128 bytes, because
// protocols that mix flags into their data have whole buffers of them on their way.
//
// Writes are in modification order, which is the order in which they were performed, and not that
// in which they become visible. An atomic has to read the write before it, so it comes after all
// that are on their way (and is visible no earlier), unless it leaves alone what a load would see
// now: such a one may as well come before them. The engine decides that (engine_memory.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "node/time.h"

namespace allranks::node {

class LateWrites {
 public:
  static constexpr std::uint32_t kLineBytes = 128;  // the most of one write

  // `size` bytes at `offset`, within a line, have replaced `old`. `writer` is a CTA number, or 0
  // for a host or copy engine. When they can be seen is said by Close, for all added since.
  void Add(std::uint64_t offset, std::uint32_t size, const std::byte* old, std::uint64_t writer,
           Time now, bool atomic = false);
  void Close(Time visible);
  // Whether a reader at this time or later might miss something.
  bool Pending(Time at) const { return count_ != 0 && latest_ > at; }
  // The bytes were written outside of time: from now on everybody sees the newest.
  void Reveal(std::uint64_t offset, std::uint32_t size, Time now);
  // Undoes in `value` what a reader at `sampled` cannot see yet; for each byte
  // only back to the newest write that it can see or has made itself: nothing older may come back
  // (coherence). Returns when the last of the reader's own atomics that it sees is performed, 0 if
  // it sees none: it cannot be read earlier, since it was made of what others had on their way.
  Time Hide(std::uint64_t offset, std::uint32_t size, std::byte* value, Time sampled,
            std::uint64_t reader) const;
  // When all that is known to be on its way to these bytes is visible; 0 if nothing is.
  Time Latest(std::uint64_t offset, std::uint32_t size) const;
  // So much is on its way to that line that what a reader sees takes long to find out.
  bool Crowded(std::uint64_t offset) const;
  // The first time after `now` at which one of these bytes changes for others; kTimeNever if none.
  Time Next(std::uint64_t offset, std::uint32_t size, Time now) const;
  std::size_t size() const { return count_; }

 private:
  struct Write {
    std::uint64_t offset = 0;
    std::uint8_t size = 0;
    bool atomic = false;
    std::uint8_t old[kLineBytes];
    Time visible = 0;
    std::uint64_t writer = 0;
    std::uint64_t end() const { return offset + size; }
  };
  struct Line {
    std::vector<Write> writes;  // oldest first
    std::size_t prune_at = 0;
  };
  // Neighbours lie together: an access of a warp looks up one page for all its lines.
  static constexpr std::uint64_t kPageLines = 8;
  using Page = std::array<Line, kPageLines>;

  Line& LineAt(std::uint64_t number);
  // nullptr: nothing is on its way to this line or to its neighbours.
  Line* FindLine(std::uint64_t number) const;
  Time HidePart(std::uint64_t offset, std::uint32_t size, std::byte* value, Time sampled,
                std::uint64_t reader) const;
  // Calls f(line) for the lines that the bytes are in, if there are any.
  template <class F>
  void ForLines(std::uint64_t offset, std::uint32_t size, F f) const;
  void Prune(Line& line, Time now);
  void Sweep(Time now);

  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  // The page that was looked up last; nullptr: none.
  mutable std::uint64_t last_number_ = 0;
  mutable Page* last_ = nullptr;
  std::vector<std::uint64_t> open_;  // lines with writes whose time is not known yet
  std::size_t count_ = 0;
  std::size_t sweep_at_ = 4096;
  Time latest_ = 0;
};

}  // namespace allranks::node
