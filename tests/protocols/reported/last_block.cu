// Threadfence reduction, then the last block puts the result to the peer and signals.
// EXPECT 1 race: no __threadfence() before the atomic
// EXPECT 2 race: the last block does not fence behind the atomic
// EXPECT 3 race: fence by thread 1, atomic by thread 0
#include "common.h"
constexpr int R = 2, B = 8, T = 64;
__global__ void Sum(const int* in, int* part, unsigned* count, int* to, unsigned* flag,
                    unsigned* myFlag, const int* box, int* out) {
  __shared__ int s[T];
  __shared__ bool last;
  s[threadIdx.x] = in[blockIdx.x * T + threadIdx.x];
  __syncthreads();
  for (int w = T / 2; w > 0; w /= 2) {
    if (threadIdx.x < w) s[threadIdx.x] += s[threadIdx.x + w];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    part[blockIdx.x] = s[0];
#if BUG != 1 && BUG != 3
    __threadfence();
#endif
  }
#if BUG == 3
  if (threadIdx.x == 1) __threadfence();
  __syncthreads();
#endif
  if (threadIdx.x == 0) {
    last = atomicAdd(count, 1) == B - 1;
#if BUG != 2
    __threadfence();
#endif
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    int v = 0;
    for (int b = 0; b < B; ++b) v += part[b];
    *to = v;
    st_release(flag, 1);
    wait_ge(myFlag, 1);
    *out = v + *box;
  }
}
int main() {
  peers(R);
  int *in[R], *part[R], *box[R], *out[R];
  unsigned *count[R], *flag[R];
  for (int r = 0; r < R; ++r) {
    in[r] = alloc<int>(r, B * T);
    part[r] = alloc<int>(r, B);
    box[r] = alloc<int>(r, 1);
    out[r] = alloc<int>(r, 1);
    count[r] = alloc<unsigned>(r, 1);
    flag[r] = alloc<unsigned>(r, 1);
    put(r, in[r], std::vector<int>(B * T, r + 1));
  }
  sync_all(R);
  for (int r = 0; r < R; ++r) {
    CK(cudaSetDevice(r));
    Sum<<<B, T>>>(in[r], part[r], count[r], box[1 - r], flag[1 - r], flag[r], box[r], out[r]);
  }
  sync_all(R);
  long wrong = 0;
  for (int r = 0; r < R; ++r) wrong += get(r, out[r], 1)[0] != 3 * B * T;
  return finish(wrong, R);
}
