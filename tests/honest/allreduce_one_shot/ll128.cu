// design: LL128 lines, 120 bytes of data and an 8-byte call number stored by eight lanes at once, two sets in turn
//
// The warp stores four lines of 128 bytes in one instruction. A line whose last word has the number
// of the call is there as a whole (hardware's promise, not that of PTX). A peer's call k + 2
// overwrites what this rank reads in call k only after it has this rank's lines of call k + 1.

constexpr int kMaxBlocks = 64, kThreads = 128, kPerLine = 30, kData = 1024;

struct Part {  // a lane's sixteen bytes of a line
  unsigned long long low, high;
};

__device__ void Send(Part* to, Part v) {
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(v.low), "l"(v.high)
               : "memory");
}

__device__ Part Look(const Part* from) {
  Part v;
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(v.low), "=l"(v.high)
               : "l"(from)
               : "memory");
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
  const std::int64_t lines = ((args.n + kPerLine - 1) / kPerLine + 3) / 4 * 4;  // whole warps
  const std::int64_t set = kData + (call & 1) * args.world * lines * 128;
  const int lane = threadIdx.x % 32, part = lane % 8;
  const std::int64_t warps = std::int64_t{gridDim.x} * (kThreads / 32);
  const std::int64_t warp = std::int64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32;
  const bool flagged = part == 7;

  auto input = [&](std::int64_t at) { return at < args.n ? args.in[at] : 0.0f; };
  for (std::int64_t line = warp * 4 + lane / 8; line < lines; line += warps * 4) {
    const std::int64_t at = line * kPerLine + part * 4;
    Part v;
    v.low = Pack(input(at), input(at + 1));
    v.high = flagged ? call : Pack(input(at + 2), input(at + 3));
    for (int step = 1; step < args.world; ++step) {
      const int r = (args.rank + step) % args.world;
      Part* slots = reinterpret_cast<Part*>(args.scratch_peers[r] + set);
      Send(slots + (args.rank * lines + line) * 8 + part, v);
    }
  }
  for (std::int64_t line = warp * 4 + lane / 8; line < lines; line += warps * 4) {
    const std::int64_t at = line * kPerLine + part * 4;
    float sum[4] = {input(at), input(at + 1), 0, 0};
    if (!flagged) {
      sum[2] = input(at + 2);
      sum[3] = input(at + 3);
    }
    for (int step = 1; step < args.world; ++step) {
      const int r = (args.rank + step) % args.world;
      const Part* slots = reinterpret_cast<const Part*>(args.scratch + set);
      Part v;
      do {
        v = Look(slots + (r * lines + line) * 8 + part);
      } while (__any_sync(~0u, flagged && v.high != call));
      sum[0] += First(v.low);
      sum[1] += Second(v.low);
      sum[2] += First(v.high);
      sum[3] += Second(v.high);
    }
    for (int k = 0; k < (flagged ? 2 : 4); ++k) {
      if (at + k < args.n) args.out[at + k] = sum[k];
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t lines = (args.n + kPerLine - 1) / kPerLine;
  const std::int64_t needed = (lines + kThreads / 8 - 1) / (kThreads / 8);
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  AllReduce<<<blocks, kThreads, 0, stream>>>(args);
}
