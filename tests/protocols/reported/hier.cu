// Every block puts its part to the peer; one thread signals for the block, one waits for the block there.
// EXPECT 1 race: no __syncthreads() before the signal
// EXPECT 2 none: all fence (fence.sc), meet, and thread 0 stores the flag relaxed: the reader's fence.sc cannot come first
// EXPECT 3 none: thread 0 polls relaxed, all meet, then all fence (fence.sc)
// EXPECT 4 race: no __syncthreads() behind the wait
// EXPECT 5 race: as 2 by fence.acq_rel: fence and store are of two threads, so nothing is released
// EXPECT 6 race: as 3 by fence.acq_rel: load and fence are of two threads, so nothing is acquired
#include "common.h"
#if BUG >= 5
#define FENCE asm volatile("fence.acq_rel.sys;" ::: "memory")
#else
#define FENCE __threadfence_system()
#endif
constexpr int R = 2, B = 4, T = 96, W = 300;
__global__ void Swap(float* mine, float* theirs, unsigned* myFlag, unsigned* theirFlag,
                     const float* in, float* out) {
  for (int i = threadIdx.x; i < W; i += T) theirs[blockIdx.x * W + i] = in[blockIdx.x * W + i];
#if BUG == 2 || BUG == 5
  FENCE;
  __syncthreads();
  if (threadIdx.x == 0) *(volatile unsigned*)(theirFlag + blockIdx.x) = 1;
#elif BUG == 1
  if (threadIdx.x == 0) {
    __threadfence_system();
    *(volatile unsigned*)(theirFlag + blockIdx.x) = 1;
  }
#else
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence_system();
    *(volatile unsigned*)(theirFlag + blockIdx.x) = 1;
  }
#endif
#if BUG == 3 || BUG == 6
  if (threadIdx.x == 0)
    while (*(volatile unsigned*)(myFlag + blockIdx.x) == 0) {
    }
  __syncthreads();
  FENCE;
#else
  if (threadIdx.x == 0) {
    while (*(volatile unsigned*)(myFlag + blockIdx.x) == 0) {
    }
    __threadfence_system();
  }
#if BUG != 4
  __syncthreads();
#endif
#endif
  for (int i = threadIdx.x; i < W; i += T) out[blockIdx.x * W + i] = mine[blockIdx.x * W + i];
}
int main() {
  peers(R);
  float *buf[R], *in[R], *out[R];
  unsigned* flag[R];
  for (int r = 0; r < R; ++r) {
    buf[r] = alloc<float>(r, B * W);
    in[r] = alloc<float>(r, B * W);
    out[r] = alloc<float>(r, B * W);
    flag[r] = alloc<unsigned>(r, B);
    std::vector<float> v(B * W);
    for (int i = 0; i < B * W; ++i) v[i] = r * 5000 + i;
    put(r, in[r], v);
  }
  sync_all(R);
  for (int r = 0; r < R; ++r) {
    CK(cudaSetDevice(r));
    Swap<<<B, T>>>(buf[r], buf[1 - r], flag[r], flag[1 - r], in[r], out[r]);
  }
  sync_all(R);
  long wrong = 0;
  for (int r = 0; r < R; ++r) {
    auto v = get(r, out[r], B * W);
    for (int i = 0; i < B * W; ++i) wrong += v[i] != (1 - r) * 5000 + i;
  }
  return finish(wrong, R);
}
