// A block has tiles of 64 rows of X, of whatever rank, and takes each through the whole chain: it
// fetches the rows from their owner, makes its slice of the hidden layer, multiplies that by its
// slice of `down`, and sends the partial sums back to the owner. Its own rows come first, when
// peers have not entered yet. At the end it adds up the partial sums of some of its rank's tiles.
//
// Rows may be fetched from the owner's entry on. It cannot leave before all partial sums of its
// rows are there, and these come after the rows were read. A slot is written after its owner has
// entered the call, so it has read what the call before left there: one set suffices. Flags hold
// the number of the call. A thread that does not multiply raises them.
#include <allranks/flags.h>
#include <allranks/numbers.h>
#include <allranks/tile_mma.h>

using namespace allranks;

constexpr int kMaxBlocks = 8, kMaxTiles = 8, kThreads = kTileThreads + 32;
constexpr int kFloats = kTileRows * kTileCols;

struct Board {
  std::uint32_t calls[kMaxBlocks];               // own: that each block has completed
  std::uint32_t entered[kMaxBlocks][kMaxRanks];  // by block and rank: the last call it is in
  std::uint32_t ready[kMaxRanks][kMaxTiles];     // by rank and own tile: the last call
};
static_assert(sizeof(Board) <= 8192);

// Behind the board: rows and hidden layer of each block, then slots. At rank `at`: the partial
// sums of rank r of tile t of its rows, columns c.
__device__ float4* Slot(const Args& args, int at, int r, std::int64_t t, std::int64_t c) {
  const std::int64_t own = kMaxBlocks * 8192 * (args.depth + args.inner);
  return reinterpret_cast<float4*>(args.scratch_peers[at] + 8192 + own) +
         ((r * args.tiles + t) * args.cols + c) * (kFloats / 4);
}

// Eight elements of the hidden layer.
__device__ uint4 Gated(const float4* gate, const float4* up) {
  const float4 gates[2] = {gate[0], gate[1]}, ups[2] = {up[0], up[1]};
  const float *g = &gates[0].x, *u = &ups[0].x;
  Pack<__half> pack;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    pack.Set(i, __fdividef(g[i] / 8, 1 + __expf(-g[i] / 8)) * (u[i] / 8));
  }
  return *reinterpret_cast<const uint4*>(&pack);
}

// A tile of `count` vectors, with several loads on their way at a time.
__device__ void Copy(uint4* to, const uint4* from, int count) {
  constexpr int kAtOnce = 4;
  for (int first = threadIdx.x; first < count; first += kAtOnce * kThreads) {
    uint4 v[kAtOnce];
#pragma unroll
    for (int n = 0; n < kAtOnce; ++n) v[n] = from[min(first + n * kThreads, count - 1)];
#pragma unroll
    for (int n = 0; n < kAtOnce; ++n) {
      if (first + n * kThreads < count) to[first + n * kThreads] = v[n];
    }
  }
}

// The partial sums of all ranks of one tile of the own rows.
__device__ void Sum(const Args& args, std::int64_t t, std::int64_t c) {
  const std::int64_t width = args.cols * kTileCols / 4;
  float4* y = reinterpret_cast<float4*>(args.y) + t * kTileRows * width + c * kTileCols / 4;
  for (int n = threadIdx.x; n < kFloats / 4; n += kThreads) {
    float4 v[kMaxRanks];
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {  // all on their way before the first is needed
      if (r < args.world) v[r] = Slot(args, args.rank, r, t, c)[n];
    }
    float4 sum = v[0];
#pragma unroll
    for (int r = 1; r < kMaxRanks; ++r) {
      if (r >= args.world) break;  //@ranks
      sum = {sum.x + v[r].x, sum.y + v[r].y, sum.z + v[r].z, sum.w + v[r].w};
    }
    y[n / (kTileCols / 4) * width + n % (kTileCols / 4)] = sum;
  }
}

