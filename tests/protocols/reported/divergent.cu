// Block reduction in front of a send; the number of elements is not a multiple of the block.
// EXPECT 1 barrier: __syncthreads() inside "if (i < n)"
// EXPECT 2 barrier: __syncthreads() in a loop whose trip count differs between threads
// EXPECT 3 race|value: threads without an element return early, so shared memory of theirs is never zeroed but read
#include "common.h"
constexpr int R = 2, N = 200, T = 256;
__global__ void Send(const int* in, int* to, unsigned* flag, unsigned* myFlag, const int* box,
                     int* out) {
  __shared__ int s[T];
  const int i = threadIdx.x;
#if BUG == 3
  if (i >= N) return;
#endif
#if BUG == 1
  if (i < N) {
    s[i] = in[i];
    __syncthreads();
  } else {
    s[i] = 0;
    __syncthreads();
  }
#elif BUG == 2
  for (int j = i; j < N; j += 128) {
    s[i] = in[i];
    __syncthreads();
  }
  if (i >= N) s[i] = 0;
  __syncthreads();
#else
  s[i] = i < N ? in[i] : 0;
  __syncthreads();
#endif
  for (int w = T / 2; w > 0; w /= 2) {
    if (i < w) s[i] += s[i + w];
    __syncthreads();
  }
  if (i == 0) {
    *to = s[0];
    st_release(flag, 1);
    wait_ge(myFlag, 1);
    *out = *box;
  }
}
int main() {
  peers(R);
  int *in[R], *box[R], *out[R];
  unsigned* flag[R];
  for (int r = 0; r < R; ++r) {
    in[r] = alloc<int>(r, N);
    box[r] = alloc<int>(r, 1);
    out[r] = alloc<int>(r, 1);
    flag[r] = alloc<unsigned>(r, 1);
    std::vector<int> v(N);
    for (int i = 0; i < N; ++i) v[i] = i + r;
    put(r, in[r], v);
  }
  sync_all(R);
  for (int r = 0; r < R; ++r) {
    CK(cudaSetDevice(r));
    Send<<<1, T>>>(in[r], box[1 - r], flag[1 - r], flag[r], box[r], out[r]);
  }
  sync_all(R);
  long wrong = 0;
  for (int r = 0; r < R; ++r) wrong += get(r, out[r], 1)[0] != N * (N - 1) / 2 + N * (1 - r);
  return finish(wrong, R);
}
