// A transposed tile in shared memory before it is put to the peer.
// EXPECT 1 out_of_bounds: dynamic shared memory too small by one row
// EXPECT 2 race: no __syncthreads() between filling and transposed reading
// EXPECT 3 race: no __syncthreads() before the tile is filled again
// EXPECT 4 out_of_bounds: index runs out of one static array into the next one
#include "common.h"
constexpr int D = 32, T = 256, TILES = 4;
__global__ void Transpose(const int* in, int* to, unsigned* flag) {
  extern __shared__ int tile[];
  __shared__ int guard[64];
  if (threadIdx.x < 64) guard[threadIdx.x] = threadIdx.x;
  __shared__ int extra[8];
  if (threadIdx.x < 8) extra[threadIdx.x] = 1;
  for (int t = 0; t < TILES; ++t) {
    for (int i = threadIdx.x; i < D * D; i += T) tile[i / D * (D + 1) + i % D] = in[t * D * D + i];
#if BUG != 2
    __syncthreads();
#endif
    for (int i = threadIdx.x; i < D * D; i += T) to[t * D * D + i] = tile[i % D * (D + 1) + i / D];
#if BUG != 3
    __syncthreads();
#endif
  }
#if BUG == 4
  if (threadIdx.x == 0)
    for (int i = 0; i < 9; ++i) {
      volatile int* e = extra;
      e[i] = 5;
    }
#endif
  __syncthreads();
  if (threadIdx.x == 0) st_release(flag, 1 + (guard[5] + extra[0]) * 0);
}
int main() {
  peers(2);
  int *in = alloc<int>(0, TILES * D * D), *box = alloc<int>(1, TILES * D * D);
  unsigned* flag = alloc<unsigned>(1, 1);
  std::vector<int> v(TILES * D * D);
  for (size_t i = 0; i < v.size(); ++i) v[i] = i;
  put(0, in, v);
  sync_all(2);
  CK(cudaSetDevice(0));
  Transpose<<<1, T, (D + 1) * (BUG == 1 ? D - 1 : D) * 4>>>(in, box, flag);
  sync_all(2);
  long wrong = 0;
  auto w = get(1, box, TILES * D * D);
  for (int i = 0; i < TILES * D * D; ++i) {
    const int t = i / (D * D), r = i % (D * D) / D, c = i % D;
    wrong += w[i] != t * D * D + c * D + r;
  }
  return finish(wrong, 2);
}
