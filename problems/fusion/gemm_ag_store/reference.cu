#include <allranks/flags.h>
#include <allranks/tile_mma.h>

// A block multiplies its tiles and stores each into the output of every rank, through shared
// memory, so that it crosses the links in long stores. A warp that does not multiply tells all
// peers that this rank is inside the call, and waits for the same from them: that is done when the
// first tile is. At the end a block tells all peers that its tiles are there, and stays until it
// has heard the same of theirs; so a rank's output is complete, and nobody writes to it after its
// end.
//
// Flags hold the last call in which their sender got so far, and only grow.
constexpr int kMaxBlocks = 32, kThreads = allranks::kTileThreads + 32;
constexpr int kFloats = allranks::kTileRows * allranks::kTileCols;

struct Board {
  std::uint32_t calls[kMaxBlocks];               // own: that each block has completed
  std::uint32_t entered[kMaxBlocks][kMaxRanks];  // by block and rank: the last call it is in
  std::uint32_t stored[kMaxBlocks][kMaxRanks];   // the last call whose tiles are here
};
static_assert(sizeof(Board) <= 4096);

__global__ void __launch_bounds__(kThreads) MultiplyGather(Args args) {
  __shared__ allranks::TileStage stage;
  __shared__ alignas(16) float tile[kFloats];
  allranks::TileProduct product(stage);
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  const int peer = threadIdx.x - allranks::kTileThreads;  // of the warp that does not multiply
  const bool talks = peer >= 0 && peer < args.world;
  Board* theirs = reinterpret_cast<Board*>(args.scratch_peers[talks ? peer : args.rank]);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const std::int64_t k = args.depth * allranks::kTileDepth;
  const auto* a = reinterpret_cast<const std::uint16_t*>(args.a);
  const void* b = args.b;
  if (talks) {
    allranks::StoreReleaseSys(&theirs->entered[blockIdx.x][args.rank], call);  //@enter
    allranks::WaitAcquireSys(&mine->entered[blockIdx.x][peer], call);          //@open
  }
  for (std::int64_t t = blockIdx.x; t < args.tiles; t += gridDim.x) {
    if (threadIdx.x < allranks::kTileThreads) {
      product.Clear();  //@clear
      product.Add(a + t * allranks::kTileRows * k, k, b, k, k);
      product.Store(tile, allranks::kTileCols);
    }
    __syncthreads();  // the tile is there, and peers are open  //@opened
    const float4* from = reinterpret_cast<const float4*>(tile);
    const std::int64_t place = (args.rank * args.tiles + t) * (kFloats / 4);
    for (int n = threadIdx.x; n < kFloats / 4; n += kThreads) {
      const float4 v = from[n];
      for (int step = 0; step < args.world; ++step) {
        const int to = (args.rank + step) % args.world;
        reinterpret_cast<float4*>(args.c_peers[to])[place + n] = v;
      }
    }
    __syncthreads();  //@reused
  }
  if (talks) {
    allranks::StoreReleaseSys(&theirs->stored[blockIdx.x][args.rank], call);  //@tell
    allranks::WaitAcquireSys(&mine->stored[blockIdx.x][peer], call);          //@stay
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int blocks = static_cast<int>(args.tiles < kMaxBlocks ? args.tiles : kMaxBlocks);
  MultiplyGather<<<blocks, kThreads, 0, stream>>>(args);
}
