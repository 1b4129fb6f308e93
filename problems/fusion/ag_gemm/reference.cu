// Each block has two halves. Threads 0 to 127 multiply, threads 128 to 255 push this rank's tiles
// into the peers' gathered A and raise a flag per tile behind each. Multiplying starts with the own
// rows, which need nobody, and goes on in the order in which tiles arrive: a tile of the rank at
// distance d, rank + d, is pushed by it as its d-th, to rank + d - d. So at any time every rank
// sends to another one, and what is sent first is needed first.
//
// Flags hold the number of the call. The gathered A exists twice, by turns. That suffices without
// any answer: a tile of call k + 2 is pushed when our call k + 1 has ended, hence after all peers'
// tiles of call k + 1 have come, which each of them sent when its call k had ended.
constexpr int kThreads = 2 * allranks::kTileThreads;
constexpr int kBlocks = 32;

struct Board {
  std::uint32_t calls[kBlocks];         // own: calls that each block has made
  std::uint32_t ready[kMaxRanks * 64];  // by tile of A: the last call whose tile has come
};
static_assert(sizeof(Board) <= 8192);

__device__ inline Board* BoardOf(std::uint8_t* scratch) {
  return reinterpret_cast<Board*>(scratch);
}

__device__ inline std::int64_t TileHalves(const Args& args) {
  return allranks::kTileRows * args.depth * allranks::kTileDepth;
}

// A tile of the gathered A, in one of its two copies.
__device__ inline Half* Gathered(const Args& args, std::uint8_t* scratch, std::uint32_t call,
                                 std::int64_t tile) {
  const std::int64_t copy = call % 2 * args.world * args.tiles;  //@copy
  return reinterpret_cast<Half*>(scratch + 8192) + (copy + tile) * TileHalves(args);
}

// The i-th tile that this rank pushes, in the order in which peers need them: which of its tiles,
// and to whom.
struct Parcel {
  std::int64_t t;
  int peer;
};

__device__ inline Parcel ParcelAt(const Args& args, std::int64_t i) {
  const int distance = 1 + static_cast<int>(i / args.tiles);
  return {i % args.tiles, (args.rank + args.world - distance) % args.world};
}

// A block's tiles go out at once and share one fence: it takes longer than a tile.
__device__ void Push(const Args& args, std::uint32_t call) {
  constexpr int kMovers = kThreads - allranks::kTileThreads, kAtOnce = 8;
  const int thread = threadIdx.x - allranks::kTileThreads;
  const std::int64_t runs = TileHalves(args) / 8, count = (args.world - 1) * args.tiles;
  const std::int64_t first_tile = args.rank * args.tiles;
  for (std::int64_t i = blockIdx.x; i < count; i += gridDim.x) {
    const Parcel parcel = ParcelAt(args, i);
    const auto* from = reinterpret_cast<const uint4*>(A(args) + parcel.t * TileHalves(args));
    auto* to = reinterpret_cast<uint4*>(
        Gathered(args, args.scratch_peers[parcel.peer], call, first_tile + parcel.t));
    for (std::int64_t n = thread; n < runs; n += kAtOnce * kMovers) {
      uint4 data[kAtOnce];
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        if (n + u * kMovers < runs) data[u] = from[n + u * kMovers];
      }
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        if (n + u * kMovers < runs) to[n + u * kMovers] = data[u];
      }
    }
  }
  asm volatile("barrier.sync 2, %0;" ::"n"(kMovers) : "memory");  //@pushed
  if (thread != 0) return;
  asm volatile("fence.acq_rel.sys;" ::: "memory");  //@fence
  for (std::int64_t i = blockIdx.x; i < count; i += gridDim.x) {
    const Parcel parcel = ParcelAt(args, i);
    std::uint32_t* flag = &BoardOf(args.scratch_peers[parcel.peer])->ready[first_tile + parcel.t];
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(call)
                 : "memory");  //@publish
  }
}

__device__ void WaitFor(const std::uint32_t* flag, std::uint32_t call) {
  std::uint32_t seen;
  do {
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
                 : "=r"(seen)
                 : "l"(flag)
                 : "memory");  //@look
  } while (seen < call);  //@wait
}

__device__ void Multiply(const Args& args, std::uint32_t call) {
  __shared__ allranks::TileStage stage;
  allranks::TileProduct product(stage);
  const std::int64_t k = args.depth * allranks::kTileDepth;
  for (std::int64_t i = blockIdx.x; i < args.world * args.tiles; i += gridDim.x) {
    const int source = (args.rank + static_cast<int>(i / args.tiles)) % args.world;
    const std::int64_t t = i % args.tiles, tile = source * args.tiles + t;
    const Half* rows = A(args) + t * TileHalves(args);
    if (source != args.rank) {
      if (threadIdx.x == 0) WaitFor(&BoardOf(args.scratch)->ready[tile], call);  //@arrival
      allranks::TileProduct::Meet();                                             //@arrived
      rows = Gathered(args, args.scratch, call, tile);
    }
    product.Clear();
    product.Add(rows, k, args.b, k, k);
    product.Store(args.c + tile * allranks::kTileRows * allranks::kTileCols, allranks::kTileCols);
  }
}

__global__ void __launch_bounds__(kThreads) GatherMultiply(Args args) {
  std::uint32_t* calls = &BoardOf(args.scratch)->calls[blockIdx.x];
  const std::uint32_t call = *calls + 1;
  __syncthreads();                      //@counted
  if (threadIdx.x == 0) *calls = call;  //@epoch
  if (threadIdx.x < allranks::kTileThreads) {
    Multiply(args, call);
  } else {
    Push(args, call);
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t tiles = args.world * args.tiles;
  const int blocks = static_cast<int>(tiles < kBlocks ? tiles : kBlocks);
  GatherMultiply<<<blocks, kThreads, 0, stream>>>(args);
}
