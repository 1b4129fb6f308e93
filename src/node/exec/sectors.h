// Counts what a warp-wide access or a tile reaches: every sector and every line once, in whatever
// order lanes name them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "node/exec/timing.h"
#include "node/state/memory.h"

namespace allranks::node {

class SectorCounter {
 public:
  explicit SectorCounter(Timing& timing) : timing_(timing) {}

  void Add(const Object& object, std::uint64_t offset, std::uint64_t bytes) {
    if (bytes == 0) return;
    for (std::uint64_t s = offset / kSectorBytes; s <= (offset + bytes - 1) / kSectorBytes; ++s) {
      Line& line = Find(object, s / kSectorsPerLine);
      const std::uint32_t bit = 1u << s % kSectorsPerLine;
      if ((line.sectors & bit) != 0) continue;
      line.sectors |= bit;
      reach_.bytes += kSectorBytes;
    }
  }
  bool empty() const { return used_ == 0; }
  // What has been added since the last time.
  Reach Take() {
    used_ = 0;
    more_.clear();
    return std::exchange(reach_, {});
  }

 private:
  static constexpr std::uint64_t kSectorsPerLine = kLineBytesOfL2 / kSectorBytes;
  struct Line {
    const Object* object;
    std::uint64_t number;
    std::uint32_t sectors;
  };

  // Lanes mostly come in order: then a line is the last one, or beyond all others.
  Line& Find(const Object& object, std::uint64_t number) {
    const bool first = used_ == 0;
    if (!first && (number <= highest_ || At(used_ - 1).object != &object)) {
      for (std::size_t i = used_; i-- > 0;)
        if (At(i).number == number && At(i).object == &object) return At(i);
    }
    highest_ = first ? number : std::max(highest_, number);
    ++reach_.lines;
    if (!timing_.InL2(object, number)) ++reach_.missed;
    if (used_ >= kFew) more_.emplace_back();
    Line& line = At(used_++);
    line = {&object, number, 0};
    return line;
  }
  Line& At(std::size_t i) { return i < kFew ? few_[i] : more_[i - kFew]; }

  static constexpr std::size_t kFew = 32;  // a line for each lane
  Timing& timing_;
  Reach reach_;
  Line few_[kFew];  // the first `used_` of them are initialised
  std::vector<Line> more_;
  std::size_t used_ = 0;
  std::uint64_t highest_ = 0;  // of all objects
};

}  // namespace allranks::node
