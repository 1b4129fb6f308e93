// design: rows are pushed in place; answers come back by LL, every float beside the call's number in one 64-bit word of the token's home, so no flag follows them and nobody meets at the end
//
// A rank leaves when all rows for it have come and all answers to its tokens: nobody else touches
// its tensors. Words of answers exist once: whoever sends one in call k + 1 has seen the home enter
// that call, so it has read all of call k.
constexpr int kCtas = 32, kThreads = 256, kWarps = kThreads / 32;

struct Board {
  std::uint64_t calls[kCtas];                    // own, by CTA: calls that have ended
  std::uint64_t here[kMaxRanks][kCtas];          // by source and its CTA: call whose rows are here
  std::uint64_t table[2][kMaxRanks][kMaxRanks];  // by source and destination: call, rows
  std::int32_t received;                         // own: rows of this call
};

__device__ Board* BoardOf(const Args& args, int rank) {
  return reinterpret_cast<Board*>(args.scratch_peers[rank]);
}
// The answer of `rank` to a token of `home`.
__device__ std::uint64_t* AnswerOf(const Args& args, int home, std::int64_t token, int rank) {
  return reinterpret_cast<std::uint64_t*>(args.scratch_peers[home] + 65536) +
         (token * args.world + rank) * args.quads * 4;
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

__global__ void __launch_bounds__(kThreads) Send(Args args, int per) {
  __shared__ Routes routes;
  __shared__ std::int32_t counts[kMaxRanks][kMaxRanks];
  const int rank = args.rank, world = args.world, tokens = static_cast<int>(args.tokens);
  Board* mine = BoardOf(args, rank);
  const std::uint64_t call = mine->calls[blockIdx.x] + 1;
  routes.Make(args, per);
  __syncthreads();
  const int a = threadIdx.x / kMaxRanks, b = threadIdx.x % kMaxRanks;
  if (a < world && b < world) {
    if (blockIdx.x == 0)
      StoreReleaseSys(&BoardOf(args, a)->table[call % 2][rank][b], call << 32 | routes.Count(b));
    std::uint64_t value;
    do {
      value = LoadAcquireSys(&mine->table[call % 2][a][b]);
    } while (value >> 32 != call);
    counts[a][b] = static_cast<std::int32_t>(value);
    if (blockIdx.x == 0 && b == rank) args.recv_rows[a] = counts[a][b];
  }
  __syncthreads();
  for (int unit = blockIdx.x * kWarps + threadIdx.x / 32; unit < tokens * world;
       unit += kCtas * kWarps) {
    const int token = unit / world, peer = (unit + token + rank) % world;
    if (!routes.Goes(token, peer)) continue;
    std::int64_t slot = routes.Before(token, peer);
    for (int s = 0; s < rank; ++s) slot += counts[s][peer];
    PushToken(args, per, token, peer, slot);
  }
  __syncthreads();
  if (threadIdx.x < world)
    StoreReleaseSys(&BoardOf(args, threadIdx.x)->here[rank][blockIdx.x], call);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    mine->received = 0;
    for (int s = 0; s < world; ++s) mine->received += counts[s][rank];
  }
}

__global__ void __launch_bounds__(kThreads) Answer(Args args, int per) {
  const int rank = args.rank, world = args.world, lane = threadIdx.x % 32;
  const int first = blockIdx.x * kWarps + threadIdx.x / 32;
  Board* mine = BoardOf(args, rank);
  const std::uint64_t call = mine->calls[blockIdx.x] + 1, tag = call << 32;
  for (int i = threadIdx.x; i < world * kCtas; i += kThreads) {
    while (LoadAcquireSys(&mine->here[i / kCtas][i % kCtas]) < call) {
    }
  }
  __syncthreads();
  const std::int64_t words = args.quads * 4;
  for (std::int64_t row = first; row < mine->received; row += kCtas * kWarps) {
    const std::int64_t from = args.recv_from[row];
    std::uint64_t* to =
        AnswerOf(args, static_cast<int>(from / args.tokens), from % args.tokens, rank);
    for (std::int64_t w = lane; w < words; w += 32)
      StoreRelaxedSys(to + w, tag | __float_as_uint(args.y[row * words + w]));
  }
  for (std::int64_t token = first; token < args.tokens; token += kCtas * kWarps) {
    for (std::int64_t w = lane; w < words; w += 32) {
      float sum = 0;
      for (int r = 0; r < world; ++r) {
        bool goes = false;
        float gate = 0;
        for (std::int64_t i = token * args.topk; i < (token + 1) * args.topk; ++i) {
          if (args.expert_ids[i] / per != r) continue;
          goes = true;
          gate = gate + args.weights[i];
        }
        if (!goes) continue;
        const std::uint64_t* word = AnswerOf(args, rank, token, r) + w;
        std::uint64_t value;
        do {
          value = LoadRelaxedSys(word);
        } while (value >> 32 != call);
        sum = fmaf(gate, __uint_as_float(static_cast<std::uint32_t>(value)), sum);
      }
      args.out[token * words + w] = sum;
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

int ExpertsOfARank(const Args& args) {
  return static_cast<int>((args.experts + args.world - 1) / args.world);
}

extern "C" void dispatch(const Args& args, cudaStream_t stream) {
  Send<<<kCtas, kThreads, 0, stream>>>(args, ExpertsOfARank(args));
}

extern "C" void combine(const Args& args, cudaStream_t stream) {
  Answer<<<kCtas, kThreads, 0, stream>>>(args, ExpertsOfARank(args));
}
