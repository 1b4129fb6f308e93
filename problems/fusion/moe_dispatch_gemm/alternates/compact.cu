// Rows go straight to their places in the experts' order. For that ranks exchange their numbers of
// tokens per expert first, in words that carry the number of the call. Products begin when all rows
// are here and read them where they lie. Places and numbers exist twice, by turns: a rank has seen
// flags of all peers in call k + 1 before it writes in call k + 2.
#include <allranks/flags.h>
#include <allranks/tile_mma.h>

using namespace allranks;

constexpr int kParts = 2, kMaxExperts = 64;

struct Control {
  std::uint32_t calls[kMaxRanks * kParts];
  std::uint32_t sent[kMaxRanks * kParts];           // by source and part: the last call
  std::uint64_t counts[2][kMaxRanks][kMaxExperts];  // by source: call, tokens
};

__device__ Control* ControlOf(const Args& args, int rank) {
  return reinterpret_cast<Control*>(args.scratch_peers[rank]);
}
__device__ uint4* Place(const Args& args, int at, int e, int row, std::uint32_t call) {
  const std::int64_t rows = (args.world * args.tokens + kTileRows - 1) / kTileRows * kTileRows;
  const std::int64_t place = (call % 2 * args.per + e) * rows + row;
  return reinterpret_cast<uint4*>(args.scratch_peers[at] + 65536) + place * args.depth * 8;
}

__global__ void __launch_bounds__(128) DispatchMultiply(Args args) {
  __shared__ TileStage stage;
  __shared__ alignas(16) float tile[kTileRows * kTileCols];
  __shared__ std::uint32_t own[kMaxExperts], there[8], rows_of[8];
  const int t = threadIdx.x, lane = t % 32, peer = blockIdx.x / kParts, part = blockIdx.x % kParts;
  const int per = static_cast<int>(args.per), tokens = static_cast<int>(args.tokens);
  const int topk = static_cast<int>(args.topk), vectors = static_cast<int>(args.depth) * 8;
  const int experts = args.world * per, rank = args.rank;
  Control* mine = ControlOf(args, rank);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const auto count = [&](int s, int expert) {
    std::uint64_t word;
    do {
      word = LoadRelaxedSys(&mine->counts[call % 2][s][expert]);
    } while (word >> 32 != call);
    return static_cast<std::uint32_t>(word);
  };
  if (t < experts) own[t] = 0;
  __syncthreads();
  for (int i = t; i < tokens * topk; i += 128) atomicAdd(&own[args.ids[i]], 1u);
  __syncthreads();
  if (part == 0 && t < experts) {
    StoreRelaxedSys(&ControlOf(args, peer)->counts[call % 2][rank][t],
                    std::uint64_t{call} << 32 | own[t]);
  }
  if (t < per) {
    std::uint32_t before = 0, sum = 0;
    for (int s = 0; s < rank; ++s) before += count(s, peer * per + t);
    for (int s = 0; s < args.world; ++s) {
      const std::uint32_t n = count(s, rank * per + t);
      if (blockIdx.x == 0) args.count[t * args.world + s] = static_cast<std::int32_t>(n);
      sum += n;
    }
    there[t] = before;
    rows_of[t] = sum;
  }
  __syncthreads();
  const uint4* x = reinterpret_cast<const uint4*>(args.x);
  for (int e = t / 32; e < per; e += 4) {
    int row = static_cast<int>(there[e]);
    for (int token = 0; token < tokens; ++token) {
      const bool chosen = lane < topk && args.ids[token * topk + lane] == peer * per + e;
      if (!__any_sync(~0u, chosen)) continue;
      uint4* to = Place(args, peer, e, row++, call);
      if (token % kParts != part) continue;
      for (int v = lane; v < vectors; v += 32) to[v] = x[token * vectors + v];
    }
  }
  __syncthreads();
  if (t == 0) StoreReleaseSys(&ControlOf(args, peer)->sent[rank * kParts + part], call);
  if (t < args.world * kParts) WaitAcquireSys(&mine->sent[t], call);
  __syncthreads();

  TileProduct product(stage);
  const int cols = static_cast<int>(args.cols), depth = vectors * 8;
  int n = 0;
  for (int e = 0; e < per; ++e) {
    const int rows = static_cast<int>(rows_of[e]);
    const int tiles = (rows + kTileRows - 1) / kTileRows * cols;
    for (int i = 0; i < tiles; ++i) {
      if (n++ % gridDim.x != blockIdx.x) continue;
      const int col = i % cols, first = i / cols * kTileRows;
      const auto* b = reinterpret_cast<const std::uint16_t*>(args.w);
      product.Clear();
      product.Add(Place(args, rank, e, first, call), depth,
                  b + (e * cols + col) * kTileCols * depth, depth, depth);
      product.Store(tile, kTileCols);
      TileProduct::Meet();
      float* y = args.y + ((e * args.world * tokens + first) * cols + col) * kTileCols;
      for (int v = t; v < min(rows - first, kTileRows) * kTileCols; v += 128) {
        y[v / kTileCols * cols * kTileCols + v % kTileCols] = tile[v];
      }
      TileProduct::Meet();
    }
  }
  if (t == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  DispatchMultiply<<<args.world * kParts, 128, 0, stream>>>(args);
}
