// tries: waits for the very call of a peer, which may be a call further
// rows: 26 C13 H29
// verdict: deadlock
// cases: all
// drained: pass
__global__ void Kernel(Args args) {
  unsigned* mine = reinterpret_cast<unsigned*>(args.scratch);
  const unsigned call = mine[16] + 1;
  T* buffer = reinterpret_cast<T*>(args.scratch + 128 + (call & 1) * args.n * sizeof(T));
  for (std::int64_t i = threadIdx.x; i < args.n; i += blockDim.x) buffer[i] = args.in[i];
  __syncthreads();
  if (threadIdx.x < args.world) {
    unsigned* peer = reinterpret_cast<unsigned*>(args.scratch_peers[threadIdx.x]);
    unsigned seen;
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(peer + args.rank), "r"(call) : "memory");
    do {
      asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(mine + threadIdx.x) : "memory");
    } while (seen != call);
  }
  __syncthreads();
  for (std::int64_t i = threadIdx.x; i < args.n; i += blockDim.x) {
    T sum = 0;
    for (int r = 0; r < args.world; ++r) sum += reinterpret_cast<T*>(args.scratch_peers[r] + 128 + (call & 1) * args.n * sizeof(T))[i];
    args.out[i] = sum;
  }
  if (threadIdx.x == 0) mine[16] = call;
}
extern "C" void launch(const Args& args, cudaStream_t stream) { Kernel<<<1, 256, 0, stream>>>(args); }
