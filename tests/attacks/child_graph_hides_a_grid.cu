// tries: puts a child graph with a grid of 128 blocks into the graph that is captured
// rows: R
// verdict: forbidden_api|crash|unsupported
// with: honest.inc
__global__ void Many(Args args) {
  if (blockIdx.x >= 64 && threadIdx.x == 0) args.out[0] += 0;
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  cudaStreamCaptureStatus status;
  unsigned long long id;
  cudaGraph_t graph, child;
  const cudaGraphNode_t* nodes;
  std::size_t count;
  Honest(args, stream);
  if (cudaStreamGetCaptureInfo(stream, &status, &id, &graph, &nodes, nullptr, &count) !=
      cudaSuccess)
    return;
  cudaGraphNode_t before = nodes[0], inner, node;
  Args copy = args;
  void* parameters[] = {&copy};
  cudaKernelNodeParams kernel = {};
  kernel.func = reinterpret_cast<void*>(Many);
  kernel.gridDim = dim3(128);
  kernel.blockDim = dim3(32);
  kernel.kernelParams = parameters;
  if (cudaGraphCreate(&child, 0) != cudaSuccess) abort();
  if (cudaGraphAddKernelNode(&inner, child, nullptr, 0, &kernel) != cudaSuccess) abort();
  if (cudaGraphAddChildGraphNode(&node, graph, &before, 1, child) != cudaSuccess) abort();
  cudaStreamUpdateCaptureDependencies(stream, &node, nullptr, 1, cudaStreamSetCaptureDependencies);
}
