// Each rank sends all rows to its group, and all compute their own gradients from them: scores are
// made twice, once for dq and once for dk and dv, but no gradient travels. A block has a tile of 16
// rows, either queries with dout (kind 0) or keys with v (kind 1). It sends them to the tile's slot
// at each rank of the group, its own included. Then its warps share out the tiles of the other kind
// that the causal mask leaves, with tensor cores; weights and slopes are split into two bf16
// numbers. Blocks of queries send column sums of dq to all ranks, in words with the call's number.
//
// Slots and words exist twice, for odd and even calls. A rank that writes in call k + 2 has ended
// call k + 1, in which it has heard of every reader; they had ended call k then.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kDim = 64, kSide = 16, kThreads = 256, kWarps = kThreads / 32;
constexpr int kMaxHeads = 4, kMaxTiles = 4, kKinds = 2;

struct Control {
  std::uint32_t calls[kMaxHeads * kMaxTiles * kKinds];          // that the block has completed
  std::uint32_t sent[kMaxHeads][kKinds][kMaxTiles][kMaxRanks];  // by source: the last call
};

struct Tile {
  uint4 rows[2][kSide][kDim / 8];  // q and dout, or k and v
  float stats[2][kSide];           // lse and delta
};

using Rows = std::uint16_t[kSide][kDim + 8];  // longer than 64: rows start in different banks

struct Shared {
  alignas(16) Rows own[2];
  union {
    alignas(16) Rows stage[kWarps][2];
    alignas(16) float parts[kWarps][kSide][kDim];
  };
};

__device__ float Low(std::uint32_t pair) { return __uint_as_float(pair << 16); }
__device__ float High(std::uint32_t pair) { return __uint_as_float(pair & 0xffff0000u); }
__device__ std::uint32_t Pair(float low, float high) {
  std::uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

template <bool kTransposed>
__device__ void LoadFour(std::uint32_t (&to)[4], const std::uint16_t* row) {
  const auto at = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  if constexpr (kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
  }
}

__device__ void Mma(float (&sum)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                    std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Adds the product of 16 x 16 floats, as Mma leaves them, and 16 staged rows.
__device__ void Add(float (&sums)[kDim / 8][4], const float (&left)[2][4], const Rows& rows) {
  const int lane = threadIdx.x % 32;
  std::uint32_t high[4], low[4], b[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float x = left[i / 2][i % 2 * 2], y = left[i / 2][i % 2 * 2 + 1];
    high[i] = Pair(x, y);
    low[i] = Pair(x - Low(high[i]), y - High(high[i]));
  }
#pragma unroll
  for (int n = 0; n < kDim / 8; ++n) {
    if (n % 2 == 0) LoadFour<true>(b, &rows[lane % 16][n * 8 + lane / 16 * 8]);
    Mma(sums[n], high, b[n % 2 * 2], b[n % 2 * 2 + 1]);
    Mma(sums[n], low, b[n % 2 * 2], b[n % 2 * 2 + 1]);
  }
}

// Words are pairs of a float and the number of its call: who sees the number has the float.
__device__ void Send(ulonglong2* to, float x, float y, std::uint32_t call) {
  const std::uint64_t number = std::uint64_t{call} << 32;
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to),
               "l"(number | __float_as_uint(x)), "l"(number | __float_as_uint(y))
               : "memory");  //@store
}
__device__ bool Look(const ulonglong2* from, std::uint32_t call, float2& to) {
  ulonglong2 words;
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(words.x), "=l"(words.y)
               : "l"(from)
               : "memory");
  to = {__uint_as_float(static_cast<std::uint32_t>(words.x)),
        __uint_as_float(static_cast<std::uint32_t>(words.y))};
  return words.x >> 32 == call && words.y >> 32 == call;
}

