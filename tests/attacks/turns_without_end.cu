// tries: blocks hand a turn around for ever: each wakes the next, nobody waits for nothing
// rows: R
// verdict: timeout
// The flag lies where nobody writes.
__device__ inline const unsigned* Never(const Args& args) {
  return reinterpret_cast<const unsigned*>(args.scratch + 16 * args.world * args.n + 61440);
}
__device__ inline unsigned Look(const unsigned* p) {
  unsigned v;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}

__global__ void Wait(Args args) {
  if (threadIdx.x != 0) return;
  unsigned* turn = reinterpret_cast<unsigned*>(args.scratch);
  for (unsigned mine = blockIdx.x;; mine += gridDim.x) {
    while (Look(turn) != mine) {
    }
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(turn), "r"(mine + 1) : "memory");
  }
}
extern "C" void launch(const Args& args, cudaStream_t stream) { Wait<<<64, 32, 0, stream>>>(args); }
