#include <allranks/flags.h>
#include <allranks/tile_mma.h>

// Straight from the registers of the product into all outputs, tile by tile, by a block of exactly
// the threads that multiply. Entry is told before the first product and awaited after it.
constexpr int kMaxBlocks = 32, kFloats = 64 * 32;

struct Board {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t steps[kMaxBlocks][kMaxRanks];  // 2 * call - 1: entered; 2 * call: has stored
};

__global__ void __launch_bounds__(128) MultiplyGather(Args args) {
  __shared__ allranks::TileStage stage;
  allranks::TileProduct product(stage);
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  const int peer = threadIdx.x % args.world;
  const bool talks = threadIdx.x < args.world;
  Board* theirs = reinterpret_cast<Board*>(args.scratch_peers[peer]);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const std::int64_t k = args.depth * 64;
  if (talks) allranks::StoreReleaseSys(&theirs->steps[blockIdx.x][args.rank], 2 * call - 1);
  for (std::int64_t t = blockIdx.x; t < args.tiles; t += gridDim.x) {
    product.Clear();
    product.Add(reinterpret_cast<const std::uint16_t*>(args.a) + t * 64 * k, k, args.b, k, k);
    if (talks) allranks::WaitAcquireSys(&mine->steps[blockIdx.x][peer], 2 * call - 1);
    __syncthreads();
    for (int step = 0; step < args.world; ++step) {
      float* c = args.c_peers[(args.rank + step) % args.world];
      product.Store(c + (args.rank * args.tiles + t) * kFloats, 32);
    }
  }
  __syncthreads();
  if (talks) {
    allranks::StoreReleaseSys(&theirs->steps[blockIdx.x][args.rank], 2 * call);
    allranks::WaitAcquireSys(&mine->steps[blockIdx.x][peer], 2 * call);
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int blocks = static_cast<int>(args.tiles < kMaxBlocks ? args.tiles : kMaxBlocks);
  MultiplyGather<<<blocks, 128, 0, stream>>>(args);
}
