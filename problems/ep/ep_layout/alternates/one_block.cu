// One block of 1024 threads does everything in shared memory.
constexpr int kThreads = 1024, kMaxExperts = 512;

__global__ void __launch_bounds__(kThreads) Layout(Args args) {
  __shared__ int experts[kMaxExperts], ranks[kMaxRanks];
  const int count = static_cast<int>(args.world * args.per), per = static_cast<int>(args.per);
  const int topk = static_cast<int>(args.topk);
  if (threadIdx.x < count) experts[threadIdx.x] = 0;
  if (threadIdx.x < args.world) ranks[threadIdx.x] = 0;
  __syncthreads();
  for (std::int64_t t = threadIdx.x; t < args.tokens; t += kThreads) {
    std::uint32_t mask = 0;
#pragma unroll 8
    for (int k = 0; k < topk; ++k) {
      const int expert = args.ids[t * topk + k];
      atomicAdd(&experts[expert], 1);
      mask |= 1u << expert / per;
    }
    for (int r = 0; r < args.world; ++r) {
      args.in_rank[t * args.world + r] = mask >> r & 1;
      if (mask >> r & 1) atomicAdd(&ranks[r], 1);
    }
  }
  __syncthreads();
  if (threadIdx.x < count) args.expert_tokens[threadIdx.x] = experts[threadIdx.x];
  if (threadIdx.x < args.world) args.rank_tokens[threadIdx.x] = ranks[threadIdx.x];
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Layout<<<1, kThreads, 0, stream>>>(args);
}
