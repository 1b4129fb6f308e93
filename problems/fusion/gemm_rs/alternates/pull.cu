#include <allranks/flags.h>
#include <allranks/tile_mma.h>

// Every rank keeps its parts in its own memory and tells each owner, tile by tile; owners read them
// across the links. Parts exist twice, by turns: who tells of call k + 1 has ended call k, and so
// has read all parts of call k.
constexpr int kMaxBlocks = 32, kFloats = 64 * 32;

struct Board {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t ready[kMaxRanks][32];  // by rank and tile of the own rows: the last call
};

__device__ float* Part(const Args& args, int at, int owner, std::int64_t t, std::uint32_t call) {
  const std::int64_t tile = (call % 2 * args.world + owner) * args.tiles + t;
  return reinterpret_cast<float*>(args.scratch_peers[at] + 8192) + tile * kFloats;
}

__global__ void __launch_bounds__(128) MultiplyScatter(Args args) {
  __shared__ allranks::TileStage stage;
  allranks::TileProduct product(stage);
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const std::int64_t k = args.depth * 64;
  for (std::int64_t i = blockIdx.x; i < args.world * args.tiles; i += gridDim.x) {
    const int owner = (args.rank + 1 + static_cast<int>(i / args.tiles)) % args.world;
    const std::int64_t t = i % args.tiles, first_row = (owner * args.tiles + t) * 64;
    product.Clear();
    product.Add(reinterpret_cast<const std::uint16_t*>(args.a) + first_row * k, k, args.b, k, k);
    product.Store(Part(args, args.rank, owner, t, call), 32);
    __syncthreads();
    if (owner != args.rank) {
      Board* theirs = reinterpret_cast<Board*>(args.scratch_peers[owner]);
      if (threadIdx.x == 0) allranks::StoreReleaseSys(&theirs->ready[args.rank][t], call);
      continue;
    }
    if (threadIdx.x < args.world && threadIdx.x != args.rank) {
      allranks::WaitAcquireSys(&mine->ready[threadIdx.x][t], call);
    }
    __syncthreads();
    for (int n = threadIdx.x; n < kFloats / 4; n += 128) {
      float4 sum = {0, 0, 0, 0};
      for (int r = 0; r < args.world; ++r) {
        const float4 v = reinterpret_cast<const float4*>(Part(args, r, args.rank, t, call))[n];
        sum = {sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w};
      }
      reinterpret_cast<float4*>(args.c + t * kFloats)[n] = sum;
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t tiles = args.world * args.tiles;
  MultiplyScatter<<<static_cast<int>(tiles < kMaxBlocks ? tiles : kMaxBlocks), 128, 0, stream>>>(
      args);
}
