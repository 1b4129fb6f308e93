// design: dispatch by LL128: a row, its origin and its experts travel as one stream in lines of 120 bytes and a flag, into the receiver's scratch, and are unpacked there; answers are pulled
//
// Sending waits for nobody, as no tensor of a peer is touched. Lines exist once: a rank ends a call
// when all have finished it, and has read all its lines by then.
constexpr int kCtas = 32, kThreads = 256, kWarps = kThreads / 32;
constexpr int kPerLine = 30;  // words of 32 bits

struct Board {
  std::uint64_t calls[kCtas];                 // own, by CTA: calls that have ended
  std::uint64_t finished[kMaxRanks][kCtas];   // by peer and its CTA: the call it has finished
  std::uint64_t table[kMaxRanks][kMaxRanks];  // by source and destination: call, rows
};

__device__ Board* BoardOf(const Args& args, int rank) {
  return reinterpret_cast<Board*>(args.scratch_peers[rank]);
}
__device__ int LinesOfRow(const Args& args) {
  return static_cast<int>((args.quads * 4 + 1 + args.topk + kPerLine - 1) / kPerLine);
}
// The n-th row that `source` sends to `rank`.
__device__ std::uint8_t* LinesOf(const Args& args, int rank, int source, std::int64_t n) {
  return args.scratch_peers[rank] + 65536 +
         (source * args.tokens + n) * LinesOfRow(args) * std::int64_t{128};
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

__device__ std::uint32_t WordOf(const Args& args, int per, int token, int peer, std::int64_t w) {
  const std::int64_t row = args.quads * 4;
  if (w < row) return args.x[token * row + w];
  if (w == row) return static_cast<std::uint32_t>(args.rank * args.tokens + token);
  if (w > row + args.topk) return 0;
  const int expert = args.expert_ids[token * args.topk + w - row - 1] - peer * per;
  return static_cast<std::uint32_t>(expert >= 0 && expert < per ? expert : -1);
}

// A warp sends one row.
__device__ void SendRow(const Args& args, int per, int token, int peer, std::int64_t n,
                        std::uint64_t call) {
  const int lane = threadIdx.x % 32, in_line = lane % 8, lines = LinesOfRow(args);
  std::uint8_t* to = LinesOf(args, peer, args.rank, n);
  for (int first = 0; first < lines; first += 4) {
    const int line = first + lane / 8;
    std::uint32_t w[4] = {};
    for (int j = 0; j < 4; ++j) {
      if (line < lines && in_line * 4 + j < kPerLine)
        w[j] = WordOf(args, per, token, peer, line * kPerLine + in_line * 4 + j);
    }
    const std::uint64_t low = std::uint64_t{w[1]} << 32 | w[0];
    const std::uint64_t high = in_line == 7 ? call : std::uint64_t{w[3]} << 32 | w[2];
    __syncwarp();  // the lanes of a line store with one instruction
    if (line < lines) {
      asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(
                       to + line * 128 + in_line * 16),
                   "l"(low), "l"(high)
                   : "memory");
    }
  }
}

__device__ void ReceiveRow(const Args& args, int source, std::int64_t n, std::int64_t slot,
                           std::uint64_t call) {
  const int lane = threadIdx.x % 32, in_line = lane % 8, lines = LinesOfRow(args);
  const std::int64_t row = args.quads * 4;
  const std::uint8_t* from = LinesOf(args, args.rank, source, n);
  for (int first = 0; first < lines; first += 4) {
    const int line = first + lane / 8;
    std::uint64_t low = 0, high = 0;
    bool here;
    do {
      __syncwarp();
      here = true;
      if (line < lines) {
        asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
                     : "=l"(low), "=l"(high)
                     : "l"(from + line * 128 + in_line * 16)
                     : "memory");
        here = in_line != 7 || high == call;
      }
    } while (!__all_sync(~0u, here));
    const std::uint32_t words[4] = {
        static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32),
        static_cast<std::uint32_t>(high), static_cast<std::uint32_t>(high >> 32)};
    for (int j = 0; j < 4; ++j) {
      const std::int64_t w = line * kPerLine + in_line * 4 + j;
      if (line >= lines || in_line * 4 + j >= kPerLine) continue;
      if (w < row) {
        args.recv_x[slot * row + w] = words[j];
      } else if (w == row) {
        args.recv_from[slot] = static_cast<std::int32_t>(words[j]);
      } else if (w <= row + args.topk) {
        args.recv_experts[slot * args.topk + w - row - 1] = static_cast<std::int32_t>(words[j]);
      }
    }
  }
}

