// tries: an honest call behind a diamond of two parallel kernels of 8 blocks: odd edges that break no rule but perhaps the one of streams
// rows: R
// verdict: pass|forbidden_api
// cases: all
// with: honest.inc
__global__ void Small(Args args, int side) {
  for (std::int64_t i = 2 * (blockIdx.x * blockDim.x + threadIdx.x) + side; i < args.n;
       i += 2 * gridDim.x * blockDim.x)
    args.out[i] = 0;
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  cudaStreamCaptureStatus status;
  unsigned long long id;
  cudaGraph_t graph;
  const cudaGraphNode_t* nodes;
  std::size_t count;
  Small<<<8, 32, 0, stream>>>(args, 0);
  if (cudaStreamGetCaptureInfo(stream, &status, &id, &graph, &nodes, nullptr, &count) !=
          cudaSuccess ||
      count != 1)
    abort();
  cudaGraphNode_t both[2] = {nodes[0], nullptr}, top;
  if (cudaGraphAddEmptyNode(&top, graph, nullptr, 0) != cudaSuccess) abort();
  cudaStreamUpdateCaptureDependencies(stream, &top, nullptr, 1, cudaStreamSetCaptureDependencies);
  Small<<<8, 32, 0, stream>>>(args, 1);
  cudaStreamGetCaptureInfo(stream, &status, &id, &graph, &nodes, nullptr, &count);
  both[1] = nodes[0];
  cudaStreamUpdateCaptureDependencies(stream, both, nullptr, 2, cudaStreamSetCaptureDependencies);
  Honest(args, stream);
}
