#include <allranks/flags.h>
#include <allranks/tile_mma.h>

// A block multiplies tile after tile and sends each to the rank that owns its rows, those for the
// next rank first, its own rows last: then the others' parts of these have come meanwhile. A tile
// goes through shared memory, so that it crosses the link in long stores. A thread that does not
// multiply raises a flag at the owner behind each tile.
//
// Slots exist twice, by turns of calls. A rank sends for call k + 2 after it has the parts of all
// ranks for call k + 1, and who has sent one of them has ended its call k.
constexpr int kMaxBlocks = 32, kThreads = allranks::kTileThreads + 32;
constexpr int kFloats = allranks::kTileRows * allranks::kTileCols;

struct Board {
  std::uint32_t calls[kMaxBlocks];     // own: that each block has completed
  std::uint32_t ready[kMaxRanks][32];  // by rank and tile of the own rows: the last call
};
static_assert(sizeof(Board) <= 8192);

// At rank `at`: the part of rank r of the tile t of its rows.
__device__ float4* Slot(const Args& args, int at, int r, std::int64_t t, std::uint32_t call) {
  const std::int64_t tile = (call % 2 * args.world + r) * args.tiles + t;
  return reinterpret_cast<float4*>(args.scratch_peers[at] + 8192) + tile * (kFloats / 4);
}

// Adds up the parts of all ranks of a tile of the own rows.
__device__ void Sum(const Args& args, std::int64_t t, const float4* own, std::uint32_t call) {
  for (int n = threadIdx.x; n < kFloats / 4; n += kThreads) {
    float4 v[kMaxRanks];
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {  // all on their way before the first is needed
      if (r < args.world) v[r] = r == args.rank ? own[n] : Slot(args, args.rank, r, t, call)[n];
    }
    float4 sum = v[0];
#pragma unroll
    for (int r = 1; r < kMaxRanks; ++r) {
      if (r >= args.world) break;  //@ranks
      sum = {sum.x + v[r].x, sum.y + v[r].y, sum.z + v[r].z, sum.w + v[r].w};
    }
    reinterpret_cast<float4*>(args.c + t * kFloats)[n] = sum;
  }
}

__global__ void __launch_bounds__(kThreads) MultiplyScatter(Args args) {
  __shared__ allranks::TileStage stage;
  __shared__ alignas(16) float tile[kFloats];
  allranks::TileProduct product(stage);
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const std::int64_t k = args.depth * allranks::kTileDepth;
  const auto* a = reinterpret_cast<const std::uint16_t*>(args.a);
  const void* b = args.b;
  const float4* from = reinterpret_cast<const float4*>(tile);
  for (std::int64_t i = blockIdx.x; i < args.world * args.tiles; i += gridDim.x) {
    const int owner = (args.rank + 1 + static_cast<int>(i / args.tiles)) % args.world;
    const std::int64_t t = i % args.tiles;
    if (threadIdx.x < allranks::kTileThreads) {
      product.Clear();  //@clear
      product.Add(a + (owner * args.tiles + t) * allranks::kTileRows * k, k, b, k, k);
      product.Store(tile, allranks::kTileCols);
    } else if (owner == args.rank && threadIdx.x % 32 < args.world) {
      const int r = threadIdx.x % 32;
      if (r != args.rank) allranks::WaitAcquireSys(&mine->ready[r][t], call);  //@wait
    }
    __syncthreads();  //@stored
    if (owner == args.rank) {
      Sum(args, t, from, call);
    } else {
      float4* to = Slot(args, owner, args.rank, t, call);
      for (int n = threadIdx.x; n < kFloats / 4; n += kThreads) to[n] = from[n];
    }
    __syncthreads();  //@sent
    if (owner != args.rank && threadIdx.x == allranks::kTileThreads) {
      Board* theirs = reinterpret_cast<Board*>(args.scratch_peers[owner]);
      allranks::StoreReleaseSys(&theirs->ready[args.rank][t], call);  //@publish
    }
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t tiles = args.world * args.tiles;
  const int blocks = static_cast<int>(tiles < kMaxBlocks ? tiles : kMaxBlocks);
  MultiplyScatter<<<blocks, kThreads, 0, stream>>>(args);
}
