// Each block stages a tile in shared memory, stores it to the peer by a bulk copy, waits for its
// completion and raises a flag there; the peer's block reads the tile from its own memory.
// EXPECT 1 race: wait_group.read tells that the source was read, not the destination written
// EXPECT 2 proxy: no fence.proxy.async between the stores to the stage and the copy reading it
// EXPECT 3 race: no commit_group, so that wait_group has nothing to wait for
// EXPECT 4 race: thread 32 waits, but bulk groups belong to the thread that issued them
// EXPECT 5 race: no barrier after the wait, the stage is overwritten while the copy may read it
// EXPECT 6 none: a wait_group.read before wait_group is redundant
#include "common.h"

constexpr int kN = 64, kBlocks = 2, kEpochs = 4, kDev = 2;

DEV unsigned s32(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
DEV void store(unsigned* dst, const unsigned* src) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(dst),
               "r"(s32(src)), "r"(4 * kN)
               : "memory");
  if (BUG != 3) asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
DEV void wait_written() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
DEV void wait_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }

__global__ void work(int dev, const unsigned* mine, unsigned* theirs, const unsigned* flag_mine,
                     unsigned* flag_theirs, unsigned* out) {
  __shared__ alignas(16) unsigned stage[kN];
  const unsigned t = threadIdx.x, b = blockIdx.x;
  for (unsigned e = 0; e < kEpochs; ++e) {
    const unsigned slot = (e * kBlocks + b) * kN;
    stage[t] = 1000 * dev + 100 * e + 10 * b + t;
    if (BUG != 2) asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (t == 0) {
      store(theirs + slot, stage);
      if (BUG == 1 || BUG == 6) wait_read();
      if (BUG != 1 && BUG != 4) wait_written();
    }
    if (BUG == 4) {
      if (t == 32) wait_written();
      __syncthreads();
    }
    if (t == 0) st_release(flag_theirs + b, e + 1);
    if (BUG != 5) __syncthreads();
    wait_ge(flag_mine + b, e + 1);
    out[slot + t] = mine[slot + (t + 5) % kN];
  }
  if (t == 0) wait_written();
}

int main() {
  peers(kDev);
  constexpr int total = kEpochs * kBlocks * kN;
  unsigned *slots[kDev], *flags[kDev], *out[kDev];
  for (int d = 0; d < kDev; ++d) {
    slots[d] = alloc<unsigned>(d, total);
    flags[d] = alloc<unsigned>(d, kBlocks);
    out[d] = alloc<unsigned>(d, total);
  }
  sync_all(kDev);
  for (int d = 0; d < kDev; ++d) {
    CK(cudaSetDevice(d));
    work<<<kBlocks, kN>>>(d, slots[d], slots[1 - d], flags[d], flags[1 - d], out[d]);
  }
  sync_all(kDev);
  long wrong = 0;
  for (int d = 0; d < kDev; ++d) {
    const auto r = get(d, out[d], total);
    for (int i = 0; i < total; ++i) {
      const int e = i / (kBlocks * kN), b = i / kN % kBlocks, t = (i % kN + 5) % kN;
      wrong += r[i] != static_cast<unsigned>(1000 * (1 - d) + 100 * e + 10 * b + t);
    }
  }
  return finish(wrong, kDev);
}
