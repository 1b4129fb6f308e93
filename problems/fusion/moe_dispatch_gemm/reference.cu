// A block is (peer, part): it sends the rows of every kParts-th token to that peer, once however
// many experts chose them, into a slot by source and token. Before them go masks of the tokens that
// chose each expert, in words that carry the number of the call. From all masks every block of the
// receiver knows where each row of each tile lies, takes tiles in turn, and waits for those sources
// only that have rows in its tile. A tile's rows are gathered in shared memory, 64 columns at a
// time, so that rows of different sources need not lie together.
//
// Slots and masks exist twice, for odd and even calls. A block that writes in call k + 2 has seen
// the peer's flag of call k + 1. The peer had ended call k then, and had read what call k left.
#include <allranks/flags.h>
#include <allranks/tile_mma.h>

using namespace allranks;

constexpr int kParts = 2, kThreads = kTileThreads + 32, kMaxPer = 8, kMasks = 2;  // of 32 tokens
constexpr int kStride = kTileDepth + 8;

struct Control {
  std::uint32_t calls[kMaxRanks * kParts];                // that each block has completed
  std::uint32_t sent[kMaxRanks * kParts];                 // by source and part: the last call
  std::uint64_t chosen[2][kMaxRanks * kMaxPer * kMasks];  // by source and expert: call, mask
};
static_assert(sizeof(Control) <= 65536);

__device__ Control* ControlOf(const Args& args, int rank) {
  return reinterpret_cast<Control*>(args.scratch_peers[rank]);
}
__device__ std::uint64_t* MasksOf(const Args& args, int at, int source, std::uint32_t call) {
  return ControlOf(args, at)->chosen[call % 2] + source * kMaxPer * kMasks;
}
__device__ uint4* Slot(const Args& args, int at, int source, int token, std::uint32_t call) {
  const std::int64_t row = (call % 2 * args.world + source) * args.tokens + token;
  return reinterpret_cast<uint4*>(args.scratch_peers[at] + 65536) + row * args.depth * 8;
}

__device__ void Send(const Args& args, int peer, int part, std::uint32_t call) {
  __shared__ std::uint32_t going[kMaxPer * kMasks];
  const int per = static_cast<int>(args.per), topk = static_cast<int>(args.topk);
  const int tokens = static_cast<int>(args.tokens), vectors = static_cast<int>(args.depth) * 8;
  const int t = threadIdx.x;
  if (t < kMaxPer * kMasks) going[t] = 0;
  __syncthreads();  //@zeroed
  for (int i = t; i < tokens * topk; i += kThreads) {
    const int e = args.ids[i] - peer * per, token = i / topk;
    if (e >= 0 && e < per) atomicOr(&going[e * kMasks + token / 32], 1u << token % 32);
  }
  __syncthreads();  //@known
  if (part == 0 && t < per * kMasks) {
    const std::uint64_t word = std::uint64_t{call} << 32 | going[t];
    StoreRelaxedSys(&MasksOf(args, peer, args.rank, call)[t], word);  //@tell
  }
  if (peer != args.rank) {
    const uint4* x = reinterpret_cast<const uint4*>(args.x);
    std::uint32_t any[kMasks] = {};
    for (int i = 0; i < per * kMasks; ++i) any[i % kMasks] |= going[i];
    for (int token = part + t / 32 * kParts; token < tokens; token += kThreads / 32 * kParts) {
      if ((any[token / 32] >> token % 32 & 1) == 0) continue;
      uint4* to = Slot(args, peer, args.rank, token, call);
      for (int v = t % 32; v < vectors; v += 32) to[v] = x[token * vectors + v];
    }
  }
  __syncthreads();  //@sent
}

// What this rank gets: masks, and by expert and source the rows before.
struct Inbox {
  std::uint32_t masks[kMaxRanks][kMaxPer * kMasks];
  int before[kMaxPer][kMaxRanks + 1];

