// A block of four warps for each tile of 64 x 8 gradients, in the same place on all ranks. Each warp
// makes 16 rows of it, sends them to all ranks, adds up what the same warps of all ranks sent, and
// makes the optimizer's step, all in registers. Blocks of the second layer, whose products need
// nothing, exchange and update while those of the first layer still work on z, which each makes for
// its own units: as the fragments that z * x^T has to begin with.
//
// There are no flags: a word of zero bits means "not here yet", so +0 travels as -0. There are three
// sets of slots, for calls by turns. In call k a thread clears its slots of call k - 1, which it has
// used up. No peer writes there before call k + 2, and it gets there only with this rank's words of
// call k + 1, whose kernel begins when that of call k has ended.

constexpr int kThreads = 128, kSets = 3, kData = 1024, kOutputBlocks = 8;
constexpr float kRate = 0.125f, kDecay = 0.03125f, kEpsilon = 0x1p-10f;
using Half = std::uint16_t;

// Updates m and v, and returns the new parameter.
__device__ float Adam(float p, float g, float& m, float& v) {
  m = 0.875f * m + 0.125f * g, v = 0.984375f * fabsf(v) + 0.015625f * g * g;
  return p - kRate * (m / (sqrtf(v) + kEpsilon) + kDecay * p);
}

__device__ void Send(float4* to, float4 v) {
  asm volatile("st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(v.x), "f"(v.y),
               "f"(v.z), "f"(v.w)
               : "memory");  //@send
}
__device__ float4 Look(const float4* from) {
  float4 v;
  asm volatile("ld.relaxed.sys.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(from)
               : "memory");  //@look
  return v;
}
__device__ float Present(float x) { return x == 0 ? -0.0f : x; }
__device__ bool Absent(float4 v) {
  const auto zero = [](float x) { return __float_as_uint(x) == 0; };
  return zero(v.x) || zero(v.y) || zero(v.z) || zero(v.w);
}

// Products of 16 x 8 elements and a depth of 16: rows times rows, in fragments of mma.sync.
__device__ void Mma(float (&sum)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                    std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// This lane's 16 of the 64 halves of a row. Step q of the depth uses at[2q] and at[2q + 1]: as long
// as both factors do, it does not matter where in the row these lie.
struct Run {
  std::uint32_t at[8];
};
__device__ Run Load(const void* tensor, int row) {
  const uint4* from = static_cast<const uint4*>(tensor) + row * 8 + threadIdx.x % 4 * 2;
  const uint4 low = from[0], high = from[1];
  return {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
}
// Two elements of z, as halves; both factors and products are small integers.
__device__ std::uint32_t Scaled(float first, float second, std::uint32_t slopes) {
  std::uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  asm("mul.rn.f16x2 %0, %0, %1;" : "+r"(pair) : "r"(slopes));
  return pair;
}

// The warp's 16 x 8 elements, of the second layer.
__device__ void Outputs(const Args& args, int unit, int output, float (&sums)[4]) {
  const Run top = Load(args.h, unit), bottom = Load(args.h, unit + 8);
  const Run right = Load(args.dy, output);
#pragma unroll
  for (int q = 0; q < 4; ++q) {
    const std::uint32_t a[4] = {top.at[2 * q], bottom.at[2 * q], top.at[2 * q + 1],
                                bottom.at[2 * q + 1]};
    Mma(sums, a, right.at[2 * q], right.at[2 * q + 1]);
  }
}

// Of the first layer.
__device__ void Inputs(const Args& args, int unit, int input, float (&sums)[4]) {
  __shared__ alignas(16) Half dy[64][72];  // longer rows lie in different banks
  const int lane = threadIdx.x % 32, pair = lane % 4;
  uint4 staged[4];
  for (int i = 0; i < 4; ++i) {
    staged[i] = reinterpret_cast<const uint4*>(args.dy)[i * kThreads + threadIdx.x];
  }
  const Run top = Load(args.w2, unit), bottom = Load(args.w2, unit + 8);
  const auto* slope = reinterpret_cast<const std::uint32_t*>(args.slope) + unit * 32 + pair;
  const auto* x = reinterpret_cast<const std::uint32_t*>(args.x) + input * 32 + pair;
  std::uint32_t slopes[2][8], inputs[8];
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    for (int i = 0; i < 2; ++i) slopes[i][n] = slope[i * 8 * 32 + n * 4];
    inputs[n] = x[n * 4];
  }
  for (int i = 0; i < 4; ++i) {
    const int at = i * kThreads + threadIdx.x;
    *reinterpret_cast<uint4*>(&dy[at / 8][at % 8 * 8]) = staged[i];
  }
  __syncthreads();  //@staged
  float z[8][4] = {};
#pragma unroll
  for (int q = 0; q < 4; ++q) {
    const std::uint32_t a[4] = {top.at[2 * q], bottom.at[2 * q], top.at[2 * q + 1],
                                bottom.at[2 * q + 1]};
    // Columns of dy, of the outputs that step q of w2's runs has.
    const int output = lane % 8 / 2 * 16 + 4 * q + lane / 8 % 2 * 2 + lane % 2;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      std::uint32_t b[4];
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                   : "r"(static_cast<std::uint32_t>(
                       __cvta_generic_to_shared(&dy[output][j * 16 + lane / 16 * 8])))
                   : "memory");
      Mma(z[2 * j], a, b[0], b[1]);
      Mma(z[2 * j + 1], a, b[2], b[3]);
    }
  }
