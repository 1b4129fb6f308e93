// A persistent kernel reads what its peer puts, several rounds.
// EXPECT 1 race: reads by __ldg
// EXPECT 2 race: const __restrict__ parameter, nvcc makes ld.global.nc of it
#include "common.h"
constexpr int R = 2, N = 512, T = 128, K = 4;
#if BUG == 2
#define RO const int* __restrict__
#else
#define RO const int*
#endif
DEV int rd(const int* p) {
#if BUG == 1
  return __ldg(p);
#else
  return *p;
#endif
}
__global__ void Rounds(RO box, int* __restrict__ theirs, unsigned* flag, unsigned* theirFlag,
                       int* __restrict__ out, int rank) {
  for (int k = 0; k < K; ++k) {
    for (int i = threadIdx.x; i < N; i += T) theirs[(k & 1) * N + i] = rank * 100 + k + i;
    __syncthreads();
    if (threadIdx.x == 0) {
      st_release(theirFlag, k + 1);
      wait_ge(flag, k + 1);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < N; i += T) out[k * N + i] = rd(box + (k & 1) * N + i);
    __syncthreads();
  }
}
int main() {
  peers(R);
  int *box[R], *out[R];
  unsigned* flag[R];
  for (int r = 0; r < R; ++r) {
    box[r] = alloc<int>(r, 2 * N);
    out[r] = alloc<int>(r, K * N);
    flag[r] = alloc<unsigned>(r, 1);
  }
  sync_all(R);
  for (int r = 0; r < R; ++r) {
    CK(cudaSetDevice(r));
    Rounds<<<1, T>>>(box[r], box[1 - r], flag[r], flag[1 - r], out[r], r);
  }
  sync_all(R);
  long wrong = 0;
  for (int r = 0; r < R; ++r) {
    auto v = get(r, out[r], K * N);
    for (int i = 0; i < K * N; ++i) wrong += v[i] != (1 - r) * 100 + i / N + i % N;
  }
  return finish(wrong, R);
}
