// open: timeout on a busy machine
// design: pull both ways by TMA: a thread per row fetches tokens through shared memory; for answers a producer warp loads rows into a ring with full and empty mbarriers and four consumer warps add them up
//
// Announce says how many rows each rank gets from here, which also says that this rank has entered.
// Fetch reads a source's expert ids to find the rows for this rank. The ranks meet at the end.
constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kParts = 8;       // CTAs of Fetch for each source
constexpr int kReaders = 64;    // CTAs of Gather, at most
constexpr int kStages = 8;      // rows in the ring of Gather
constexpr int kConsumers = 128;

struct Board {
  std::uint64_t calls[kReaders];                // own, by CTA of Gather: calls that have ended
  std::uint64_t table[kMaxRanks][kMaxRanks];    // by source and destination: call, rows
  std::uint64_t finished[kMaxRanks][kReaders];  // by peer and its CTA: the call it has finished
};

__device__ Board* BoardOf(const Args& args, int rank) {
  return reinterpret_cast<Board*>(args.scratch_peers[rank]);
}
__device__ std::uint32_t Shared(const void* address) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(address));
}
__device__ void Init(std::uint64_t* barrier, std::uint32_t arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(Shared(barrier)), "r"(arrivals)
               : "memory");
}
__device__ void Expect(std::uint64_t* barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(Shared(barrier)),
               "r"(bytes)
               : "memory");
}
__device__ void AwaitPhase(std::uint64_t* barrier, std::uint32_t parity) {
  std::uint32_t ready = 0;
  while (ready == 0)
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
        : "=r"(ready)
        : "r"(Shared(barrier)), "r"(parity)
        : "memory");
}
__device__ void Load(void* to, const void* from, std::uint32_t bytes, std::uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(Shared(to)),
      "l"(from), "r"(bytes), "r"(Shared(barrier))
      : "memory");
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

__global__ void __launch_bounds__(kThreads) Announce(Args args, int per) {
  __shared__ Routes routes;
  const std::uint64_t call = BoardOf(args, args.rank)->calls[0] + 1;
  routes.Make(args, per);
  __syncthreads();
  const int a = threadIdx.x / kMaxRanks, b = threadIdx.x % kMaxRanks;
  if (a < args.world && b < args.world)
    StoreReleaseSys(&BoardOf(args, a)->table[args.rank][b], call << 32 | routes.Count(b));
}

__device__ int CountOf(const Board* mine, std::uint64_t call, int source, int destination) {
  std::uint64_t value;
  do {
    value = LoadAcquireSys(&mine->table[source][destination]);
  } while (value >> 32 != call);
  return static_cast<int>(value);
}