__global__ void __launch_bounds__(kThreads) Backward(Args args) {
  __shared__ Shared shared;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;  //@epoch
  const int rank = args.rank, world = args.world, ring = static_cast<int>(args.ring);
  const int first = rank / ring * ring, size = min(ring, world - first), me = rank - first;
  const int rows = static_cast<int>(args.rows), tiles = (rows + kSide - 1) / kSide;
  const int heads = static_cast<int>(args.heads), kind = blockIdx.x % kKinds;
  const int tile = blockIdx.x / kKinds % tiles, head = blockIdx.x / kKinds / tiles;
  const int t = threadIdx.x, warp = t / 32, lane = t % 32, of_set = call % 2 * world;
  // At rank `to`: a tile of the source-th rank of the group; words of a rank's column sums.
  const auto slot = [&](int to, int source, int of_kind, int n) {
    return reinterpret_cast<Tile*>(args.scratch_peers[to] + sizeof(Control)) +
           (((of_set + source) * heads + head) * kKinds + of_kind) * tiles + n;
  };
  const auto words = [&](int to, int source, int n) {
    void* end = reinterpret_cast<Tile*>(args.scratch_peers[to] + sizeof(Control)) +
                2 * world * heads * kKinds * tiles;
    return static_cast<ulonglong2*>(end) +
           (((of_set + source) * heads + head) * tiles + n) * kDim / 2;
  };

  {
    const int which = t / 128, row = t / 8 % kSide, run = t % 8, stat = t % kSide;
    const auto* from = kind == 0 ? (which == 0 ? args.q : args.dout) : which == 0 ? args.k : args.v;
    uint4 v = {};
    float number = 0;
    if (tile * kSide + row < rows) {
      v = reinterpret_cast<const uint4*>(from)[(head * rows + tile * kSide + row) * 8 + run];
    }
    if (t < 2 * kSide && tile * kSide + stat < rows) {
      number = (t < kSide ? args.lse : args.delta)[head * rows + tile * kSide + stat];
    }
    for (int n = 0; n < size; ++n) {
      Tile* to = slot(first + n, me, kind, tile);
      to->rows[which][row][run] = v;
      if (t < 2 * kSide) to->stats[t / kSide][stat] = number;
    }
    *reinterpret_cast<uint4*>(&shared.own[which][row][run * 8]) = v;
  }
  __syncthreads();  //@pushed
  // Tiles of the other kind that count: queries see keys up to their own tile, and vice versa.
  const int begin = kind == 0 ? 0 : tile, count = size * (kind == 0 ? tile + 1 : tiles - tile);
  if (t < size) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[first + t]);
    StoreReleaseSys(&peer->sent[head][kind][tile][me], call);  //@tell
  }
  if (t < count) {
    WaitAcquireSys(&mine->sent[head][1 - kind][begin + t / size][t % size], call);  //@wait
  }
  std::uint32_t own[2][kDim / 16][4];
#pragma unroll
  for (int i = 0; i < kDim / 8; ++i) {
    LoadFour<false>(own[i / 4][i % 4], &shared.own[i / 4][lane % 16][i % 4 * 16 + lane / 16 * 8]);
  }
  __syncthreads();  //@arrived

  float sums[2][kDim / 8][4] = {};
  const int parts = min(count, kWarps);
  for (int n = warp; n < count; n += kWarps) {
    const int source = n % size, other_tile = begin + n / size;
    const Tile* other = slot(rank, source, 1 - kind, other_tile);
    const Tile* queries = kind == 0 ? slot(rank, me, 0, tile) : other;
    Rows(&stage)[2] = shared.stage[warp];
    uint4 loads[8];
    float stats[2][4], scores[2][4] = {}, slopes[2][4] = {};
#pragma unroll
    for (int i = 0; i < 8; ++i) loads[i] = (&other->rows[0][0][0])[i * 32 + lane];
#pragma unroll
    for (int i = 0; i < 8; ++i) {  // of the lane's rows, or of its columns
      const int at = kind == 0 ? lane / 4 + i % 2 * 8 : lane % 4 * 2 + i / 2 % 2 * 8 + i % 2;
      stats[i / 4][i % 4] = queries->stats[i / 4][at];
    }
    __syncwarp();  //@free
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      *reinterpret_cast<uint4*>(&stage[i / 4][i % 4 * 4 + lane / 8][lane % 8 * 8]) = loads[i];
    }
    __syncwarp();  //@staged
