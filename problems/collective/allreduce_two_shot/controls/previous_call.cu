// verdict: wrong_result
// The sum of the call before, correctly synchronised: right only if inputs did not change.
struct Control {
  std::uint32_t calls;
  std::uint32_t reached[kMaxRanks];
};
__global__ void AllReduce(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls + 1;
  T* now = reinterpret_cast<T*>(args.scratch + 256) + (call & 1) * args.n;
  for (std::int64_t i = threadIdx.x; i < args.n; i += blockDim.x) now[i] = args.in[i];
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(&peer->reached[args.rank]), "r"(call)
                 : "memory");
    std::uint32_t reached;
    do {
      asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
                   : "=r"(reached)
                   : "l"(&mine->reached[threadIdx.x])
                   : "memory");
    } while (std::int32_t(reached - call) < 0);
  }
  __syncthreads();
  const std::int64_t before = (call + 1 & 1) * args.n;
  for (std::int64_t i = threadIdx.x; i < args.n; i += blockDim.x) {
    T sum = 0;
    for (int r = 0; r < args.world; ++r) {
      sum += reinterpret_cast<const T*>(args.scratch_peers[r] + 256)[before + i];
    }
    args.out[i] = sum;
  }
  if (threadIdx.x == 0) mine->calls = call;
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  AllReduce<<<1, 1024, 0, stream>>>(args);
}
