// The halves of a warp serve different devices, each with barriers of its own half, and meet at the end.
// EXPECT 1 warp_mask|hang: the lower half's barrier names the whole warp while the upper half uses its own
// EXPECT 2 race: no barrier before the flag
// EXPECT 3 warp_mask|hang: the vote of the lower half names one lane of the other
// EXPECT 4 none: the halves exit at different times
#include "common.h"

static const int D = 3, N = 16, ROUNDS = 3;

static __global__ void serve(unsigned* a, unsigned* b, unsigned* flag_a, unsigned* flag_b) {
  const unsigned t = threadIdx.x % N, upper = threadIdx.x / N;
  const unsigned mask = upper ? 0xffff0000u : 0xffffu;
  unsigned* to = upper ? b : a;
  unsigned* flag = upper ? flag_b : flag_a;
  if (upper) {
    for (int r = 0; r < ROUNDS; ++r) {
      to[r * N + t] = r * 100 + t;
      if (BUG != 2) __syncwarp(mask);
      if (t == 0) st_release(flag, r + 1);
    }
  } else {
    for (int r = 0; r < ROUNDS; ++r) {
      to[r * N + t] = r * 100 + t;
      if (BUG == 1)
        __syncwarp();
      else if (BUG != 2)
        __syncwarp(mask);
      if (BUG == 3 && __any_sync(0x1ffffu, t > 40)) return;
      if (t == 0) st_release(flag, r + 1);
    }
  }
  if (BUG != 4 && BUG != 1) __syncwarp();
}

static __global__ void receive(const unsigned* in, const unsigned* flag, unsigned* bad) {
  for (int r = 0; r < ROUNDS; ++r) {
    wait_ge(flag, r + 1);
    if (in[r * N + threadIdx.x] != r * 100 + threadIdx.x) atomicAdd(bad, 1);
  }
}

int main() {
  peers(D);
  unsigned *in[D], *flag[D], *bad[D];
  for (int d = 0; d < D; ++d)
    in[d] = alloc<unsigned>(d, N * ROUNDS), flag[d] = alloc<unsigned>(d, 1),
    bad[d] = alloc<unsigned>(d, 1);
  sync_all(D);
  for (int d = 1; d < D; ++d) {
    CK(cudaSetDevice(d));
    receive<<<1, N>>>(in[d], flag[d], bad[d]);
  }
  CK(cudaSetDevice(0));
  serve<<<1, 2 * N>>>(in[1], in[2], flag[1], flag[2]);
  sync_all(D);
  return finish(get(1, bad[1], 1)[0] + get(2, bad[2], 1)[0], D);
}
