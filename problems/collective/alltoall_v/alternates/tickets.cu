// Rows by ticket: warps draw the next row of this rank, whoever it is for, and write it in place.
// Uneven counts need no plan. The last block to end speaks for the whole rank.
constexpr int kCtas = 16;
constexpr int kThreads = 512;

struct Board {
  std::uint64_t calls;                           // calls that this rank has finished
  std::uint64_t done[kMaxRanks];                 // by source: the call whose rows are here
  std::uint64_t table[2][kMaxRanks][kMaxRanks];  // by source and destination: call, rows
  unsigned int ticket, ended;
};

__device__ Board* BoardOf(const Args& args, int rank) {
  return reinterpret_cast<Board*>(args.scratch_peers[rank]);
}

__global__ void __launch_bounds__(kThreads) Push(Args args) {
  __shared__ std::int64_t counts[kMaxRanks][kMaxRanks];
  __shared__ bool last;
  const int rank = args.rank, world = args.world, lane = threadIdx.x % 32;
  const int a = threadIdx.x / kMaxRanks, b = threadIdx.x % kMaxRanks;
  Board* mine = BoardOf(args, rank);
  const std::uint64_t call = mine->calls + 1;
  if (a < world && b < world) {
    if (blockIdx.x == 0)
      StoreReleaseSys(&BoardOf(args, a)->table[call % 2][rank][b], call << 32 | args.counts[b]);
    std::uint64_t value;
    do {
      value = LoadAcquireSys(&mine->table[call % 2][a][b]);
    } while (value >> 32 != call);
    counts[a][b] = static_cast<std::uint32_t>(value);
  }
  __syncthreads();
  for (;;) {
    unsigned int row = 0;
    if (lane == 0) row = atomicAdd(&mine->ticket, 1);
    row = __shfl_sync(~0u, row, 0);
    std::int64_t in_peer = row;
    int peer = 0;
    while (peer < world && in_peer >= counts[rank][peer]) in_peer -= counts[rank][peer++];
    if (peer == world) break;
    std::int64_t place = in_peer;
    for (int i = 0; i < rank; ++i) place += counts[i][peer];
    if (place >= args.room) continue;
    const uint4* from = reinterpret_cast<const uint4*>(args.in) + row * args.quads;
    uint4* to = reinterpret_cast<uint4*>(args.out_peers[peer]) + place * args.quads;
    for (std::int64_t i = lane; i < args.quads; i += 32) to[i] = from[i];
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence_system();
    last = atomicAdd(&mine->ended, 1) == kCtas - 1;
    __threadfence_system();
  }
  __syncthreads();
  if (!last) return;
  if (threadIdx.x < world) {
    StoreReleaseSys(&BoardOf(args, threadIdx.x)->done[rank], call);
    while (LoadAcquireSys(&mine->done[threadIdx.x]) < call) {
    }
  }
  if (threadIdx.x == 32) {
    std::int64_t left = args.room;
    for (int i = 0; i < world; ++i) {
      const std::int64_t rows = min(counts[i][rank], left);
      args.arrived[i] = static_cast<std::int32_t>(rows);
      left -= rows;
    }
    mine->ticket = mine->ended = 0;
    mine->calls = call;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Push<<<kCtas, kThreads, 0, stream>>>(args);
}
