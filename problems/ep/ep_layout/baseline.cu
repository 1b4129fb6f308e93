// Step by step: counters are cleared, a kernel counts experts and makes the map, and another one
// adds up the map, all in global memory.
constexpr int kThreads = 256;

__global__ void Clear(Args args) {
  for (int i = threadIdx.x; i < args.world * args.per; i += kThreads) args.expert_tokens[i] = 0;
  if (threadIdx.x < args.world) args.rank_tokens[threadIdx.x] = 0;
}

__global__ void Map(Args args) {
  const std::int64_t t = blockIdx.x * kThreads + threadIdx.x;
  if (t >= args.tokens) return;
  for (int r = 0; r < args.world; ++r) args.in_rank[t * args.world + r] = 0;
  for (int k = 0; k < args.topk; ++k) {
    const int expert = args.ids[t * args.topk + k];
    atomicAdd(&args.expert_tokens[expert], 1);
    args.in_rank[t * args.world + expert / args.per] = 1;
  }
}

__global__ void Count(Args args) {
  for (std::int64_t t = threadIdx.x; t < args.tokens; t += kThreads) {
    if (args.in_rank[t * args.world + blockIdx.x]) atomicAdd(&args.rank_tokens[blockIdx.x], 1);
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Clear<<<1, kThreads, 0, stream>>>(args);
  Map<<<static_cast<int>((args.tokens + kThreads - 1) / kThreads), kThreads, 0, stream>>>(args);
  Count<<<args.world, kThreads, 0, stream>>>(args);
}
