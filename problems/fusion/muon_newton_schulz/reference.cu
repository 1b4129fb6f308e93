// One exchange whatever the number of steps. With S the sum of all ranks' Gram matrices, the norm is
// the root of its trace, and X_k = Q_k X_0, where Q_k and the Gram matrix A_k of X_k are polynomials
// of S: P_k = a + b A_k + c A_k^2, Q_{k+1} = P_k Q_k, A_{k+1} = P_k A_k P_k. These are 32 x 32, so
// every rank makes them itself, and multiplies its columns by Q at the end.
//
// Products are made by tensor cores from tf32, three for each: a float is the sum of two of these,
// and the product of the two lower ones is too small to count. All these matrices are symmetric, so
// each product is one of rows with rows, as mma has it. A warp has 16 x 8 elements of each matrix.
//
// Floats travel in 64-bit words with the number of the call: who sees the number has the float.
// Slots exist twice, by turns: a rank sends for call k + 2 after it has the words of all ranks of
// call k + 1, and who has sent these has ended its call k.
#include <cstdint>

constexpr int kRows = 32, kThreads = 256, kMaxColumns = 192;
constexpr int kWide = kMaxColumns + 4, kNarrow = kRows + 4;  // eight rows in different banks
constexpr float kA = 3.4445f, kB = -4.775f, kC = 2.0315f;

// At rank `at`: what rank r sends to this thread.
__device__ ulonglong2* Slot(const Args& args, int at, int r, std::uint32_t call) {
  return reinterpret_cast<ulonglong2*>(args.scratch_peers[at] + 8192) +
         (call % 2 * args.world + r) * 2 * kThreads + threadIdx.x;
}

__device__ void Send(ulonglong2* to, float x, float y, std::uint32_t call) {
  const std::uint64_t number = std::uint64_t{call} << 32;
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to),
               "l"(number | __float_as_uint(x)), "l"(number | __float_as_uint(y))
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

__device__ float Value(std::uint64_t word) {
  return __uint_as_float(static_cast<std::uint32_t>(word));
}

// Makes `sums` those of all ranks, in the order of ranks, so that all have the same. All words are on
// their way before the first is needed.
__device__ void AllReduce(const Args& args, float (&sums)[4], std::uint32_t call) {
  for (int step = 1; step < args.world; ++step) {
    const int to = (args.rank + step) % args.world;
    Send(Slot(args, to, args.rank, call), sums[0], sums[1], call);
    Send(Slot(args, to, args.rank, call) + kThreads, sums[2], sums[3], call);
  }
  ulonglong2 words[kMaxRanks][2];
  bool missing;
  do {
    missing = false;
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r >= args.world || r == args.rank) continue;
      words[r][0] = Look(Slot(args, args.rank, r, call));
      words[r][1] = Look(Slot(args, args.rank, r, call) + kThreads);
    }
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r >= args.world || r == args.rank) continue;
      for (ulonglong2 w : words[r]) missing |= w.x >> 32 != call || w.y >> 32 != call;
    }
  } while (missing);  //@wait
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float sum = 0;
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r >= args.world) break;
      sum += r == args.rank ? sums[i] : Value(i % 2 == 0 ? words[r][i / 2].x : words[r][i / 2].y);
    }
    sums[i] = sum;
  }
}

// Four 8 x 4 blocks: lane 8 j + i gives the address of row i of block j.
__device__ void FetchFour(std::uint32_t (&to)[4], const float* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(row)))
               : "memory");
}

// What tf32 leaves of a float; the tensor core itself takes the upper bits only.
__device__ std::uint32_t Low(std::uint32_t bits) {
  return __float_as_uint(__uint_as_float(bits) - __uint_as_float(bits & 0xffffe000u));
}

