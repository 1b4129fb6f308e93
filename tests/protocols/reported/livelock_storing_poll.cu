// One warp forwards a flag of the peer device into shared memory, in a loop until the other warp has had enough; that one
// waits for the forwarded value. If the flag never comes both go round for ever, and nothing that they store is new.
// EXPECT 1 hang: the flag never comes; what was read is stored in every round
// EXPECT 2 hang: the flag never comes; only what is not zero is stored
// EXPECT 3 hang: the flag comes, but the other warp waits for a value that nobody sends
#include "common.h"
__global__ void Forward(unsigned* flag, unsigned* out) {
  __shared__ volatile unsigned seen[32];
  __shared__ volatile unsigned enough;
  const unsigned lane = threadIdx.x % 32;
  if (threadIdx.x == 0) enough = 0;
  if (threadIdx.x < 32) seen[lane] = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    while (enough == 0) {
      const unsigned value = ld_acquire(flag);
      if (BUG != 2 || value != 0) seen[lane] = value;
    }
  } else {
    while (seen[lane] != (BUG == 3 ? 6 : 5)) {
    }
    __syncwarp();
    if (lane == 0) enough = 1;
    out[lane] = seen[lane];
  }
}
__global__ void Raise(unsigned* flag) { st_release(flag, 5); }
int main() {
  peers(2);
  unsigned *flag = alloc<unsigned>(1, 1), *out = alloc<unsigned>(0, 32);
  sync_all(2);
  CK(cudaSetDevice(0));
  Forward<<<1, 64>>>(flag, out);
  CK(cudaSetDevice(1));
  if (BUG == 0 || BUG == 3) Raise<<<1, 1>>>(flag);
  sync_all(2);
  long wrong = 0;
  for (const unsigned v : get(0, out, 32)) wrong += v != 5;
  return finish(wrong, 2);
}
