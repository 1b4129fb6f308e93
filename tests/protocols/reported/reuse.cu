// One-shot all-reduce by pull from registered inputs, called on alternating tensors, with barriers at begin and end.
// EXPECT 1 race: no barrier at the end: the caller's next kernel overwrites the input while a peer reads it
// EXPECT 2 race: barrier at the end is not preceded by __syncthreads()
// EXPECT 3 race: end barrier signals relaxed (reads are not ordered before the peers' next writes)
#include "common.h"
constexpr int R = 4, N = 1024, T = 256, CALLS = 4;
struct Ptrs {
  float* in[R];
  unsigned* flag[R];
};
__global__ void Produce(float* p, int rank, int call) {
  for (int i = threadIdx.x; i < N; i += T) p[i] = rank + call * i;
}
__global__ void AllReduce(Ptrs p, int rank, float* out, unsigned e) {
  if (threadIdx.x < R) {
    st_release(p.flag[threadIdx.x] + rank, 2 * e + 1);
    wait_ge(p.flag[rank] + threadIdx.x, 2 * e + 1);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < N; i += T) {
    float s = 0;
    for (int r = 0; r < R; ++r) s += p.in[(rank + r) % R][i];
    out[i] = s;
  }
#if BUG != 1
#if BUG != 2
  __syncthreads();
#endif
  if (threadIdx.x < R) {
#if BUG == 3
    st_relaxed(p.flag[threadIdx.x] + rank, 2 * e + 2);
#else
    st_release(p.flag[threadIdx.x] + rank, 2 * e + 2);
#endif
    wait_ge(p.flag[rank] + threadIdx.x, 2 * e + 2);
  }
#endif
}
int main() {
  peers(R);
  Ptrs p;
  float* out[R][CALLS];
  for (int r = 0; r < R; ++r) {
    p.in[r] = alloc<float>(r, N);
    p.flag[r] = alloc<unsigned>(r, R);
    for (auto& o : out[r]) o = alloc<float>(r, N);
  }
  sync_all(R);
  for (int c = 0; c < CALLS; ++c)
    for (int r = 0; r < R; ++r) {
      CK(cudaSetDevice(r));
      Produce<<<1, T>>>(p.in[r], r, c);
      AllReduce<<<1, T>>>(p, r, out[r][c], c);
    }
  sync_all(R);
  long wrong = 0;
  for (int c = 0; c < CALLS; ++c)
    for (int r = 0; r < R; ++r) {
      auto v = get(r, out[r][c], N);
      for (int i = 0; i < N; ++i) wrong += v[i] != 6 + 4 * c * i;
    }
  return finish(wrong, R);
}
