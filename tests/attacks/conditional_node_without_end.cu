// tries: puts a while node into the captured graph whose condition stays true
// rows: R
// verdict: forbidden_api|unsupported|crash|timeout
// with: honest.inc
__global__ void Body(Args args) {}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  cudaStreamCaptureStatus status;
  unsigned long long id;
  cudaGraph_t graph;
  const cudaGraphNode_t* nodes;
  std::size_t count;
  Honest(args, stream);
  if (cudaStreamGetCaptureInfo(stream, &status, &id, &graph, &nodes, nullptr, &count) !=
      cudaSuccess)
    abort();
  cudaGraphConditionalHandle handle;
  if (cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault) !=
      cudaSuccess)
    abort();
  cudaGraphNodeParams node = {};
  node.type = cudaGraphNodeTypeConditional;
  node.conditional.handle = handle;
  node.conditional.type = cudaGraphCondTypeWhile;
  node.conditional.size = 1;
  cudaGraphNode_t before = nodes[0], added;
  if (cudaGraphAddNode(&added, graph, &before, nullptr, 1, &node) != cudaSuccess) abort();
  Args copy = args;
  void* parameters[] = {&copy};
  cudaKernelNodeParams kernel = {};
  kernel.func = reinterpret_cast<void*>(Body);
  kernel.gridDim = dim3(1);
  kernel.blockDim = dim3(32);
  kernel.kernelParams = parameters;
  cudaGraphNode_t inner;
  if (cudaGraphAddKernelNode(&inner, node.conditional.phGraph_out[0], nullptr, 0, &kernel) !=
      cudaSuccess)
    abort();
  cudaStreamUpdateCaptureDependencies(stream, &added, nullptr, 1, cudaStreamSetCaptureDependencies);
}
