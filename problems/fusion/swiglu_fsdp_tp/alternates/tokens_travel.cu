// No weight moves: x goes to the partner, and each rank takes its own and the partner's x through its
// half of the weights. Partial sums go to all ranks of the column that x belongs to, and a rank adds
// up one part of every rank. It leaves call k + 1 after it has parts of all ranks, which have then
// ended call k; so everything exists twice, by turns.
#include <allranks/flags.h>
#include <allranks/numbers.h>
#include <allranks/tile_mma.h>
using namespace allranks;

constexpr int kMaxBlocks = 32, kThreads = kTileThreads, kFloats = kTileRows * kTileCols;
using Bits16 = std::uint16_t;

struct Board {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t rows[kMaxBlocks];               // by tile: the last call whose x has come
  std::uint32_t parts[kMaxBlocks][kMaxRanks];   // by tile and rank
};

__device__ float* Part(const Args& args, int at, int from, std::int64_t t, std::uint32_t call) {
  return reinterpret_cast<float*>(args.scratch_peers[at] + 8192) +
         ((call % 2 * kMaxRanks + from) * args.tiles + t) * args.cols * kFloats;
}
__device__ Bits16* Rows(const Args& args, int at, std::int64_t t, std::uint32_t call) {
  return reinterpret_cast<Bits16*>(args.scratch_peers[at] + 8192 + 131072 * args.tiles * args.cols) +
         (call % 2 * args.tiles + t) * args.depth * 4096;
}

__global__ void __launch_bounds__(kThreads) SwiGlu(Args args) {
  __shared__ TileStage stage;
  __shared__ alignas(16) float gates[kFloats], ups[kFloats];
  TileProduct product(stage);
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const std::int64_t k = args.depth * 64, f = args.inner * 64;
  const int thread = threadIdx.x, partner = args.rank ^ 1;
  for (std::int64_t i = blockIdx.x; i < 2 * args.tiles; i += gridDim.x) {
    const std::int64_t t = i % args.tiles;
    const bool own = i < args.tiles;
    const Bits16* x = reinterpret_cast<const Bits16*>(args.x) + t * 64 * k;
    if (own) {
      auto* to = reinterpret_cast<uint4*>(Rows(args, partner, t, call));
      for (int n = thread; n < 8 * k; n += kThreads) to[n] = reinterpret_cast<const uint4*>(x)[n];
      __syncthreads();
      Board* theirs = reinterpret_cast<Board*>(args.scratch_peers[partner]);
      if (thread == 0) StoreReleaseSys(&theirs->rows[t], call);
    } else {
      if (thread == 0) WaitAcquireSys(&mine->rows[t], call);
      __syncthreads();
      x = Rows(args, args.rank, t, call);
    }
    Bits16* hidden = Rows(args, args.rank, 0, 0) + 2 * args.tiles * args.depth * 4096 + i * 64 * f;
    for (std::int64_t j = 0; j < f; j += kTileCols) {
      product.Clear();
      product.Add(x, k, reinterpret_cast<const Bits16*>(args.gate) + j * k, k, k);
      product.Store(gates, kTileCols);
      product.Clear();
      product.Add(x, k, reinterpret_cast<const Bits16*>(args.up) + j * k, k, k);
      product.Store(ups, kTileCols);
      __syncthreads();
      for (int n = thread; n < kFloats; n += kThreads) {
        const float g = gates[n] / 8, u = ups[n] / 8;
        hidden[n / 32 * f + j + n % 32] = Number<__half>::FromFloat(g / (1 + __expf(-g)) * u);
      }
      __syncthreads();
    }
    const int side = (own ? args.rank : partner) % 2, column = args.world / 2;
    for (std::int64_t c = 0; c < args.cols; ++c) {
      product.Clear();
      product.Add(hidden, f, reinterpret_cast<const Bits16*>(args.down) + c * 32 * f, f, f);
      for (int p = 0; p < column; ++p) {
        product.Store(Part(args, 2 * p + side, args.rank, t, call) + c * kFloats, kTileCols);
      }
    }
    __syncthreads();
    if (thread < column) {
      Board* theirs = reinterpret_cast<Board*>(args.scratch_peers[2 * thread + side]);
      StoreReleaseSys(&theirs->parts[t][args.rank], call);
    }
  }
  for (std::int64_t t = blockIdx.x; t < args.tiles; t += gridDim.x) {
    if (thread < args.world) WaitAcquireSys(&mine->parts[t][thread], call);
    __syncthreads();
    for (int n = thread; n < args.cols * kFloats; n += kThreads) {
      float sum = 0;
      for (int r = 0; r < args.world; ++r) sum += Part(args, args.rank, r, t, call)[n];
      const int row = n % kFloats / 32, column = n / kFloats * 32 + n % 32;
      args.y[(t * 64 + row) * args.cols * 32 + column] = sum;
    }
  }
  if (thread == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int tasks = static_cast<int>(2 * args.tiles);
  SwiGlu<<<tasks < kMaxBlocks ? tasks : kMaxBlocks, kThreads, 0, stream>>>(args);
}
