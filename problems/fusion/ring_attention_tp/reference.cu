// A block has a head and 16 rows of queries. It sends keys and values of these rows to the rank's
// column, its own slot included, and its warps share out all tiles of keys with tensor cores. Since
// scores are small, exponentials need no maximum, and parts are merged by adding. The block
// multiplies its attention output by the head's part of w and sends the product to the rank's row
// of the grid, in words with the call's number. There blocks of the same rows add the products of
// all heads and ranks. Weights and attention outputs are split into two bf16 numbers.
//
// Slots of keys and words of products exist twice, for odd and even calls. A rank that writes in
// call k + 2 has ended call k + 1, in which it has heard of every reader; they had ended call k
// then.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kDim = 64, kSide = 16, kThreads = 256, kWarps = kThreads / 32;
constexpr int kMaxHeads = 4, kMaxTiles = 4, kMaxColumns = 32;  // columns: by eight

struct Control {
  std::uint32_t calls[kMaxHeads * kMaxTiles];           // that the block has completed
  std::uint32_t sent[kMaxHeads][kMaxTiles][kMaxRanks];  // by source: the last call of keys
};

struct Tile {
  uint4 rows[2][kSide][kDim / 8];  // keys and values
};

using Rows = std::uint16_t[kSide][kDim + 8];  // longer than 64: rows start in different banks

struct Shared {
  alignas(16) Rows queries, output[2];  // output: its two bf16 numbers
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

__global__ void __launch_bounds__(kThreads) Attention(Args args) {
  __shared__ Shared shared;
  __shared__ float totals[kWarps][kSide];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;  //@epoch
  const int rank = args.rank, tp = static_cast<int>(args.tp), ring = args.world / tp;
  const int me = rank / tp, part = rank % tp;  // this rank's row and column of the grid
  const int rows = static_cast<int>(args.rows), tiles = (rows + kSide - 1) / kSide;
  const int heads = static_cast<int>(args.heads), cols = static_cast<int>(args.cols);
  const int tile = blockIdx.x % tiles, head = blockIdx.x / tiles;
  const int present = min(kSide, rows - tile * kSide);  // rows of the tile that exist
  const int t = threadIdx.x, warp = t / 32, lane = t % 32;
  // At rank `to`: keys from a row of the grid; products of a head from a column.
  const auto keys = [&](int to, int source, int n) {
    return reinterpret_cast<Tile*>(args.scratch_peers[to] + sizeof(Control)) +
           ((call % 2 * ring + source) * heads + head) * tiles + n;
  };
  const auto product = [&](int to, int source, int of_head) {
    void* end = reinterpret_cast<Tile*>(args.scratch_peers[to] + sizeof(Control)) +
                2 * ring * heads * tiles;
    return static_cast<ulonglong2*>(end) +
           (((call % 2 * tp + source) * heads + of_head) * tiles + tile) * kSide * cols / 2;
  };

  {
    const int which = t / 128, row = t / 8 % kSide, run = t % 8;
    const int from = (head * rows + tile * kSide + row) * 8 + run;
    uint4 v = {}, q = {};
    if (tile * kSide + row < rows) {
      v = reinterpret_cast<const uint4*>(which == 0 ? args.k : args.v)[from];
      q = reinterpret_cast<const uint4*>(args.q)[from];
    }
    for (int n = 0; n < ring; ++n) keys(n * tp + part, me, tile)->rows[which][row][run] = v;
    if (which == 0) *reinterpret_cast<uint4*>(&shared.queries[row][run * 8]) = q;
  }
  __syncthreads();  //@pushed
  const int count = ring * tiles, parts = min(count, kWarps);
  if (t < ring) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[t * tp + part]);
    StoreReleaseSys(&peer->sent[head][tile][me], call);  //@tell
  }
  if (t < count) WaitAcquireSys(&mine->sent[head][t / ring][t % ring], call);  //@wait
  std::uint32_t query[kDim / 16][4];
#pragma unroll
  for (int k = 0; k < kDim / 16; ++k) {
    LoadFour<false>(query[k], &shared.queries[lane % 16][k * 16 + lane / 16 * 8]);
  }
  std::uint32_t weights[kMaxColumns / kWarps][kDim / 8];  // on their way while keys are waited for
