// Choices are pushed and say at the same time that their rank is in the call: its rows are then
// read where they lie, as tiles need them. Answers are pushed in floats, and a flag for each answer
// and tile follows them. A rank leaves when all answers to its tokens are here; all has been read
// then. Answers and choices exist twice, by turns: as in call k + 1 a block waits for all choices.
#include <allranks/flags.h>
#include <allranks/tile_mma.h>

using namespace allranks;

constexpr int kBlocks = 16, kThreads = kTileThreads, kStride = kTileDepth + 8;

struct Places {
  std::int64_t all, experts;
  std::uint32_t call;
  const Args& args;
  __device__ Places(const Args& a, std::uint32_t c)
      : all(a.world * a.tokens), experts(a.world * a.per), call(c), args(a) {}
  __device__ std::uint64_t* Choice(int at, int item) const {
    return reinterpret_cast<std::uint64_t*>(args.scratch_peers[at] + 1024) + call % 2 * all + item;
  }
  __device__ std::uint32_t* Flag(int at, int token, int expert, int col) const {
    const std::int64_t n = (token * experts + expert) * args.cols + col;
    return reinterpret_cast<std::uint32_t*>(args.scratch_peers[at] + 1024 + 16 * all) + n;
  }
  __device__ float* Answer(int at, int token, int expert, int col) const {
    const std::int64_t n = (call % 2 * args.tokens + token) * experts + expert;
    return reinterpret_cast<float*>(Flag(at, static_cast<int>(args.tokens), 0, 0)) +
           (n * args.cols + col) * kTileCols;
  }
};

__global__ void __launch_bounds__(kThreads) Layer(Args args) {
  __shared__ TileStage stage;
  __shared__ alignas(16) std::uint16_t a[kTileRows * kStride];
  __shared__ alignas(16) float y[kTileRows * kTileCols];
  __shared__ int list[512], found;
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch) + blockIdx.x;
  const std::uint32_t call = *calls + 1;
  const Places places(args, call);
  const int t = threadIdx.x, lane = t % 32, tokens = static_cast<int>(args.tokens);
  const int experts = args.world * static_cast<int>(args.per), per = static_cast<int>(args.per);
  const int own = t / 32 * kBlocks + blockIdx.x, all = args.world * tokens;
  std::uint32_t chosen = 0;
  if (own < tokens) {
    const int score = lane < experts ? args.scores[own * experts + lane] : -1;
    int above = 0;
    for (int e = 0; e < experts; ++e) above += __shfl_sync(~0u, score, e) > score;
    chosen = __ballot_sync(~0u, lane < experts && above < args.topk);
    if (lane < args.world) {
      const std::uint64_t word = std::uint64_t{call} << 32 | (chosen >> lane * per & ((1u << per) - 1));
      StoreReleaseSys(places.Choice(lane, args.rank * tokens + own), word);
    }
  }
  TileProduct product(stage);
  const int cols = static_cast<int>(args.cols), depth = static_cast<int>(args.depth) * kTileDepth;
  for (int n = blockIdx.x; n < per * cols; n += kBlocks) {
    const int e = n / cols, col = n % cols;
    if (t == 0) found = 0;
    TileProduct::Meet();
    for (int item = t; item < all; item += kThreads) {
      std::uint64_t word;
      do {
        word = LoadAcquireSys(places.Choice(args.rank, item));
      } while (word >> 32 != call);
      if ((word >> e & 1) != 0) list[atomicAdd(&found, 1)] = item;
    }
    TileProduct::Meet();
    const auto* w = reinterpret_cast<const std::uint16_t*>(args.w) + n * kTileCols * depth;
    for (int first = 0; first < found; first += kTileRows) {
      const int rows = min(found - first, kTileRows);
      product.Clear();
      for (int k = 0; k < depth; k += kTileDepth) {
        for (int v = t; v < rows * 8; v += kThreads) {
          const int item = list[first + v / 8];
          const auto* x = reinterpret_cast<const std::uint16_t*>(args.x_peers[item / tokens]);
          *reinterpret_cast<uint4*>(&a[v / 8 * kStride + v % 8 * 8]) =
              *reinterpret_cast<const uint4*>(x + item % tokens * depth + k + v % 8 * 8);
        }
        for (int v = rows * 8 + t; v < kTileRows * 8; v += kThreads) {
          *reinterpret_cast<uint4*>(&a[v / 8 * kStride + v % 8 * 8]) = {};
        }
        TileProduct::Meet();
        product.Add(a, kStride, w + k, depth, kTileDepth);
      }
      product.Store(y, kTileCols);
      TileProduct::Meet();
      for (int i = t; i < rows * kTileCols; i += kThreads) {
        const int item = list[first + i / kTileCols];
        places.Answer(item / tokens, item % tokens, args.rank * per + e, col)[i % kTileCols] =
            fmaxf(y[i], 0);
      }
      TileProduct::Meet();
      if (t < rows) {
        const int item = list[first + t];
        StoreReleaseSys(places.Flag(item / tokens, item % tokens, args.rank * per + e, col), call);
      }
    }
    TileProduct::Meet();
  }
  if (own < tokens) {
    for (int col = 0; col < cols; ++col) {
      float sum = 0;
      for (std::uint32_t left = chosen; left != 0; left &= left - 1) {
        const int e = __ffs(left) - 1;
        WaitAcquireSys(places.Flag(args.rank, own, e, col), call);
        sum += static_cast<float>(1 + args.scores[own * experts + e]) *
               places.Answer(args.rank, own, e, col)[lane];
      }
      args.out[(own * cols + col) * kTileCols + lane] = sum;
    }
  }
  __syncthreads();
  if (t == 0) *calls = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Layer<<<kBlocks, kThreads, 0, stream>>>(args);
}
