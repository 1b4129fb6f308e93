// See device_heap.h.
#include "node/state/device_heap.h"

#include <algorithm>
#include <iterator>

namespace allranks::node {
namespace {

constexpr std::uint64_t kGranule = 16;

}  // namespace

DeviceHeap::DeviceHeap(std::uint64_t size) {
  // Offset 0 means "no room", so the first granule stays out of use.
  if (size > kGranule) free_[kGranule] = (size - kGranule) / kGranule * kGranule;
}

std::uint64_t DeviceHeap::Take(std::uint64_t size) {
  if (size > ~std::uint64_t{0} - kGranule) return 0;
  size = std::max(kGranule, (size + kGranule - 1) / kGranule * kGranule);
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    if (it->second < size) continue;
    const auto [offset, room] = *it;
    free_.erase(it);
    if (room > size) free_[offset + size] = room - size;
    used_[offset] = size;
    return offset;
  }
  return 0;
}

bool DeviceHeap::Return(std::uint64_t offset) {
  const auto used = used_.find(offset);
  if (used == used_.end()) return false;
  auto it = free_.emplace(offset, used->second).first;
  used_.erase(used);
  if (const auto next = std::next(it);
      next != free_.end() && it->first + it->second == next->first) {
    it->second += next->second;
    free_.erase(next);
  }
  if (it != free_.begin()) {
    const auto before = std::prev(it);
    if (before->first + before->second == it->first) {
      before->second += it->second;
      free_.erase(it);
    }
  }
  return true;
}

std::uint64_t DeviceHeap::SizeAt(std::uint64_t offset) const {
  const auto it = used_.find(offset);
  return it == used_.end() ? 0 : it->second;
}

}  // namespace allranks::node
