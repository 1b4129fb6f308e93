// See late_writes.h.
#include "node/late_writes.h"

#include <algorithm>
#include <cstring>

namespace allranks::node {
namespace {

constexpr std::uint64_t kLineBytes = 128;
constexpr std::size_t kMaxInLine = 64;
constexpr std::size_t kMaxWrites = std::size_t{1} << 20;

}  // namespace

template <class Lines, class F>
void LateWrites::ForLines(Lines& lines, std::uint64_t offset, std::uint32_t size, F f) {
  for (std::uint64_t at = offset / kLineBytes; at <= (offset + size - 1) / kLineBytes; ++at) {
    if (const auto it = lines.find(at); it != lines.end()) f(it->second);
  }
}

void LateWrites::Add(std::uint64_t offset, std::uint32_t size, const std::byte* old,
                     std::uint64_t writer, Time now) {
  if (count_ >= sweep_at_) Sweep(now);
  const std::uint64_t number = offset / kLineBytes;
  Line& line = lines_[number];
  const bool open = !open_.empty() && open_.back() == number;
  if (!open) Prune(line, now);  // else the lane before has
  // Only the newest are kept: an older one is then seen a little early, which any model permits.
  if (line.size() >= kMaxInLine) {
    line.erase(line.begin(), line.begin() + kMaxInLine / 2);
    count_ -= kMaxInLine / 2;
  }
  Write write;
  write.offset = offset;
  write.size = static_cast<std::uint8_t>(size);
  std::memcpy(write.old, old, size);
  write.visible = kTimeNever;
  write.writer = writer;
  line.push_back(write);
  ++count_;
  if (!open) open_.push_back(number);
}

void LateWrites::Close(Time visible) {
  for (const std::uint64_t number : open_) {
    const auto it = lines_.find(number);
    if (it == lines_.end()) continue;
    for (auto write = it->second.rbegin();
         write != it->second.rend() && write->visible == kTimeNever; ++write) {
      write->visible = visible;
    }
  }
  if (!open_.empty()) latest_ = std::max(latest_, visible);
  open_.clear();
}

void LateWrites::Reveal(std::uint64_t offset, std::uint32_t size, Time now) {
  if (count_ == 0) return;
  ForLines(lines_, offset, size, [&](Line& line) {
    for (Write& write : line) {
      if (write.offset < offset + size && offset < write.end())
        write.visible = std::min(write.visible, now);
    }
  });
}

void LateWrites::Hide(std::uint64_t offset, std::uint32_t size, std::byte* value, Time sampled,
                      std::uint64_t reader) const {
  if (count_ == 0) return;
  std::uint64_t settled = 0;  // bytes whose newest visible write has been met
  ForLines(lines_, offset, size, [&](const Line& line) {
    for (auto write = line.rbegin(); write != line.rend(); ++write) {
      const std::uint64_t begin = std::max(offset, write->offset);
      const std::uint64_t end = std::min(offset + size, write->end());
      if (begin >= end) continue;
      const bool seen = write->visible <= sampled || write->writer == reader;
      for (std::uint64_t at = begin; at < end; ++at) {
        const std::uint64_t bit = std::uint64_t{1} << (at - offset);
        if ((settled & bit) != 0) continue;
        if (seen) {
          settled |= bit;
        } else {
          value[at - offset] = std::byte{write->old[at - write->offset]};
        }
      }
    }
  });
}

Time LateWrites::Next(std::uint64_t offset, std::uint32_t size, Time now) const {
  Time next = kTimeNever;
  ForLines(lines_, offset, size, [&](const Line& line) {
    for (const Write& write : line) {
      if (write.offset < offset + size && offset < write.end() && write.visible > now)
        next = std::min(next, write.visible);
    }
  });
  return next;
}

// Drops what everybody can see. A write that can be seen also ends those before it, so these go
// with it; where they reach beyond it, both stay until they can.
void LateWrites::Prune(Line& line, Time now) {
  const auto late = [&](const Write& write) { return write.visible > now; };
  if (std::none_of(line.begin(), line.end(), late)) {
    count_ -= line.size();
    line.clear();
    return;
  }
  for (std::size_t i = line.size(); i-- > 0;) {
    if (line[i].visible > now) continue;
    const Write seen = line[i];
    bool covers = true;
    for (std::size_t k = 0; k < i; ++k) {
      const bool overlaps = line[k].offset < seen.end() && seen.offset < line[k].end();
      covers &= !overlaps || (line[k].offset >= seen.offset && line[k].end() <= seen.end());
    }
    if (!covers) continue;
    std::size_t kept = 0;
    for (std::size_t k = 0; k < i; ++k) {
      if (line[k].offset < seen.end() && seen.offset < line[k].end()) continue;
      line[kept++] = line[k];
    }
    count_ -= i + 1 - kept;
    line.erase(line.begin() + static_cast<std::ptrdiff_t>(kept),
               line.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    i = kept;
  }
}

// All lines. How often depends on how many are left, so that each write pays for it once.
void LateWrites::Sweep(Time now) {
  for (auto it = lines_.begin(); it != lines_.end();) {
    Prune(it->second, now);
    it = it->second.empty() ? lines_.erase(it) : std::next(it);
  }
  if (count_ >= kMaxWrites) {  // seen early rather than kept without bound
    lines_.clear();
    open_.clear();
    count_ = 0;
  }
  sweep_at_ = std::max<std::size_t>(4096, 2 * count_);
}

}  // namespace allranks::node
