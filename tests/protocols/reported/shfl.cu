// Warp reduction and a broadcast of a slot number before a warp's put.
// EXPECT 1 none: argued, not a bug
// EXPECT 2 warp_mask: mask names half, source lane is outside of it
// EXPECT 3 warp_mask: lanes call with different masks
// EXPECT 4 warp_mask: __ballot_sync(~0) after part of the warp has taken another path (not exited)
#include "common.h"
constexpr int R = 2, W = 2, T = W * 32, N = T;
__global__ void Put(int* to, unsigned* place, unsigned* done, unsigned* myDone, const int* box,
                    int* out, int rank) {
  const int lane = threadIdx.x % 32;
  int v = rank * 1000 + threadIdx.x;
  unsigned at = 0;
  int sum = 0;
#if BUG == 1
  if (lane < 16) {
    if (lane == 0) at = atomicAdd_system(place, 32);
    at = __shfl_sync(~0u, at, 0);
  } else {
    __nanosleep(100);
    at = __shfl_sync(~0u, at, 0);
  }
#elif BUG == 2
  if (lane == 0) at = atomicAdd_system(place, 32);
  {
    unsigned got = 0;
    if (lane < 16)
      got = __shfl_sync(0x0000ffffu, at, 0);
    else
      got = __shfl_sync(0xffff0000u, at, 0);
    at = got;
  }
#elif BUG == 3
  if (lane == 0) at = atomicAdd_system(place, 32);
  at = __shfl_sync(lane < 8 ? 0x000000ffu : ~0u, at, 0);
#elif BUG == 4
  if (lane == 0) at = atomicAdd_system(place, 32);
  if (lane < 20) {
    at = __shfl_sync(0x000fffffu, at, 0);
    sum = __popc(__ballot_sync(~0u, v & 1));
  } else {
    at = 32;
    sum = 1;
  }
#else
  if (lane == 0) at = atomicAdd_system(place, 32);
  at = __shfl_sync(~0u, at, 0);
#endif
  sum += 0;
  to[(at + lane) % N] = v + (sum & 0);
  __syncthreads();
  if (threadIdx.x == 0) {
    st_release(done, 1);
    wait_ge(myDone, 1);
  }
  __syncthreads();
  out[threadIdx.x] = box[threadIdx.x];
}
int main() {
  peers(R);
  int *box[R], *out[R];
  unsigned *place[R], *done[R];
  for (int r = 0; r < R; ++r) {
    box[r] = alloc<int>(r, N);
    out[r] = alloc<int>(r, N);
    place[r] = alloc<unsigned>(r, 1);
    done[r] = alloc<unsigned>(r, 1);
  }
  sync_all(R);
  for (int r = 0; r < R; ++r) {
    CK(cudaSetDevice(r));
    Put<<<1, T>>>(box[1 - r], place[1 - r], done[1 - r], done[r], box[r], out[r], r);
  }
  sync_all(R);
  long wrong = 0;
  for (int r = 0; r < R; ++r) {
    auto v = get(r, out[r], N);
    long s = 0;
    for (int x : v) s += x;
    wrong += s != (1 - r) * 1000 * N + N * (N - 1) / 2;
  }
  return finish(wrong, R);
}