#pragma unroll
    for (int k = 0; k < kDim / 16; ++k) {
      std::uint32_t b[2][4];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        LoadFour<false>(b[i], &stage[i][lane / 16 * 8 + lane % 8][k * 16 + lane / 8 % 2 * 8]);
        Mma(i == 0 ? scores[0] : slopes[0], own[i][k], b[i][0], b[i][1]);
        Mma(i == 0 ? scores[1] : slopes[1], own[i][k], b[i][2], b[i][3]);
      }
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int row = tile * kSide + lane / 4 + i / 2 % 2 * 8, stat = i / 4 * 2 + i % 2;
      const int column = other_tile * kSide + i / 4 * 8 + lane % 4 * 2 + i % 2;
      const int query = kind == 0 ? row : column, key = kind == 0 ? column : row;
      const bool same = key == query && (kind == 0 ? source <= me : me <= source);
      const float lse = kind == 0 ? stats[0][i / 2 % 2] : stats[0][stat];
      const float delta = kind == 0 ? stats[1][i / 2 % 2] : stats[1][stat];
      float &score = scores[i / 4][i % 4], &slope = slopes[i / 4][i % 4];
      // Rows beyond the end are zero: with an inner sum and a delta of 0 they add nothing.
      score = key < query || same ? __expf(score / 8 - lse) : 0;
      slope = score * (slope - delta);
    }
    Add(sums[0], slopes, stage[0]);
    if (kind == 1) Add(sums[1], scores, stage[1]);
  }

#pragma unroll
  for (int which = 0; which < 2; ++which) {
    if (which > kind) break;
    __syncthreads();  //@merged
#pragma unroll
    for (int i = 0; i < kDim / 4 && warp < parts; ++i) {
      const int row = lane / 4 + i % 2 * 8, column = i / 2 * 8 + lane % 4 * 2;
      *reinterpret_cast<float2*>(&shared.parts[warp][row][column]) = {
          sums[which][i / 2][i % 2 * 2], sums[which][i / 2][i % 2 * 2 + 1]};
    }
    __syncthreads();  //@stored
    float* out = kind == 0 ? args.dq : which == 0 ? args.dk : args.dv;
    const int row = t / 16, column = t % 16 * 4;
    float4 sum = {};
    for (int n = 0; n < parts; ++n) {
      const float4 v = *reinterpret_cast<const float4*>(&shared.parts[n][row][column]);
      sum = {sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w};
    }
    if (which == 0) sum = {sum.x / 8, sum.y / 8, sum.z / 8, sum.w / 8};
    if (tile * kSide + row < rows) {
      *reinterpret_cast<float4*>(&out[(head * rows + tile * kSide + row) * kDim + column]) = sum;
    }
    *reinterpret_cast<float4*>(&shared.parts[0][row][column]) = sum;
  }
  if (kind == 0) {
    __syncthreads();  //@summed
    float2 sum = {};
    for (const auto& row : shared.parts[0]) {
      sum = {sum.x + row[2 * lane], sum.y + row[2 * lane + 1]};
    }
    if (warp < world) Send(words(warp, rank, tile) + lane, sum.x, sum.y, call);
    if (tile == 0) {
      sum = {};
      for (int n = 0; n < tiles && warp < world; ++n) {
        float2 came;
        while (lane == 0 && !Look(words(rank, warp, n), call, came)) {  // cheaper than 32 lanes
        }
        __syncwarp();
        while (!Look(words(rank, warp, n) + lane, call, came)) {  //@again
        }
        sum = {sum.x + came.x, sum.y + came.y};
      }
      *reinterpret_cast<float2*>(&shared.parts[1][warp][2 * lane]) = sum;
      __syncthreads();  //@added
      float all = 0;
      for (int n = 0; n < kWarps && t < kDim; ++n) all += shared.parts[1][n][t];
      if (t < kDim) args.dbias[head * kDim + t] = all;
    }
  }
  if (t == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int tiles = static_cast<int>((args.rows + kSide - 1) / kSide);
  Backward<<<static_cast<int>(args.heads) * tiles * kKinds, kThreads, 0, stream>>>(args);
}
