// One-slot mailbox: sender sets the flag to 1, receiver takes the data and sets it to 0, the sender waits for 0.
// EXPECT 1 race: receiver resets the flag before it has read (all threads)
// EXPECT 2 deadlock|race|value: sender does not wait for 0
// EXPECT 3 race: receiver resets with a weak store, sender polls
// EXPECT 4 race: receiver resets with a relaxed store
#include "common.h"
constexpr int N = 256, T = 64, K = 8;
__global__ void Send(int* box, unsigned* flag) {
  for (int k = 0; k < K; ++k) {
#if BUG != 2
    if (threadIdx.x == 0)
      while (ld_acquire(flag) != 0) {
      }
#endif
    __syncthreads();
    for (int i = threadIdx.x; i < N; i += T) box[i] = k * N + i;
    __syncthreads();
    if (threadIdx.x == 0) st_release(flag, 1);
  }
}
__global__ void Receive(const int* box, unsigned* flag, int* out) {
  for (int k = 0; k < K; ++k) {
    if (threadIdx.x == 0)
      while (ld_acquire(flag) != 1) {
      }
    __syncthreads();
#if BUG == 1
    if (threadIdx.x == 0) st_release(flag, 0);
#endif
    for (int i = threadIdx.x; i < N; i += T) out[k * N + i] = box[i];
    __syncthreads();
    if (threadIdx.x == 0) {
#if BUG == 3
      __threadfence_system();
      asm volatile("st.global.u32 [%0], 0;" ::"l"(flag) : "memory");
#elif BUG == 4
      st_relaxed(flag, 0);
#elif BUG != 1
      st_release(flag, 0);
#endif
    }
  }
}
int main() {
  peers(2);
  int *box = alloc<int>(1, N), *out = alloc<int>(1, K * N);
  unsigned* flag = alloc<unsigned>(1, 1);
  sync_all(2);
  CK(cudaSetDevice(1));
  Receive<<<1, T>>>(box, flag, out);
  CK(cudaSetDevice(0));
  Send<<<1, T>>>(box, flag);
  sync_all(2);
  long wrong = 0;
  auto v = get(1, out, K * N);
  for (int i = 0; i < K * N; ++i) wrong += v[i] != i;
  return finish(wrong, 2);
}
