// Device 1 puts a parameter and raises a flag on device 0; WARPS warps poll it; the flag is reset for the next round by block 0 (after a count of all pollers).
// EXPECT 1 race: block 0 resets the flag without waiting for the other pollers (weak store)
#include "common.h"
#ifndef BLOCKS
#define BLOCKS 6
#endif
constexpr int B = BLOCKS, T = 1024, K = 3;
__global__ void Send(unsigned* flag, unsigned* ack, int* data) {
  for (int k = 1; k <= K; ++k) {
    data[0] = k;
    st_release(flag, 1);
    while (ld_acquire(ack) < k) {
    }
  }
}
__global__ void Poll(unsigned* flag, unsigned* ack, unsigned* seen, const int* data, int* out) {
  for (int k = 1; k <= K; ++k) {
    while (ld_acquire(flag) != 1) {
    }
    out[(k - 1) * B * T + blockIdx.x * T + threadIdx.x] = data[0];
    __syncthreads();
    if (threadIdx.x == 0) {
      asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(seen) : "memory");
      if (blockIdx.x == 0) {
#if BUG == 1
        asm volatile("st.global.u32 [%0], 0;" ::"l"(flag) : "memory");
        while (ld_acquire(seen) < k * B) {
        }
#else
        while (ld_acquire(seen) < k * B) {
        }
        asm volatile("st.global.u32 [%0], 0;" ::"l"(flag) : "memory");
#endif
        st_release(ack, k);
      }
      while (ld_acquire(ack) < k) {
      }
    }
    __syncthreads();
  }
}
int main() {
  peers(2);
  unsigned *flag = alloc<unsigned>(0, 1), *ack = alloc<unsigned>(1, 1),
           *seen = alloc<unsigned>(0, 1);
  int *data = alloc<int>(0, 1), *out = alloc<int>(0, K * B * T);
  sync_all(2);
  CK(cudaSetDevice(0));
  Poll<<<B, T>>>(flag, ack, seen, data, out);
  CK(cudaSetDevice(1));
  Send<<<1, 1>>>(flag, ack, data);
  sync_all(2);
  long wrong = 0;
  auto v = get(0, out, K * B * T);
  for (int i = 0; i < K * B * T; ++i) wrong += v[i] != i / (B * T) + 1;
  return finish(wrong, 2);
}