__global__ void __launch_bounds__(kThreads) Exchange(Args args, int per) {
  __shared__ Routes routes;
  __shared__ std::int32_t to_me[kMaxRanks];
  const int rank = args.rank, world = args.world, tokens = static_cast<int>(args.tokens);
  const int first = blockIdx.x * kWarps + threadIdx.x / 32;
  Board* mine = BoardOf(args, rank);
  const std::uint64_t call = mine->calls[blockIdx.x] + 1;
  routes.Make(args, per);
  __syncthreads();
  const int a = threadIdx.x / kMaxRanks, b = threadIdx.x % kMaxRanks;
  if (blockIdx.x == 0 && a < world && b < world)
    StoreReleaseSys(&BoardOf(args, a)->table[rank][b], call << 32 | routes.Count(b));
  for (int unit = first; unit < tokens * world; unit += kCtas * kWarps) {
    const int token = unit / world, peer = (unit + token + rank) % world;
    if (routes.Goes(token, peer))
      SendRow(args, per, token, peer, routes.Before(token, peer), call);
  }
  if (threadIdx.x < world) {
    std::uint64_t value;
    do {
      value = LoadRelaxedSys(&mine->table[threadIdx.x][rank]);
    } while (value >> 32 != call);
    to_me[threadIdx.x] = static_cast<std::int32_t>(value);
    if (blockIdx.x == 0) args.recv_rows[threadIdx.x] = to_me[threadIdx.x];
  }
  __syncthreads();
  std::int64_t slot = 0;
  for (int s = 0; s < world; ++s) {
    for (int n = 0; n < to_me[s]; ++n, ++slot)
      if (slot % (kCtas * kWarps) == first) ReceiveRow(args, s, n, slot, call);
  }
}

__global__ void __launch_bounds__(kThreads) Gather(Args args, int per) {
  __shared__ Routes routes;
  __shared__ std::int32_t counts[kMaxRanks][kMaxRanks];
  const int rank = args.rank, world = args.world, lane = threadIdx.x % 32;
  Board* mine = BoardOf(args, rank);
  const std::uint64_t call = mine->calls[blockIdx.x] + 1;
  routes.Make(args, per);
  // Whose counts are here has entered: its `y` may be read.
  const int a = threadIdx.x / kMaxRanks, b = threadIdx.x % kMaxRanks;
  if (a < world && b < world) {
    std::uint64_t value;
    do {
      value = LoadAcquireSys(&mine->table[a][b]);
    } while (value >> 32 != call);
    counts[a][b] = static_cast<std::int32_t>(value);
  }
  __syncthreads();
  for (int token = blockIdx.x * kWarps + threadIdx.x / 32; token < args.tokens;
       token += kCtas * kWarps) {
    for (std::int64_t q = lane; q < args.quads; q += 32) {
      float4 sum = {};
      for (int r = 0; r < world; ++r) {
        if (!routes.Goes(token, r)) continue;
        std::int64_t row = routes.Before(token, r);
        for (int s = 0; s < rank; ++s) row += counts[s][r];
        AddTo(sum, GateOf(args, per, token, r),
              reinterpret_cast<const float4*>(args.y_peers[r])[row * args.quads + q]);
      }
      reinterpret_cast<float4*>(args.out)[token * args.quads + q] = sum;
    }
  }
  __syncthreads();
  if (threadIdx.x < world) {
    StoreReleaseSys(&BoardOf(args, threadIdx.x)->finished[rank][blockIdx.x], call);
    while (LoadAcquireSys(&mine->finished[threadIdx.x][blockIdx.x]) < call) {
    }
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

int ExpertsOfARank(const Args& args) {
  return static_cast<int>((args.experts + args.world - 1) / args.world);
}

extern "C" void dispatch(const Args& args, cudaStream_t stream) {
  Exchange<<<kCtas, kThreads, 0, stream>>>(args, ExpertsOfARank(args));
}

extern "C" void combine(const Args& args, cudaStream_t stream) {
  Gather<<<kCtas, kThreads, 0, stream>>>(args, ExpertsOfARank(args));
}
