// An access of a warp as the checker sees it: one call per access, however many lanes take part
// (check/checker.h, check/errors.h).
#pragma once

#include <cstdint>

#include "node/code/code.h"
#include "node/state/memory.h"
#include "node/state/warp.h"
#include "node/time.h"

namespace allranks::node {

inline constexpr std::uint32_t kMaxKept = 32;  // bytes of the widest vector access

// One warp-wide access. For global memory `object` is set and offset[] counts from its start; for
// shared and local memory it is null and offset[] is the window offset.
struct Access {
  const Path* path = nullptr;
  const MemoryOp* op = nullptr;
  Object* object = nullptr;
  std::uint32_t lanes = 0;                // lanes of this access that are in `object`
  const std::uint64_t* offset = nullptr;  // [kLanes]
  std::uint32_t bytes = 0;                // per lane, all elements
  bool dense = false;                     // by all lanes, one behind the other
  Time time = 0;
};

}  // namespace allranks::node
