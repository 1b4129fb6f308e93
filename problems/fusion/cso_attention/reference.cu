// Rank r computes heads r * heads to (r + 1) * heads - 1. A block has 16 queries of a range and
// such a head. Blocks of a range send its rows to the ranks that compute them, one flag per range
// and source, and begin when the ranges up to their own have come; later ranges travel meanwhile.
// Warps share out the keys with tensor cores, with weights split into two bf16 numbers. Since
// scores are small, exponentials need no maximum, and parts are merged by adding. Outputs go back
// in words with the call's number, and each rank takes them from there.
//
// Slots and words exist twice, for odd and even calls. A rank that writes in call k + 2 has ended
// call k + 1, in which it has heard of every reader; they had ended call k then.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kDim = 64, kRun = 8, kSide = 16, kThreads = 256, kWarps = kThreads / 32;
constexpr int kRanges = 4, kTensors = 3, kMaxHeads = 2, kMaxBlocks = 32;

struct Control {
  std::uint32_t calls[kMaxBlocks];                    // that the block has completed
  std::uint32_t sent[kRanges][kMaxHeads][kMaxRanks];  // by source: the last call
};

using Rows = std::uint16_t[kSide][kDim + 8];  // longer than 64: rows start in different banks

struct Shared {
  alignas(16) Rows queries;
  union {
    alignas(16) Rows stage[kWarps][2];
    alignas(16) float parts[kWarps][kSide][kDim];
  };
  float totals[kWarps][kSide];
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

__global__ void __launch_bounds__(kThreads) Attention(Args args) {
  __shared__ Shared shared;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;  //@epoch
  const int rank = args.rank, world = args.world, rows = static_cast<int>(args.rows);
  const int heads = static_cast<int>(args.heads), length = world * rows;  // of a range
  const int tiles = (length + kSide - 1) / kSide, tile = blockIdx.x % tiles;
  const int head = blockIdx.x / tiles % heads, range = blockIdx.x / tiles / heads;
  const int t = threadIdx.x, warp = t / 32, lane = t % 32;
  // At rank `to`: a head's rows of q, k or v by position; words of an output by position and head.
  const auto slot = [&](int to, int tensor) {
    return reinterpret_cast<uint4*>(args.scratch_peers[to] + sizeof(Control)) +
           ((call % 2 * kTensors + tensor) * heads + head) * kRanges * length * kRun;
  };
  const auto words = [&](int to, int n) {
    void* end = reinterpret_cast<uint4*>(args.scratch_peers[to] + sizeof(Control)) +
                2 * kTensors * heads * kRanges * length * kRun;
    return static_cast<ulonglong2*>(end) +
           (call % 2 * kRanges * rows * world * heads + n) * kDim / 2;
  };

  const int vectors = rows * kTensors * kRun;  // for one rank
#pragma unroll 4
  for (int n = t; n < (world - tile + tiles - 1) / tiles * vectors; n += kThreads) {
    const int to = tile + n / vectors * tiles, i = n % vectors / (kTensors * kRun);
    const int tensor = n / kRun % kTensors, row = (range * rows + i) * world + to;
    const auto* from = tensor == 0 ? args.q : tensor == 1 ? args.k : args.v;
    slot(to, tensor)[(range * length + rank * rows + i) * kRun + n % kRun] =
        reinterpret_cast<const uint4*>(from)[(row * heads + head) * kRun + n % kRun];
  }
  __syncthreads();  //@pushed
  if (t < world && t % tiles == tile) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[t]);
    StoreReleaseSys(&peer->sent[range][head][rank], call);  //@tell
  }
  if (t < (range + 1) * world) {
    WaitAcquireSys(&mine->sent[t / world][head][t % world], call);  //@wait
  }
  __syncthreads();  //@arrived

  const int seen = (range + 1) * length, tiles_seen = (seen + kSide - 1) / kSide;
  const int parts = min(tiles_seen, kWarps), present = min(kSide, length - tile * kSide);
  std::uint32_t query[kDim / 16][4];  // as ldmatrix would leave them
