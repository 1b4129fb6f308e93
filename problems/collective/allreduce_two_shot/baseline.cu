// In one shot, step by step: a kernel copies `in` to where peers can read it, one block meets all
// peers, a kernel reads everything, and all meet again before the copy may be overwritten.

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};
constexpr int kBlocks = 32, kThreads = 256, kData = 256;

__global__ void Stage(Args args) {
  T* staged = reinterpret_cast<T*>(args.scratch + kData);
  const int first = blockIdx.x * kThreads + threadIdx.x;
  for (std::int64_t i = first; i < args.n; i += kBlocks * kThreads) staged[i] = args.in[i];
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

__global__ void Sum(Args args) {
  const int first = blockIdx.x * kThreads + threadIdx.x;
  for (std::int64_t i = first; i < args.n; i += kBlocks * kThreads) {
    T sum = 0;
    for (int r = 0; r < args.world; ++r) {
      sum += reinterpret_cast<const T*>(args.scratch_peers[r] + kData)[i];
    }
    args.out[i] = sum;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Stage<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Sum<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
