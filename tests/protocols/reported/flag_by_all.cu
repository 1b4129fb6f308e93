// Every thread of every block stores the flag, not one for all: hundreds of stores of one line are on their way at once. Whoever
// sees one of them has what was written before it.
// EXPECT 0 none: the threads of a block store its flag, each with a release behind the barrier
// EXPECT 1 none: all blocks store one flag with a release; the data is of the kernel before
// EXPECT 2 race: as 0, relaxed
// EXPECT 3 race: as 0, but without the barrier
// EXPECT 4 race: as 1, and the reader only looks, without an acquire
#include "common.h"
constexpr int BLOCKS = 8, THREADS = 128, MANY = 300, CALLS = 3;
__global__ void Fill(unsigned* data, unsigned call) {
  data[blockIdx.x * THREADS + threadIdx.x] = call * 1000 + blockIdx.x + threadIdx.x;
}
__global__ void Push(unsigned* data, unsigned* flags, unsigned call) {
  data[blockIdx.x * THREADS + threadIdx.x] = call * 1000 + blockIdx.x + threadIdx.x;
#if BUG != 3
  __syncthreads();
#endif
#if BUG == 2
  st_relaxed(flags + blockIdx.x, call);
#else
  st_release(flags + blockIdx.x, call);
#endif
}
__global__ void Say(unsigned* flags, unsigned call) {
  for (int i = 0; i < BLOCKS; ++i) st_release(flags + i, call);
}
__global__ void Take(const unsigned* data, const unsigned* flags, unsigned* out, unsigned call) {
  if (threadIdx.x == 0) {
#if BUG == 4
    while (ld_relaxed(flags + blockIdx.x) < call) {
    }
#else
    while (ld_acquire(flags + blockIdx.x) < call) {
    }
#endif
  }
  __syncthreads();
  const int i = blockIdx.x * THREADS + threadIdx.x;
  out[i] = data[i];
}
int main() {
  peers(2);
  unsigned *data = alloc<unsigned>(1, 2 * BLOCKS * THREADS), *flags = alloc<unsigned>(1, BLOCKS);
  unsigned* out = alloc<unsigned>(1, BLOCKS * THREADS);
  sync_all(2);
  long wrong = 0;
  for (unsigned call = 1; call <= CALLS; ++call) {
    unsigned* half = data + call % 2 * BLOCKS * THREADS;
    CK(cudaSetDevice(1));
    Take<<<BLOCKS, THREADS>>>(half, flags, out, call);
    CK(cudaSetDevice(0));
#if BUG == 1 || BUG == 4
    Fill<<<BLOCKS, THREADS>>>(half, call);
    Say<<<MANY, 1>>>(flags, call);
#else
    Push<<<BLOCKS, THREADS>>>(half, flags, call);
#endif
    sync_all(2);
    const auto got = get(1, out, BLOCKS * THREADS);
    for (int i = 0; i < BLOCKS * THREADS; ++i)
      wrong += got[i] != call * 1000 + i / THREADS + i % THREADS;
  }
  return finish(wrong, 2);
}
