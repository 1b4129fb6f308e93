// design: TMA push: one thread per block loads a piece of a tile into shared memory once and stores it to all peers by bulk copies; arrivals are counted by release reductions
//
// Warps 0 to 3 multiply, warp 4 pushes. Pieces are 8 KiB, so a tile has `depth` of them, and a tile
// has come in call k when depth * k pieces have been counted: a rank's kernel of call k is over
// before any of its pieces of call k + 1 are sent. The gathered A exists twice, by turns: whoever
// sends for call k + 2 has got all tiles of call k + 1, which their ranks sent after call k.
constexpr int kThreads = allranks::kTileThreads + 32;
constexpr int kBlocks = 32, kStages = 4;
constexpr std::uint32_t kPieceBytes = 8192;

struct Board {
  std::uint32_t calls[kBlocks];          // own: calls that each block has made
  std::uint32_t pieces[kMaxRanks * 32];  // by tile of A: pieces that have come, ever
};
static_assert(sizeof(Board) <= 8192, "the tiles come behind it");

__device__ std::uint32_t Shared(const void* address) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(address));
}
__device__ Board* BoardOf(std::uint8_t* scratch) { return reinterpret_cast<Board*>(scratch); }
__device__ std::uint8_t* Gathered(const Args& args, std::uint8_t* scratch, std::uint32_t call,
                                  std::int64_t tile) {
  return scratch + 8192 + (call % 2 * args.world * args.tiles + tile) * args.depth * kPieceBytes;
}

struct Pusher {
  const Args& args;
  std::uint8_t* stages;
  std::uint64_t* full;

  __device__ std::int64_t Unit(std::int64_t n) const { return blockIdx.x + n * gridDim.x; }
  __device__ void Load(std::int64_t n) const {
    const int stage = static_cast<int>(n % kStages);
    const auto* from = reinterpret_cast<const std::uint8_t*>(A(args)) + Unit(n) * kPieceBytes;
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(Shared(full + stage)),
                 "r"(kPieceBytes)
                 : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(Shared(stages + stage * kPieceBytes)),
        "l"(from), "r"(kPieceBytes), "r"(Shared(full + stage))
        : "memory");
  }
  __device__ void Await(std::int64_t n) const {
    const auto parity = static_cast<std::uint32_t>(n / kStages & 1);
    std::uint32_t ready = 0;
    while (ready == 0)
      asm volatile(
          "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
          : "=r"(ready)
          : "r"(Shared(full + n % kStages)), "r"(parity)
          : "memory");
  }
  __device__ int Peer(int distance) const { return (args.rank + distance) % args.world; }

  __device__ void Run(std::uint32_t call) const {
    for (int i = 0; i < kStages; ++i)
      asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(Shared(full + i)) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    const std::int64_t units = args.tiles * args.depth;
    const std::int64_t count = (units - blockIdx.x + gridDim.x - 1) / gridDim.x;
    std::int64_t loaded = 0;
    while (loaded < count && loaded < kStages) Load(loaded++);
    for (std::int64_t n = 0; n < count; ++n) {
      const std::int64_t tile = args.rank * args.tiles + Unit(n) / args.depth;
      const std::int64_t offset = Unit(n) % args.depth * kPieceBytes;
      Await(n);
      for (int d = 1; d < args.world; ++d) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                         Gathered(args, args.scratch_peers[Peer(d)], call, tile) + offset),
                     "r"(Shared(stages + n % kStages * kPieceBytes)), "r"(kPieceBytes)
                     : "memory");
      }
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      // The piece before has left by now; its stage takes another one.
      if (n > 0) {
        asm volatile("cp.async.bulk.wait_group 1;" ::: "memory");
        Tell(n - 1);
        if (loaded < count) Load(loaded++);
      }
    }
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    if (count > 0) Tell(count - 1);
  }
  __device__ void Tell(std::int64_t n) const {
    const std::int64_t tile = args.rank * args.tiles + Unit(n) / args.depth;
    for (int d = 1; d < args.world; ++d) {
      asm volatile("red.release.sys.global.add.u32 [%0], 1;" ::"l"(
                       &BoardOf(args.scratch_peers[Peer(d)])->pieces[tile])
                   : "memory");
    }
  }
};

__device__ void Multiply(const Args& args, std::uint32_t call) {
  __shared__ allranks::TileStage stage;
  allranks::TileProduct product(stage);
  const std::int64_t k = args.depth * allranks::kTileDepth;
  const std::uint32_t needed = call * static_cast<std::uint32_t>(args.depth);
  for (std::int64_t i = blockIdx.x; i < args.world * args.tiles; i += gridDim.x) {
    // Own rows first, then those of the left neighbour, whose first target we are.
    const int source = (args.rank + args.world - static_cast<int>(i / args.tiles)) % args.world;
    const std::int64_t t = i % args.tiles, tile = source * args.tiles + t;
    const void* rows = A(args) + t * allranks::kTileRows * k;
    if (source != args.rank) {
      if (threadIdx.x == 0) {
        std::uint32_t seen;
        do {
          asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
                       : "=r"(seen)
                       : "l"(&BoardOf(args.scratch)->pieces[tile])
                       : "memory");
        } while (static_cast<std::int32_t>(seen - needed) < 0);
      }
      allranks::TileProduct::Meet();
      rows = Gathered(args, args.scratch, call, tile);
    }
    product.Clear();
    product.Add(rows, k, args.b, k, k);
    product.Store(args.c + tile * allranks::kTileRows * allranks::kTileCols, allranks::kTileCols);
  }
}

__global__ void __launch_bounds__(kThreads) GatherMultiply(Args args) {
  extern __shared__ __align__(128) std::uint8_t dynamic[];
  __shared__ __align__(8) std::uint64_t full[kStages];
  std::uint32_t* calls = &BoardOf(args.scratch)->calls[blockIdx.x];
  const std::uint32_t call = *calls + 1;
  __syncthreads();
  if (threadIdx.x == 0) *calls = call;
  if (threadIdx.x < allranks::kTileThreads) {
    Multiply(args, call);
  } else if (threadIdx.x == allranks::kTileThreads) {
    Pusher{args, dynamic, full}.Run(call);
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  cudaFuncSetAttribute(GatherMultiply, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       kStages * kPieceBytes);
  GatherMultiply<<<kBlocks, kThreads, kStages * kPieceBytes, stream>>>(args);
}
