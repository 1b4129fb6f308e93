// Push both ways, with plain stores. Dispatch is complete when it ends: a flag per CTA follows the
// rows. Combine sends answers to the tokens' home, into symmetric memory with a place for every
// token and rank, twice because calls overlap; a second kernel adds them up.
constexpr int kCtas = 32;
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

struct Board {
  std::uint64_t calls[kCtas];                    // by CTA of this rank: calls it has finished
  std::uint64_t here[kMaxRanks][kCtas];          // by peer and its CTA: call whose rows are here
  std::uint64_t back[kMaxRanks][kCtas];          // the same of answers
  std::uint64_t table[2][kMaxRanks][kMaxRanks];  // by source and destination: call, rows
  std::int32_t received[2];                      // own: rows here
};

__device__ Board* BoardOf(const Args& args, int rank) {
  return reinterpret_cast<Board*>(args.scratch_peers[rank]);
}
__device__ int RankOf(const Args& args, int expert) {
  const int experts = static_cast<int>(args.experts);
  return expert / ((experts + args.world - 1) / args.world);
}
// The answer of `rank` to token `token` of `home`, in `home`'s memory.
__device__ float4* AnswerOf(const Args& args, int home, std::uint64_t call, std::int64_t token,
                            int rank) {
  return reinterpret_cast<float4*>(args.scratch_peers[home] + 65536) +
         ((call % 2 * args.tokens + token) * args.world + rank) * args.quads;
}
__global__ void __launch_bounds__(kThreads) Send(Args args) {
  __shared__ std::int32_t counts[kMaxRanks][kMaxRanks];
  __shared__ std::uint32_t going[kMaxRanks][kWarps];  // a bit per token
  const int rank = args.rank, world = args.world, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  Board* mine = BoardOf(args, rank);
  const std::uint64_t call = mine->calls[blockIdx.x] + 1;
  std::uint32_t ranks = 0;
  if (threadIdx.x < args.tokens) {
    for (std::int64_t i = 0; i < args.topk; ++i)
      ranks |= 1u << RankOf(args, args.expert_ids[threadIdx.x * args.topk + i]);
  }
  for (int r = 0; r < world; ++r) {
    const std::uint32_t bits = __ballot_sync(~0u, ranks >> r & 1);
    if (lane == 0) going[r][warp] = bits;
  }
  __syncthreads();
  const int a = threadIdx.x / kMaxRanks, b = threadIdx.x % kMaxRanks;
  if (a < world && b < world) {
    if (blockIdx.x == 0) {
      std::uint64_t count = 0;
      for (int w = 0; w < kWarps; ++w) count += __popc(going[b][w]);
      StoreReleaseSys(&BoardOf(args, a)->table[call % 2][rank][b], call << 32 | count);
    }
    std::uint64_t value;
    do {
      value = LoadAcquireSys(&mine->table[call % 2][a][b]);
    } while (value >> 32 != call);
    counts[a][b] = static_cast<std::int32_t>(value);
  }
  __syncthreads();

  // A warp per token and rank; CTAs begin with different ranks.
  const int experts = (static_cast<int>(args.experts) + world - 1) / world;
  for (int i = blockIdx.x * kWarps + warp; i < args.tokens * world; i += kCtas * kWarps) {
    const int token = i / world, peer = (i + token) % world;
    if ((going[peer][token / 32] >> token % 32 & 1) == 0) continue;
    std::int64_t slot = __popc(going[peer][token / 32] & ((1u << token % 32) - 1));
    for (int w = 0; w < token / 32; ++w) slot += __popc(going[peer][w]);
    for (int s = 0; s < rank; ++s) slot += counts[s][peer];
    const uint4* from = reinterpret_cast<const uint4*>(args.x) + token * args.quads;
    uint4* to = reinterpret_cast<uint4*>(args.recv_x_peers[peer]) + slot * args.quads;
    for (std::int64_t q = lane; q < args.quads; q += 32) to[q] = from[q];
    if (lane == 0)
      args.recv_from_peers[peer][slot] = static_cast<std::int32_t>(rank * args.tokens + token);
    for (std::int64_t k = lane; k < args.topk; k += 32) {
      const int expert = args.expert_ids[token * args.topk + k];
      args.recv_experts_peers[peer][slot * args.topk + k] =
          RankOf(args, expert) == peer ? expert - peer * experts : -1;
    }
  }
  __syncthreads();
  if (threadIdx.x < world) {
    StoreReleaseSys(&BoardOf(args, threadIdx.x)->here[rank][blockIdx.x], call);
    while (LoadAcquireSys(&mine->here[threadIdx.x][blockIdx.x]) < call) {
    }
    if (blockIdx.x == 0) args.recv_rows[threadIdx.x] = counts[threadIdx.x][rank];
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    std::int32_t rows = 0;
    for (int s = 0; s < world; ++s) rows += counts[s][rank];
    mine->received[call % 2] = rows;
  }
}

