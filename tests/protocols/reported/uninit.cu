// All-to-all with padding: rows are sent, then every rank adds up what it has got.
// EXPECT 1 uninitialised: padding rows are added up, too
// EXPECT 2 uninitialised: flags were never set to 0
// EXPECT 3 uninitialised: the sum is kept in shared memory that nobody has set
#include "common.h"
constexpr int R = 4, ROWS = 8, H = 64, T = 64;
struct Ptrs {
  int* box[R];
  unsigned* flag[R];
};
__global__ void A2A(Ptrs p, int rank, int* out) {
  __shared__ int s[H];
  for (int r = 0; r < R; ++r) {
    const int n = (rank + r) % ROWS;
    for (int k = 0; k < n; ++k)
      p.box[r][(rank * ROWS + k) * H + threadIdx.x] = rank + k + threadIdx.x;
  }
  __syncthreads();
  if (threadIdx.x < R) {
    st_release(p.flag[threadIdx.x] + rank, 1);
    while (ld_acquire(p.flag[rank] + threadIdx.x) != 1) {
    }
  }
  __syncthreads();
#if BUG != 3
  s[threadIdx.x] = 0;
#endif
  for (int r = 0; r < R; ++r) {
    const int n = BUG == 1 ? ROWS : (rank + r) % ROWS;
    for (int k = 0; k < n; ++k) s[threadIdx.x] += p.box[rank][(r * ROWS + k) * H + threadIdx.x];
  }
  out[threadIdx.x] = s[threadIdx.x];
}
int main() {
  peers(R);
  Ptrs p;
  int* out[R];
  for (int r = 0; r < R; ++r) {
    p.box[r] = alloc<int>(r, R * ROWS * H, -1);
    p.flag[r] = alloc<unsigned>(r, R, BUG == 2 ? -1 : 0);
    out[r] = alloc<int>(r, H);
  }
  sync_all(R);
  for (int r = 0; r < R; ++r) {
    CK(cudaSetDevice(r));
    A2A<<<1, T>>>(p, r, out[r]);
  }
  sync_all(R);
  long wrong = 0;
  for (int r = 0; r < R; ++r) {
    auto v = get(r, out[r], H);
    for (int i = 0; i < H; ++i) {
      int w = 0;
      for (int q = 0; q < R; ++q)
        for (int k = 0; k < (q + r) % ROWS; ++k) w += q + k + i;
      wrong += v[i] != w;
    }
  }
  return finish(wrong, R);
}
