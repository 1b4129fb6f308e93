// Each device fills a buffer and raises a flag on the peer, which streams the buffer tile by tile
// through two stages of shared memory by cp.async, one group ahead, and adds words of all threads.
// EXPECT 1 race: cp.async.wait_group 2 leaves the tile that is read now pending
// EXPECT 2 race: no barrier after the wait, which covers the copies of the waiting thread only
// EXPECT 3 race: the copies in the loop are not committed, wait_group 1 leaves the first tile pending
// EXPECT 4 race: no barrier after the reads, the next copies overwrite a stage still being read
// EXPECT 5 race: thread 0 alone observes the flag and no barrier follows, the others copy unordered
// EXPECT 6 none: all groups are waited for, including the one ahead
#include "common.h"

constexpr int kThreads = 64, kWords = 4 * kThreads, kTiles = 5, kDev = 2;

DEV void fetch(unsigned* dst, const unsigned* src) {
  const unsigned d = static_cast<unsigned>(__cvta_generic_to_shared(dst));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(d), "l"(src) : "memory");
}
DEV void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
DEV void wait_group() {
  if (BUG == 1)
    asm volatile("cp.async.wait_group 2;" ::: "memory");
  else if (BUG == 6)
    asm volatile("cp.async.wait_all;" ::: "memory");
  else
    asm volatile("cp.async.wait_group 1;" ::: "memory");
}

__global__ void work(int dev, unsigned* mine, const unsigned* theirs, const unsigned* flag_mine,
                     unsigned* flag_theirs, unsigned* out) {
  __shared__ alignas(16) unsigned stage[2][kWords];
  const unsigned t = threadIdx.x;
  for (unsigned i = t; i < kTiles * kWords; i += kThreads) mine[i] = 10000 * dev + 3 * i;
  __syncthreads();
  if (t == 0) st_release(flag_theirs, 1);
  if (t == 0 || BUG != 5) wait_ge(flag_mine, 1);
  fetch(&stage[0][4 * t], theirs + 4 * t);
  commit();
  for (int i = 0; i < kTiles; ++i) {
    if (i + 1 < kTiles) fetch(&stage[(i + 1) & 1][4 * t], theirs + (i + 1) * kWords + 4 * t);
    if (BUG != 3) commit();
    wait_group();
    if (BUG != 2) __syncthreads();
    const unsigned* s = stage[i & 1];
    out[i * kThreads + t] = s[t] + s[(t + 99) % kWords];
    if (BUG != 4) __syncthreads();
  }
}

int main() {
  peers(kDev);
  unsigned *buffer[kDev], *flags[kDev], *out[kDev];
  for (int d = 0; d < kDev; ++d) {
    buffer[d] = alloc<unsigned>(d, kTiles * kWords);
    flags[d] = alloc<unsigned>(d, 1);
    out[d] = alloc<unsigned>(d, kTiles * kThreads);
  }
  sync_all(kDev);
  for (int d = 0; d < kDev; ++d) {
    CK(cudaSetDevice(d));
    work<<<1, kThreads>>>(d, buffer[d], buffer[1 - d], flags[d], flags[1 - d], out[d]);
  }
  sync_all(kDev);
  long wrong = 0;
  for (int d = 0; d < kDev; ++d) {
    const auto r = get(d, out[d], kTiles * kThreads);
    for (int i = 0; i < kTiles * kThreads; ++i) {
      const int t = i % kThreads, base = i / kThreads * kWords;
      wrong += r[i] != 20000u * (1 - d) + 3 * (2 * base + t + (t + 99) % kWords);
    }
  }
  return finish(wrong, kDev);
}
