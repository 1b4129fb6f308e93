// design: clusters of four blocks share B: each keeps a quarter of its depth in shared memory and multiplies with the others' quarters by DSMEM; tiles are pushed by warps that count themselves with cuda::atomic_ref
//
// A tile of A is pushed by four warps, a quarter each; each adds 1 at the receiver behind its rows.
// So 4 * call arrivals mean that the tile of this call is there: kernels of one rank follow each
// other. The gathered A exists twice, by turns.
#include <cooperative_groups.h>

#include <cuda/atomic>

namespace cg = cooperative_groups;

constexpr int kBlocks = 32, kCluster = 4, kThreads = 256, kHalf = 128, kWarps = 4;
constexpr int kMaxPieces = 16 / kCluster;  // of B's depth, in each block

struct Board {
  std::uint32_t calls[kBlocks];           // own: calls that each block has made
  std::uint32_t arrivals[kMaxRanks * 32];  // by tile of A: warps that have pushed, ever
};
using SysRef = cuda::atomic_ref<std::uint32_t, cuda::thread_scope_system>;

__device__ Board* BoardOf(std::uint8_t* scratch) { return reinterpret_cast<Board*>(scratch); }
__device__ Half* Gathered(const Args& args, std::uint8_t* scratch, std::uint32_t call,
                          std::int64_t tile) {
  return reinterpret_cast<Half*>(scratch + 8192) +
         (call % 2 * args.world * args.tiles + tile) * 64 * 64 * args.depth;
}

__device__ void Push(const Args& args, std::uint32_t call) {
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const std::int64_t quarter = 64 * 64 * args.depth / 8 / kWarps;  // in runs of 16 bytes
  const std::int64_t first = (warp.meta_group_rank() - kHalf / 32) * quarter;
  for (std::int64_t i = blockIdx.x; i < (args.world - 1) * args.tiles; i += gridDim.x) {
    const int peer = (args.rank + 1 + static_cast<int>(i / args.tiles)) % args.world;
    const std::int64_t t = i % args.tiles, tile = args.rank * args.tiles + t;
    const uint4* from = reinterpret_cast<const uint4*>(A(args) + t * 64 * 64 * args.depth) + first;
    uint4* to =
        reinterpret_cast<uint4*>(Gathered(args, args.scratch_peers[peer], call, tile)) + first;
    for (std::int64_t n = warp.thread_rank(); n < quarter; n += warp.size()) to[n] = from[n];
    warp.sync();
    if (warp.thread_rank() == 0) {
      SysRef(BoardOf(args.scratch_peers[peer])->arrivals[tile])
          .fetch_add(1, cuda::memory_order_release);
    }
  }
}

__device__ void Multiply(const Args& args, std::uint32_t call, std::uint16_t (*b)[32][64]) {
  __shared__ allranks::TileStage stage;
  allranks::TileProduct product(stage);
  const cg::cluster_group cluster = cg::this_cluster();
  const std::int64_t k = args.depth * 64;
  for (std::int64_t i = blockIdx.x; i < args.world * args.tiles; i += gridDim.x) {
    const int source = (args.rank + args.world - static_cast<int>(i / args.tiles)) % args.world;
    const std::int64_t t = i % args.tiles, tile = source * args.tiles + t;
    const Half* rows = A(args) + t * 64 * k;
    if (source != args.rank) {
      if (threadIdx.x == 0) {
        SysRef arrivals(BoardOf(args.scratch)->arrivals[tile]);
        while (static_cast<std::int32_t>(arrivals.load(cuda::memory_order_acquire) -
                                         kWarps * call) < 0) {
        }
      }
      allranks::TileProduct::Meet();
      rows = Gathered(args, args.scratch, call, tile);
    }
    product.Clear();
    for (std::int64_t p = 0; p < args.depth; ++p) {
      const std::uint16_t* piece = cluster.map_shared_rank(
          &b[p / kCluster][0][0], static_cast<unsigned int>(p % kCluster));
      product.Add(rows + p * 64, k, piece, 64, 64);
    }
    product.Store(args.c + tile * 64 * 32, 32);
  }
}

__global__ void __cluster_dims__(kCluster, 1, 1) __launch_bounds__(kThreads)
    GatherMultiply(Args args) {
  __shared__ __align__(16) std::uint16_t b[kMaxPieces][32][64];
  const cg::cluster_group cluster = cg::this_cluster();
  std::uint32_t* calls = &BoardOf(args.scratch)->calls[blockIdx.x];
  const std::uint32_t call = *calls + 1;
  for (std::int64_t p = cluster.block_rank(); p < args.depth; p += kCluster) {
    const uint4* from = reinterpret_cast<const uint4*>(args.b) + p * 8;
    for (int n = threadIdx.x; n < 32 * 8; n += kThreads) {
      reinterpret_cast<uint4*>(b[p / kCluster])[n] = from[n / 8 * args.depth * 8 + n % 8];
    }
  }
  cluster.sync();
  if (threadIdx.x == 0) *calls = call;
  if (threadIdx.x < kHalf) {
    Multiply(args, call, b);
  } else {
    Push(args, call);
  }
  cluster.sync();  // a block's part of B stays until all have used it
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  GatherMultiply<<<kBlocks, kThreads, 0, stream>>>(args);
}
