// tries: two parallel kernels of 24 blocks, joined, then one of 32: 80 blocks in the graph, never more than 48 at a time
// rows: R
// verdict: pass
// with: honest.inc
__global__ void Small(Args args, int side) {
  for (std::int64_t i = 2 * (blockIdx.x * blockDim.x + threadIdx.x) + side; i < args.n;
       i += 2 * gridDim.x * blockDim.x)
    args.out[i] = 0;
}
__global__ void Nothing() {}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  cudaStreamCaptureStatus status;
  unsigned long long id;
  cudaGraph_t graph;
  const cudaGraphNode_t* nodes;
  std::size_t count;
  Small<<<24, 32, 0, stream>>>(args, 0);
  if (cudaStreamGetCaptureInfo(stream, &status, &id, &graph, &nodes, nullptr, &count) !=
          cudaSuccess ||
      count != 1)
    abort();
  cudaGraphNode_t both[2] = {nodes[0], nullptr};
  cudaStreamUpdateCaptureDependencies(stream, nullptr, nullptr, 0,
                                      cudaStreamSetCaptureDependencies);
  Small<<<24, 32, 0, stream>>>(args, 1);
  cudaStreamGetCaptureInfo(stream, &status, &id, &graph, &nodes, nullptr, &count);
  both[1] = nodes[0];
  cudaStreamUpdateCaptureDependencies(stream, both, nullptr, 2, cudaStreamSetCaptureDependencies);
  Nothing<<<32, 32, 0, stream>>>();
  Honest(args, stream);
}
