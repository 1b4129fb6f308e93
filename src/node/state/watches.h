// Who waits for bytes of an object to change. Kept by lines of 128 bytes, because protocols that
// mix flags into their data wait at thousands of places at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace allranks::node {

struct Path;

struct Watch {
  std::uint64_t offset = 0;
  std::uint32_t size = 0;   // at most Watches::kMaxBytes
  Path* path = nullptr;     // a parked path ...
  std::uint64_t host = 0;   // ... or a host watch
  std::uint32_t index = 0;  // which of the waiter's reads this is
};

class Watches {
 public:
  static constexpr std::uint32_t kMaxBytes = 128;

  bool empty() const { return count_ == 0; }

  void Add(const Watch& watch) {
    lines_[watch.offset / kLineBytes].push_back(watch);
    ++count_;
  }

  // Calls f(watch) for those on one of these bytes, by lines and in each in the order of their
  // coming. f may add watches; what it removes may still be told.
  template <class F>
  void ForEachOn(std::uint64_t offset, std::uint64_t size, F f) {
    if (count_ == 0 || size == 0) return;
    const std::uint64_t last = (offset + size - 1) / kLineBytes;
    ++walking_;
    for (auto it = lines_.lower_bound((offset < kMaxBytes ? 0 : offset - kMaxBytes) / kLineBytes);
         it != lines_.end() && it->first <= last; ++it) {
      for (std::size_t i = 0; i < it->second.size(); ++i) {
        const Watch watch = it->second[i];
        if (watch.offset < offset + size && offset < watch.offset + watch.size) f(watch);
      }
    }
    --walking_;
  }

  std::vector<Watch> All() const {
    std::vector<Watch> all;
    all.reserve(count_);
    for (const auto& [number, line] : lines_) all.insert(all.end(), line.begin(), line.end());
    return all;
  }

  // Removes those that begin in the line of `offset` and for which gone(watch) holds.
  template <class P>
  void EraseAt(std::uint64_t offset, P gone) {
    if (const auto it = lines_.find(offset / kLineBytes); it != lines_.end()) Erase(it, gone);
  }
  template <class P>
  void EraseIf(P gone) {
    for (auto it = lines_.begin(); it != lines_.end();) it = Erase(it, gone);
  }

 private:
  static constexpr std::uint64_t kLineBytes = 128;
  using Lines = std::map<std::uint64_t, std::vector<Watch>>;  // ordered: the same in every run

  template <class P>
  Lines::iterator Erase(Lines::iterator line, P gone) {
    count_ -= std::erase_if(line->second, gone);
    // Whoever walks over the lines stands on one of them.
    return line->second.empty() && walking_ == 0 ? lines_.erase(line) : std::next(line);
  }

  Lines lines_;
  std::size_t count_ = 0;
  int walking_ = 0;
};

}  // namespace allranks::node
