// Kernel by kernel: all ranks meet, a block per expert copies the rows of its tokens from all ranks
// into memory of its own, halves one by one, all ranks meet, and the products follow.
#include <allranks/flags.h>
#include <allranks/tile_mma.h>

using namespace allranks;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
  std::int32_t rows[8];              // by expert
};

__device__ std::uint16_t* Gathered(const Args& args, std::int64_t e, std::int64_t row) {
  const std::int64_t place = e * args.world * args.tokens + row;
  return reinterpret_cast<std::uint16_t*>(args.scratch + 65536) + place * args.depth * 64;
}

__global__ void Meet(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->reached[args.rank], meeting);
    WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void Gather(Args args) {
  const int e = blockIdx.x, k = static_cast<int>(args.depth) * 64;
  int row = 0;
  for (int s = 0; s < args.world; ++s) {
    const auto* x = reinterpret_cast<const std::uint16_t*>(args.x_peers[s]);
    const int first = row;
    for (int token = 0; token < args.tokens; ++token) {
      bool chosen = false;
      for (int i = threadIdx.x % 32; i < args.topk; i += 32) {
        chosen = args.ids_peers[s][token * args.topk + i] == args.rank * args.per + e;
      }
      if (!__any_sync(~0u, chosen)) continue;
      for (int i = threadIdx.x; i < k; i += 128) Gathered(args, e, row)[i] = x[token * k + i];
      ++row;
    }
    if (threadIdx.x == 0) args.count[e * args.world + s] = row - first;
  }
  if (threadIdx.x == 0) reinterpret_cast<Control*>(args.scratch)->rows[e] = row;
}

__global__ void __launch_bounds__(128) Multiply(Args args) {
  __shared__ TileStage stage;
  __shared__ alignas(16) float tile[kTileRows * kTileCols];
  TileProduct product(stage);
  const int e = blockIdx.x, k = static_cast<int>(args.depth) * 64;
  const int rows = reinterpret_cast<const Control*>(args.scratch)->rows[e];
  const std::int64_t width = args.cols * kTileCols;
  for (int first = 0; first < rows; first += kTileRows) {
    for (int col = 0; col < args.cols; ++col) {
      const auto* w = reinterpret_cast<const std::uint16_t*>(args.w);
      product.Clear();
      product.Add(Gathered(args, e, first), k, w + (e * width + col * kTileCols) * k, k, k);
      product.Store(tile, kTileCols);
      TileProduct::Meet();
      float* y = args.y + (e * args.world * args.tokens + first) * width + col * kTileCols;
      for (int i = threadIdx.x; i < min(rows - first, kTileRows) * kTileCols; i += 128) {
        y[i / kTileCols * width + i % kTileCols] = tile[i];
      }
      TileProduct::Meet();
    }
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  Gather<<<static_cast<int>(args.per), 128, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Multiply<<<static_cast<int>(args.per), 128, 0, stream>>>(args);
}
