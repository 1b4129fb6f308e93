// Reduce-scatter by red.add on the owner's memory, four devices at once.
// EXPECT 1 scope: red of device scope
// EXPECT 2 race: owner zeroes its sums in the kernel, without a barrier before the reds
// EXPECT 3 race: owner adds its own part by an ordinary load and store
// EXPECT 4 race: mixed sizes: peers add v2.f32, the owner reads before the barrier as 64 bits atomically
#include "common.h"
constexpr int R = 4, N = 256, T = 64;
struct Ptrs {
  float* sum[R];
  unsigned* count[R];
};
DEV void meet(const Ptrs& p, int rank, unsigned n) {
  __syncthreads();
  if (threadIdx.x < R) red_release(p.count[threadIdx.x], 1);
  if (threadIdx.x == 0) wait_ge(p.count[rank], n);
  __syncthreads();
}
__global__ void ReduceScatter(Ptrs p, int rank, float* out) {
  for (int i = threadIdx.x; i < N; i += T) p.sum[rank][i] = 0;
#if BUG != 2
  meet(p, rank, R);
#endif
  for (int k = 0; k < R; ++k) {
    const int r = (rank + k) % R;
    for (int i = threadIdx.x; i < N; i += T) {
      const float v = rank + r * N + i;
#if BUG == 1
      atomicAdd(p.sum[r] + i, v);
#elif BUG == 3
      if (k == 0)
        p.sum[r][i] += v;
      else
        atomicAdd_system(p.sum[r] + i, v);
#else
      atomicAdd_system(p.sum[r] + i, v);
#endif
    }
  }
#if BUG == 4
  unsigned long long peek = atomicAdd_system((unsigned long long*)p.sum[rank] + threadIdx.x, 0ull);
  if (peek == 1) out[0] = 1;
#endif
  meet(p, rank, BUG == 2 ? R : 2 * R);
  for (int i = threadIdx.x; i < N; i += T) out[i] = p.sum[rank][i];
}
int main() {
  peers(R);
  Ptrs p;
  float* out[R];
  for (int r = 0; r < R; ++r) {
    p.sum[r] = alloc<float>(r, N);
    p.count[r] = alloc<unsigned>(r, 1);
    out[r] = alloc<float>(r, N);
  }
  sync_all(R);
  for (int r = 0; r < R; ++r) {
    CK(cudaSetDevice(r));
    ReduceScatter<<<1, T>>>(p, r, out[r]);
  }
  sync_all(R);
  long wrong = 0;
  for (int r = 0; r < R; ++r) {
    auto v = get(r, out[r], N);
    for (int i = 0; i < N; ++i) wrong += v[i] != 6 + 4.f * (r * N + i);
  }
  return finish(wrong, R);
}