#pragma unroll
  for (int i = 0; i < kDim / 4; ++i) {
    const int row = lane / 4 + i % 2 * 8, pair = i / 4 * 8 + i / 2 % 2 * 4 + lane % 4;
    const auto* from = reinterpret_cast<const std::uint32_t*>(
        slot(rank, 0) + (range * length + tile * kSide + row) * kRun);
    query[i / 4][i % 4] = row < present && warp < parts ? from[pair] : 0;
  }
  float sums[kDim / 8][4] = {}, total[2] = {};
  for (int n = warp; n < tiles_seen; n += kWarps) {
    Rows(&stage)[2] = shared.stage[warp];
    uint4 loads[8];
    float scores[2][4] = {};
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int row = n * kSide + i % 4 * 4 + lane / 8;
      loads[i] = row < seen ? slot(rank, 1 + i / 4)[row * kRun + lane % 8] : uint4{};
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      *reinterpret_cast<uint4*>(&stage[i / 4][i % 4 * 4 + lane / 8][lane % 8 * 8]) = loads[i];
    }
    __syncwarp();  //@staged
#pragma unroll
    for (int k = 0; k < kDim / 16; ++k) {
      std::uint32_t b[4];
      LoadFour<false>(b, &stage[0][lane / 16 * 8 + lane % 8][k * 16 + lane / 8 % 2 * 8]);
      Mma(scores[0], query[k], b[0], b[1]);
      Mma(scores[1], query[k], b[2], b[3]);
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int column = n * kSide + i / 4 * 8 + lane % 4 * 2 + i % 2;
      float& score = scores[i / 4][i % 4];
      score = column < seen ? __expf(score / 8) : 0;
      total[i / 2 % 2] += score;
    }
    Add(sums, scores, stage[1]);
  }
  for (int d = 1; d < 4; d *= 2) {
    total[0] += __shfl_xor_sync(~0u, total[0], d);
    total[1] += __shfl_xor_sync(~0u, total[1], d);
  }
  __syncthreads();  //@merged
#pragma unroll
  for (int i = 0; i < kDim / 4 && warp < parts; ++i) {
    const int row = lane / 4 + i % 2 * 8, column = i / 2 * 8 + lane % 4 * 2;
    *reinterpret_cast<float2*>(&shared.parts[warp][row][column]) = {sums[i / 2][i % 2 * 2],
                                                                    sums[i / 2][i % 2 * 2 + 1]};
    if (lane % 4 == 0 && i < 2) shared.totals[warp][row] = total[i];
  }
  __syncthreads();  //@stored
  for (int n = t; n < present * kDim / 2; n += kThreads) {
    const int row = n / (kDim / 2), pair = n % (kDim / 2);
    const int position = tile * kSide + row, i = range * rows + position % rows;
    float2 sum = {};
    float all = 0;
    for (int w = 0; w < parts; ++w) {
      const float2 v = *reinterpret_cast<const float2*>(&shared.parts[w][row][2 * pair]);
      sum = {sum.x + v.x, sum.y + v.y};
      all += shared.totals[w][row];
    }
    Send(words(position / rows, (i * world + rank) * heads + head) + pair, sum.x / all, sum.y / all,
         call);
  }
  // This rank's outputs of the range and of all ranks' head-th heads.
  constexpr int kEach = 4;  // words that a thread looks at together
  const int count = length * kDim / 2, stride = tiles * kThreads;
  for (int first = tile * kThreads + t; first < count; first += kEach * stride) {
    float2 came[kEach];
    bool missing;
    const auto row_of = [&](int n) {
      const int at = (first + n * stride) / (kDim / 2);  // by row and rank
      return (range * length + at) * heads + head;
    };
    while (lane == 0 && !Look(words(rank, row_of(0)), call, came[0])) {  // before all lanes look
    }
    __syncwarp();
    do {
      missing = false;
#pragma unroll
      for (int n = 0; n < kEach; ++n) {
        if (first + n * stride >= count) continue;
        missing |= !Look(words(rank, row_of(n)) + first % (kDim / 2), call, came[n]);
      }
    } while (missing);  //@again
#pragma unroll
    for (int n = 0; n < kEach; ++n) {
      if (first + n * stride >= count) continue;
      reinterpret_cast<float2*>(args.out)[row_of(n) * kDim / 2 + first % (kDim / 2)] = came[n];
    }
  }
  if (t == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int tiles = static_cast<int>((args.world * args.rows + kSide - 1) / kSide);
  Attention<<<kRanges* static_cast<int>(args.heads) * tiles, kThreads, 0, stream>>>(args);
}
