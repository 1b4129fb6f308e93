// tries: one word says that 256 bytes have arrived, as a warp stores both lines by one instruction
// rows: T
// verdict: race|wrong_result
// cases: all
// 63 elements and the number of the call in two lines that one warp stores and loads at once. A link
// brings one line of 128 bytes as a whole; nothing says that the other one comes with it. In small
// cases, which are run under other schedules, every element has a tag of its own.
constexpr int kMaxBlocks = 64, kThreads = 256, kControl = 1024, kEach = 63;

__global__ void __launch_bounds__(kThreads) AllReduce(Args args, bool lines) {
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch);
  const std::uint32_t call = calls[blockIdx.x] + 1;
  const int n = static_cast<int>(args.n), lane = threadIdx.x % 32;
  if (lines) {
    const int warps = gridDim.x * kThreads / 32, count = (n + kEach - 1) / kEach;
    const std::int64_t set = kControl + (call & 1) * args.world * count * 256ll;
    const int first = blockIdx.x * (kThreads / 32) + threadIdx.x / 32;
    for (int i = first; i < count; i += warps) {
      const int at = i * kEach + 2 * lane;
      const std::uint32_t a = at < n ? __float_as_uint(args.in[at]) : 0;
      const std::uint32_t b = lane == 31 ? call : at + 1 < n ? __float_as_uint(args.in[at + 1]) : 0;
      for (int step = 1; step < args.world; ++step) {
        const int r = (args.rank + step) % args.world;
        std::uint32_t* to = reinterpret_cast<std::uint32_t*>(args.scratch_peers[r] + set);
        asm volatile("st.relaxed.sys.global.v2.u32 [%0], {%1, %2};" ::"l"(
                         to + (args.rank * count + i) * 64 + 2 * lane),
                     "r"(a), "r"(b)
                     : "memory");
      }
    }
    for (int i = first; i < count; i += warps) {
      const int at = i * kEach + 2 * lane;
      float sum_a = 0, sum_b = 0;
      for (int r = 0; r < args.world; ++r) {
        const std::uint32_t* from =
            reinterpret_cast<std::uint32_t*>(args.scratch + set) + (r * count + i) * 64 + 2 * lane;
        std::uint32_t a, b;
        if (r == args.rank) {
          a = at < n ? __float_as_uint(args.in[at]) : 0;
          b = lane < 31 && at + 1 < n ? __float_as_uint(args.in[at + 1]) : 0;
        } else {
          do {
            asm volatile("ld.relaxed.sys.global.v2.u32 {%0, %1}, [%2];"
                         : "=r"(a), "=r"(b)
                         : "l"(from)
                         : "memory");
          } while (__shfl_sync(~0u, b, 31) != call);
        }
        sum_a += __uint_as_float(a);
        sum_b += __uint_as_float(b);
      }
      if (at < n) args.out[at] = sum_a;
      if (lane < 31 && at + 1 < n) args.out[at + 1] = sum_b;
    }
  } else {
    const std::int64_t set = kControl + (call & 1) * args.world * n * 8ll;
    for (int i = blockIdx.x * kThreads + threadIdx.x; i < n; i += gridDim.x * kThreads) {
      for (int r = 0; r < args.world; ++r) {
        std::uint64_t* to = reinterpret_cast<std::uint64_t*>(args.scratch_peers[r] + set);
        asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(to + args.rank * n + i),
                     "l"(std::uint64_t{call} << 32 | __float_as_uint(args.in[i]))
                     : "memory");
      }
    }
    for (int i = blockIdx.x * kThreads + threadIdx.x; i < n; i += gridDim.x * kThreads) {
      float sum = 0;
      for (int r = 0; r < args.world; ++r) {
        const std::uint64_t* from =
            reinterpret_cast<std::uint64_t*>(args.scratch + set) + r * n + i;
        std::uint64_t word;
        do {
          asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
        } while (word >> 32 != call);
        sum += __uint_as_float(static_cast<std::uint32_t>(word));
      }
      args.out[i] = sum;
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const bool lines = args.world == 8 && (args.n == 1024 || args.n == 4096 || args.n == 8192);
  const std::int64_t threads = lines ? (args.n + kEach - 1) / kEach * 32 : args.n;
  const std::int64_t needed = (threads + kThreads - 1) / kThreads;
  AllReduce<<<needed < kMaxBlocks ? needed : kMaxBlocks, kThreads, 0, stream>>>(args, lines);
}
