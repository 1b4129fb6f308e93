// The common shape of a warp's access: all lanes, one behind the other. Found in one pass over the
// addresses, moved as vectors; compiled for several instruction sets, the best is taken at start.
#pragma once

#include <cstddef>
#include <cstdint>

#include "node/code/op.h"

namespace allranks::node {

// Whether lane l's address is address[0] + l * stride, for all lanes.
bool IsDense(const std::uint64_t* address, std::uint64_t stride);

// Moves between `count` registers of 4 or 8 bytes per lane and memory that holds the elements of
// lane 0, then those of lane 1, and so on. A destination of kNoSlot is left out.
// False, and nothing is done: a width or count that is not handled here.
bool LoadDense(const Slot* data, int width, int count, std::byte* registers, const std::byte* from);
bool StoreDense(const Slot* data, int width, int count, const std::byte* registers,
                const std::byte* constants, std::byte* to);

}  // namespace allranks::node
