// Shift by one: every rank puts a row to its neighbour.
// EXPECT 1 out_of_bounds: one row too far (off by one in the number of rows)
// EXPECT 2 out_of_bounds: one element before the buffer
// EXPECT 3 out_of_bounds: vector store of 16 bytes at the last 4 bytes' place (aligned, but the size is no multiple of 16)
// EXPECT 4 value: cudaMemcpyPeerAsync one row too long: the call returns an error
#include "common.h"
constexpr int R = 4, ROWS = 4, N = 64, T = 64;
__global__ void Shift(int* to, unsigned* flag, unsigned* myFlag, const int* box, int* out,
                      int rank) {
  const int rows = BUG == 1 ? ROWS + 1 : ROWS;
  for (int k = 0; k < rows; ++k) to[k * N + threadIdx.x] = rank + k * N + threadIdx.x;
  if (BUG == 2 && threadIdx.x == 0) to[-1] = 0;
  if (BUG == 3 && threadIdx.x == 0) {
    int4 v = {rank + ROWS * N, 0, 0, 0};
    *(int4*)(to + ROWS * N) = v;
  } else if (threadIdx.x == 0)
    to[ROWS * N] = rank + ROWS * N;
  __syncthreads();
  if (threadIdx.x == 0) {
    st_release(flag, 1);
    wait_ge(myFlag, 1);
  }
  __syncthreads();
  for (int i = threadIdx.x; i <= ROWS * N; i += T) out[i] = box[i];
}
int main() {
  peers(R);
  int *box[R], *out[R];
  unsigned* flag[R];
  for (int r = 0; r < R; ++r) {
    box[r] = alloc<int>(r, ROWS * N + 1);
    out[r] = alloc<int>(r, ROWS * N + 1);
    flag[r] = alloc<unsigned>(r, 1);
  }
  sync_all(R);
  for (int r = 0; r < R; ++r) {
    CK(cudaSetDevice(r));
    const int n = (r + 1) % R;
    Shift<<<1, T>>>(box[n], flag[n], flag[r], box[r], out[r], r);
  }
  sync_all(R);
  if (BUG == 4) {
    cudaError_t e = cudaMemcpyPeerAsync(box[1], 1, box[0], 0, (ROWS * N + 1) * 4 + N * 4, 0);
    CK(e);
  }
  long wrong = 0;
  for (int r = 0; r < R; ++r) {
    auto v = get(r, out[r], ROWS * N + 1);
    for (int i = 0; i <= ROWS * N; ++i) wrong += v[i] != (r + R - 1) % R + i;
  }
  return finish(wrong, R);
}
