// See shadow.h.
#include "node/check/shadow.h"

#include <algorithm>

namespace allranks::node::check {

bool Entry::Overlaps(const Entry& other) const {
  if (first >= other.end() || other.first >= end()) return false;
  if (dense() && other.dense()) return true;
  std::uint32_t others = 0;
  bool crossed = false;
  return Common(other, &others, &crossed) != 0;
}

std::uint32_t Entry::Common(const Entry& other, std::uint32_t* others, bool* crossed) const {
  std::uint32_t mine = 0;
  *others = 0;
  *crossed = false;
  if (stride == 0 && other.stride == 0) {  // all of them at one place
    if (first >= other.end() || other.first >= end()) return 0;
    *others = other.lanes();
    *crossed = count > 1 || other.count > 1 || lane != other.lane;
    return lanes();
  }
  if (stride == width && other.stride == width && other.width == width &&
      (first - other.first) % width == 0) {  // rows of equal elements: lane i meets lane i - shift
    const int shift = (other.first - first) / width;
    const int from = std::max(0, shift), to = std::min<int>(count, other.count + shift);
    if (from >= to) return 0;
    const std::uint64_t bits = (std::uint64_t{1} << (to - from)) - 1;
    *others = static_cast<std::uint32_t>(bits << (other.lane + from - shift));
    *crossed = lane + shift != other.lane;
    return static_cast<std::uint32_t>(bits << (lane + from));
  }
  // Each place meets a row of the other's, which follow each other.
  const std::uint32_t places = stride == 0 ? 1 : count;
  for (std::uint32_t i = 0; i < places; ++i) {
    const std::uint32_t begin = first + i * stride, stop = begin + width;
    const auto [from, to] = other.Row(begin, stop);
    if (from >= to) continue;
    const std::uint64_t bits = (std::uint64_t{1} << (to - from)) - 1;
    *others |= static_cast<std::uint32_t>(bits << (other.lane + from));
    mine |= 1u << (lane + i);
    *crossed |= to - from > 1 || lane + i != other.lane + from;
  }
  if (stride != 0 || mine == 0) return mine;
  *crossed |= count > 1;
  return lanes();
}

std::pair<std::uint32_t, std::uint32_t> Entry::Row(std::uint32_t begin, std::uint32_t stop) const {
  if (stop <= first || begin >= end()) return {0, 0};
  if (stride == 0) return {0, count};
  const std::uint32_t stops = std::uint32_t{first} + width;  // the first one
  return {begin < stops ? 0 : (begin - stops) / stride + 1,
          std::min<std::uint32_t>(count, (stop - first - 1) / stride + 1)};
}

void Shadow::Forget(std::uint64_t offset, std::uint64_t size) {
  if (size == 0) return;
  for (std::uint64_t line = offset / kLineBytes; line <= (offset + size - 1) / kLineBytes; ++line) {
    if (Line* found = Find(line)) *found = {};
  }
}

}  // namespace allranks::node::check
