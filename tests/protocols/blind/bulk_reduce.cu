// The blocks of each device add their tiles into a sum on the peer by cp.reduce.async.bulk; the last
// block to complete raises a flag there, and the peer reads the sum. One sum per device and epoch.
// EXPECT 1 portability|scope|race: both devices add into one sum, but each addition is relaxed at .gpu scope
// EXPECT 2 race: wait_group.read does not wait for the additions to be performed
// EXPECT 3 proxy: no fence.proxy.async between the stores to the tile and the reduction reading it
// EXPECT 4 race: the block's addition is counted by a relaxed atomic with no fence around it
// EXPECT 5 none: the reduction is waited for twice and the fence is repeated before the count
#include "common.h"

constexpr int kN = 64, kBlocks = 3, kEpochs = 3, kDev = 2;

DEV unsigned s32(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
DEV void add(unsigned* dst, const unsigned* src) {
  asm volatile(
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;" ::"l"(dst),
      "r"(s32(src)), "r"(4 * kN)
      : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// sums[e][d] on device p are the sums that device d made for p.
__global__ void work(int dev, const unsigned* mine, unsigned* theirs, const unsigned* flag_mine,
                     unsigned* flag_theirs, unsigned* count, unsigned* out) {
  __shared__ alignas(16) unsigned tile[kN];
  const unsigned t = threadIdx.x, b = blockIdx.x;
  for (unsigned e = 0; e < kEpochs; ++e) {
    tile[t] = 100 * dev + 10 * e + b + t;
    if (BUG != 3) asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (t == 0) {
      if (BUG == 1) {  // a common sum on device 0
        add((dev == 0 ? const_cast<unsigned*>(mine) : theirs) + e * 2 * kN, tile);
      } else {
        add(theirs + (e * 2 + dev) * kN, tile);
      }
      if (BUG == 2)
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
      else
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
      if (BUG == 5) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
      if (BUG != 4) __threadfence_system();
      if (BUG == 5) __threadfence();
      const unsigned seen = atomicAdd_system(count + e, 1);
      if (BUG != 4) __threadfence_system();
      if (seen == kBlocks - 1) st_release(flag_theirs, e + 1);
    }
    __syncthreads();
    wait_ge(flag_mine, e + 1);
    if (BUG == 1) {
      wait_ge(flag_theirs, e + 1);
      out[(e * kBlocks + b) * kN + t] = (dev == 0 ? mine : theirs)[e * 2 * kN + t];
    } else {
      out[(e * kBlocks + b) * kN + t] = mine[(e * 2 + 1 - dev) * kN + t];
    }
  }
  if (t == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

int main() {
  peers(kDev);
  constexpr int total = kEpochs * kBlocks * kN;
  unsigned *sums[kDev], *flags[kDev], *counts[kDev], *out[kDev];
  for (int d = 0; d < kDev; ++d) {
    sums[d] = alloc<unsigned>(d, kEpochs * 2 * kN);
    flags[d] = alloc<unsigned>(d, 1);
    counts[d] = alloc<unsigned>(d, kEpochs);
    out[d] = alloc<unsigned>(d, total);
  }
  sync_all(kDev);
  for (int d = 0; d < kDev; ++d) {
    CK(cudaSetDevice(d));
    work<<<kBlocks, kN>>>(d, sums[d], sums[1 - d], flags[d], flags[1 - d], counts[d], out[d]);
  }
  sync_all(kDev);
  long wrong = 0;
  for (int d = 0; d < kDev; ++d) {
    const auto r = get(d, out[d], total);
    for (int i = 0; i < total; ++i) {
      const int e = i / (kBlocks * kN), t = i % kN;
      int want = kBlocks * (100 * (1 - d) + 10 * e + t) + 3;
      if (BUG == 1) want += kBlocks * (100 * d + 10 * e + t) + 3;
      wrong += r[i] != static_cast<unsigned>(want);
    }
  }
  return finish(wrong, kDev);
}
