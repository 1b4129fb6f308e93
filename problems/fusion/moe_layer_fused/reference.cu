// A warp has one token of its rank. It finds the token's experts, tells every rank which of its own
// experts they are, sends the row to those ranks that have one, and adds up the answers when they
// come. In between, blocks make tiles: 64 rows of an expert by 32 columns. Who uses an expert is
// known when the choices of all tokens are here; a tile then waits for its own rows only, and every
// row of its result goes home at once. A tile's weights are fetched before the choices arrive.
//
// All that is sent are words of 32 bits and the number of the call, which need no fence. Slots
// exist twice, for odd and even calls. Who writes in call k + 2 has ended call k + 1, in which its
// block 0 had the choices of all ranks; they had ended call k, and had read what call k brought.
#include <allranks/flags.h>
#include <allranks/tile_mma.h>

using namespace allranks;

constexpr int kBlocks = 16, kThreads = kTileThreads, kMaxPer = 4, kMaxWords = 16, kMaxDepth = 4;
constexpr int kStride = kMaxDepth * kTileDepth + 8, kPackets = 16;  // of 64 halves or 32 floats
constexpr int kBatch = 4;  // answers of a token on their way at the same time

struct Shared {
  TileStage stage;
  alignas(16) std::uint16_t w[kTileCols * kStride], a[kTileRows * kStride];
  alignas(16) float2 y[kTileRows * kPackets];
  std::uint32_t users[kMaxPer][kMaxWords];  // by expert: a bit for each token of all ranks
  int item[kTileRows];                      // of a tile's row: source * tokens + token
};

// Parts of a rank's scratch: numbers of calls, choices, rows, answers.
__device__ std::uint32_t* Calls(const Args& args) {
  return reinterpret_cast<std::uint32_t*>(args.scratch) + blockIdx.x;
}
__device__ std::uint64_t* Choice(const Args& args, int at, int item, std::uint32_t call) {
  return reinterpret_cast<std::uint64_t*>(args.scratch_peers[at] + 1024) +
         call % 2 * args.world * args.tokens + item;
}
__device__ ulonglong2* Row(const Args& args, int at, int item, std::uint32_t call) {
  const std::int64_t all = args.world * args.tokens;
  return reinterpret_cast<ulonglong2*>(args.scratch_peers[at] + 1024 + 16 * all) +
         (call % 2 * all + item) * args.depth * kPackets;
}
__device__ ulonglong2* Answer(const Args& args, int at, int token, int expert, std::uint32_t call) {
  const std::int64_t all = args.world * args.tokens, experts = args.world * args.per;
  return reinterpret_cast<ulonglong2*>(args.scratch_peers[at] + 1024 + (16 + 512 * args.depth) * all) +
         ((call % 2 * args.tokens + token) * experts + expert) * args.cols * kPackets;
}

__device__ void Send(ulonglong2* to, uint2 v, std::uint32_t call) {
  const std::uint64_t number = std::uint64_t{call} << 32;
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(number | v.x),
               "l"(number | v.y)
               : "memory");  //@send
}
// Fetches from[i] for i < n <= kCount, all at the same time, until all are of this call.
template <int kCount, class From>
__device__ void Receive(uint2 (&to)[kCount], int n, std::uint32_t call, const From& from) {
  ulonglong2 words[kCount];
  bool missing;
  do {
    missing = false;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (i >= n) continue;
      asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
                   : "=l"(words[i].x), "=l"(words[i].y)
                   : "l"(from(i))
                   : "memory");  //@look
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (i < n) missing |= words[i].x >> 32 != call || words[i].y >> 32 != call;
    }
  } while (missing);  //@wait
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    if (i < n) to[i] = make_uint2(words[i].x, words[i].y);
  }
}

// By a warp: the experts of its token, as bits.
__device__ std::uint32_t Dispatch(const Args& args, int token, std::uint32_t call) {
  const int lane = threadIdx.x % 32, experts = args.world * static_cast<int>(args.per);
  const int packets = static_cast<int>(args.depth) * kPackets, item = args.rank * args.tokens + token;
  const uint2* x = reinterpret_cast<const uint2*>(args.x) + token * packets;
  uint2 row[kMaxDepth / 2];
#pragma unroll
  for (int i = 0; i < kMaxDepth / 2; ++i) {
    if (lane + i * 32 < packets) row[i] = x[lane + i * 32];
  }
  int score = lane < experts ? args.scores[token * experts + lane] : -1;
  std::uint32_t chosen = 0;
  for (int k = 0; k < args.topk; ++k) {
    const int best = __reduce_max_sync(~0u, score);
    chosen |= __ballot_sync(~0u, score == best);
    if (score == best) score = -1;  //@taken
  }
  const std::uint32_t all_here = (1u << args.per) - 1;
  if (lane < args.world) {
    const std::uint64_t word = std::uint64_t{call} << 32 | (chosen >> lane * args.per & all_here);
    StoreRelaxedSys(Choice(args, lane, item, call), word);  //@tell
  }
  for (int step = 0; step < args.world; ++step) {
    const int to = (args.rank + step) % args.world;
    if ((chosen >> to * args.per & all_here) == 0) continue;
#pragma unroll
    for (int i = 0; i < kMaxDepth / 2; ++i) {
      if (lane + i * 32 < packets) Send(Row(args, to, item, call) + lane + i * 32, row[i], call);
    }
  }
  return chosen;
}

