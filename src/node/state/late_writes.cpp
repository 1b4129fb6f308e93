// See late_writes.h.
#include "node/state/late_writes.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace allranks::node {
namespace {

// A line is pruned when it has so many, or twice as many as the last time: a counter that all
// devices add to has hundreds, all of them on their way.
constexpr std::size_t kFewInLine = 16;
constexpr std::size_t kCrowd = 256;
// 40 MB, and 100 MB with their pages if no two are near each other. Of packets of 16 bytes that do
// not make up lines, 4 MB.
constexpr std::size_t kMaxWrites = std::size_t{1} << 18;
constexpr std::uint32_t kSettledBytes = 64;  // bytes of which one word says what is settled

std::uint64_t Bits(std::uint64_t count) {
  return count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

}  // namespace

LateWrites::Line* LateWrites::FindLine(std::uint64_t number) const {
  const std::uint64_t page = number / kPageLines;
  if (last_ == nullptr || last_number_ != page) {
    const auto found = pages_.find(page);
    if (found == pages_.end()) return nullptr;
    last_number_ = page;
    last_ = found->second.get();
  }
  return &(*last_)[number % kPageLines];
}

LateWrites::Line& LateWrites::LineAt(std::uint64_t number) {
  if (Line* line = FindLine(number)) return *line;
  last_number_ = number / kPageLines;
  last_ = pages_.emplace(last_number_, std::make_unique<Page>()).first->second.get();
  return (*last_)[number % kPageLines];
}

template <class F>
void LateWrites::ForLines(std::uint64_t offset, std::uint32_t size, F f) const {
  const std::uint64_t last = (offset + size - 1) / kLineBytes;
  for (std::uint64_t at = offset / kLineBytes; at <= last;) {
    if (Line* line = FindLine(at)) {
      f(*line);
      ++at;
    } else {
      at = (at / kPageLines + 1) * kPageLines;
    }
  }
}

void LateWrites::Add(std::uint64_t offset, std::uint32_t size, const std::byte* old,
                     std::uint64_t writer, Time now, bool atomic) {
  if (count_ >= sweep_at_) Sweep(now);
  const std::uint64_t number = offset / kLineBytes;
  Line& line = LineAt(number);
  const bool open = !open_.empty() && open_.back() == number;
  if (!open && line.writes.size() >= line.prune_at) Prune(line, now);  // else the lane before has
  if (atomic) {  // lanes of one instruction on one place are one write
    for (auto last = line.writes.rbegin();
         last != line.writes.rend() && last->visible == kTimeNever; ++last) {
      if (last->offset == offset && last->size == size) return;
    }
  }
  Write& write = line.writes.emplace_back();
  write.offset = offset;
  write.size = static_cast<std::uint8_t>(size);
  write.atomic = atomic;
  std::memcpy(write.old, old, size);
  write.visible = kTimeNever;
  write.writer = writer;
  ++count_;
  if (!open) open_.push_back(number);
}

void LateWrites::Close(Time visible) {
  for (const std::uint64_t number : open_) {
    Line* const line = FindLine(number);
    if (line == nullptr) continue;
    std::vector<Write>& writes = line->writes;
    for (auto write = writes.rbegin(); write != writes.rend() && write->visible == kTimeNever;
         ++write) {
      write->visible = visible;
    }
  }
  if (!open_.empty()) latest_ = std::max(latest_, visible);
  open_.clear();
}

void LateWrites::Reveal(std::uint64_t offset, std::uint32_t size, Time now) {
  if (count_ == 0) return;
  ForLines(offset, size, [&](Line& line) {
    for (Write& write : line.writes) {
      if (write.offset < offset + size && offset < write.end())
        write.visible = std::min(write.visible, now);
    }
  });
}

Time LateWrites::Hide(std::uint64_t offset, std::uint32_t size, std::byte* value, Time sampled,
                      std::uint64_t reader) const {
  Time own = 0;
  if (count_ == 0) return own;
  for (std::uint32_t done = 0; done < size; done += kSettledBytes) {
    own = std::max(own, HidePart(offset + done, std::min(kSettledBytes, size - done), value + done,
                                 sampled, reader));
  }
  return own;
}

Time LateWrites::HidePart(std::uint64_t offset, std::uint32_t size, std::byte* value, Time sampled,
                          std::uint64_t reader) const {
  Time own = 0;
  const std::uint64_t all = Bits(size);
  std::uint64_t settled = 0;  // bytes whose newest visible write has been met
  ForLines(offset, size, [&](const Line& line) {
    for (auto write = line.writes.rbegin(); write != line.writes.rend() && settled != all;
         ++write) {
      const std::uint64_t begin = std::max(offset, write->offset);
      const std::uint64_t end = std::min(offset + size, write->end());
      if (begin >= end) continue;
      const std::uint64_t reached = Bits(end - begin) << (begin - offset);
      const std::uint64_t open = reached & ~settled;
      if (open == 0) continue;
      if (write->visible <= sampled || write->writer == reader) {
        settled |= open;
        if (write->atomic && write->writer == reader) own = std::max(own, write->visible);
      } else if (open == reached) {
        std::memcpy(value + (begin - offset), write->old + (begin - write->offset), end - begin);
      } else {
        for (std::uint64_t left = open; left != 0; left &= left - 1) {
          const auto at = static_cast<std::uint64_t>(std::countr_zero(left));
          value[at] = std::byte{write->old[offset + at - write->offset]};
        }
      }
    }
  });
  return own;
}

Time LateWrites::Latest(std::uint64_t offset, std::uint32_t size) const {
  Time latest = 0;
  if (count_ == 0) return latest;
  ForLines(offset, size, [&](const Line& line) {
    for (auto write = line.writes.rbegin(); write != line.writes.rend(); ++write) {
      if (write->offset >= offset + size || offset >= write->end()) continue;
      latest = std::max(latest, write->visible);
      // An atomic is visible no earlier than what it came after.
      if (write->atomic && write->offset <= offset && write->end() >= offset + size) break;
    }
  });
  return latest;
}

bool LateWrites::Crowded(std::uint64_t offset) const {
  const Line* const line = FindLine(offset / kLineBytes);
  return line != nullptr && line->writes.size() > kCrowd;
}

Time LateWrites::Next(std::uint64_t offset, std::uint32_t size, Time now) const {
  Time next = kTimeNever;
  ForLines(offset, size, [&](const Line& line) {
    for (const Write& write : line.writes) {
      if (write.offset < offset + size && offset < write.end() && write.visible > now)
        next = std::min(next, write.visible);
    }
  });
  return next;
}

// Drops what everybody can see. A write that can be seen also ends those before it, so these go
// with it; where they reach beyond it, both stay until they can.
void LateWrites::Prune(Line& line, Time now) {
  std::vector<Write>& writes = line.writes;
  const auto late = [&](const Write& write) { return write.visible > now; };
  if (std::none_of(writes.begin(), writes.end(), late)) {
    count_ -= writes.size();
    writes.clear();
  }
  for (std::size_t i = writes.size(); i-- > 0;) {
    if (writes[i].visible > now) continue;
    const Write seen = writes[i];
    bool covers = true;
    for (std::size_t k = 0; k < i; ++k) {
      const bool overlaps = writes[k].offset < seen.end() && seen.offset < writes[k].end();
      covers &= !overlaps || (writes[k].offset >= seen.offset && writes[k].end() <= seen.end());
    }
    if (!covers) continue;
    std::size_t kept = 0;
    for (std::size_t k = 0; k < i; ++k) {
      if (writes[k].offset < seen.end() && seen.offset < writes[k].end()) continue;
      writes[kept++] = writes[k];
    }
    count_ -= i + 1 - kept;
    writes.erase(writes.begin() + static_cast<std::ptrdiff_t>(kept),
                 writes.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    i = kept;
  }
  line.prune_at = std::max(kFewInLine, 2 * writes.size());
}

// All lines. How often depends on how many are left, so that each write pays for it once.
void LateWrites::Sweep(Time now) {
  last_ = nullptr;
  for (auto page = pages_.begin(); page != pages_.end();) {
    bool empty = true;
    for (Line& line : *page->second) {
      if (line.writes.capacity() == 0) continue;
      Prune(line, now);
      if (line.writes.empty()) line = Line();
      empty = empty && line.writes.empty();
    }
    page = empty ? pages_.erase(page) : std::next(page);
  }
  if (count_ >= kMaxWrites) {  // seen early rather than kept without bound
    pages_.clear();
    open_.clear();
    count_ = 0;
  }
  sweep_at_ = std::max<std::size_t>(4096, 2 * count_);
}

}  // namespace allranks::node
