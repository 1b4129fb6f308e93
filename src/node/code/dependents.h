// Which kernels let their dependents begin early (programmatic dependent launch); for the machine
// and the checker.
#pragma once

#include <algorithm>

#include "node/code/code.h"

namespace allranks::node {

// Whether a kernel has griddepcontrol.launch_dependents. Without it dependents begin when all its
// blocks are over, and PTX asks no griddepcontrol.wait of them.
inline bool LetsOthersBegin(const Code& code) {
  return std::any_of(code.ops.begin(), code.ops.end(),
                     [](const Op& op) { return op.kind == OpKind::kGridWait && op.imm == 1; });
}

}  // namespace allranks::node
