// Two cooperative grids exchange: all blocks put, grid.sync(), one thread tells the peer.
// EXPECT 1 race: flag relaxed behind grid.sync()
// EXPECT 2 race: no grid.sync() before the flag
// EXPECT 3 race: all threads fence (system), then grid.sync(), then a relaxed flag
// EXPECT 4 race: no grid.sync() behind the wait
#include <cooperative_groups.h>
#include "common.h"
namespace cg = cooperative_groups;
constexpr int R = 2, B = 6, T = 128, W = 200;
__global__ void Swap(int* mine, int* theirs, unsigned* myFlag, unsigned* theirFlag, int base,
                     int* out) {
  auto grid = cg::this_grid();
  for (int i = threadIdx.x; i < W; i += T) theirs[blockIdx.x * W + i] = base + blockIdx.x * W + i;
#if BUG == 3
  __threadfence_system();
#endif
#if BUG != 2
  grid.sync();
#endif
  if (grid.thread_rank() == 0) {
#if BUG == 1 || BUG == 3
    st_relaxed(theirFlag, 1);
#else
    st_release(theirFlag, 1);
#endif
    wait_ge(myFlag, 1);
  }
#if BUG != 4
  grid.sync();
#endif
  const int b = (blockIdx.x + 1) % B;
  for (int i = threadIdx.x; i < W; i += T) out[b * W + i] = mine[b * W + i];
}
int main() {
  peers(R);
  int *buf[R], *out[R];
  unsigned* flag[R];
  for (int r = 0; r < R; ++r) {
    buf[r] = alloc<int>(r, B * W);
    out[r] = alloc<int>(r, B * W);
    flag[r] = alloc<unsigned>(r, 1);
  }
  sync_all(R);
  for (int r = 0; r < R; ++r) {
    CK(cudaSetDevice(r));
    int base = 10000 * (r + 1);
    void* a[] = {&buf[r], &buf[1 - r], &flag[r], &flag[1 - r], &base, &out[r]};
    CK(cudaLaunchCooperativeKernel((void*)Swap, dim3(B), dim3(T), a, 0, nullptr));
  }
  sync_all(R);
  long wrong = 0;
  for (int r = 0; r < R; ++r) {
    auto v = get(r, out[r], B * W);
    for (int i = 0; i < B * W; ++i) wrong += v[i] != 10000 * (2 - r) + i;
  }
  return finish(wrong, R);
}
