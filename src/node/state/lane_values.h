// Operands of instructions that are executed lane by lane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "node/code/code.h"
#include "node/code/lanes.h"
#include "node/state/launch.h"
#include "node/state/warp.h"

namespace allranks::node {

// A lane's element of a slot; 4 or 8 bytes.
inline std::uint64_t LaneValue(const Path& path, Slot slot, int lane, int bytes) {
  const std::byte* base = SlotAt(RegistersOf(path), path.warp->cta->launch->constants.data(), slot);
  std::uint64_t value = 0;
  std::memcpy(&value, base + lane * bytes, static_cast<std::size_t>(bytes));
  return value;
}

inline void SetLaneValue(const Path& path, Slot slot, int lane, std::uint64_t value, int bytes) {
  if (slot == kNoSlot) return;
  std::memcpy(RegistersOf(path) + slot * kSlotBytes + lane * bytes, &value,
              static_cast<std::size_t>(bytes));
}

inline std::uint64_t LaneAddress(const Path& path, const AsyncAddress& a, int lane) {
  if (a.address == kNoSlot) return static_cast<std::uint64_t>(a.offset);
  if (a.address32) {
    return static_cast<std::uint32_t>(LaneValue(path, a.address, lane, 4) +
                                      static_cast<std::uint64_t>(a.offset));
  }
  return LaneValue(path, a.address, lane, 8) + static_cast<std::uint64_t>(a.offset);
}

}  // namespace allranks::node
