// design: old style: volatile epochs and __threadfence_system in a dissemination barrier of log2(world) rounds, at the beginning and the end of a call; several plain kernels between
//
// In round j a rank tells rank + 2^j and hears rank - 2^j; after all rounds everybody has heard of
// everybody. Behind the first barrier all counts are known and all tensors may be touched, behind
// the second one all are left alone.
constexpr int kCtas = 48, kThreads = 256, kWarps = kThreads / 32, kRounds = 3;

struct Board {
  unsigned int epoch;                     // own: barriers passed, ever
  unsigned int heard[kRounds];            // the last barrier of which the one before us told
  int counts[kMaxRanks][kMaxRanks];       // by source and destination
};

__device__ Board* BoardOf(const Args& args, int rank) {
  return reinterpret_cast<Board*>(args.scratch_peers[rank]);
}

// Which own tokens go to which rank, as bits of shared memory. A thread per token.
struct Routes {
  std::uint32_t going[kMaxRanks][kWarps];

  __device__ void Make(const Args& args, int per) {
    std::uint32_t ranks = 0;
    if (threadIdx.x < args.tokens) {
      for (std::int64_t i = 0; i < args.topk; ++i)
        ranks |= 1u << args.expert_ids[threadIdx.x * args.topk + i] / per;
    }
    for (int r = 0; r < args.world; ++r) {
      const std::uint32_t bits = __ballot_sync(~0u, ranks >> r & 1);
      if (threadIdx.x % 32 == 0) going[r][threadIdx.x / 32] = bits;
    }
  }
  __device__ bool Goes(int token, int r) const { return going[r][token / 32] >> token % 32 & 1; }
  __device__ int Before(int token, int r) const {
    int before = __popc(going[r][token / 32] & ((1u << token % 32) - 1));
    for (int w = 0; w < token / 32; ++w) before += __popc(going[r][w]);
    return before;
  }
  __device__ std::uint32_t Count(int r) const {
    std::uint32_t count = 0;
    for (int w = 0; w < kWarps; ++w) count += __popc(going[r][w]);
    return count;
  }
};

// A warp copies a token's row and what belongs to it to a peer.
__device__ void PushToken(const Args& args, int per, int token, int peer, std::int64_t slot) {
  const int lane = threadIdx.x % 32;
  const uint4* from = reinterpret_cast<const uint4*>(args.x) + token * args.quads;
  uint4* to = reinterpret_cast<uint4*>(args.recv_x_peers[peer]) + slot * args.quads;
  for (std::int64_t q = lane; q < args.quads; q += 32) to[q] = from[q];
  if (lane == 0)
    args.recv_from_peers[peer][slot] = static_cast<std::int32_t>(args.rank * args.tokens + token);
  for (std::int64_t k = lane; k < args.topk; k += 32) {
    const int expert = args.expert_ids[token * args.topk + k] - peer * per;
    args.recv_experts_peers[peer][slot * args.topk + k] = expert >= 0 && expert < per ? expert : -1;
  }
}

__device__ float GateOf(const Args& args, int per, std::int64_t token, int r) {
  float gate = 0;
  for (std::int64_t i = token * args.topk; i < (token + 1) * args.topk; ++i)
    if (args.expert_ids[i] / per == r) gate = gate + args.weights[i];
  return gate;
}
__device__ void AddTo(float4& sum, float gate, const float4& y) {
  sum.x = fmaf(gate, y.x, sum.x);
  sum.y = fmaf(gate, y.y, sum.y);
  sum.z = fmaf(gate, y.z, sum.z);
  sum.w = fmaf(gate, y.w, sum.w);
}

// One thread of every rank.
__device__ void BarrierOfRanks(const Args& args) {
  Board* mine = BoardOf(args, args.rank);
  const unsigned int epoch = ++mine->epoch;
  for (int round = 0; 1 << round < args.world; ++round) {
    Board* next = BoardOf(args, (args.rank + (1 << round)) % args.world);
    volatile unsigned int* tell = &next->heard[round];
    const volatile unsigned int* hear = &mine->heard[round];
    __threadfence_system();
    *tell = epoch;
    while (static_cast<int>(*hear - epoch) < 0) {
    }
    __threadfence_system();
  }
}

__global__ void __launch_bounds__(kThreads) Enter(Args args, int per) {
  __shared__ Routes routes;
  routes.Make(args, per);
  __syncthreads();
  const int a = threadIdx.x / kMaxRanks, b = threadIdx.x % kMaxRanks;
  if (a < args.world && b < args.world)
    BoardOf(args, a)->counts[args.rank][b] = static_cast<int>(routes.Count(b));
  __syncthreads();
  if (threadIdx.x == 0) BarrierOfRanks(args);
}

__global__ void __launch_bounds__(kThreads) Push(Args args, int per) {
  __shared__ Routes routes;
  Board* mine = BoardOf(args, args.rank);
  routes.Make(args, per);
  __syncthreads();
  if (blockIdx.x == 0 && threadIdx.x < args.world)
    args.recv_rows[threadIdx.x] = mine->counts[threadIdx.x][args.rank];
  for (int unit = blockIdx.x * kWarps + threadIdx.x / 32; unit < args.tokens * args.world;
       unit += kCtas * kWarps) {
    const int token = unit / args.world, peer = (unit + token + args.rank) % args.world;
    if (!routes.Goes(token, peer)) continue;
    std::int64_t slot = routes.Before(token, peer);
    for (int s = 0; s < args.rank; ++s) slot += mine->counts[s][peer];
    PushToken(args, per, token, peer, slot);
  }
}

__global__ void __launch_bounds__(kThreads) Gather(Args args, int per) {
  __shared__ Routes routes;
  Board* mine = BoardOf(args, args.rank);
  routes.Make(args, per);
  __syncthreads();
  for (int token = blockIdx.x * kWarps + threadIdx.x / 32; token < args.tokens;
       token += kCtas * kWarps) {
    for (std::int64_t q = threadIdx.x % 32; q < args.quads; q += 32) {
      float4 sum = {};
      for (int r = 0; r < args.world; ++r) {
        if (!routes.Goes(token, r)) continue;
        std::int64_t row = routes.Before(token, r);
        for (int s = 0; s < args.rank; ++s) row += mine->counts[s][r];
        AddTo(sum, GateOf(args, per, token, r),
              reinterpret_cast<const float4*>(args.y_peers[r])[row * args.quads + q]);
      }
      reinterpret_cast<float4*>(args.out)[token * args.quads + q] = sum;
    }
  }
}

__global__ void Leave(Args args) { BarrierOfRanks(args); }

int ExpertsOfARank(const Args& args) {
  return static_cast<int>((args.experts + args.world - 1) / args.world);
}

extern "C" void dispatch(const Args& args, cudaStream_t stream) {
  Enter<<<1, kThreads, 0, stream>>>(args, ExpertsOfARank(args));
  Push<<<kCtas, kThreads, 0, stream>>>(args, ExpertsOfARank(args));
}

extern "C" void combine(const Args& args, cudaStream_t stream) {
  Gather<<<kCtas, kThreads, 0, stream>>>(args, ExpertsOfARank(args));
  Leave<<<1, 1, 0, stream>>>(args);
}
