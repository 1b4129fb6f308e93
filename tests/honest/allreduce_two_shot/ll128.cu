// open: timeout on a busy machine: its data are all strong accesses
// design: both shots in LL128 lines, 120 bytes of data and an 8-byte call number that eight lanes store at once
//
// A line with the number of the call is there as a whole (hardware's promise, not that of PTX). Lines exist
// once: a slot is overwritten by a rank that has this call's sums of it, sums by an owner that has this
// rank's lines of the next call.

constexpr int kMaxBlocks = 64, kThreads = 256, kPerLine = 30, kData = 1024;

struct Part {  // a lane's sixteen bytes of a line
  unsigned long long low, high;
};

__device__ void Send(Part* to, Part v) {
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(v.low), "l"(v.high)
               : "memory");
}
// By all lanes of a warp: `from` is each lane's own part.
__device__ Part Receive(const Part* from, unsigned long long call) {
  Part v;
  do {
    asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(v.low), "=l"(v.high)
                 : "l"(from)
                 : "memory");
  } while (__any_sync(~0u, threadIdx.x % 8 == 7 && v.high != call));
  return v;
}
__device__ unsigned long long Pack(float a, float b) {
  return static_cast<unsigned long long>(__float_as_uint(b)) << 32 | __float_as_uint(a);
}
__device__ float First(unsigned long long w) { return __uint_as_float(static_cast<unsigned>(w)); }
__device__ float Second(unsigned long long w) {
  return __uint_as_float(static_cast<unsigned>(w >> 32));
}

__global__ void __launch_bounds__(kThreads) AllReduce(Args args) {
  unsigned long long* calls = reinterpret_cast<unsigned long long*>(args.scratch);
  const unsigned long long call = calls[blockIdx.x] + 1;
  const int world = args.world, lane = threadIdx.x % 32, part = lane % 8;
  const std::int64_t slice = (args.n + world - 1) / world;
  const std::int64_t lines = ((slice + kPerLine - 1) / kPerLine + 3) / 4 * 4;  // whole warps
  const std::int64_t first = (std::int64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32) * 4;
  const std::int64_t stride = std::int64_t{gridDim.x} * (kThreads / 32) * 4;
  const bool flagged = part == 7;
  auto slots = [&](int r) { return reinterpret_cast<Part*>(args.scratch_peers[r] + kData); };
  auto sums = [&](int r) { return slots(r) + world * lines * 8; };
  // Element k of this lane's part of a line, as an index of the vector; beyond the slice: none.
  auto index = [&](int owner, std::int64_t line, int k) {
    const std::int64_t i = line * kPerLine + part * 4 + k, at = owner * slice + i;
    return i < slice && at < args.n ? at : std::int64_t{-1};
  };
  auto input = [&](int owner, std::int64_t line, int k) {
    const std::int64_t at = index(owner, line, k);
    return at >= 0 ? args.in[at] : 0.0f;
  };

  for (std::int64_t line = first + lane / 8; line < lines; line += stride) {
    for (int step = 1; step < world; ++step) {
      const int p = (args.rank + step) % world;
      Part v;
      v.low = Pack(input(p, line, 0), input(p, line, 1));
      v.high = flagged ? call : Pack(input(p, line, 2), input(p, line, 3));
      Send(slots(p) + (args.rank * lines + line) * 8 + part, v);
    }
  }
  for (std::int64_t line = first + lane / 8; line < lines; line += stride) {
    float sum[4] = {input(args.rank, line, 0), input(args.rank, line, 1), 0, 0};
    if (!flagged) {
      sum[2] = input(args.rank, line, 2);
      sum[3] = input(args.rank, line, 3);
    }
    for (int step = 1; step < world; ++step) {
      const int r = (args.rank + step) % world;
      const Part v = Receive(slots(args.rank) + (r * lines + line) * 8 + part, call);
      sum[0] += First(v.low);
      sum[1] += Second(v.low);
      sum[2] += First(v.high);
      sum[3] += Second(v.high);
    }
    const Part v = {Pack(sum[0], sum[1]), flagged ? call : Pack(sum[2], sum[3])};
    for (int step = 1; step < world; ++step) {
      Send(sums((args.rank + step) % world) + (args.rank * lines + line) * 8 + part, v);
    }
    for (int k = 0; k < (flagged ? 2 : 4); ++k) {
      const std::int64_t at = index(args.rank, line, k);
      if (at >= 0) args.out[at] = sum[k];
    }
  }
  for (std::int64_t line = first + lane / 8; line < lines; line += stride) {
    for (int step = 1; step < world; ++step) {
      const int p = (args.rank + step) % world;
      const Part v = Receive(sums(args.rank) + (p * lines + line) * 8 + part, call);
      const float sum[4] = {First(v.low), Second(v.low), First(v.high), Second(v.high)};
      for (int k = 0; k < (flagged ? 2 : 4); ++k) {
        const std::int64_t at = index(p, line, k);
        if (at >= 0) args.out[at] = sum[k];
      }
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t slice = (args.n + args.world - 1) / args.world;
  const std::int64_t lines = (slice + kPerLine - 1) / kPerLine;
  const std::int64_t needed = (lines + kThreads / 8 - 1) / (kThreads / 8);
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  AllReduce<<<blocks, kThreads, 0, stream>>>(args);
}