__global__ void __launch_bounds__(kThreads) Fetch(Args args, int per) {
  extern __shared__ __align__(128) std::uint8_t rows[];
  __shared__ __align__(8) std::uint64_t loaded;
  __shared__ int by_warp[kWarps], to_me[kMaxRanks];
  const int source = blockIdx.x / kParts, part = blockIdx.x % kParts, rank = args.rank;
  const int token = threadIdx.x, topk = static_cast<int>(args.topk);
  const auto row_bytes = static_cast<std::uint32_t>(args.quads * 16);
  Board* mine = BoardOf(args, rank);
  const std::uint64_t call = mine->calls[0] + 1;
  if (token < args.world) to_me[token] = CountOf(mine, call, token, rank);
  if (token == 0) {
    Init(&loaded, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  bool comes = false;
  const std::int32_t* ids = args.expert_ids_peers[source] + token * topk;
  if (token < args.tokens)
    for (int k = 0; k < topk; ++k) comes = comes || ids[k] / per == rank;
  const std::uint32_t coming = __ballot_sync(~0u, comes);
  if (token % 32 == 0) by_warp[token / 32] = __popc(coming);
  __syncthreads();
  int before = __popc(coming & ((1u << token % 32) - 1));
  for (int w = 0; w < token / 32; ++w) before += by_warp[w];
  if (part == 0 && token == 0) args.recv_rows[source] = to_me[source];
  const bool fetches = comes && before % kParts == part;
  std::uint8_t* row = rows + before / kParts * row_bytes;
  if (token == 0) Expect(&loaded, (to_me[source] + kParts - 1 - part) / kParts * row_bytes);
  if (!fetches) return;
  Load(row, args.x_peers[source] + token * args.quads * 4, row_bytes, &loaded);
  std::int64_t slot = before;
  for (int s = 0; s < source; ++s) slot += to_me[s];
  args.recv_from[slot] = source * static_cast<int>(args.tokens) + token;
  for (int k = 0; k < topk; ++k)
    args.recv_experts[slot * topk + k] = ids[k] / per == rank ? ids[k] - rank * per : -1;
  AwaitPhase(&loaded, 0);
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                   args.recv_x + slot * args.quads * 4),
               "r"(Shared(row)), "r"(row_bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

__global__ void __launch_bounds__(kThreads) Gather(Args args, int per) {
  extern __shared__ __align__(128) std::uint8_t ring[];
  __shared__ __align__(8) std::uint64_t full[kStages], empty[kStages];
  __shared__ Routes routes;
  __shared__ int first_row[kMaxRanks];  // of this rank's tokens at each rank
  const int rank = args.rank, world = args.world;
  const auto row_bytes = static_cast<std::uint32_t>(args.quads * 16);
  Board* mine = BoardOf(args, rank);
  const std::uint64_t call = mine->calls[blockIdx.x] + 1;
  routes.Make(args, per);
  if (threadIdx.x < world) {
    int row = 0;
    for (int s = 0; s < rank; ++s) row += CountOf(mine, call, s, threadIdx.x);
    CountOf(mine, call, threadIdx.x, rank);  // it has entered
    first_row[threadIdx.x] = row;
  }
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      Init(full + i, 1);
      Init(empty + i, kConsumers);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();

  if (threadIdx.x == kConsumers) {
    asm volatile("fence.proxy.async;" ::: "memory");
    std::uint32_t n = 0;
    for (int token = blockIdx.x; token < args.tokens; token += gridDim.x) {
      for (int r = 0; r < world; ++r) {
        if (!routes.Goes(token, r)) continue;
        const std::uint32_t stage = n % kStages;
        if (n >= kStages) AwaitPhase(empty + stage, n / kStages - 1 & 1);
        Expect(full + stage, row_bytes);
        const std::int64_t row = first_row[r] + routes.Before(token, r);
        Load(ring + stage * row_bytes, args.y_peers[r] + row * args.quads * 4, row_bytes,
             full + stage);
        ++n;
      }
    }
  } else if (threadIdx.x < kConsumers) {
    std::uint32_t n = 0;
    for (int token = blockIdx.x; token < args.tokens; token += gridDim.x) {
      float4 sums[2] = {};  // of at most 256 quads
      for (int r = 0; r < world; ++r) {
        if (!routes.Goes(token, r)) continue;
        const std::uint32_t stage = n % kStages;
        const float gate = GateOf(args, per, token, r);
        AwaitPhase(full + stage, n / kStages & 1);
        const auto* row = reinterpret_cast<const float4*>(ring + stage * row_bytes);
        for (int j = 0; j < 2; ++j) {
          const int q = threadIdx.x + j * kConsumers;
          if (q < args.quads) AddTo(sums[j], gate, row[q]);
        }
        asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(Shared(empty + stage)) : "memory");
        ++n;
      }
      for (int j = 0; j < 2; ++j) {
        const int q = threadIdx.x + j * kConsumers;
        if (q < args.quads) reinterpret_cast<float4*>(args.out)[token * args.quads + q] = sums[j];
      }
    }
  }

  // All loads are complete: consumers have waited for each of them.
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
  const int per = ExpertsOfARank(args);
  const int bytes = static_cast<int>((args.tokens + kParts - 1) / kParts * args.quads * 16);
  Announce<<<1, kThreads, 0, stream>>>(args, per);
  cudaFuncSetAttribute(Fetch, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  Fetch<<<args.world * kParts, kThreads, bytes, stream>>>(args, per);
}

extern "C" void combine(const Args& args, cudaStream_t stream) {
  const int bytes = static_cast<int>(kStages * args.quads * 16);
  const auto ctas = static_cast<int>(args.tokens < kReaders ? args.tokens : kReaders);
  cudaFuncSetAttribute(Gather, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  Gather<<<ctas, kThreads, bytes, stream>>>(args, ExpertsOfARank(args));
}
