// In kernels of their own, with meetings of one block between them: scatter, meet, sum and spread,
// meet. The end of a kernel takes the place of flags per block, so the grid may have any shape.

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};
constexpr int kBlocks = 64, kThreads = 256, kData = 256;

__global__ void Scatter(Args args) {
  const std::int64_t slice = (args.n + args.world - 1) / args.world;
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < args.n; i += kBlocks * kThreads) {
    T* slots = reinterpret_cast<T*>(args.scratch_peers[i / slice] + kData);
    slots[args.rank * slice + i % slice] = args.in[i];
  }
}

__global__ void Meet(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(&peer->reached[args.rank]),
                 "r"(meeting)
                 : "memory");
    std::uint32_t reached;
    do {
      asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
                   : "=r"(reached)
                   : "l"(&mine->reached[threadIdx.x])
                   : "memory");
    } while (std::int32_t(reached - meeting) < 0);
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void SumAndSpread(Args args) {
  const std::int64_t slice = (args.n + args.world - 1) / args.world;
  const T* slots = reinterpret_cast<const T*>(args.scratch + kData);
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < slice; i += kBlocks * kThreads) {
    const std::int64_t at = args.rank * slice + i;
    if (at >= args.n) break;
    T sum = 0;
    for (int r = 0; r < args.world; ++r) sum += slots[r * slice + i];
    for (int r = 0; r < args.world; ++r) args.out_peers[r][at] = sum;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Scatter<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  SumAndSpread<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
