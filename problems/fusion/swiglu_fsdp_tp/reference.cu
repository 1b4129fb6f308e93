// A block has 16 rows of x and sixteen warps: eight for the half of the weights that the rank has,
// eight for the partner's half. Before anything else all blocks together send the rank's weights to
// the partner, so that these are on their way while the first eight warps multiply by the rank's own.
// The halves meet when partial sums of y are added up; they go to the ranks of the same column at
// once, and each of these adds up all of them.
//
// Weights travel as the registers of mma: a unit is 8 rows by 32 columns, and a thread of a warp has
// 8 neighbours of one row, 16 bytes. The order of the inner dimension is free as long as both
// factors agree, so x and the hidden layer are read in the same way.
//
// What travels are 64-bit words of 32 bits and the number of the call: who sees the number has the
// data. Slots exist twice, by turns: a rank sends for call k + 2 after it has words of call k + 1
// from whoever reads them, sent after these had ended their call k.
#include <allranks/numbers.h>

constexpr int kMaxBlocks = 32, kWarps = 16, kThreads = 32 * kWarps, kStrip = 16;
constexpr int kMaxInner = 128, kMaxColumns = 128, kMaxColumn = kMaxRanks / 2;

__device__ void Send(ulonglong2* to, std::uint32_t x, std::uint32_t y, std::uint32_t call) {
  const std::uint64_t number = std::uint64_t{call} << 32;
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(number | x),
               "l"(number | y)
               : "memory");  //@send
}

__device__ ulonglong2 Look(const ulonglong2* from) {
  ulonglong2 v;
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(v.x), "=l"(v.y)
               : "l"(from)
               : "memory");  //@look
  return v;
}

__device__ bool Missing(ulonglong2 v, std::uint32_t call) {
  return v.x >> 32 != call || v.y >> 32 != call;
}

// Units of gate come first, row by row of units, then those of up and of down.
__device__ int Units(const Args& args) {
  return static_cast<int>(args.inner * (32 * args.depth + 8 * args.cols));
}

// This thread's part of a unit of the own weights.
__device__ const uint4* Unit(const Args& args, int unit) {
  const int lane = threadIdx.x % 32, gates = static_cast<int>(16 * args.inner * args.depth);
  const bool down = unit >= 2 * gates;
  const auto* from = down ? args.down : unit < gates ? args.gate : args.up;
  const int width = static_cast<int>(down ? args.inner : args.depth) * 2;  // in units
  const int place = down ? unit - 2 * gates : unit % gates;
  const int row = place / width * 8 + lane / 4, column = place % width * 32 + lane % 4 * 8;
  return reinterpret_cast<const uint4*>(from) + row * width * 4 + column / 8;
}

// At rank `at`: this thread's two slots of a unit, 32 apart.
__device__ ulonglong2* Weights(const Args& args, int at, int unit, std::uint32_t call) {
  const int index = static_cast<int>(call % 2) * Units(args) + unit;
  return reinterpret_cast<ulonglong2*>(args.scratch_peers[at] + 8192) + 64 * index +
         threadIdx.x % 32;
}

// At rank `at`: partial sums from the rank in row p of its column, two at a time.
__device__ ulonglong2* Parts(const Args& args, int at, int p, int pair, std::uint32_t call) {
  const std::int64_t all = args.tiles * 64 * args.cols * 16;
  return reinterpret_cast<ulonglong2*>(args.scratch_peers[at] + 8192) + 128 * Units(args) +
         (call % 2 * kMaxColumn + p) * all + pair;
}

template <int kCount>
__device__ void Fetch(const Args& args, int half, std::uint32_t call, const int (&units)[kCount],
                      uint4 (&to)[kCount]) {
  if (half == 0) {  // its own
#pragma unroll
    for (int i = 0; i < kCount; ++i) to[i] = *Unit(args, units[i]);
    return;
  }
  ulonglong2 v[2 * kCount];
  bool missing;
  do {
    missing = false;
#pragma unroll
    for (int i = 0; i < 2 * kCount; ++i) {
      v[i] = Look(Weights(args, args.rank, units[i / 2], call) + i % 2 * 32);
    }
#pragma unroll
    for (int i = 0; i < 2 * kCount; ++i) missing |= Missing(v[i], call);
  } while (missing);  //@wait
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    to[i].x = v[2 * i].x, to[i].y = v[2 * i].y;
    to[i].z = v[2 * i + 1].x, to[i].w = v[2 * i + 1].y;
  }
}

// Over 32 of the inner dimension: 16 bytes of rows g and g + 8 of one factor, of row g of the other.
__device__ void Multiply(float (&sum)[4], const uint4 (&a)[2], uint4 b) {
  const auto mma = [&](std::uint32_t a0, std::uint32_t a1, std::uint32_t a2, std::uint32_t a3,
                       std::uint32_t b0, std::uint32_t b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  };
  mma(a[0].x, a[1].x, a[0].y, a[1].y, b.x, b.y);
  mma(a[0].z, a[1].z, a[0].w, a[1].w, b.z, b.w);
}

// An element of the hidden layer, as the bits of a half.
__device__ std::uint32_t Gated(float g, float u) {
  return allranks::Number<__half>::FromFloat(__fdividef(g / 8, 1 + __expf(-g / 8)) * (u / 8));
}

