// design: pull and push around a central sense-reversing barrier: a counter at rank 0 by acq_rel atomics, senses at every rank
//
// Whoever comes last at the counter sets it back and turns the senses of all ranks. Nobody can come to
// the next barrier before its own sense has turned, so the counter is at rest when it is set back, and a
// sense cannot turn twice unseen. The sense to wait for is kept in memory between calls.

constexpr int kMaxBlocks = 64, kThreads = 256;

struct Control {
  std::uint32_t senses[kMaxBlocks];    // turned by whoever comes last
  std::uint32_t counters[kMaxBlocks];  // rank 0's are used
  std::uint32_t expected[kMaxBlocks];  // own: the sense that ends the next barrier is its opposite
};

__device__ Control* At(std::uint8_t* scratch) { return reinterpret_cast<Control*>(scratch); }

// By one thread.
__device__ void Barrier(const Args& args, std::uint32_t sense) {
  std::uint32_t* counter = &At(args.scratch_peers[0])->counters[blockIdx.x];
  std::uint32_t before;
  asm volatile("atom.acq_rel.sys.global.add.u32 %0, [%1], 1;"
               : "=r"(before)
               : "l"(counter)
               : "memory");
  if (before == args.world - 1) {
    asm volatile("st.relaxed.sys.global.u32 [%0], 0;" ::"l"(counter) : "memory");
    for (int r = 0; r < args.world; ++r) {
      asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(
                       &At(args.scratch_peers[r])->senses[blockIdx.x]),
                   "r"(sense)
                   : "memory");
    }
  }
  std::uint32_t seen;
  do {
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
                 : "=r"(seen)
                 : "l"(&At(args.scratch)->senses[blockIdx.x])
                 : "memory");
  } while (seen != sense);
}

__global__ void __launch_bounds__(kThreads) AllReduce(Args args) {
  const int me = threadIdx.x, world = args.world;
  const std::int64_t slice = (args.n + world - 1) / world;
  const std::int64_t first = std::int64_t{blockIdx.x} * kThreads + me;
  const std::int64_t stride = std::int64_t{gridDim.x} * kThreads;
  float* staged = reinterpret_cast<float*>(args.scratch + sizeof(Control));
  std::uint32_t sense = 0;
  if (me == 0) sense = At(args.scratch)->expected[blockIdx.x] ^ 1;

  for (std::int64_t i = first; i < slice; i += stride) {
    for (int r = 0; r < world && r * slice + i < args.n; ++r) {
      staged[r * slice + i] = args.in[r * slice + i];
    }
  }
  __syncthreads();
  if (me == 0) Barrier(args, sense);
  __syncthreads();
  for (std::int64_t i = first; i < slice && args.rank * slice + i < args.n; i += stride) {
    const std::int64_t at = args.rank * slice + i;
    float sum = 0;
    for (int r = 0; r < world; ++r) {
      sum += reinterpret_cast<const float*>(args.scratch_peers[r] + sizeof(Control))[at];
    }
    for (int step = 0; step < world; ++step) args.out_peers[(args.rank + step) % world][at] = sum;
  }
  __syncthreads();
  if (me == 0) {
    Barrier(args, sense ^ 1);
    At(args.scratch)->expected[blockIdx.x] = sense ^ 1;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t slice = (args.n + args.world - 1) / args.world;
  const std::int64_t needed = (slice + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  AllReduce<<<blocks, kThreads, 0, stream>>>(args);
}