__global__ void __launch_bounds__(kThreads) Mlp(Args args) {
  __shared__ TileStage stage;
  __shared__ alignas(16) float tile[2][kFloats];
  TileProduct product(stage);
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;  //@epoch
  const std::int64_t k = args.depth * 64, f = args.inner * 64, tiles = args.tiles;
  const int thread = threadIdx.x, peer = thread - kTileThreads;  // of the warp that talks
  const bool multiplies = peer < 0, talks = peer >= 0 && peer < args.world;
  uint4* rows = reinterpret_cast<uint4*>(args.scratch + 8192) + blockIdx.x * 512 * args.depth;
  auto* hidden = reinterpret_cast<std::uint16_t*>(args.scratch + 8192) +
                 (kMaxBlocks * args.depth + blockIdx.x * args.inner) * 4096;
  const auto* gate = reinterpret_cast<const std::uint16_t*>(args.gate);
  const auto* up = reinterpret_cast<const std::uint16_t*>(args.up);
  const auto* down = reinterpret_cast<const std::uint16_t*>(args.down);
  if (talks) {
    Board* theirs = reinterpret_cast<Board*>(args.scratch_peers[peer]);
    StoreReleaseSys(&theirs->entered[blockIdx.x][args.rank], call);  //@enter
  }

  for (std::int64_t i = blockIdx.x; i < args.world * tiles; i += gridDim.x) {
    const int source = (args.rank + static_cast<int>(i / tiles)) % args.world;
    const std::int64_t t = i % tiles;
    if (peer == 0) WaitAcquireSys(&mine->entered[blockIdx.x][source], call);  //@entered
    __syncthreads();                                                          //@open
    const auto* from = reinterpret_cast<const uint4*>(args.x_peers[source]) + t * 512 * args.depth;
    Copy(rows, from, static_cast<int>(512 * args.depth));
    __syncthreads();  //@fetched
    for (std::int64_t j = 0; j < f; j += kTileCols) {
      if (multiplies) {
        product.Clear();
        product.Add(rows, k, gate + j * k, k, k);
        product.Store(tile[0], kTileCols);
        product.Clear();  // of the gate
        product.Add(rows, k, up + j * k, k, k);
        product.Store(tile[1], kTileCols);
      }
      __syncthreads();  //@gated
      for (int n = thread; n < kFloats / 8; n += kThreads) {
        const int row = n / (kTileCols / 8), run = n % (kTileCols / 8) * 8;
        *reinterpret_cast<uint4*>(hidden + row * f + j + run) =
            Gated(reinterpret_cast<const float4*>(tile[0]) + 2 * n,
                  reinterpret_cast<const float4*>(tile[1]) + 2 * n);
      }
      __syncthreads();  //@hidden
    }
    for (std::int64_t c = 0; c < args.cols; ++c) {
      if (multiplies) {
        product.Clear();
        product.Add(hidden, f, down + c * kTileCols * f, f, f);
        product.Store(tile[0], kTileCols);
      }
      __syncthreads();  //@made
      uint4* to = reinterpret_cast<uint4*>(Slot(args, source, args.rank, t, c));
      Copy(to, reinterpret_cast<const uint4*>(tile[0]), kFloats / 4);
      __syncthreads();  //@sent
    }
    if (peer == 0) {
      Board* theirs = reinterpret_cast<Board*>(args.scratch_peers[source]);
      StoreReleaseSys(&theirs->ready[args.rank][t], call);  //@publish
    }
  }
  for (std::int64_t i = blockIdx.x; i < tiles * args.cols; i += gridDim.x) {
    if (talks) WaitAcquireSys(&mine->ready[peer][i / args.cols], call);  //@wait
    __syncthreads();                                                     //@arrived
    Sum(args, i / args.cols, i % args.cols);
  }
  if (thread == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t tasks = args.world * args.tiles;
  Mlp<<<static_cast<int>(tasks < kMaxBlocks ? tasks : kMaxBlocks), kThreads, 0, stream>>>(args);
}
