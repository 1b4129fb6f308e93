// Put with signal by a block (as NVSHMEM's put_signal_block): everybody stores, the last thread signals.
// EXPECT 1 race: thread 0 fences, thread T-1 signals (relaxed)
// EXPECT 2 race: fence behind the signal
// EXPECT 3 race: fence in front of the last store
// EXPECT 4 race: fence.acq_rel.cluster
#include "common.h"
constexpr int R = 4, N = 640, T = 160;
__global__ void PutSignal(int* to, unsigned* sig, unsigned* mysig, const int* box, int* out,
                          int rank) {
  for (int i = threadIdx.x; i < N - 1; i += T) to[i] = rank * N + i;
  __syncthreads();
#if BUG == 1
  if (threadIdx.x == 0) {
    to[N - 1] = rank * N + N - 1;
    __threadfence_system();
  }
  __syncthreads();
  if (threadIdx.x == T - 1) st_relaxed(sig, 1);
#else
  if (threadIdx.x == T - 1) {
#if BUG == 3
    __threadfence_system();
    to[N - 1] = rank * N + N - 1;
    st_relaxed(sig, 1);
#elif BUG == 2
    to[N - 1] = rank * N + N - 1;
    st_relaxed(sig, 1);
    __threadfence_system();
#elif BUG == 4
    to[N - 1] = rank * N + N - 1;
    asm volatile("fence.acq_rel.cluster;" ::: "memory");
    st_relaxed(sig, 1);
#else
    to[N - 1] = rank * N + N - 1;
    __threadfence_system();
    st_relaxed(sig, 1);
#endif
  }
#endif
  if (threadIdx.x == T - 1) wait_ge(mysig, 1);
  __syncthreads();
  for (int i = threadIdx.x; i < N; i += T) out[i] = box[i];
}
int main() {
  peers(R);
  int *box[R], *out[R];
  unsigned* sig[R];
  for (int r = 0; r < R; ++r) {
    box[r] = alloc<int>(r, N);
    out[r] = alloc<int>(r, N);
    sig[r] = alloc<unsigned>(r, 1);
  }
  sync_all(R);
  for (int r = 0; r < R; ++r) {
    CK(cudaSetDevice(r));
    const int n = (r + 1) % R;
    PutSignal<<<1, T>>>(box[n], sig[n], sig[r], box[r], out[r], r);
  }
  sync_all(R);
  long wrong = 0;
  for (int r = 0; r < R; ++r) {
    auto v = get(r, out[r], N);
    for (int i = 0; i < N; ++i) wrong += v[i] != (r + R - 1) % R * N + i;
  }
  return finish(wrong, R);
}
