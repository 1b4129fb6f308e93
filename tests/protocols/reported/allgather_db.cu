// All-gather by push with two buffers in turn, one launch per call, no barrier at the end.
// EXPECT 1 race: one buffer for all calls
// EXPECT 2 race: flag relaxed behind __threadfence() (device scope)
// EXPECT 3 race: the epoch of the flag is not looked at (any value but 0 will do)
#include "common.h"
constexpr int R = 4, C = 1024, T = 256, CALLS = 5;
struct Ptrs {
  int* buf[R];
  unsigned* flag[R];
};
__global__ void Gather(Ptrs p, int rank, const int* in, int* out, unsigned epoch) {
#if BUG == 1
  const int which = 0;
#else
  const int which = epoch & 1;
#endif
  for (int r = 0; r < R; ++r)
    for (int i = threadIdx.x; i < C; i += T) p.buf[r][(which * R + rank) * C + i] = in[i] + epoch;
  __syncthreads();
  if (threadIdx.x < R) {
#if BUG == 2
    __threadfence();
    st_relaxed(p.flag[threadIdx.x] + rank, epoch);
#else
    st_release(p.flag[threadIdx.x] + rank, epoch);
#endif
#if BUG == 3
    while (ld_acquire(p.flag[rank] + threadIdx.x) == 0) {
    }
#else
    wait_ge(p.flag[rank] + threadIdx.x, epoch);
#endif
  }
  __syncthreads();
  for (int i = threadIdx.x; i < R * C; i += T) out[i] = p.buf[rank][which * R * C + i];
}
int main() {
  peers(R);
  Ptrs p;
  int *in[R], *out[R][CALLS];
  for (int r = 0; r < R; ++r) {
    p.buf[r] = alloc<int>(r, 2 * R * C, -1);
    p.flag[r] = alloc<unsigned>(r, R);
    in[r] = alloc<int>(r, C);
    for (int c = 0; c < CALLS; ++c) out[r][c] = alloc<int>(r, R * C);
    std::vector<int> v(C);
    for (int i = 0; i < C; ++i) v[i] = 1000 * r + i;
    put(r, in[r], v);
  }
  sync_all(R);
  for (int c = 0; c < CALLS; ++c)
    for (int r = 0; r < R; ++r) {
      CK(cudaSetDevice(r));
      Gather<<<1, T>>>(p, r, in[r], out[r][c], c + 1);
    }
  sync_all(R);
  long wrong = 0;
  for (int c = 0; c < CALLS; ++c)
    for (int r = 0; r < R; ++r) {
      auto v = get(r, out[r][c], R * C);
      for (int i = 0; i < R * C; ++i) wrong += v[i] != 1000 * (i / C) + i % C + c + 1;
    }
  return finish(wrong, R);
}
