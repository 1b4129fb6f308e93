// Pull from the peer by cp.async in two stages, add, store; the pull of the next tile overlaps.
// EXPECT 1 race: wait_group 1 where 0 is needed at the last tile (or: waits for the wrong group)
// EXPECT 2 race: no __syncthreads() behind the wait: other threads' copies are read
// EXPECT 3 race: stage overwritten by the next copy while others still read it
#include "common.h"
constexpr int TILES = 6, W = 256, T = 64;
DEV void cp16(void* d, const void* s) {
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(d)),
      "l"(s)
      : "memory");
}
#define COMMIT asm volatile("cp.async.commit_group;" ::: "memory")
__global__ void Make(int* p, unsigned* flag) {
  for (int i = threadIdx.x; i < TILES * W; i += T) p[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) st_release(flag, 1);
}
__global__ void Pull(const int* p, unsigned* flag, int* out) {
  __shared__ alignas(16) int st[2][W];
  if (threadIdx.x == 0) wait_ge(flag, 1);
  __syncthreads();
  cp16(st[0] + threadIdx.x * 4, p + threadIdx.x * 4);
  COMMIT;
  for (int t = 0; t < TILES; ++t) {
    if (t + 1 < TILES) cp16(st[(t + 1) % 2] + threadIdx.x * 4, p + (t + 1) * W + threadIdx.x * 4);
    COMMIT;
#if BUG == 1
    asm volatile("cp.async.wait_group 2;" ::: "memory");
#else
    asm volatile("cp.async.wait_group 1;" ::: "memory");
#endif
#if BUG != 2
    __syncthreads();
#endif
    for (int i = threadIdx.x; i < W; i += T) out[t * W + i] = st[t % 2][W - 1 - i] * 2;
#if BUG != 3
    __syncthreads();
#endif
  }
}
int main() {
  peers(2);
  int *p = alloc<int>(1, TILES * W), *out = alloc<int>(0, TILES * W);
  unsigned* flag = alloc<unsigned>(0, 1);
  sync_all(2);
  CK(cudaSetDevice(0));
  Pull<<<1, T>>>(p, flag, out);
  CK(cudaSetDevice(1));
  Make<<<1, T>>>(p, flag);
  sync_all(2);
  long wrong = 0;
  auto v = get(0, out, TILES * W);
  for (int i = 0; i < TILES * W; ++i) wrong += v[i] != 2 * (i / W * W + W - 1 - i % W);
  return finish(wrong, 2);
}