#pragma unroll
  for (int n = 0; n < 8; n += 2) {  // 16 samples
    const std::uint32_t a[4] = {Scaled(z[n][0], z[n][1], slopes[0][n]),
                                Scaled(z[n][2], z[n][3], slopes[1][n]),
                                Scaled(z[n + 1][0], z[n + 1][1], slopes[0][n + 1]),
                                Scaled(z[n + 1][2], z[n + 1][3], slopes[1][n + 1])};
    Mma(sums, a, inputs[n], inputs[n + 1]);
  }
}

__global__ void __launch_bounds__(kThreads) Step(Args args) {
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch);  // own: completed
  const std::uint32_t call = calls[blockIdx.x] + 1;
  const int thread = threadIdx.x, lane = thread % 32, world = args.world;
  const int columns = kOutputBlocks + 4 * static_cast<int>(args.cols);
  const int column = blockIdx.x % columns;
  const int unit = blockIdx.x / columns * 64 + thread / 32 * 16 + lane / 4;  // and unit + 8
  // Places of this lane's two pairs of elements, in pairs.
  const int at[2] = {(unit * columns + column) * 4 + lane % 4,
                     ((unit + 8) * columns + column) * 4 + lane % 4};
  float2 p[2], m[2], v[2];
  for (int i = 0; i < 2; ++i) {
    p[i] = reinterpret_cast<const float2*>(args.param)[at[i]];
    m[i] = reinterpret_cast<const float2*>(args.m)[at[i]];
    v[i] = reinterpret_cast<const float2*>(args.v)[at[i]];
  }
  float sums[4] = {};
  if (column < kOutputBlocks) {
    Outputs(args, unit, column * 8 + lane / 4, sums);
  } else {
    Inputs(args, unit, (column - kOutputBlocks) * 8 + lane / 4, sums);
  }

  const int now = call % kSets, used = (call + 2) % kSets;
  // What rank `from` sends to rank `to`.
  const auto slot = [&](int to, int set, int from) {
    return reinterpret_cast<float4*>(args.scratch_peers[to] + kData) +
           ((set * world + from) * gridDim.x + blockIdx.x) * kThreads + thread;
  };
  const float4 words = {Present(sums[0]), Present(sums[1]), Present(sums[2]), Present(sums[3])};
  for (int step = 1; step < world; ++step) {
    const int peer = (args.rank + step) % world;
    Send(slot(peer, now, args.rank), words);
  }
  for (int r = 0; r < world; ++r) {
    if (r != args.rank) Send(slot(args.rank, used, r), {0, 0, 0, 0});  //@clear
  }
  float4 parts[kMaxRanks];
#pragma unroll
  for (int r = 0; r < kMaxRanks; ++r) {  // all on their way before one is looked at
    if (r < world && r != args.rank) parts[r] = Look(slot(args.rank, now, r));
  }
#pragma unroll
  for (int r = 0; r < kMaxRanks; ++r) {
    if (r >= world || r == args.rank) continue;
    float4& part = parts[r];
    while (Absent(part)) part = Look(slot(args.rank, now, r));  //@arrived
    sums[0] += part.x, sums[1] += part.y, sums[2] += part.z, sums[3] += part.w;
  }
  for (int i = 0; i < 2; ++i) {
    const float2 next = {Adam(p[i].x, sums[2 * i], m[i].x, v[i].x),
                         Adam(p[i].y, sums[2 * i + 1], m[i].y, v[i].y)};
    reinterpret_cast<float2*>(args.new_param)[at[i]] = next;
    reinterpret_cast<float2*>(args.new_m)[at[i]] = m[i];
    reinterpret_cast<float2*>(args.new_v)[at[i]] = v[i];
  }
  __syncthreads();
  if (thread == 0) calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t columns = kOutputBlocks + 4 * args.cols;
  Step<<<static_cast<int>(args.inner * columns), kThreads, 0, stream>>>(args);
}
