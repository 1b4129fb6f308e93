// What is remembered of the accesses to an object: per line of 128 bytes the last write and the
// reads since, one entry per warp access, more where accesses do not fit onto each other.
//
// An older entry that a newer write has only partly replaced is kept. One that a weak write covers
// is dropped: whoever is ordered after the newer one is ordered after the older one as well, or
// these two were a race of their own. A strong write covers less: others may be morally strong to
// it and not to an older weak access, or wait for it and not for an older strong one that it is not
// ordered after. A read is dropped that a later one of the same bytes, as weak, covers and knows
// of. Lists are bounded: the oldest go first.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "node/check/clock.h"
#include "node/check/history.h"
#include "node/code/code.h"

namespace allranks::node::check {

inline constexpr std::uint32_t kLineBytes = 128;

// Lanes lane, lane + 1, ... of one warp access `width` bytes each, `stride` bytes apart.
struct Entry {
  Agent agent = 0;  // 0: none
  Tick tick = 0;
  std::uint32_t pc = 0;
  std::uint16_t warp = 0;
  std::uint8_t first = 0;  // byte of the line
  std::uint8_t stride = 0, width = 0, lane = 0, count = 1;
  std::uint8_t kind = 0;

  static constexpr std::uint8_t kStrong = 1, kAtomic = 2, kWrite = 4;
  static constexpr int kScopeShift = 3, kElementShift = 5;  // log2 of an element's bytes
  bool strong() const { return (kind & kStrong) != 0; }
  bool write() const { return (kind & kWrite) != 0; }
  bool atomic() const { return (kind & kAtomic) != 0; }
  Scope scope() const { return static_cast<Scope>(kind >> kScopeShift & 3); }
  std::uint32_t element() const { return 1u << (kind >> kElementShift); }
  std::uint32_t end() const { return first + std::uint32_t{stride} * (count - 1u) + width; }
  bool dense() const { return stride == width || count == 1; }
  std::uint32_t lanes() const {
    return static_cast<std::uint32_t>(((std::uint64_t{1} << count) - 1) << lane);
  }
  bool SameShape(const Entry& other) const {
    return first == other.first && stride == other.stride && width == other.width &&
           lane == other.lane && count == other.count;
  }
  // Whoever is morally strong to this one is so to the other, of the same bytes.
  bool AsWeakAs(const Entry& other) const {
    return !strong() ||
           (other.strong() && other.scope() >= scope() && other.element() == element());
  }
  bool SameWarp(const Entry& other) const { return agent == other.agent && warp == other.warp; }
  bool Covers(const Entry& other) const {
    return SameShape(other) || (dense() && first <= other.first && other.end() <= end()) ||
           (stride == 0 && first <= other.first && other.end() <= end());
  }
  bool Overlaps(const Entry& other) const;
  // Lanes of this entry that have bytes in common with `other`; `others`: its lanes. `crossed`: two
  // different lanes have.
  std::uint32_t Common(const Entry& other, std::uint32_t* others, bool* crossed) const;

 private:
  // The range of its accesses, from the first up to before the second, that overlap `begin` to
  // `stop`.
  std::pair<std::uint32_t, std::uint32_t> Row(std::uint32_t begin, std::uint32_t stop) const;
};
static_assert(sizeof(Entry) == 20);

struct Line {
  static constexpr std::size_t kMaxWrites = 40, kMaxStrong = 12, kMaxReads = 64;
  struct More {
    std::vector<Entry> writes, reads;
    std::uint16_t mbarriers = 0;  // live ones, a bit per 8 bytes
  };
  Entry write, read;
  std::unique_ptr<More> more;
  std::unique_ptr<History> history;  // of strong writes

  bool Empty() const { return write.agent == 0 && read.agent == 0 && more == nullptr; }
  std::uint16_t Mbarriers() const { return more != nullptr ? more->mbarriers : 0; }
  template <class F>
  void ForWrites(F f) const {
    if (write.agent != 0) f(write);
    if (more != nullptr)
      for (const Entry& entry : more->writes) f(entry);
  }
  template <class F>
  void ForReads(F f) const {
    if (read.agent != 0) f(read);
    if (more != nullptr)
      for (const Entry& entry : more->reads) f(entry);
  }
  // `stays(e)`: what the write covers is needed all the same.
  template <class F>
  void AddWrite(const Entry& entry, F stays);
  // `known(e)`: the reader is ordered after that read.
  template <class F>
  void AddRead(const Entry& entry, F known);
  More& Extra() {
    if (more == nullptr) more = std::make_unique<More>();
    return *more;
  }
};

template <class F>
void Line::AddRead(const Entry& entry, F known) {
  const auto replaces = [&](const Entry& old) {
    return entry.AsWeakAs(old) &&
           ((old.SameWarp(entry) && old.SameShape(entry)) || (entry.Covers(old) && known(old)));
  };
  if (read.agent == 0 || replaces(read)) {
    read = entry;
    return;
  }
  std::vector<Entry>& reads = Extra().reads;
  for (Entry& old : reads) {
    if (replaces(old)) {
      old = entry;
      return;
    }
  }
  if (reads.size() >= kMaxReads) reads.erase(reads.begin(), reads.begin() + kMaxReads / 4);
  reads.push_back(entry);
}

template <class F>
void Line::AddWrite(const Entry& entry, F stays) {
  const auto covered = [&](const Entry& old) { return entry.Covers(old) && !stays(old); };
  if (more != nullptr) {
    std::erase_if(more->writes, covered);
    std::erase_if(more->reads, covered);
    if (more->writes.empty() && more->reads.empty() && more->mbarriers == 0) more = nullptr;
  }
  if (read.agent != 0 && covered(read)) read = {};
  if (write.agent == 0 || covered(write)) {
    write = entry;
    return;
  }
  std::vector<Entry>& writes = Extra().writes;
  if (entry.strong() && writes.size() >= kMaxStrong) {  // a flag that everybody stores
    const auto oldest =
        std::find_if(writes.begin(), writes.end(), [](const Entry& old) { return old.strong(); });
    if (oldest != writes.end()) writes.erase(oldest);
  }
  if (writes.size() >= kMaxWrites) writes.erase(writes.begin());
  writes.push_back(entry);
}

class Shadow {
 public:
  Line& At(std::uint64_t line) {
    const std::uint64_t page = line / kPageLines;
    if (page >= pages_.size()) pages_.resize(page + 1);
    if (pages_[page] == nullptr) {
      pages_[page] = std::make_unique<Page>();
    }
    return (*pages_[page])[line % kPageLines];
  }
  // Null: nothing is remembered there.
  Line* Find(std::uint64_t line) {
    const std::uint64_t page = line / kPageLines;
    if (page >= pages_.size() || pages_[page] == nullptr) return nullptr;
    return &(*pages_[page])[line % kPageLines];
  }
  void Clear() { pages_.clear(); }
  // Forgets what is known of these bytes' lines.
  void Forget(std::uint64_t offset, std::uint64_t size);

 private:
  static constexpr std::uint64_t kPageLines = 32;
  using Page = std::array<Line, kPageLines>;
  std::vector<std::unique_ptr<Page>> pages_;
};

}  // namespace allranks::node::check
