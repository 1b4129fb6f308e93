// Small helpers of everything that works lane by lane.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "node/code/op.h"

namespace allranks::node {

// Calls f(lane) for each lane in `mask`, in ascending order.
template <class F>
void ForLanes(std::uint32_t mask, F f) {
  for (; mask != 0; mask &= mask - 1) f(std::countr_zero(mask));
}

// Where a source operand's lanes are.
inline const std::byte* SlotAt(const std::byte* registers, const std::byte* constants, Slot slot) {
  return (slot & kConstant) != 0 ? constants + (slot & ~kConstant) * kSlotBytes
                                 : registers + slot * kSlotBytes;
}

// Gives all lanes of a slot (of 4 or 8 bytes per lane) the same value.
inline void Broadcast(std::byte* slot, std::uint64_t value, int bytes) {
  const auto width = static_cast<std::size_t>(bytes == 4 ? 4 : 8);
  for (std::size_t l = 0; l < kLanes; ++l) std::memcpy(slot + l * width, &value, width);
}

}  // namespace allranks::node
