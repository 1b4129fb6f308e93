// A ticket lock on device 0 guards a record on device 1; blocks of four devices update it.
// EXPECT 1 race: unlocked before all threads have stored
// EXPECT 2 race: unlocked by a volatile store and no fence
// EXPECT 3 race: no __syncthreads() behind the lock
// EXPECT 4 scope: tickets by atomicAdd() of device scope
#include "common.h"
constexpr int R = 4, B = 2, T = 64, W = 128, TIMES = 4;
__global__ void Update(unsigned* ticket, unsigned* serving, int* record) {
  for (int k = 0; k < TIMES; ++k) {
    unsigned mine = 0;
    if (threadIdx.x == 0) {
#if BUG == 4
      mine = atomicAdd(ticket, 1);
#else
      mine = atomicAdd_system(ticket, 1);
#endif
      while (ld_acquire(serving) != mine) {
      }
    }
#if BUG != 3
    __syncthreads();
#endif
    for (int i = threadIdx.x; i < W; i += T) record[i] += i + 1;
#if BUG != 1
    __syncthreads();
#endif
    if (threadIdx.x == 0) {
#if BUG == 2
      *(volatile unsigned*)serving = mine + 1;
#else
      st_release(serving, mine + 1);
#endif
    }
  }
}
int main() {
  peers(R);
  unsigned *ticket = alloc<unsigned>(0, 1), *serving = alloc<unsigned>(0, 1);
  int* rec = alloc<int>(1, W);
  sync_all(R);
  for (int r = 0; r < R; ++r) {
    CK(cudaSetDevice(r));
    Update<<<B, T>>>(ticket, serving, rec);
  }
  sync_all(R);
  long wrong = 0;
  auto v = get(1, rec, W);
  for (int i = 0; i < W; ++i) wrong += v[i] != R * B * TIMES * (i + 1);
  return finish(wrong, R);
}
