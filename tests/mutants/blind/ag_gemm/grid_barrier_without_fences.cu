// expect: race
// All blocks push this rank's rows, meet at a barrier of the grid, and one of them then tells the
// peers. The barrier counts by atomicAdd and polls a volatile word, with no fence: blocks have
// come, but what they pushed is not ordered before block 0's release, nor what it has acquired
// before the others' reads.

constexpr int kThreads = 128, kBlocks = 32;

struct Board {
  std::uint32_t calls[kBlocks];     // own: calls that each block has made
  std::uint32_t came;               // own: arrivals at the grid's barrier, of all times
  std::uint32_t pushed[kMaxRanks];  // by rank: the last call whose rows are here
};

// `meetings`: those held before, by a grid of kBlocks blocks.
__device__ void MeetGrid(Board* mine, std::uint32_t meetings) {
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(&mine->came, 1u);
    volatile std::uint32_t* came = &mine->came;
    while (*came < (meetings + 1) * kBlocks) {
    }
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads) GatherThenMultiply(Args args) {
  __shared__ allranks::TileStage stage;
  allranks::TileProduct product(stage);
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const std::int64_t k = args.depth * 64, tiles = args.world * args.tiles;
  const std::int64_t own = args.tiles * 64 * k, copy = call % 2 * tiles * 64 * k;

  const uint4* from = reinterpret_cast<const uint4*>(args.a);
  for (int step = 1; step < args.world; ++step) {
    const int peer = (args.rank + step) % args.world;
    uint4* to = reinterpret_cast<uint4*>(
        reinterpret_cast<Half*>(args.scratch_peers[peer] + 8192) + copy + args.rank * own);
    for (std::int64_t n = blockIdx.x * kThreads + threadIdx.x; n < own / 8; n += kBlocks * kThreads)
      to[n] = from[n];
  }
  MeetGrid(mine, 2 * (call - 1));
  if (blockIdx.x == 0 && threadIdx.x < args.world && threadIdx.x != args.rank) {
    Board* theirs = reinterpret_cast<Board*>(args.scratch_peers[threadIdx.x]);
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(&theirs->pushed[args.rank]), "r"(call)
                 : "memory");
    std::uint32_t seen;
    do {
      asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
                   : "=r"(seen)
                   : "l"(&mine->pushed[threadIdx.x])
                   : "memory");
    } while (seen < call);
  }
  MeetGrid(mine, 2 * (call - 1) + 1);
  for (std::int64_t tile = blockIdx.x; tile < tiles; tile += kBlocks) {
    const Half* rows = reinterpret_cast<const Half*>(args.scratch + 8192) + copy + tile * 64 * k;
    if (tile / args.tiles == args.rank) rows = A(args) + tile % args.tiles * 64 * k;
    product.Clear();
    product.Add(rows, k, args.b, k, k);
    product.Store(args.c + tile * 64 * 32, 32);
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  GatherThenMultiply<<<kBlocks, kThreads, 0, stream>>>(args);
}
