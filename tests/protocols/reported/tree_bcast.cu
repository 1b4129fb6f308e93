// Tree broadcast, 8 devices, pipelined by chunks; every node forwards what its parent has put.
// EXPECT 1 race: only thread 0 waits, no barrier behind the wait
// EXPECT 2 race: children are told before all threads have stored
// EXPECT 3 race: the wait is for the chunk before
// EXPECT 4 race: inner nodes forward the flag relaxed
#include "common.h"
constexpr int R = 8, CH = 8, C = 256, T = 64;
struct Ptrs {
  int* buf[R];
  unsigned* flag[R];
};
__global__ void Broadcast(Ptrs p, int rank) {
  for (int c = 0; c < CH; ++c) {
    if (rank != 0) {
#if BUG == 3
      if (threadIdx.x == 0) wait_ge(p.flag[rank], c);
#else
      if (threadIdx.x == 0) wait_ge(p.flag[rank], c + 1);
#endif
#if BUG != 1
      __syncthreads();
#endif
    }
    for (int k = 1; k <= 2; ++k) {
      const int child = 2 * rank + k;
      if (child < R)
        for (int i = threadIdx.x; i < C; i += T) p.buf[child][c * C + i] = p.buf[rank][c * C + i];
    }
#if BUG != 2
    __syncthreads();
#endif
    if (threadIdx.x < 2) {
      const int child = 2 * rank + threadIdx.x + 1;
      if (child < R) {
#if BUG == 4
        if (rank)
          st_relaxed(p.flag[child], c + 1);
        else
#endif
          st_release(p.flag[child], c + 1);
      }
    }
  }
}
int main() {
  peers(R);
  Ptrs p;
  for (int r = 0; r < R; ++r) {
    p.buf[r] = alloc<int>(r, CH * C);
    p.flag[r] = alloc<unsigned>(r, 1);
  }
  std::vector<int> v(CH * C);
  for (int i = 0; i < CH * C; ++i) v[i] = 3 * i + 1;
  put(0, p.buf[0], v);
  sync_all(R);
  for (int r = R - 1; r >= 0; --r) {
    CK(cudaSetDevice(r));
    Broadcast<<<1, T>>>(p, r);
  }
  sync_all(R);
  long wrong = 0;
  for (int r = 0; r < R; ++r) {
    auto w = get(r, p.buf[r], CH * C);
    for (int i = 0; i < CH * C; ++i) wrong += w[i] != v[i];
  }
  return finish(wrong, R);
}
