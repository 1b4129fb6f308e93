#include <allranks/flags.h>
#include <allranks/tile_mma.h>

// Every rank copies its features to a stage in its own memory, and flags say so to all. Blocks load
// the rows of their tiles from the stages of the owners. These may be in the next call by then:
// stages exist twice, and who stages in call k + 2 has seen all blocks of all ranks in call k + 1.

using namespace allranks;

constexpr int kMaxBlocks = 16, kStride = kTileDepth + 8;

struct alignas(16) Control { std::uint32_t calls[kMaxBlocks], staged[kMaxRanks][kMaxBlocks]; };

__global__ void __launch_bounds__(kTileThreads) FetchProject(Args args) {
  __shared__ TileStage stage;
  __shared__ const uint4* from[kTileRows];
  __shared__ alignas(16) std::uint16_t a[kTileRows * kStride];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int t = threadIdx.x, quads = 8 * args.depth, vectors = args.rows * quads, cols = args.cols;
  const int set = call % 2 * vectors;
  for (int i = blockIdx.x * kTileThreads + t; i < vectors; i += gridDim.x * kTileThreads) {
    reinterpret_cast<uint4*>(mine + 1)[set + i] = reinterpret_cast<const uint4*>(args.features)[i];
  }
  __syncthreads();
  if (t < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[t]);
    StoreReleaseSys(&peer->staged[args.rank][blockIdx.x], call);
  }
  for (int i = t; i < args.world * gridDim.x; i += kTileThreads) {
    WaitAcquireSys(&mine->staged[i % args.world][i / args.world], call);
  }
  __syncthreads();

  TileProduct product(stage);
  int total = 0;
  for (int r = 0; r < args.world; ++r) total += args.counts[r];
  for (int n = blockIdx.x; n / cols * kTileRows < total; n += gridDim.x) {
    const int col = n % cols, first = n / cols * kTileRows, rows = min(total - first, kTileRows);
    if (t < kTileRows) {
      const int entry = first + min(t, rows - 1);
      int owner = 0;
      for (int end = args.counts[0]; entry >= end; end += args.counts[++owner]) {
      }
      const Control* theirs = reinterpret_cast<const Control*>(args.scratch_peers[owner]);
      from[t] = reinterpret_cast<const uint4*>(theirs + 1) + set + args.ids[entry] * quads;
    }
    product.Clear();
    const auto* w = reinterpret_cast<const std::uint16_t*>(args.w) + col * kTileCols * quads * 8;
    for (int d = 0; d < args.depth; ++d) {
      __syncthreads();
      for (int i = t; i < kTileRows * 8; i += kTileThreads) {
        *reinterpret_cast<uint4*>(&a[i / 8 * kStride + i % 8 * 8]) = from[i / 8][d * 8 + i % 8];
      }
      __syncthreads();
      product.Add(a, kStride, w + d * kTileDepth, quads * 8, kTileDepth);
    }
    float* tile = reinterpret_cast<float*>(a);
    product.Store(tile, kTileCols);
    __syncthreads();
    float* out = args.out + (first * cols + col) * kTileCols + t % kTileCols;
    for (int r = t / kTileCols; r < rows; r += kTileThreads / kTileCols) {
      out[r * cols * kTileCols] = tile[r * kTileCols + t % kTileCols];
    }
    __syncthreads();
  }
  if (t == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  FetchProject<<<kMaxBlocks, kTileThreads, 0, stream>>>(args);
}