__global__ void __launch_bounds__(kThreads) Answer(Args args) {
  const int rank = args.rank, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  Board* mine = BoardOf(args, rank);
  const std::uint64_t call = mine->calls[blockIdx.x] + 1;
  const std::int32_t rows = mine->received[call % 2];
  for (std::int32_t row = blockIdx.x * kWarps + warp; row < rows; row += kCtas * kWarps) {
    const std::int32_t from = args.recv_from[row];
    const int home = static_cast<int>(from / args.tokens);
    const float4* y = reinterpret_cast<const float4*>(args.y) + row * args.quads;
    float4* to = AnswerOf(args, home, call, from % args.tokens, rank);
    for (std::int64_t q = lane; q < args.quads; q += 32) to[q] = y[q];
  }
  __syncthreads();
  if (threadIdx.x < args.world)
    StoreReleaseSys(&BoardOf(args, threadIdx.x)->back[rank][blockIdx.x], call);
}

__global__ void __launch_bounds__(kThreads) Add(Args args) {
  Board* mine = BoardOf(args, args.rank);
  const std::uint64_t call = mine->calls[blockIdx.x] + 1;
  for (int i = threadIdx.x; i < args.world * kCtas; i += kThreads) {
    while (LoadAcquireSys(&mine->back[i / kCtas][i % kCtas]) < call) {
    }
  }
  __syncthreads();
  __shared__ float gates[kMaxRanks];
  __shared__ bool goes[kMaxRanks];
  for (std::int64_t token = blockIdx.x; token < args.tokens; token += kCtas) {
    if (threadIdx.x < args.world) {
      float gate = 0;
      bool any = false;
      for (std::int64_t i = token * args.topk; i < (token + 1) * args.topk; ++i) {
        if (RankOf(args, args.expert_ids[i]) != threadIdx.x) continue;
        gate += args.weights[i];
        any = true;
      }
      gates[threadIdx.x] = gate;
      goes[threadIdx.x] = any;
    }
    __syncthreads();
    for (std::int64_t q = threadIdx.x; q < args.quads; q += kThreads) {
      float4 sum = {};
      for (int r = 0; r < args.world; ++r) {
        if (!goes[r]) continue;
        const float4 y = AnswerOf(args, args.rank, call, token, r)[q];
        sum.x = fmaf(gates[r], y.x, sum.x);
        sum.y = fmaf(gates[r], y.y, sum.y);
        sum.z = fmaf(gates[r], y.z, sum.z);
        sum.w = fmaf(gates[r], y.w, sum.w);
      }
      reinterpret_cast<float4*>(args.out)[token * args.quads + q] = sum;
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void dispatch(const Args& args, cudaStream_t stream) {
  Send<<<kCtas, kThreads, 0, stream>>>(args);
}

extern "C" void combine(const Args& args, cudaStream_t stream) {
  Answer<<<kCtas, kThreads, 0, stream>>>(args);
  Add<<<kCtas, kThreads, 0, stream>>>(args);
}
