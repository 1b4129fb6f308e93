// Slices stay at home, transposed, and are read across the links by whoever multiplies them. A block
// has half the columns of a tile of c; it looks which of the ranks that are left has told of its
// slice, and multiplies that one next. Slices exist twice, by turns: who tells of call k + 1 has
// ended call k.
#include <allranks/flags.h>
#include <allranks/tile_mma.h>
using namespace allranks;

constexpr int kMaxBlocks = 32, kThreads = kTileThreads;

struct Board {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t ready[kMaxBlocks][kMaxRanks];  // by tile and rank: the last call
};

__device__ std::uint16_t* Rows(const Args& args, int at, std::uint32_t call, std::int64_t tile) {
  return reinterpret_cast<std::uint16_t*>(args.scratch_peers[at] + 8192) +
         (call % 2 * args.tiles + tile) * 4096 * args.depth;
}

__global__ void __launch_bounds__(kThreads) GatherMultiply(Args args) {
  __shared__ TileStage stage;
  __shared__ int next;
  TileProduct product(stage);
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const std::int64_t k = args.depth * 64, m = args.tiles * 64, length = args.world * k;
  const auto* a = reinterpret_cast<const std::uint16_t*>(args.a);
  for (std::int64_t t = blockIdx.x; t < args.tiles; t += gridDim.x) {
    std::uint16_t* rows = Rows(args, args.rank, call, t);
    for (int n = threadIdx.x; n < 64 * k; n += kThreads) {
      rows[n % 64 * k + n / 64] = a[n / 64 * m + t * 64 + n % 64];
    }
    __syncthreads();
    if (threadIdx.x < args.world) {
      Board* theirs = reinterpret_cast<Board*>(args.scratch_peers[threadIdx.x]);
      StoreReleaseSys(&theirs->ready[t][args.rank], call);
    }
  }
  for (std::int64_t i = blockIdx.x; i < 2 * args.tiles; i += gridDim.x) {
    const std::int64_t t = i % args.tiles, half = i / args.tiles * kTileCols;
    product.Clear();
    for (std::uint32_t left = (1u << args.world) - 1; left != 0; left &= ~(1u << next)) {
      __syncthreads();
      if (threadIdx.x == 0) {
        int r = args.rank;
        while ((left >> r & 1) == 0 || LoadAcquireSys(&mine->ready[t][r]) < call) {
          r = (r + 1) % args.world;
        }
        next = r;
      }
      __syncthreads();
      const auto* b = reinterpret_cast<const std::uint16_t*>(args.b) + half * length + next * k;
      product.Add(Rows(args, next, call, t), k, b, length, k);
    }
    product.Store(args.c + t * 64 * 64 + half, 64);
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int tasks = static_cast<int>(2 * args.tiles);
  GatherMultiply<<<tasks < kMaxBlocks ? tasks : kMaxBlocks, kThreads, 0, stream>>>(args);
}
