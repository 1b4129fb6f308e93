// A channel per warp: lanes store 16 bytes each to the peer, lane 0 signals for the warp, lane 0 of the peer's warp waits.
// EXPECT 1 race: no __syncwarp() before lane 0's release
// EXPECT 2 race: no __syncwarp() behind lane 0's acquire
// EXPECT 3 race: all lanes fence, then lane 0 stores relaxed behind __syncwarp() (fence of lane 0 is before the barrier)
// EXPECT 4 race: acquire by lane 0 passed on by __shfl_sync only
#include "common.h"
constexpr int R = 2, W = 4, T = W * 32, K = 3;
__global__ void Chan(int4* mine, int4* theirs, unsigned* flag, unsigned* tflag, const int4* in,
                     int4* out) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (unsigned k = 1; k <= K; ++k) {
    const int at = ((k & 1) * W + warp) * 64 + lane;
    int4 v = in[warp * 64 + lane], w = in[warp * 64 + 32 + lane];
    v.x += k;
    w.x += k;
    theirs[at] = v;
    theirs[at + 32] = w;
#if BUG == 3
    __threadfence_system();
    __syncwarp();
    if (lane == 0) st_relaxed(tflag + warp * 32, k);
#else
#if BUG != 1
    __syncwarp();
#endif
    if (lane == 0) st_release(tflag + warp * 32, k);
#endif
#if BUG == 4
    unsigned s = 0;
    do {
      if (lane == 0) s = ld_acquire(flag + warp * 32);
      s = __shfl_sync(~0u, s, 0);
    } while (s < k);
#else
    if (lane == 0) wait_ge(flag + warp * 32, k);
#if BUG != 2
    __syncwarp();
#endif
#endif
    const int to = ((k - 1) * W + warp) * 64, from = ((k & 1) * W + warp) * 64;
    out[to + lane] = mine[from + 63 - lane];
    out[to + 32 + lane] = mine[from + 31 - lane];  // other lanes' data
    __syncwarp();
  }
}
int main() {
  peers(R);
  const int N = W * 64;
  int4 *box[R], *in[R], *out[R];
  unsigned* flag[R];
  for (int r = 0; r < R; ++r) {
    box[r] = (int4*)alloc<int>(r, 2 * N * 4);
    in[r] = (int4*)alloc<int>(r, N * 4);
    out[r] = (int4*)alloc<int>(r, K * N * 4);
    flag[r] = alloc<unsigned>(r, W * 32);
    std::vector<int> v(N * 4);
    for (int i = 0; i < N * 4; ++i) v[i] = 10000 * r + i;
    put(r, (int*)in[r], v);
  }
  sync_all(R);
  for (int r = 0; r < R; ++r) {
    CK(cudaSetDevice(r));
    Chan<<<1, T>>>(box[r], box[1 - r], flag[r], flag[1 - r], in[r], out[r]);
  }
  sync_all(R);
  long wrong = 0;
  for (int r = 0; r < R; ++r) {
    auto v = get(r, (int*)out[r], K * N * 4);
    for (int k = 0; k < K; ++k)
      for (int i = 0; i < N; ++i) {
        const int j = i / 64 * 64 + 63 - i % 64;
        for (int c = 0; c < 4; ++c)
          wrong += v[(k * N + i) * 4 + c] != 10000 * (1 - r) + j * 4 + c + (c == 0 ? k + 1 : 0);
      }
  }
  return finish(wrong, R);
}
