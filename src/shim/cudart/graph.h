// What the runtime API's calls of graphs share. Handles, edges and events are the driver's own;
// only parameters of kernels and copies have another form (graph_nodes.cpp).
#pragma once

#include "shim/cudart/runtime.h"

#define ALLRANKS_GRAPH_CALL(name, parameters, call) \
  cudaError_t name parameters {                     \
    ALLRANKS_ENTER();                               \
    return Note(call);                              \
  }

namespace allranks::shim {

static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData));
inline const CUgraphEdgeData* Driver(const cudaGraphEdgeData* data) {
  return reinterpret_cast<const CUgraphEdgeData*>(data);
}
inline CUgraphEdgeData* Driver(cudaGraphEdgeData* data) {
  return reinterpret_cast<CUgraphEdgeData*>(data);
}

}  // namespace allranks::shim
