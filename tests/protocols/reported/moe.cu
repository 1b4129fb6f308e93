// MoE dispatch: a warp per token gets a place at the expert's rank by atomicAdd_system, writes the row, at last says done.
// EXPECT 1 scope: places by atomicAdd() of device scope
// EXPECT 2 race: done counter without a fence
// EXPECT 3 race: receiver waits for places, not for rows
// EXPECT 4 race: done is told without __syncthreads()
#include "common.h"
constexpr int R = 4, TOK = 64, H = 32, T = 128, E = TOK;  // every expert gets TOK rows in all
struct Ptrs {
  int* rows[R];
  unsigned* place[R];
  unsigned* done[R];
};
__global__ void Dispatch(Ptrs p, int rank, const int* x, int* sums) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int t = warp; t < TOK; t += T / 32) {
    const int e = (t * 7 + rank) % R;
    unsigned at = 0;
#if BUG == 1
    if (lane == 0) at = atomicAdd(p.place[e], 1);
#else
    if (lane == 0) at = atomicAdd_system(p.place[e], 1);
#endif
    at = __shfl_sync(~0u, at, 0);
    p.rows[e][at * H + lane] = x[t * H + lane];
  }
#if BUG != 4
  __syncthreads();
#endif
  if (threadIdx.x < R) {
#if BUG == 2
    atomicAdd_system(p.done[threadIdx.x], 1);
#else
    red_release(p.done[threadIdx.x], 1);
#endif
  }
  if (threadIdx.x == 0) {
#if BUG == 3
    wait_ge(p.place[rank], E);
#else
    wait_ge(p.done[rank], R);
#endif
  }
  __syncthreads();
  const int n = *(volatile unsigned*)p.place[rank];
  int sum = 0;
  for (int i = threadIdx.x; i < n * H; i += T) sum += p.rows[rank][i];
  atomicAdd(sums, sum);
}
int main() {
  peers(R);
  Ptrs p;
  int *x[R], *s[R];
  std::vector<long> want(R, 0);
  for (int r = 0; r < R; ++r) {
    p.rows[r] = alloc<int>(r, E * H, -1);
    p.place[r] = alloc<unsigned>(r, 1);
    p.done[r] = alloc<unsigned>(r, 1);
    x[r] = alloc<int>(r, TOK * H);
    s[r] = alloc<int>(r, 1);
    std::vector<int> v(TOK * H);
    for (int i = 0; i < TOK * H; ++i) {
      v[i] = i * (r + 1) % 1000;
      want[((i / H) * 7 + r) % R] += v[i];
    }
    put(r, x[r], v);
  }
  sync_all(R);
  for (int r = 0; r < R; ++r) {
    CK(cudaSetDevice(r));
    Dispatch<<<1, T>>>(p, r, x[r], s[r]);
  }
  sync_all(R);
  long wrong = 0;
  for (int r = 0; r < R; ++r) wrong += get(r, s[r], 1)[0] != want[r];
  return finish(wrong, R);
}
