// Two warps compute tiles into a ring of two stages; a third warp stores them to the peer device by
// bulk copies, frees a stage when its source has been read, and raises a flag after the last one.
// EXPECT 1 proxy: no fence.proxy.async between the stores to a stage and the copy reading it
// EXPECT 2 race: wait_group.read 1 leaves the newest copy pending, but that stage is freed
// EXPECT 3 race: the flag follows wait_group.read, the destination may not be written yet
// EXPECT 4 race: a stage is freed with no wait at all for the copy reading it
// EXPECT 5 race: lane 0 arrives for its warp (count 2) with no __syncwarp after the lanes' stores
// EXPECT 6 none: the storing thread waits for whole completion before it frees a stage
#include "common.h"

constexpr int kN = 64, kTiles = 6, kStages = 2, kDev = 2;

DEV unsigned s32(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
DEV void init(const void* bar, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(s32(bar)), "r"(count) : "memory");
}
DEV void arrive(const void* bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(s32(bar)) : "memory");
}
DEV void wait(const void* bar, unsigned parity) {
  asm volatile(
      "{\n.reg .pred p;\nW_%=: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
      "@!p bra W_%=;\n}" ::"r"(s32(bar)),
      "r"(parity)
      : "memory");
}
DEV void store(unsigned* dst, const unsigned* src) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(dst),
               "r"(s32(src)), "r"(4 * kN)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

__global__ void work(int dev, const unsigned* mine, unsigned* theirs, const unsigned* flag_mine,
                     unsigned* flag_theirs, unsigned* out) {
  __shared__ alignas(8) unsigned long long full[kStages], empty[kStages];
  __shared__ alignas(16) unsigned tile[kStages][kN];
  const unsigned t = threadIdx.x, lane = t % 32;
  for (int s = 0; t == 0 && s < kStages; ++s) {
    init(&full[s], BUG == 5 ? 2 : 64);
    init(&empty[s], 1);
  }
  __syncthreads();
  if (t < 64) {
    for (int i = 0; i < kTiles; ++i) {
      const int s = i % kStages;
      if (i >= kStages) wait(&empty[s], (i / kStages - 1) & 1);
      tile[s][t] = 1000 * dev + 100 * i + t;
      if (BUG != 1) asm volatile("fence.proxy.async;" ::: "memory");
      if (BUG != 5 || lane == 0) arrive(&full[s]);
    }
  } else if (lane == 0) {
    for (int i = 0; i < kTiles; ++i) {
      const int s = i % kStages;
      wait(&full[s], i / kStages & 1);
      store(theirs + i * kN, tile[s]);
      if (BUG == 6)
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
      else if (BUG == 2)
        asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
      else if (BUG != 4)
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
      arrive(&empty[s]);
    }
    if (BUG != 3) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    st_release(flag_theirs, 1);
  }
  wait_ge(flag_mine, 1);
  for (int i = t; i < kTiles * kN; i += blockDim.x) out[i] = mine[i];
}

int main() {
  peers(kDev);
  unsigned *slots[kDev], *flags[kDev], *out[kDev];
  for (int d = 0; d < kDev; ++d) {
    slots[d] = alloc<unsigned>(d, kTiles * kN);
    flags[d] = alloc<unsigned>(d, 1);
    out[d] = alloc<unsigned>(d, kTiles * kN);
  }
  sync_all(kDev);
  for (int d = 0; d < kDev; ++d) {
    CK(cudaSetDevice(d));
    work<<<1, 96>>>(d, slots[d], slots[1 - d], flags[d], flags[1 - d], out[d]);
  }
  sync_all(kDev);
  long wrong = 0;
  for (int d = 0; d < kDev; ++d) {
    const auto r = get(d, out[d], kTiles * kN);
    for (int i = 0; i < kTiles * kN; ++i)
      wrong += r[i] != static_cast<unsigned>(1000 * (1 - d) + 100 * (i / kN) + i % kN);
  }
  return finish(wrong, kDev);
}
