// Nothing is sent. Ranks tell each other that they have entered, and a block reads the choices of
// all ranks and gathers the rows of its tile from the peers' inputs, straight into shared memory.
// A rank leaves when the same block of every peer has read what it needed.
#include <allranks/flags.h>
#include <allranks/tile_mma.h>

using namespace allranks;

constexpr int kBlocks = 16, kMaxRows = kMaxRanks * 64, kStride = kTileDepth + 8;

struct Control {
  std::uint32_t calls[kBlocks];
  std::uint32_t entered[kBlocks][kMaxRanks];
  std::uint32_t done[kBlocks][kMaxRanks];
};

// Tokens of expert e, in order; returns their number. Each thread has a share of all tokens, in
// runs, so that the rows of threads before it come first.
__device__ int List(const Args& args, int e, std::int16_t* list, int* counts, int* by_source) {
  const int t = threadIdx.x, tokens = static_cast<int>(args.tokens), all = args.world * tokens;
  const int each = (all + 127) / 128, first = min(t * each, all), last = min(first + each, all);
  const auto chosen = [&](int i) {
    const std::int32_t* ids = args.ids_peers[i / tokens] + i % tokens * args.topk;
    bool any = false;
    for (int k = 0; k < args.topk; ++k) any |= ids[k] == args.rank * args.per + e;
    return any;
  };
  std::uint32_t mine = 0;
  for (int i = first; i < last; ++i) mine |= static_cast<std::uint32_t>(chosen(i)) << (i - first);
  if (t < args.world) by_source[t] = 0;
  counts[t] = __popc(mine);
  TileProduct::Meet();
  int before = 0, sum = 0;
  for (int i = 0; i < 128; ++i) {
    before += i < t ? counts[i] : 0;
    sum += counts[i];
  }
  for (int i = first; i < last; ++i) {
    if ((mine >> (i - first) & 1) == 0) continue;
    list[before++] = static_cast<std::int16_t>(i);
    atomicAdd(&by_source[i / tokens], 1);
  }
  TileProduct::Meet();
  return sum;
}

__global__ void __launch_bounds__(128) DispatchMultiply(Args args) {
  __shared__ TileStage stage;
  __shared__ std::int16_t list[kMaxRows];
  __shared__ int counts[128], by_source[kMaxRanks];
  __shared__ alignas(16) std::uint16_t a[kTileRows * kStride];
  __shared__ alignas(16) float tile[kTileRows * kTileCols];
  const int block = blockIdx.x, t = threadIdx.x, tokens = static_cast<int>(args.tokens);
  const int cols = static_cast<int>(args.cols), depth = static_cast<int>(args.depth) * kTileDepth;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const auto theirs = [&] { return reinterpret_cast<Control*>(args.scratch_peers[t]); };
  const std::uint32_t call = mine->calls[block] + 1;
  if (t < args.world) {
    StoreReleaseSys(&theirs()->entered[block][args.rank], call);
    WaitAcquireSys(&mine->entered[block][t], call);
  }
  __syncthreads();
  TileProduct product(stage);
  int n = 0;
  for (int e = 0; e < args.per; ++e) {
    const int rows = List(args, e, list, counts, by_source);
    if (block == 0 && t < args.world) args.count[e * args.world + t] = by_source[t];
    const int tiles = (rows + kTileRows - 1) / kTileRows * cols;
    for (int i = 0; i < tiles; ++i) {
      if (n++ % kBlocks != block) continue;
      const int col = i % cols, first = i / cols * kTileRows, used = min(rows - first, kTileRows);
      const auto* b = reinterpret_cast<const std::uint16_t*>(args.w);
      b += (e * cols + col) * kTileCols * depth;
      product.Clear();
      for (int k = 0; k < depth; k += kTileDepth) {
        for (int v = t; v < kTileRows * 8; v += 128) {
          const int row = list[first + min(v / 8, used - 1)];
          const auto* x = reinterpret_cast<const std::uint16_t*>(args.x_peers[row / tokens]);
          *reinterpret_cast<uint4*>(&a[v / 8 * kStride + v % 8 * 8]) =
              *reinterpret_cast<const uint4*>(x + row % tokens * depth + k + v % 8 * 8);
        }
        TileProduct::Meet();
        product.Add(a, kStride, b + k, depth, kTileDepth);
      }
      product.Store(tile, kTileCols);
      TileProduct::Meet();
      float* y = args.y + ((e * args.world * tokens + first) * cols + col) * kTileCols;
      for (int v = t; v < used * kTileCols; v += 128) {
        y[v / kTileCols * cols * kTileCols + v % kTileCols] = tile[v];
      }
    }
    TileProduct::Meet();
  }
  __syncthreads();
  if (t < args.world) {
    StoreReleaseSys(&theirs()->done[block][args.rank], call);
    WaitAcquireSys(&mine->done[block][t], call);
  }
  if (t == 0) mine->calls[block] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  DispatchMultiply<<<kBlocks, 128, 0, stream>>>(args);
}
