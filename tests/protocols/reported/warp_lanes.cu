// A warp writes 32 words of one line to the peer, one per lane; a thread there waits for the word of lane 0 and then reads
// the one of lane 31. Lanes are threads: the word of one says nothing of another's, even if one instruction stored both.
// EXPECT 1 value: one instruction stores all words relaxed, the reader loads two of them, one after the other
// EXPECT 2 value: lane 31 stores first, then the warp syncs and lane 0 stores, relaxed
// EXPECT 3 value: the same, and the reader acquires what nobody has released
// EXPECT 4 none: as 2, with fences in lane 0 and behind the reader's poll
#include "common.h"
constexpr unsigned ROUNDS = 40;
__global__ void Send(unsigned* line, const unsigned* answered) {
  const unsigned lane = threadIdx.x;
  for (unsigned k = 1; k <= ROUNDS; ++k) {
#if BUG == 1
    st_relaxed(line + lane, k);
#else
    if (lane != 0) st_relaxed(line + lane, k);
    __syncwarp();
    if (lane == 0) {
      if (BUG == 4) __threadfence_system();
      BUG == 0 ? st_release(line, k) : st_relaxed(line, k);
    }
#endif
    if (lane == 0) wait_ge(answered, k);
    __syncwarp();
  }
}
__global__ void Receive(const unsigned* line, unsigned* answered, unsigned* old) {
  unsigned count = 0;
  for (unsigned k = 1; k <= ROUNDS; ++k) {
    while ((BUG == 0 || BUG == 3 ? ld_acquire(line) : ld_relaxed(line)) != k) {
    }
    if (BUG == 4) __threadfence_system();
    count += ld_relaxed(line + 31) != k;
    st_release(answered, k);
  }
  *old = count;
}
int main() {
  peers(2);
  unsigned *line = alloc<unsigned>(1, 32), *old = alloc<unsigned>(1, 1);
  unsigned* answered = alloc<unsigned>(0, 1);
  sync_all(2);
  CK(cudaSetDevice(1));
  Receive<<<1, 1>>>(line, answered, old);
  CK(cudaSetDevice(0));
  Send<<<1, 32>>>(line, answered);
  sync_all(2);
  return finish(get(1, old, 1)[0], 2);
}
