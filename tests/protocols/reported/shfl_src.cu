// Segmented broadcast in a warp before a put: half warps have their own leader.
// EXPECT 1 warp_mask: the upper half reads its leader from lane 0, which its mask does not name
// EXPECT 2 warp_mask: lane outside of its own mask calls
#include "common.h"
constexpr int T = 32;
__global__ void Put(int* to, unsigned* flag) {
  const int lane = threadIdx.x;
  int v = lane < 16 ? 100 : 100;
  int got;
#if BUG == 1
  if (lane < 16)
    got = __shfl_sync(0x0000ffffu, v, 0);
  else
    got = __shfl_sync(0xffff0000u, v, 0);
#elif BUG == 2
  if (lane < 16)
    got = __shfl_sync(0x0000ff00u, v, 8);
  else
    got = __shfl_sync(0xffff0000u, v, 16);
#else
  if (lane < 16)
    got = __shfl_sync(0x0000ffffu, v, 0);
  else
    got = __shfl_sync(0xffff0000u, v, 16);
#endif
  to[lane] = got;
  __syncwarp();
  if (lane == 0) st_release(flag, 1);
}
__global__ void Take(const int* box, unsigned* flag, int* out) {
  if (threadIdx.x == 0) wait_ge(flag, 1);
  __syncwarp();
  out[threadIdx.x] = box[threadIdx.x];
}
int main() {
  peers(2);
  int *box = alloc<int>(1, T), *out = alloc<int>(1, T);
  unsigned* flag = alloc<unsigned>(1, 1);
  sync_all(2);
  CK(cudaSetDevice(1));
  Take<<<1, T>>>(box, flag, out);
  CK(cudaSetDevice(0));
  Put<<<1, T>>>(box, flag);
  sync_all(2);
  long wrong = 0;
  for (int x : get(1, out, T)) wrong += x != 100;
  return finish(wrong, 2);
}
