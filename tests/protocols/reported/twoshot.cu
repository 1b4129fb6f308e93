// Two-shot all-reduce by pull: barriers per block by atomics on counters at every rank.
// EXPECT 1 scope: atomicAdd() of device scope on a peer's counter
// EXPECT 2 race: no fence before the counter
// EXPECT 3 race: no __syncthreads() before the counter
// EXPECT 4 none: no barrier at the end, but nothing overwrites what peers read (argued: not a bug)
// EXPECT 5 race: block b waits for blocks b, but reads what other blocks wrote
// EXPECT 6 race: wait is volatile and no fence behind it
#include "common.h"
constexpr int R = 4, N = 4096, B = 4, T = 128, CALLS = 3;
struct Ptrs {
  float* in[R];
  float* part[R];
  unsigned* count[R];
};
DEV void barrier(const Ptrs& p, int rank, unsigned& epoch) {
  ++epoch;
#if BUG != 3
  __syncthreads();
#endif
  if (threadIdx.x < R) {
    unsigned* c = p.count[threadIdx.x] + blockIdx.x;
#if BUG == 1
    __threadfence_system();
    atomicAdd(c, 1);
#elif BUG == 2
    atomicAdd_system(c, 1);
#else
    __threadfence_system();
    atomicAdd_system(c, 1);
#endif
  }
  if (threadIdx.x == 0) {
    const volatile unsigned* mine = p.count[rank] + blockIdx.x;
    while (*mine < epoch * R) {
    }
#if BUG != 6
    __threadfence_system();
#endif
  }
  __syncthreads();
}
__global__ void AllReduce(Ptrs p, int rank, float* out, int call) {
  unsigned epoch = call * (BUG == 4 ? 2 : 3);
  constexpr int S = N / R, W = S / B;  // of a rank, of a block
  for (int i = threadIdx.x; i < N / B;
       i += T) {  // this call's input; block b makes what blocks b read
    const int r = i / W, j = i % W;
    p.in[rank][r * S + blockIdx.x * W + j] = rank + r * S + blockIdx.x * W + j + call;
  }
  barrier(p, rank, epoch);
  for (int i = threadIdx.x; i < W; i += T) {
    float sum = 0;
    const int at = rank * S + blockIdx.x * W + i;
    for (int r = 0; r < R; ++r) sum += p.in[r][at];
    p.part[rank][blockIdx.x * W + i] = sum;
  }
  barrier(p, rank, epoch);
#if BUG == 5
  const int from = (blockIdx.x + 1) % B;
#else
  const int from = blockIdx.x;
#endif
  for (int r = 0; r < R; ++r)
    for (int i = threadIdx.x; i < W; i += T) out[r * S + from * W + i] = p.part[r][from * W + i];
#if BUG != 4
  barrier(p, rank, epoch);
#endif
}
int main() {
  peers(R);
  Ptrs p;
  float* out[R][CALLS];
  for (int r = 0; r < R; ++r) {
    p.in[r] = alloc<float>(r, N);
    p.part[r] = alloc<float>(r, N / R);
    p.count[r] = alloc<unsigned>(r, B);
    for (int c = 0; c < CALLS; ++c) out[r][c] = alloc<float>(r, N);
  }
  sync_all(R);
  for (int c = 0; c < CALLS; ++c)
    for (int r = 0; r < R; ++r) {
      CK(cudaSetDevice(r));
      AllReduce<<<B, T>>>(p, r, out[r][c], c);
    }
  sync_all(R);
  long wrong = 0;
  for (int c = 0; c < CALLS; ++c)
    for (int r = 0; r < R; ++r) {
      auto v = get(r, out[r][c], N);
      for (int i = 0; i < N; ++i) wrong += v[i] != 6 + 4.f * (i + c);
    }
  return finish(wrong, R);
}