// The sum over the column; all have the same, as they add in the same order.
__device__ float2 Sum(const Args& args, float2 own, int pair, std::uint32_t call) {
  const int column = args.world / 2, mine = args.rank / 2;
  for (int p = 0; p < column; ++p) {
    const int to = 2 * p + args.rank % 2;
    if (p == mine) continue;
    Send(Parts(args, to, mine, pair, call), __float_as_uint(own.x), __float_as_uint(own.y), call);
  }
  ulonglong2 v[kMaxColumn];
  bool missing;
  do {
    missing = false;
#pragma unroll
    for (int p = 0; p < kMaxColumn; ++p) {
      if (p < column && p != mine) v[p] = Look(Parts(args, args.rank, p, pair, call));
    }
#pragma unroll
    for (int p = 0; p < kMaxColumn; ++p) {
      if (p < column && p != mine) missing |= Missing(v[p], call);
    }
  } while (missing);  //@arrived
  float2 sum = {0, 0};
#pragma unroll
  for (int p = 0; p < kMaxColumn; ++p) {
    if (p >= column) break;
    const float2 one = p == mine ? own : float2{__uint_as_float(v[p].x), __uint_as_float(v[p].y)};
    sum = {sum.x + one.x, sum.y + one.y};
  }
  return sum;
}

__global__ void __launch_bounds__(kThreads) SwiGlu(Args args) {
  __shared__ alignas(16) std::uint16_t hidden[kStrip][2 * kMaxInner + 8];
  __shared__ alignas(16) float parts[4][kStrip][kMaxColumns];
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch) + blockIdx.x;
  const std::uint32_t call = *calls + 1;  //@epoch
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, t = lane % 4;
  const int half = warp / 8, member = warp % 8, partner = args.rank ^ 1;
  const int k = static_cast<int>(args.depth) * 64, inner = static_cast<int>(args.inner) * 64;
  const int columns = static_cast<int>(args.cols) * 32, gates = inner * k / 256;
  for (int u = blockIdx.x * kWarps + warp; u < Units(args); u += gridDim.x * kWarps) {
    const uint4 v = *Unit(args, u);
    Send(Weights(args, partner, u, call), v.x, v.y, call);
    Send(Weights(args, partner, u, call) + 32, v.z, v.w, call);
  }
  for (int strip = blockIdx.x; strip < args.tiles * 4; strip += gridDim.x) {
    const auto* x = reinterpret_cast<const std::uint16_t*>(args.x);
    x += (strip * kStrip + group) * k + 8 * t;
    const int first = half * inner;
    for (int j = member; j < inner / 8; j += 8) {
      float g[4] = {}, u[4] = {};
      for (int d = 0; d < k; d += 64) {
        uint4 rows[2][2], w[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          rows[i / 2][i % 2] =
              *reinterpret_cast<const uint4*>(x + i % 2 * 8 * k + d + i / 2 * 32);
        }
        const int unit = j * k / 32 + d / 32;
        Fetch(args, half, call, {unit, unit + 1, unit + gates, unit + gates + 1}, w);
        Multiply(g, rows[0], w[0]), Multiply(u, rows[0], w[2]);
        Multiply(g, rows[1], w[1]), Multiply(u, rows[1], w[3]);
      }
#pragma unroll
      for (int s = 0; s < 2; ++s) {
        *reinterpret_cast<std::uint32_t*>(&hidden[group + 8 * s][first + j * 8 + 2 * t]) =
            Gated(g[2 * s], u[2 * s]) | Gated(g[2 * s + 1], u[2 * s + 1]) << 16;
      }
    }
    asm volatile("barrier.sync %0, 256;" ::"r"(1 + half) : "memory");  //@gated
    for (int tile = member % 4; tile < columns / 8; tile += 4) {
      float sum[4] = {};
      for (int chunk = member / 4; chunk < inner / 32; chunk += 2) {
        uint4 rows[2], w[1];
        for (int s = 0; s < 2; ++s) {
          rows[s] = *reinterpret_cast<const uint4*>(
              &hidden[group + 8 * s][first + chunk * 32 + 8 * t]);
        }
        Fetch(args, half, call, {2 * gates + tile * inner / 32 + chunk}, w);
        Multiply(sum, rows, w[0]);
      }
      float* place = &parts[half * 2 + member / 4][group][tile * 8 + 2 * t];
      *reinterpret_cast<float2*>(place) = {sum[0], sum[1]};
      *reinterpret_cast<float2*>(place + 8 * kMaxColumns) = {sum[2], sum[3]};
    }
    __syncthreads();  //@made
    for (int n = threadIdx.x; n < kStrip * columns / 2; n += kThreads) {
      const int row = 2 * n / columns, column = 2 * n % columns;
      float2 sum = {0, 0};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        sum.x += parts[i][row][column];
        sum.y += parts[i][row][column + 1];
      }
      const int pair = strip * kStrip * columns / 2 + n;
      reinterpret_cast<float2*>(args.y)[pair] = Sum(args, sum, pair, call);
    }
    __syncthreads();  //@read
  }
  if (threadIdx.x == 0) *calls = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int strips = static_cast<int>(args.tiles) * 4;
  SwiGlu<<<strips < kMaxBlocks ? strips : kMaxBlocks, kThreads, 0, stream>>>(args);
}