__device__ void Mma(float (&sum)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                    std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Of the first factor, the warp's 16 rows of 32 columns from `from` on.
struct Left {
  std::uint32_t high[4][4], low[4][4];
  template <int kStride>
  __device__ Left(const float (*from)[kStride], int column) {
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 2 * 16 + lane % 16;
#pragma unroll
    for (int k = 0; k < 4; ++k) FetchFour(high[k], &from[row][column + 8 * k + lane / 16 * 4]);
#pragma unroll
    for (int i = 0; i < 16; ++i) low[i / 4][i % 4] = Low(high[i / 4][i % 4]);
  }
};

struct Sums {
  float at[4] = {};
  __device__ void Add(const Left& left, const std::uint32_t (&right)[2][4]) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const std::uint32_t b0 = right[k / 2][k % 2 * 2], b1 = right[k / 2][k % 2 * 2 + 1];
      Mma(at, left.low[k], b0, b1);
      Mma(at, left.high[k], Low(b0), Low(b1));
      Mma(at, left.high[k], b0, b1);
    }
  }
  // The warp's eight rows of the second factor, 32 columns from `column` on.
  template <int kStride>
  __device__ Sums& AddRows(const Left& left, const float (*from)[kStride], int column) {
    const int lane = threadIdx.x % 32, row = threadIdx.x / 64 * 8 + lane % 8;
    std::uint32_t right[2][4];
    FetchFour(right[0], &from[row][column + lane / 8 * 4]);
    FetchFour(right[1], &from[row][column + lane / 8 * 4 + 16]);
    Add(left, right);
    return *this;
  }
  // Calls f(i, j, v) for each of the thread's elements of a 32 x 32 matrix.
  template <class F>
  __device__ void Each(F f) const {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      f(warp % 2 * 16 + n / 2 * 8 + lane / 4, warp / 2 * 8 + lane % 4 * 2 + n % 2, at[n]);
    }
  }
};

__global__ void __launch_bounds__(kThreads) Orthogonalise(Args args) {
  __shared__ alignas(16) float x[kRows][kWide], a[kRows][kNarrow], p[kRows][kNarrow];
  __shared__ alignas(16) float t[kRows][kNarrow], q[2][kRows][kNarrow];
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch);
  const std::uint32_t call = *calls + 1;  //@epoch
  const int n = static_cast<int>(args.n), wide = (n + 31) / 32 * 32, warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32, group = lane / 4, pair = lane % 4 * 2;
  // A warp has four rows, a lane four of the first and of the second 128 columns.
  float4 loads[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int row = warp + i % 4 * 8, column = i / 4 * 128 + lane * 4;
    loads[i] = {0, 0, 0, 0};
    if (column < n) loads[i] = *reinterpret_cast<const float4*>(args.g + row * n + column);
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int row = warp + i % 4 * 8, column = i / 4 * 128 + lane * 4;
    if (column < wide) *reinterpret_cast<float4*>(&x[row][column]) = loads[i];
  }
  __syncthreads();  //@loaded

  Sums gram;
  for (int k = 0; k < wide; k += 32) gram.AddRows(Left(x, k), x, k);
  AllReduce(args, gram.at, call);
  gram.Each([&](int i, int j, float v) { a[i][j] = v; });
  __syncthreads();  //@summed
  float trace = a[lane][lane];
#pragma unroll
  for (int other = 1; other < 32; other *= 2) trace += __shfl_xor_sync(~0u, trace, other);
  float scale = 1 / trace;  // what is missing in `a`
  for (int step = 0; step < args.steps; ++step) {
    Sums().AddRows(Left(a, 0), a, 0).Each([&](int i, int j, float square) {
      p[i][j] = (i == j ? kA : 0) + kB * scale * a[i][j] + kC * scale * scale * square;
      if (step == 0) q[1][i][j] = p[i][j];
    });
    __syncthreads();  //@squared
    const Left left(p, 0);
    if (step > 0) {
      float (*next)[kNarrow] = q[(step + 1) % 2];
      Sums().AddRows(left, q[step % 2], 0).Each([&](int i, int j, float v) { next[i][j] = v; });
    }
    if (step + 1 == args.steps) break;
    Sums().AddRows(left, a, 0).Each([&](int i, int j, float v) { t[i][j] = v * scale; });
    __syncthreads();  //@turned
    Sums().AddRows(left, t, 0).Each([&](int i, int j, float v) { a[i][j] = v; });
    scale = 1;
    __syncthreads();  //@closed
  }
  __syncthreads();  //@made

  const float factor = 1 / sqrtf(trace);
  const Left left(q[args.steps % 2], 0);
  for (int first = warp / 2 * 8; first < n; first += kThreads / 64 * 8) {
    Sums sums;
    std::uint32_t right[2][4];
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      right[k / 4][k % 4] = __float_as_uint(x[4 * k + lane % 4][first + group]);
    }
    sums.Add(left, right);
    if (first + pair >= n) continue;
    float* y = args.y + (warp % 2 * 16 + group) * n + first + pair;
    *reinterpret_cast<float2*>(y) = {sums.at[0] * factor, sums.at[1] * factor};
    *reinterpret_cast<float2*>(y + 8 * n) = {sums.at[2] * factor, sums.at[3] * factor};
  }
  if (threadIdx.x == 0) *calls = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Orthogonalise<<<1, kThreads, 0, stream>>>(args);
}
