// What atomics and reductions do to bytes and registers: no time, no order, no bounds. The engine
// has checked that every lane's bytes lie within `base`.
#pragma once

#include <cstddef>
#include <cstdint>

#include "node/code/code.h"

namespace allranks::node {

// Lane by lane, in lane order, element by element. Returns whether any lane changed memory.
// `global`: the bytes are in global memory (add.f32 then flushes subnormals).
bool AtomicLanes(const MemoryOp& op, std::byte* registers, const std::byte* constants,
                 std::uint32_t lanes, std::byte* base, const std::uint64_t* offset, bool global);

// Folds `bytes` bytes of numbers at `from` into those at `to`.
void ReduceBytes(Number number, AtomicOp op, std::byte* to, const std::byte* from,
                 std::size_t bytes, bool global);

// Bytes of one number: an element of a packed type has several.
int BytesOf(Number number);

// Folds what a multimem load has put into lane `lane` of its registers into `sum`, with the load's
// operation; the first one is only taken.
void FoldLane(const MemoryOp& op, const std::byte* registers, int lane, bool first, std::byte* sum);

// The same where MemoryOp::accumulate asks for more precision than the elements have: `sum` is a
// float per number, at most kMaxWide, and RoundWide makes the elements of them.
inline constexpr int kMaxWide = 16;
void FoldWide(const MemoryOp& op, const std::byte* registers, int lane, bool first, float* sum);
void RoundWide(const MemoryOp& op, const float* sum, std::byte* out);

}  // namespace allranks::node
