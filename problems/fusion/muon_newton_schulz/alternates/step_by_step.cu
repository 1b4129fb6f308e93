// As the definition says: one exchange of Gram matrices per step, over the current X in shared
// memory. Words carry the number of the exchange, and slots exist twice, by turns of exchanges: who
// sends for exchange e + 1 has all words of exchange e.
constexpr int kThreads = 1024, kRows = 32, kMaxColumns = 192;

__device__ std::uint64_t* Slot(const Args& args, int at, int r, std::uint32_t number) {
  return reinterpret_cast<std::uint64_t*>(args.scratch_peers[at] + 8192) +
         (number % 2 * args.world + r) * kThreads + threadIdx.x;
}

__device__ float AllReduce(const Args& args, float own, std::uint32_t number) {
  const std::uint64_t word = std::uint64_t{number} << 32 | __float_as_uint(own);
  for (int step = 0; step < args.world; ++step) {
    std::uint64_t* to = Slot(args, (args.rank + step) % args.world, args.rank, number);
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(to), "l"(word) : "memory");
  }
  float sum = 0;
  for (int r = 0; r < args.world; ++r) {
    std::uint64_t seen;
    do {
      asm volatile("ld.relaxed.sys.global.u64 %0, [%1];"
                   : "=l"(seen)
                   : "l"(Slot(args, args.rank, r, number))
                   : "memory");
    } while (seen >> 32 != number);
    sum += __uint_as_float(static_cast<std::uint32_t>(seen));
  }
  return sum;
}

__global__ void __launch_bounds__(kThreads) Orthogonalise(Args args) {
  __shared__ float x[kRows][kMaxColumns + 1], a[kRows][kRows + 1], b[kRows][kRows + 1];
  std::uint32_t* exchanges = reinterpret_cast<std::uint32_t*>(args.scratch);
  const std::uint32_t before = *exchanges;
  const int n = static_cast<int>(args.n), i = threadIdx.x / 32, j = threadIdx.x % 32;
  for (int c = j; c < n; c += 32) x[i][c] = args.g[i * n + c];
  float scale = 0;
  for (int step = 0; step < args.steps; ++step) {
    __syncthreads();
    float gram = 0, square = 0;
    for (int c = 0; c < n; ++c) gram += x[i][c] * x[j][c];
    a[i][j] = AllReduce(args, gram, before + 1 + step);
    __syncthreads();
    if (step == 0) {
      for (int k = 0; k < kRows; ++k) scale += a[k][k];
    }
    const float per = step == 0 ? 1 / scale : 1;
    for (int k = 0; k < kRows; ++k) square += a[i][k] * a[k][j];
    b[i][j] = (i == j ? 3.4445f : 0) - 4.775f * (a[i][j] * per) + 2.0315f * (square * per * per);
    __syncthreads();
    float next[kMaxColumns / 32] = {};
    const float factor = step == 0 ? 1 / sqrtf(scale) : 1;
#pragma unroll
    for (int c = 0; c < kMaxColumns / 32; ++c) {
      if (c * 32 + j >= n) continue;
      for (int k = 0; k < kRows; ++k) next[c] += b[i][k] * x[k][c * 32 + j];
    }
    __syncthreads();
#pragma unroll
    for (int c = 0; c < kMaxColumns / 32; ++c) {
      if (c * 32 + j < n) x[i][c * 32 + j] = next[c] * factor;
    }
  }
  for (int c = j; c < n; c += 32) args.y[i * n + c] = x[i][c];
  __syncthreads();
  if (threadIdx.x == 0) *exchanges = before + static_cast<std::uint32_t>(args.steps);
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Orthogonalise<<<1, kThreads, 0, stream>>>(args);
}
