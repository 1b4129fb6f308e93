// Each block fills a slot of its device, raises a flag on the peer, and loads the peer's slot by a
// bulk copy. Slots alternate: the flag of epoch e tells that the peer has read those of epoch e - 2.
// EXPECT 1 proxy: no fence.proxy.async between the ordinary stores and the bulk copy reading them
// EXPECT 2 race: the flag is a relaxed store with no fence, the slot is not released
// EXPECT 3 race: one slot only, it is overwritten while the peer's copy of the epoch may read it
// EXPECT 4 scope|race: the flag is released at .gpu scope, its observer is on another device
// EXPECT 5 none: no barrier at the end of the loop; the next barrier orders reads before the copy
#include "common.h"

constexpr int kN = 64, kBlocks = 2, kEpochs = 5, kDev = 2;

DEV unsigned s32(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
DEV void wait(const void* bar, unsigned parity) {
  asm volatile(
      "{\n.reg .pred p;\nW_%=: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
      "@!p bra W_%=;\n}" ::"r"(s32(bar)),
      "r"(parity)
      : "memory");
}
DEV void load(const void* bar, const unsigned* dst, const unsigned* src) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(s32(bar)), "r"(4 * kN)
               : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(s32(dst)),
      "l"(src), "r"(4 * kN), "r"(s32(bar))
      : "memory");
}
DEV void raise(unsigned* flag, unsigned v) {
  if (BUG == 2)
    st_relaxed(flag, v);
  else if (BUG == 4)
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(v) : "memory");
  else
    st_release(flag, v);
}

__global__ void work(int dev, unsigned* mine, const unsigned* theirs, unsigned* flag_mine,
                     unsigned* flag_theirs, unsigned* out) {
  __shared__ alignas(8) unsigned long long bar;
  __shared__ alignas(16) unsigned tile[kN];
  const unsigned t = threadIdx.x, b = blockIdx.x;
  if (t == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(s32(&bar)) : "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
  }
  __syncthreads();
  for (unsigned e = 0; e < kEpochs; ++e) {
    const unsigned slot = ((BUG == 3 ? 0 : e & 1) * kBlocks + b) * kN;
    mine[slot + t] = 1000 * dev + 100 * e + 10 * b + t;
    __syncthreads();
    if (t == 0) {
      raise(flag_theirs + b, e + 1);
      wait_ge(flag_mine + b, e + 1);
      if (BUG != 1) asm volatile("fence.proxy.async;" ::: "memory");
      load(&bar, tile, theirs + slot);
    }
    wait(&bar, e & 1);
    out[(e * kBlocks + b) * kN + t] = tile[(t + 5) % kN];
    if (BUG != 5) {
      asm volatile("fence.proxy.async;" ::: "memory");
      __syncthreads();
    }
  }
}

int main() {
  peers(kDev);
  unsigned *slots[kDev], *flags[kDev], *out[kDev];
  for (int d = 0; d < kDev; ++d) {
    slots[d] = alloc<unsigned>(d, 2 * kBlocks * kN);
    flags[d] = alloc<unsigned>(d, kBlocks);
    out[d] = alloc<unsigned>(d, kEpochs * kBlocks * kN);
  }
  sync_all(kDev);
  for (int d = 0; d < kDev; ++d) {
    CK(cudaSetDevice(d));
    work<<<kBlocks, kN>>>(d, slots[d], slots[1 - d], flags[d], flags[1 - d], out[d]);
  }
  sync_all(kDev);
  long wrong = 0;
  for (int d = 0; d < kDev; ++d) {
    const auto r = get(d, out[d], kEpochs * kBlocks * kN);
    for (int i = 0; i < kEpochs * kBlocks * kN; ++i) {
      const int e = i / (kBlocks * kN), b = i / kN % kBlocks, t = (i % kN + 5) % kN;
      wrong += r[i] != static_cast<unsigned>(1000 * (1 - d) + 100 * e + 10 * b + t);
    }
  }
  return finish(wrong, kDev);
}