  // By threads 0 to 127.
  __device__ void Fill(const Args& args, std::uint32_t call) {
    const int t = threadIdx.x, per = static_cast<int>(args.per);
    if (t < args.world * per * kMasks) {
      const int s = t / (per * kMasks), i = t % (per * kMasks);
      std::uint64_t word;
      do {
        word = LoadRelaxedSys(&MasksOf(args, args.rank, s, call)[i]);  //@look
      } while (word >> 32 != call);  //@planned
      masks[s][i] = static_cast<std::uint32_t>(word);
    }
    TileProduct::Meet();
    if (t < per) {
      int n = 0;
      for (int s = 0; s < args.world; ++s) {
        before[t][s] = n;
        for (int w = 0; w < kMasks; ++w) n += __popc(masks[s][t * kMasks + w]);
        if (blockIdx.x == 0) args.count[t * args.world + s] = n - before[t][s];
      }
      before[t][args.world] = n;
    }
    TileProduct::Meet();
  }
  // Row i of expert e.
  __device__ const uint4* Row(const Args& args, int e, int i, std::uint32_t call) const {
    int s = 0, w = e * kMasks, token = 0;
    while (i >= before[e][s + 1]) ++s;
    i -= before[e][s];
    for (; i >= __popc(masks[s][w]); ++w, token += 32) i -= __popc(masks[s][w]);
    std::uint32_t mask = masks[s][w];
    for (; i > 0; --i) mask &= mask - 1;
    token += __ffs(mask) - 1;
    if (s != args.rank) return Slot(args, args.rank, s, token, call);
    return reinterpret_cast<const uint4*>(args.x) + token * args.depth * 8;
  }
};

__device__ void Multiply(const Args& args, std::uint32_t call) {
  __shared__ TileStage stage;
  __shared__ Inbox inbox;
  __shared__ const uint4* from[kTileRows];
  __shared__ alignas(16) std::uint16_t a[kTileRows * kStride];
  __shared__ alignas(16) float tile[kTileRows * kTileCols];
  TileProduct product(stage);
  const int t = threadIdx.x, cols = static_cast<int>(args.cols), depth = args.depth * kTileDepth;
  const std::uint32_t* sent = ControlOf(args, args.rank)->sent;
  inbox.Fill(args, call);
  for (int n = blockIdx.x;; n += gridDim.x) {
    int e = 0, left = n;
    for (; e < args.per; ++e) {
      const int tiles = (inbox.before[e][args.world] + kTileRows - 1) / kTileRows * cols;
      if (left < tiles) break;
      left -= tiles;
    }
    if (e == args.per) return;
    const int col = left % cols, first = left / cols * kTileRows;
    const int rows = min(inbox.before[e][args.world] - first, kTileRows);
    // Rows that are missing in the last tile are some that are there.
    if (t < kTileRows) from[t] = inbox.Row(args, e, first + min(t, rows - 1), call);
    const int s = t / kParts, part_of = t % kParts;
    if (s < args.world && s != args.rank) {
      const int begin = max(inbox.before[e][s], first);
      if (begin < min(inbox.before[e][s + 1], first + rows)) {
        WaitAcquireSys(&sent[s * kParts + part_of], call);  //@wait
      }
    }
    TileProduct::Meet();  //@here
    const auto* b = reinterpret_cast<const std::uint16_t*>(args.w);
    b += (e * cols + col) * kTileCols * depth;
    product.Clear();                            //@clear
    uint4 piece[kTileRows * 8 / kTileThreads];  // the next one is on its way during a product
    const auto fetch = [&](int k) {
      for (int i = 0; i < 4; ++i) piece[i] = from[t / 8 + i * 16][k / 8 + t % 8];
    };
    fetch(0);
    for (int k = 0; k < depth; k += kTileDepth) {
      for (int i = 0; i < 4; ++i) {
        *reinterpret_cast<uint4*>(&a[(t / 8 + i * 16) * kStride + t % 8 * 8]) = piece[i];
      }
      TileProduct::Meet();  //@gathered
      if (k + kTileDepth < depth) fetch(k + kTileDepth);
      product.Add(a, kStride, b + k, depth, kTileDepth);
    }
    product.Store(tile, kTileCols);
    TileProduct::Meet();  //@stored
    float* y = args.y + ((e * args.world * args.tokens + first) * cols + col) * kTileCols;
    for (int i = t; i < rows * 8; i += kTileThreads) {
      *reinterpret_cast<float4*>(y + i / 8 * cols * kTileCols + i % 8 * 4) =
          *reinterpret_cast<const float4*>(tile + i * 4);
    }
  }
}

__global__ void __launch_bounds__(kThreads) DispatchMultiply(Args args) {
  const int peer = blockIdx.x / kParts, part = blockIdx.x % kParts;
  Control* mine = ControlOf(args, args.rank);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;  //@epoch
  Send(args, peer, part, call);
  if (threadIdx.x < kTileThreads) {
    Multiply(args, call);
  } else if (threadIdx.x == kTileThreads) {                                          // meanwhile
    StoreReleaseSys(&ControlOf(args, peer)->sent[args.rank * kParts + part], call);  //@publish
    WaitAcquireSys(&mine->sent[blockIdx.x], call);                                   //@stay
    mine->calls[blockIdx.x] = call;                                                  //@advance
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  DispatchMultiply<<<args.world * kParts, kThreads, 0, stream>>>(args);
}
