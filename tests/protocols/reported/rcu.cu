// A pointer to the newest table is published (as an index) to readers on other devices; the writer reuses a table when all readers have moved on.
// EXPECT 1 race: index stored relaxed
// EXPECT 2 race: the writer does not wait for the readers' quiescence
// EXPECT 3 race: reader announces quiescence relaxed
#include "common.h"
constexpr int R = 4, N = 64, TAB = 2, V = 12;
__global__ void Writer(int* tables, unsigned* cur, unsigned* quiet) {
  for (unsigned v = 1; v <= V; ++v) {
#if BUG != 2
    if (v > TAB && threadIdx.x >= 1 && threadIdx.x < R)
      while (ld_acquire(quiet + threadIdx.x) + 1 < v) {
      }
#endif
    __syncthreads();
    for (int i = threadIdx.x; i < N; i += 32) tables[v % TAB * N + i] = v * N + i;
    __syncthreads();
    if (threadIdx.x == 0) {
#if BUG == 1
      st_relaxed(cur, v);
#else
      st_release(cur, v);
#endif
    }
  }
}
__global__ void Reader(const int* tables, unsigned* cur, unsigned* quiet, int rank, int* bad) {
  int wrong = 0;
  unsigned v;
  do {
    v = threadIdx.x == 0 ? ld_acquire(cur) : 0;
    v = __shfl_sync(~0u, v, 0);
    __syncwarp();
    if (v)
      for (int i = threadIdx.x; i < N; i += 32)
        wrong += tables[v % TAB * N + i] != (int)(v * N + i);
    __syncwarp();
    if (threadIdx.x == 0) {
#if BUG == 3
      st_relaxed(quiet + rank, v);
#else
      st_release(quiet + rank, v);
#endif
    }
  } while (v < V);
  if (wrong) atomicAdd(bad, wrong);
}
int main() {
  peers(R);
  int* t = alloc<int>(0, TAB * N);
  unsigned *cur = alloc<unsigned>(0, 1), *quiet = alloc<unsigned>(0, R);
  int* bad[R];
  for (int r = 0; r < R; ++r) bad[r] = alloc<int>(r, 1);
  sync_all(R);
  for (int r = 1; r < R; ++r) {
    CK(cudaSetDevice(r));
    Reader<<<1, 32>>>(t, cur, quiet, r, bad[r]);
  }
  CK(cudaSetDevice(0));
  Writer<<<1, 32>>>(t, cur, quiet);
  sync_all(R);
  long wrong = 0;
  for (int r = 1; r < R; ++r) wrong += get(r, bad[r], 1)[0];
  return finish(wrong, R);
}
