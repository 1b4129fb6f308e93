// tries: waits at an mbarrier whose second arrival never comes, with the longest hint there is
// rows: R
// verdict: deadlock|timeout
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
  __shared__ alignas(8) unsigned long long barrier;
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 2;" ::"r"(at) : "memory");
  __syncthreads();
  if (threadIdx.x == 0)
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
  unsigned done = 0;
  while (done == 0) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0, %2; selp.u32 %0, 1, "
        "0, p; }"
        : "=r"(done)
        : "r"(at), "r"(0xffffffffu)
        : "memory");
  }
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Wait<<<64, 1024, 0, stream>>>(args);
}
