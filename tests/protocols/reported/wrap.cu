// One-shot exchange whose 32-bit epoch wraps in the middle of the run (it began at 0xfffffffd).
// EXPECT 1 race: flag < epoch, unsigned: no wait after the wrap
// EXPECT 2 deadlock: flag <= epoch - 1, unsigned, at epoch 0
#include "common.h"
constexpr int R = 2, N = 256, T = 64, CALLS = 6;
__global__ void Swap(int* mine, int* theirs, unsigned* flag, unsigned* tflag, unsigned epoch,
                     int base, int* out) {
  for (int i = threadIdx.x; i < N; i += T) theirs[(epoch & 1) * N + i] = base + epoch + i;
  __syncthreads();
  if (threadIdx.x == 0) {
    st_release(tflag, epoch);
#if BUG == 1
    while (ld_acquire(flag) < epoch) {
    }
#elif BUG == 2
    while (ld_acquire(flag) <= epoch - 1) {
    }
#else
    while ((int)(ld_acquire(flag) - epoch) < 0) {
    }
#endif
  }
  __syncthreads();
  for (int i = threadIdx.x; i < N; i += T) out[i] = mine[(epoch & 1) * N + i];
}
int main() {
  peers(R);
  int *box[R], *out[R][CALLS];
  unsigned* flag[R];
  const unsigned first = 0xfffffffdu;
  for (int r = 0; r < R; ++r) {
    box[r] = alloc<int>(r, 2 * N);
    for (auto& o : out[r]) o = alloc<int>(r, N);
    flag[r] = alloc<unsigned>(r, 1);
    put(r, flag[r], std::vector<unsigned>{first - 1});
  }
  sync_all(R);
  for (int c = 0; c < CALLS; ++c)
    for (int r = 0; r < R; ++r) {
      CK(cudaSetDevice(r));
      Swap<<<1, T>>>(box[r], box[1 - r], flag[r], flag[1 - r], first + c, 1000 * r, out[r][c]);
    }
  sync_all(R);
  long wrong = 0;
  for (int c = 0; c < CALLS; ++c)
    for (int r = 0; r < R; ++r) {
      auto v = get(r, out[r][c], N);
      for (int i = 0; i < N; ++i) wrong += v[i] != (int)(1000 * (1 - r) + first + c + i);
    }
  return finish(wrong, R);
}
