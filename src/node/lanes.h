// Small helpers of everything that works lane by lane.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "node/code.h"

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

}  // namespace allranks::node
