// Old-style protocol: everything is volatile; fences make it right.
// EXPECT 1 value: volatile data, volatile flag, no fence at the writer
// EXPECT 2 value: volatile data, volatile flag, no fence at the reader
// EXPECT 3 race: only the flag is volatile, no fences at all
#include "common.h"
constexpr int R = 4, N = 256, T = 64, K = 5;
struct Ptrs {
  int* box[R];
  unsigned* flag[R];
};
__global__ void Rounds(Ptrs p, int rank, int* out) {
  const int next = (rank + 1) % R;
  for (unsigned k = 1; k <= K; ++k) {
    for (int i = threadIdx.x; i < N; i += T) {
#if BUG == 3
      p.box[next][(k & 1) * N + i] = rank * 1000 + k + i;
#else
      ((volatile int*)p.box[next])[(k & 1) * N + i] = rank * 1000 + k + i;
#endif
    }
    // flag per thread: no block barrier at all, thread t of the next rank reads what thread t wrote
#if BUG != 1 && BUG != 3
    __threadfence_system();
#endif
    ((volatile unsigned*)p.flag[next])[threadIdx.x] = k;
    while (((volatile unsigned*)p.flag[rank])[threadIdx.x] < k) {
    }
#if BUG != 2 && BUG != 3
    __threadfence_system();
#endif
    for (int i = threadIdx.x; i < N; i += T) {
#if BUG == 3
      out[(k - 1) * N + i] = p.box[rank][(k & 1) * N + i];
#else
      out[(k - 1) * N + i] = ((volatile int*)p.box[rank])[(k & 1) * N + i];
#endif
    }
    // around the ring, so that nobody is two ahead
    ((volatile unsigned*)p.flag[(rank + R - 1) % R])[T + threadIdx.x] = k;
    while (((volatile unsigned*)p.flag[rank])[T + threadIdx.x] < k) {
    }
#if BUG != 3
    __threadfence_system();
#endif
  }
}
int main() {
  peers(R);
  Ptrs p;
  int* out[R];
  for (int r = 0; r < R; ++r) {
    p.box[r] = alloc<int>(r, 2 * N);
    p.flag[r] = alloc<unsigned>(r, 2 * T);
    out[r] = alloc<int>(r, K * N);
  }
  sync_all(R);
  for (int r = 0; r < R; ++r) {
    CK(cudaSetDevice(r));
    Rounds<<<1, T>>>(p, r, out[r]);
  }
  sync_all(R);
  long wrong = 0;
  for (int r = 0; r < R; ++r) {
    auto v = get(r, out[r], K * N);
    for (int i = 0; i < K * N; ++i) wrong += v[i] != (r + R - 1) % R * 1000 + i / N + 1 + i % N;
  }
  return finish(wrong, R);
}
