// Handles of libcuda.so.1 and the numbers that the node knows them by.
#include "shim/cuda/numbers.h"

#include "shim/cuda/graph.h"

using namespace allranks::shim;

std::uint64_t ar_graph_number(CUgraphExec handle) {
  if (Ready() != CUDA_SUCCESS) return 0;
  Hold hold(TheGraphs().lock);
  const GraphExec* exec = TheGraphs().execs.Find(handle);
  return exec == nullptr ? 0 : exec->id;
}

std::uint64_t ar_stream_number(CUstream stream) {
  allranks::wire::StreamRef ref;
  if (Ready() != CUDA_SUCCESS || ResolveStream(stream, false, &ref) != CUDA_SUCCESS) return 0;
  return ref.stream;
}