#pragma unroll
  for (int i = 0; i < kMaxColumns; ++i) {
    const int column = (i / 8 * kWarps + warp) * 8 + lane / 4;
    const auto* w = reinterpret_cast<const std::uint32_t*>(args.w) +
                    (column * heads + head) * kDim / 2 + lane % 4;
    if (column < cols) weights[i / 8][i % 8] = w[i % 8 * 4];
  }
  __syncthreads();  //@arrived

  float sums[kDim / 8][4] = {}, total[2] = {};
  for (int n = warp; n < count; n += kWarps) {
    const Tile* from = keys(rank, n % ring, n / ring);
    Rows(&stage)[2] = shared.stage[warp];
    uint4 loads[8];
    float scores[2][4] = {};
#pragma unroll
    for (int i = 0; i < 8; ++i) loads[i] = (&from->rows[0][0][0])[i * 32 + lane];
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
      const int column = n / ring * kSide + i / 4 * 8 + lane % 4 * 2 + i % 2;
      float& score = scores[i / 4][i % 4];
      score = column < rows ? __expf(score / 8) : 0;
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
    if (lane % 4 == 0 && i < 2) totals[warp][row] = total[i];
  }
  __syncthreads();  //@stored
  {
    const int row = t / 16, column = t % 16 * 4;
    float4 sum = {};
    float total = 0;
    for (int n = 0; n < parts; ++n) {
      const float4 v = *reinterpret_cast<const float4*>(&shared.parts[n][row][column]);
      sum = {sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w};
      total += totals[n][row];
    }
    const float all[4] = {sum.x / total, sum.y / total, sum.z / total, sum.w / total};
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      const std::uint32_t high = Pair(all[i], all[i + 1]);
      const std::uint32_t low = Pair(all[i] - Low(high), all[i + 1] - High(high));
      *reinterpret_cast<std::uint32_t*>(&shared.output[0][row][column + i]) = high;
      *reinterpret_cast<std::uint32_t*>(&shared.output[1][row][column + i]) = low;
    }
  }
  __syncthreads();  //@output
  std::uint32_t output[kDim / 8][4];
#pragma unroll
  for (int i = 0; i < kDim / 8; ++i) {
    LoadFour<false>(output[i], &shared.output[i % 2][lane % 16][i / 2 * 16 + lane / 16 * 8]);
  }
#pragma unroll
  for (int n = 0; n < kMaxColumns / kWarps; ++n) {
    const int column = (n * kWarps + warp) * 8;
    if (column >= cols) break;
    float sum[4] = {};
#pragma unroll
    for (int i = 0; i < kDim / 8; ++i) {
      Mma(sum, output[i], weights[n][i / 2 * 2], weights[n][i / 2 * 2 + 1]);
    }
    for (int i = 0; i < 2 * tp; ++i) {
      const int row = lane / 4 + i % 2 * 8, at = (row * cols + column) / 2 + lane % 4;
      if (row >= present) continue;
      Send(product(me * tp + i / 2, part, head) + at, i % 2 == 0 ? sum[0] : sum[2],
           i % 2 == 0 ? sum[1] : sum[3], call);
    }
  }
  for (int i = head * kThreads + t; i < present * cols / 2; i += heads * kThreads) {
    float2 sum = {}, came[4];
    for (int first = 0; first < heads * tp; first += 4) {
      bool missing;
      do {
        missing = false;
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          if (first + n >= heads * tp) continue;
          missing |= !Look(product(rank, (first + n) % tp, (first + n) / tp) + i, call, came[n]);
        }
      } while (missing);  //@again
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        if (first + n < heads * tp) sum = {sum.x + came[n].x, sum.y + came[n].y};
      }
    }
    reinterpret_cast<float2*>(args.out + tile * kSide * cols)[i] = sum;
  }
  if (t == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int tiles = static_cast<int>((args.rows + kSide - 1) / kSide);
  Attention<<<static_cast<int>(args.heads) * tiles, kThreads, 0, stream>>>(args);
}
