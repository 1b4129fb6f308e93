// verdict: wrong_result
// Tokens for experts of the own rank, as if there were no others.
__device__ std::int32_t slots[256];

__global__ void Send(Args args, int per) {
  const std::int64_t width = args.quads * 4;
  std::int32_t rows = 0;
  for (std::int64_t token = 0; token < args.tokens; ++token) {
    bool goes = false;
    for (std::int64_t i = token * args.topk; i < (token + 1) * args.topk; ++i)
      goes = goes || args.expert_ids[i] / per == args.rank;
    if (threadIdx.x == 0) slots[token] = goes ? rows : -1;
    if (!goes) continue;
    for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x)
      args.recv_x[rows * width + i] = args.x[token * width + i];
    if (threadIdx.x == 0)
      args.recv_from[rows] = static_cast<std::int32_t>(args.rank * args.tokens + token);
    for (std::int64_t i = threadIdx.x; i < args.topk; i += blockDim.x) {
      const int expert = args.expert_ids[token * args.topk + i] - args.rank * per;
      args.recv_experts[rows * args.topk + i] = expert >= 0 && expert < per ? expert : -1;
    }
    ++rows;
  }
  if (threadIdx.x < args.world) args.recv_rows[threadIdx.x] = threadIdx.x == args.rank ? rows : 0;
}

__global__ void Fetch(Args args, int per) {
  const std::int64_t width = args.quads * 4;
  for (std::int64_t token = blockIdx.x; token < args.tokens; token += gridDim.x) {
    float gate = 0;
    for (std::int64_t i = token * args.topk; i < (token + 1) * args.topk; ++i) {
      if (args.expert_ids[i] / per == args.rank) gate += args.weights[i];
    }
    for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x)
      args.out[token * width + i] =
          slots[token] < 0 ? 0.0f : fmaf(gate, args.y[slots[token] * width + i], 0.0f);
  }
}

int ExpertsOfARank(const Args& args) {
  return static_cast<int>((args.experts + args.world - 1) / args.world);
}

extern "C" void dispatch(const Args& args, cudaStream_t stream) {
  Send<<<1, 128, 0, stream>>>(args, ExpertsOfARank(args));
}
extern "C" void combine(const Args& args, cudaStream_t stream) {
  Fetch<<<64, 128, 0, stream>>>(args, ExpertsOfARank(args));
}
