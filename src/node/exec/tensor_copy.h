// cp.async.bulk.tensor: tiles of tensors in global memory, described by tensor maps
// (base/tensor_map.h), to and from shared memory.
#pragma once

#include "node/exec/simulator.h"

namespace allranks::node {

Simulator::AsyncNext ExecuteTensor(Simulator& sim, Path& path, const AsyncOp& a,
                                   std::uint32_t lanes);

}  // namespace allranks::node
