// Pull both ways: once all have entered, every rank reads everybody's expert ids and knows all
// places by itself, so no counts are sent. Rows and answers are fetched by whoever needs them.
constexpr int kCtas = 64;
constexpr int kThreads = 256;  // and the most tokens of a rank
constexpr int kWarps = kThreads / 32;

struct Board {
  std::uint64_t calls;
  std::uint64_t entered[kMaxRanks], left[kMaxRanks];
  // Own, of all sources: ranks that a token goes to (a bit each), tokens of the same source ahead
  // of it that go there too, and rows by source and destination.
  std::uint32_t ranks[kMaxRanks][kThreads];
  std::int16_t ahead[kMaxRanks][kThreads][kMaxRanks];
  std::int32_t rows[kMaxRanks][kMaxRanks];
};
static_assert(sizeof(Board) <= 65536, "fits before the first row");

__device__ Board* BoardOf(const Args& args, int rank) {
  return reinterpret_cast<Board*>(args.scratch_peers[rank]);
}
__device__ std::int64_t FirstRow(const Board* mine, int source, int destination) {
  std::int64_t first = 0;
  for (int s = 0; s < source; ++s) first += mine->rows[s][destination];
  return first;
}

__global__ void Enter(Args args) {
  Board* mine = BoardOf(args, args.rank);
  const std::uint64_t call = mine->calls + 1;
  StoreReleaseSys(&BoardOf(args, threadIdx.x)->entered[args.rank], call);
  while (LoadAcquireSys(&mine->entered[threadIdx.x]) < call) {
  }
}

// A CTA per source.
__global__ void __launch_bounds__(kThreads) Plan(Args args, int per) {
  __shared__ std::int32_t by_warp[kWarps][kMaxRanks];
  const int source = blockIdx.x, token = threadIdx.x, warp = token / 32, lane = token % 32;
  Board* mine = BoardOf(args, args.rank);
  std::uint32_t ranks = 0;
  if (token < args.tokens) {
    for (std::int64_t i = token * args.topk; i < (token + 1) * args.topk; ++i)
      ranks |= 1u << args.expert_ids_peers[source][i] / per;
    mine->ranks[source][token] = ranks;
  }
  std::int32_t ahead[kMaxRanks];
#pragma unroll
  for (int r = 0; r < kMaxRanks; ++r) {
    const std::uint32_t going = __ballot_sync(~0u, ranks >> r & 1);
    ahead[r] = __popc(going & ((1u << lane) - 1));
    if (lane == 0) by_warp[warp][r] = __popc(going);
  }
  __syncthreads();
#pragma unroll
  for (int r = 0; r < kMaxRanks; ++r) {
    for (int w = 0; w < warp; ++w) ahead[r] += by_warp[w][r];
    mine->ahead[source][token][r] = static_cast<std::int16_t>(ahead[r]);
  }
  if (token < args.world) {
    std::int32_t rows = 0;
    for (int w = 0; w < kWarps; ++w) rows += by_warp[w][token];
    mine->rows[source][token] = rows;
    if (token == args.rank) args.recv_rows[source] = rows;
  }
}

__global__ void __launch_bounds__(kThreads) Fetch(Args args, int per) {
  Board* mine = BoardOf(args, args.rank);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (std::int64_t i = blockIdx.x * kWarps + warp; i < args.world * args.tokens;
       i += kCtas * kWarps) {
    const int source = static_cast<int>(i / args.tokens);
    const std::int64_t token = i % args.tokens;
    if ((mine->ranks[source][token] >> args.rank & 1) == 0) continue;
    const std::int64_t row =
        FirstRow(mine, source, args.rank) + mine->ahead[source][token][args.rank];
    const uint4* from = reinterpret_cast<const uint4*>(args.x_peers[source]) + token * args.quads;
    uint4* to = reinterpret_cast<uint4*>(args.recv_x) + row * args.quads;
    for (std::int64_t q = lane; q < args.quads; q += 32) to[q] = from[q];
    if (lane == 0) args.recv_from[row] = static_cast<std::int32_t>(i);
    for (std::int64_t k = lane; k < args.topk; k += 32) {
      const int expert = args.expert_ids_peers[source][token * args.topk + k] - args.rank * per;
      args.recv_experts[row * args.topk + k] = expert >= 0 && expert < per ? expert : -1;
    }
  }
}

// A warp per token.
__global__ void __launch_bounds__(kThreads) Gather(Args args, int per) {
  Board* mine = BoardOf(args, args.rank);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (std::int64_t token = blockIdx.x * kWarps + warp; token < args.tokens;
       token += kCtas * kWarps) {
    const std::uint32_t ranks = mine->ranks[args.rank][token];
    for (std::int64_t q = lane; q < args.quads; q += 32) {
      float4 sum = {};
      for (int r = 0; r < args.world; ++r) {
        if ((ranks >> r & 1) == 0) continue;
        float gate = 0;
        for (std::int64_t i = token * args.topk; i < (token + 1) * args.topk; ++i) {
          if (args.expert_ids[i] / per == r) gate += args.weights[i];
        }
        const std::int64_t row = FirstRow(mine, args.rank, r) + mine->ahead[args.rank][token][r];
        const float4 y = reinterpret_cast<const float4*>(args.y_peers[r])[row * args.quads + q];
        sum.x = fmaf(gate, y.x, sum.x);
        sum.y = fmaf(gate, y.y, sum.y);
        sum.z = fmaf(gate, y.z, sum.z);
        sum.w = fmaf(gate, y.w, sum.w);
      }
      reinterpret_cast<float4*>(args.out)[token * args.quads + q] = sum;
    }
  }
}

__global__ void Leave(Args args) {
  Board* mine = BoardOf(args, args.rank);
  const std::uint64_t call = mine->calls + 1;
  StoreReleaseSys(&BoardOf(args, threadIdx.x)->left[args.rank], call);
  while (LoadAcquireSys(&mine->left[threadIdx.x]) < call) {
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->calls = call;
}

int ExpertsOfARank(const Args& args) {
  return static_cast<int>((args.experts + args.world - 1) / args.world);
}

extern "C" void dispatch(const Args& args, cudaStream_t stream) {
  Enter<<<1, args.world, 0, stream>>>(args);
  Plan<<<args.world, kThreads, 0, stream>>>(args, ExpertsOfARank(args));
  Fetch<<<kCtas, kThreads, 0, stream>>>(args, ExpertsOfARank(args));
}

extern "C" void combine(const Args& args, cudaStream_t stream) {
  Gather<<<kCtas, kThreads, 0, stream>>>(args, ExpertsOfARank(args));
  Leave<<<1, args.world, 0, stream>>>(args);
}