__device__ void HearChoices(const Args& args, Shared& shared, std::uint32_t call) {
  const int all = args.world * static_cast<int>(args.tokens);
  for (int base = 0; base < all; base += kThreads) {
    const int item = base + threadIdx.x;
    std::uint64_t word = 0;
    while (item < all) {
      word = LoadRelaxedSys(Choice(args, args.rank, item, call));  //@hear
      if (word >> 32 == call) break;                               //@heard
    }
    for (int e = 0; e < args.per; ++e) {
      const std::uint32_t bits = __ballot_sync(~0u, word >> e & 1);
      if (threadIdx.x % 32 == 0) shared.users[e][item / 32] = bits;
    }
  }
  TileProduct::Meet();
}

__device__ void Multiply(const Args& args, Shared& shared, std::uint32_t call) {
  const int t = threadIdx.x, tokens = static_cast<int>(args.tokens), all = args.world * tokens;
  const int per = static_cast<int>(args.per), cols = static_cast<int>(args.cols);
  const int depth = static_cast<int>(args.depth), vectors = depth * 8;
  const int columns = per * cols, tiles = (all + kTileRows - 1) / kTileRows * columns;
  TileProduct product(shared.stage);
  for (int n = blockIdx.x; n < tiles && blockIdx.x < columns; n += columns) {
    const int e = n % columns / cols, col = n % cols, first = n / columns * kTileRows;
    const auto users = [&](int words) {
      int count = 0;
      for (int w = 0; w < words; ++w) count += __popc(shared.users[e][w]);
      return count;
    };
    const bool initial = n == blockIdx.x;
    if (!initial && users((all + 31) / 32) <= first) break;
    const uint4* w = reinterpret_cast<const uint4*>(args.w) + (e * cols + col) * kTileCols * vectors;
    for (int i = t; i < kTileCols * vectors; i += kThreads) {
      *reinterpret_cast<uint4*>(&shared.w[i / vectors * kStride + i % vectors * 8]) = w[i];
    }
    if (initial) HearChoices(args, shared, call);
    const int rows = min(users((all + 31) / 32) - first, kTileRows);
    if (rows <= 0) continue;
    for (int item = t; item < all; item += kThreads) {
      const std::uint32_t bits = shared.users[e][item / 32];
      const int row = users(item / 32) + __popc(bits & ((1u << item % 32) - 1)) - first;
      if ((bits >> item % 32 & 1) != 0 && row >= 0 && row < kTileRows) shared.item[row] = item;
    }
    TileProduct::Meet();  //@listed
    const int line = t / kPackets, packet = t % kPackets;
    constexpr int kLines = kThreads / kPackets, kEach = kTileRows / kLines;
    for (int d = 0; d < depth; ++d) {
      uint2 v[kEach] = {};
      Receive(v, (rows - line + kLines - 1) / kLines, call, [&](int i) {
        return Row(args, args.rank, shared.item[line + i * kLines], call) + d * kPackets + packet;
      });
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        const int at = (line + i * kLines) * kStride + d * kTileDepth + packet * 4;
        *reinterpret_cast<uint2*>(&shared.a[at]) = v[i];
      }
    }
    TileProduct::Meet();  //@gathered
    product.Clear();      //@clear
    product.Add(shared.a, kStride, shared.w, kStride, depth * kTileDepth);
    product.Store(&shared.y->x, kTileCols);
    TileProduct::Meet();  //@stored
    for (int row = line; row < rows; row += kLines) {
      const float2 y = shared.y[row * kPackets + packet];
      const int source = shared.item[row] / tokens, token = shared.item[row] % tokens;
      ulonglong2* to = Answer(args, source, token, args.rank * per + e, call) + col * kPackets;
      Send(to + packet, {__float_as_uint(fmaxf(y.x, 0)), __float_as_uint(fmaxf(y.y, 0))}, call);
    }
    TileProduct::Meet();  //@sent
  }
}

// By the warp that has sent the token.
__device__ void Combine(const Args& args, int token, std::uint32_t chosen, std::uint32_t call) {
  const int packets = static_cast<int>(args.cols) * kPackets;
  const std::int32_t* scores = args.scores + token * args.world * args.per;
  for (int p = threadIdx.x % 32; p < packets; p += 32) {
    float2 sum = {0, 0};
    for (std::uint32_t left = chosen; left != 0;) {
      int expert[kBatch], n = 0;
      float gate[kBatch];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        if (left == 0) continue;
        expert[i] = __ffs(left) - 1;
        gate[i] = static_cast<float>(1 + scores[expert[i]]);
        left &= left - 1;
        ++n;
      }
      uint2 v[kBatch];
      Receive(v, n, call, [&](int i) { return Answer(args, args.rank, token, expert[i], call) + p; });
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        if (i >= n) continue;
        sum.x += gate[i] * __uint_as_float(v[i].x);
        sum.y += gate[i] * __uint_as_float(v[i].y);
      }
    }
    reinterpret_cast<float2*>(args.out)[token * packets + p] = sum;
  }
}

__global__ void __launch_bounds__(kThreads) Layer(Args args) {
  extern __shared__ __align__(128) std::uint8_t memory[];
  const std::uint32_t call = *Calls(args) + 1;             //@epoch
  const int token = threadIdx.x / 32 * kBlocks + blockIdx.x;  // at most one for each warp
  std::uint32_t chosen = 0;
  if (token < args.tokens) chosen = Dispatch(args, token, call);
  Multiply(args, *reinterpret_cast<Shared*>(memory), call);
  if (token < args.tokens) Combine(args, token, chosen, call);
  __syncthreads();
  if (threadIdx.x == 0) *Calls(args) = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  cudaFuncSetAttribute(Layer, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared));
  Layer<<<kBlocks, kThreads, sizeof(Shared), stream>>>(args);
}
