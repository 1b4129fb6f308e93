// All-gather of the next weights beside a tile product: see the statement.
#include <allranks/tile_mma.h>

#include "problem.h"

// Tile t of y, 0 <= t < tiles * cols, by threads 0 to 127 of a block together.
__device__ inline void MultiplyTile(const Args& args, allranks::TileProduct& product,
                                    std::int64_t t) {
  const std::int64_t k = args.depth * 64, width = args.cols * 32;
  const std::int64_t row = t / args.cols * 64, column = t % args.cols * 32;
  const auto* x = reinterpret_cast<const std::uint16_t*>(args.x) + row * k;
  const auto* w = reinterpret_cast<const std::uint16_t*>(args.w) + column * k;
  product.Clear();
  product.Add(x, k, w, k, k);
  product.Store(args.y + row * width + column, width);
}

// The whole of y, by any number of blocks of 128 threads.
__global__ void __launch_bounds__(allranks::kTileThreads) Multiply(Args args) {
  __shared__ allranks::TileStage stage;
  allranks::TileProduct product(stage);
  for (std::int64_t t = blockIdx.x; t < args.tiles * args.cols; t += gridDim.x) {
    MultiplyTile(args, product, t);
  }
}

// >>> edit
extern "C" void launch(const Args& args, cudaStream_t stream) {
  // y = x * w^T, and next[r] = shard of rank r
}
// <<< edit
