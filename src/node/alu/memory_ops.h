// What loads and stores do to bytes and registers (atomics: atomic_ops.h): no time, no order, no
// bounds. The engine has checked that every lane's bytes lie within `base`.
#pragma once

#include <cstddef>
#include <cstdint>

#include "node/code/code.h"

namespace allranks::node {

// Puts the bytes at `value` into lane `lane` of the destination registers, extended as the type
// says.
void LoadLane(const MemoryOp& op, std::byte* registers, int lane, const std::byte* value);
// The same for many lanes, each from base + offset[lane]. `dense`: all 32 lanes, one behind the
// other.
void LoadLanes(const MemoryOp& op, std::byte* registers, std::uint32_t lanes, const std::byte* base,
               const std::uint64_t* offset, bool dense);
// Returns whether memory changed; says true without looking unless `look`.
bool StoreLanes(const MemoryOp& op, const std::byte* registers, const std::byte* constants,
                std::uint32_t lanes, std::byte* base, const std::uint64_t* offset, bool dense,
                bool look);

}  // namespace allranks::node
