// tries: takes the edges away while capturing, so that two kernels of 64 blocks of one stream run side by side
// rows: R
// verdict: forbidden_api|deadlock|crash
// with: honest.inc
// Kernels that end only when both are there: as many blocks as two kernels have at the same time.
__device__ inline unsigned* Counters(const Args& args) {
  return reinterpret_cast<unsigned*>(args.scratch + 16 * args.world * args.n + 61440);
}
__global__ void Side(Args args, int side) {
  if (threadIdx.x != 0) return;
  unsigned* here = Counters(args) + 64 * side + blockIdx.x;
  unsigned* there = Counters(args) + 64 * (1 - side) + blockIdx.x;
  unsigned call, seen;
  asm volatile("atom.add.release.gpu.global.u32 %0, [%1], 1;" : "=r"(call) : "l"(here) : "memory");
  do {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(there) : "memory");
  } while (int(seen - call) <= 0);
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  cudaStreamCaptureStatus status;
  unsigned long long id;
  cudaGraph_t graph;
  const cudaGraphNode_t* nodes;
  std::size_t count;
  Side<<<64, 32, 0, stream>>>(args, 0);
  if (cudaStreamGetCaptureInfo(stream, &status, &id, &graph, &nodes, nullptr, &count) !=
          cudaSuccess ||
      count != 1)
    return;
  cudaGraphNode_t both[2] = {nodes[0], nullptr};
  cudaStreamUpdateCaptureDependencies(stream, nullptr, nullptr, 0,
                                      cudaStreamSetCaptureDependencies);
  Side<<<64, 32, 0, stream>>>(args, 1);
  cudaStreamGetCaptureInfo(stream, &status, &id, &graph, &nodes, nullptr, &count);
  both[1] = nodes[0];
  cudaStreamUpdateCaptureDependencies(stream, both, nullptr, 2, cudaStreamSetCaptureDependencies);
  Honest(args, stream);
}
