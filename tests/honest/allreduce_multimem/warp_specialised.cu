// design: staging, reducing and homing warps of a block work side by side on chunks; each chunk is told to all devices by multimem.st.release
//
// Flags count chunks over all calls, per rank and block: the number of chunks of a block is the same in
// every call. A rank's inputs are free at the end of a call, since all sums of it were there. Sums of
// the next call come after this rank has staged for it, so after it has taken the present ones.

constexpr int kMaxBlocks = 64, kGroup = 128, kChunk = 128;  // vectors of a chunk, per owner

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t staged[kMaxBlocks][kMaxRanks];
  std::uint32_t summed[kMaxBlocks][kMaxRanks];
};

template <int kId>
__device__ void GroupSync() {
  asm volatile("barrier.sync %0, %1;" ::"n"(kId), "n"(kGroup) : "memory");
}
__device__ void FenceAliases() { asm volatile("fence.proxy.alias;" ::: "memory"); }
__device__ void TellAll(std::uint32_t* flag, std::uint32_t value) {
  FenceAliases();
  asm volatile("multimem.st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
  FenceAliases();
}
__device__ void Hear(const std::uint32_t* flag, std::uint32_t value) {
  std::uint32_t seen;
  do {
    FenceAliases();
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
  } while (std::int32_t(seen - value) < 0);
  FenceAliases();
}

__global__ void __launch_bounds__(3 * kGroup) AllReduce(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* all = reinterpret_cast<Control*>(args.scratch_multicast);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int world = args.world, me = threadIdx.x % kGroup, role = threadIdx.x / kGroup;
  const std::int64_t vectors = (args.n + 7) / 8, slice = (vectors + world - 1) / world;
  const std::int64_t chunks = (slice + kChunk - 1) / kChunk;
  const std::uint32_t own = (chunks - blockIdx.x + gridDim.x - 1) / gridDim.x;
  const std::int64_t inputs = sizeof(Control), sums = inputs + vectors * sizeof(uint4);
  std::uint32_t count = (call - 1) * own;

  if (role == 0) {
    const std::uint16_t* in = reinterpret_cast<const std::uint16_t*>(args.in);
    uint4* staged = reinterpret_cast<uint4*>(args.scratch + inputs);
    for (std::int64_t c = blockIdx.x; c < chunks; c += gridDim.x) {
      const std::int64_t i = c * kChunk + me;
      for (int r = 0; i < slice && r < world; ++r) {
        const std::int64_t at = r * slice + i;
        if (8 * at + 8 <= args.n) {
          staged[at] = reinterpret_cast<const uint4*>(in)[at];
        } else if (at < vectors) {
          std::uint16_t* rest = reinterpret_cast<std::uint16_t*>(staged + at);
          for (int k = 0; k < 8; ++k) rest[k] = 8 * at + k < args.n ? in[8 * at + k] : 0;
        }
      }
      FenceAliases();
      GroupSync<1>();
      ++count;
      if (me == 0) TellAll(&all->staged[blockIdx.x][args.rank], count);
    }
  } else if (role == 1) {
    for (std::int64_t c = blockIdx.x; c < chunks; c += gridDim.x) {
      ++count;
      if (me < world) Hear(&mine->staged[blockIdx.x][me], count);
      GroupSync<2>();
      FenceAliases();
      const std::int64_t i = c * kChunk + me, at = args.rank * slice + i;
      if (i < slice && at < vectors) {
        uint4 v;
        asm volatile(
            "multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.bf16x2 {%0, %1, %2, %3}, [%4];"
            : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
            : "l"(reinterpret_cast<const uint4*>(args.scratch_multicast + inputs) + at)
            : "memory");
        asm volatile("multimem.st.relaxed.sys.global.v4.bf16x2 [%0], {%1, %2, %3, %4};" ::"l"(
                         reinterpret_cast<uint4*>(args.scratch_multicast + sums) + at),
                     "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                     : "memory");
      }
      GroupSync<2>();
      if (me == 0) TellAll(&all->summed[blockIdx.x][args.rank], count);
    }
  } else {
    std::uint16_t* out = reinterpret_cast<std::uint16_t*>(args.out);
    const uint4* summed = reinterpret_cast<const uint4*>(args.scratch + sums);
    for (std::int64_t c = blockIdx.x; c < chunks; c += gridDim.x) {
      ++count;
      if (me < world) Hear(&mine->summed[blockIdx.x][me], count);
      GroupSync<3>();
      FenceAliases();
      const std::int64_t i = c * kChunk + me;
      for (int r = 0; i < slice && r < world; ++r) {
        const std::int64_t at = r * slice + i;
        if (8 * at + 8 <= args.n) {
          reinterpret_cast<uint4*>(out)[at] = summed[at];
        } else if (at < vectors) {
          const std::uint16_t* rest = reinterpret_cast<const std::uint16_t*>(summed + at);
          for (int k = 0; 8 * at + k < args.n; ++k) out[8 * at + k] = rest[k];
        }
      }
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t slice = ((args.n + 7) / 8 + args.world - 1) / args.world;
  const std::int64_t chunks = (slice + kChunk - 1) / kChunk;
  const int blocks = chunks < kMaxBlocks ? chunks : kMaxBlocks;
  AllReduce<<<blocks, 3 * kGroup, 0, stream>>>(args);
}
