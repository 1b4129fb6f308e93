// libcu++: cuda::atomic_ref flags, cuda::barrier in shared memory, cuda::memcpy_async, between two devices.
// EXPECT 0 proxy: cuda::memcpy_async makes a bulk copy of what ordinary stores wrote, with no fence.proxy.async between
// EXPECT 1 race: flag of thread_scope_device
// EXPECT 2 race: memory_order_relaxed store
// EXPECT 3 race: relaxed load, no fence
// EXPECT 4 race: cuda::barrier: arrive without waiting before the stage is read
#include <cuda/atomic>
#include <cuda/barrier>
#include "common.h"
constexpr int R = 2, N = 512, T = 128, K = 3;
#if BUG == 1
using Flag = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
#else
using Flag = cuda::atomic_ref<unsigned, cuda::thread_scope_system>;
#endif
__global__ void Swap(int* mine, int* theirs, unsigned* flag, unsigned* tflag, int base, int* out) {
  __shared__ alignas(16) int stage[N];
  using B = cuda::barrier<cuda::thread_scope_block>;
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ B bar;
  if (threadIdx.x == 0) init(&bar, T);
  __syncthreads();
  for (unsigned k = 1; k <= K; ++k) {
    for (int i = threadIdx.x; i < N; i += T) theirs[(k & 1) * N + i] = base + k * N + i;
    __syncthreads();
    if (threadIdx.x == 0) {
      Flag f(*tflag), m(*flag);
#if BUG == 2
      f.store(k, cuda::memory_order_relaxed);
#else
      f.store(k, cuda::memory_order_release);
#endif
#if BUG == 3
      while (m.load(cuda::memory_order_relaxed) < k) {
      }
#else
      while (m.load(cuda::memory_order_acquire) < k) {
      }
#endif
    }
    __syncthreads();
    for (int i = threadIdx.x * 4; i < N; i += T * 4)
      cuda::memcpy_async(stage + i, mine + (k & 1) * N + i, cuda::aligned_size_t<16>(16), bar);
#if BUG == 4
    auto token = bar.arrive();
    (void)token;
#else
    bar.arrive_and_wait();
#endif
    for (int i = threadIdx.x; i < N; i += T) out[(k - 1) * N + i] = stage[N - 1 - i];
#if BUG == 4
    bar.wait(std::move(token));
#endif
    __syncthreads();
  }
}
int main() {
  peers(R);
  int *box[R], *out[R];
  unsigned* flag[R];
  for (int r = 0; r < R; ++r) {
    box[r] = alloc<int>(r, 2 * N);
    out[r] = alloc<int>(r, K * N);
    flag[r] = alloc<unsigned>(r, 1);
  }
  sync_all(R);
  for (int r = 0; r < R; ++r) {
    CK(cudaSetDevice(r));
    Swap<<<1, T>>>(box[r], box[1 - r], flag[r], flag[1 - r], 100000 * r, out[r]);
  }
  sync_all(R);
  long wrong = 0;
  for (int r = 0; r < R; ++r) {
    auto v = get(r, out[r], K * N);
    for (int i = 0; i < K * N; ++i)
      wrong += v[i] != 100000 * (1 - r) + (i / N + 1) * N + N - 1 - i % N;
  }
  return finish(wrong, R);
}
