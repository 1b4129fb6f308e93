// open: timeout: its data are all strong accesses, which take the checker too long
// design: both shots in words of eight bytes, value and call number, each stored and loaded whole; no flags, no fences
//
// Every word exists once. A slot is overwritten in the next call by a rank that has this call's sum,
// which was made from that slot; a sum is overwritten after the owner has this rank's words of the next
// call, sent when this kernel is over.

constexpr int kMaxBlocks = 64, kThreads = 512, kData = 1024;

__device__ void Send(std::uint64_t* to, float value, std::uint32_t call) {
  const std::uint64_t word = std::uint64_t{call} << 32 | __float_as_uint(value);
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(to), "l"(word) : "memory");
}

__device__ float Receive(const std::uint64_t* from, std::uint32_t call) {
  std::uint64_t word;
  do {
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
  } while (word >> 32 != call);
  return __uint_as_float(static_cast<std::uint32_t>(word));
}

__global__ void __launch_bounds__(kThreads) AllReduce(Args args) {
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch);
  const std::uint32_t call = calls[blockIdx.x] + 1;
  const int world = args.world;
  const std::int64_t slice = (args.n + world - 1) / world;
  const std::int64_t first = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t stride = std::int64_t{gridDim.x} * kThreads;
  auto slots = [&](int r) { return reinterpret_cast<std::uint64_t*>(args.scratch_peers[r] + kData); };
  auto sums = [&](int r) { return slots(r) + world * slice; };

  for (std::int64_t i = first; i < slice; i += stride) {
    for (int step = 1; step < world; ++step) {
      const int owner = (args.rank + step) % world;
      const std::int64_t at = owner * slice + i;
      if (at < args.n) Send(slots(owner) + args.rank * slice + i, args.in[at], call);
    }
  }
  for (std::int64_t i = first; i < slice; i += stride) {
    const std::int64_t at = args.rank * slice + i;
    if (at >= args.n) break;
    float sum = 0;
    for (int r = 0; r < world; ++r) {
      sum += r == args.rank ? args.in[at] : Receive(slots(args.rank) + r * slice + i, call);
    }
    args.out[at] = sum;
    for (int step = 1; step < world; ++step) {
      Send(sums((args.rank + step) % world) + at, sum, call);
    }
  }
  for (std::int64_t i = first; i < slice; i += stride) {
    for (int step = 1; step < world; ++step) {
      const std::int64_t at = (args.rank + step) % world * slice + i;
      if (at < args.n) args.out[at] = Receive(sums(args.rank) + at, call);
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t slice = (args.n + args.world - 1) / args.world;
  const std::int64_t needed = (slice + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  AllReduce<<<blocks, kThreads, 0, stream>>>(args);
}
