// A block streams tiles of the peer device into one shared buffer by two bulk copies per phase of an
// mbarrier (count 1 plus bytes); the parity of the phase tells when a tile is complete.
// EXPECT 1 race|mbarrier|hang: the parity is never flipped, every second wait returns at once
// EXPECT 2 mbarrier|hang|race: expect_tx counts 16 bytes less than the copies complete
// EXPECT 3 hang|mbarrier: expect_tx counts 16 bytes more than the copies complete
// EXPECT 4 race|mbarrier|hang: the arrive precedes expect_tx, a phase may end before its bytes
// EXPECT 5 race: only thread 0 waits for the phase, the others read the tile without any wait
// EXPECT 6 none: the copies are issued before arrive.expect_tx; the pending arrival holds the phase
#include "common.h"

constexpr int kN = 64, kEpochs = 4, kDev = 2;

DEV unsigned s32(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
DEV void arrive_expect(const void* bar, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(s32(bar)), "r"(bytes)
               : "memory");
}
DEV void wait(const void* bar, unsigned parity) {
  asm volatile(
      "{\n.reg .pred p;\nW_%=: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
      "@!p bra W_%=;\n}" ::"r"(s32(bar)),
      "r"(parity)
      : "memory");
}
DEV void load(const void* bar, const unsigned* dst, const unsigned* src, unsigned bytes) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(s32(dst)),
      "l"(src), "r"(bytes), "r"(s32(bar))
      : "memory");
}

__global__ void work(const unsigned* src, unsigned* out) {
  __shared__ alignas(8) unsigned long long bar;
  __shared__ alignas(16) unsigned tile[kN];
  const unsigned t = threadIdx.x;
  if (t == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(s32(&bar)) : "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
  }
  __syncthreads();
  for (int e = 0; e < kEpochs; ++e) {
    const unsigned* from = src + e * kN;
    if (t == 0) {
      if (BUG == 4) {
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(s32(&bar)) : "memory");
        asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(s32(&bar)),
                     "r"(4 * kN)
                     : "memory");
      } else if (BUG != 6) {
        arrive_expect(&bar, 4 * kN + (BUG == 2 ? -16 : BUG == 3 ? 16 : 0));
      }
      load(&bar, tile, from, 2 * kN);
      load(&bar, tile + kN / 2, from + kN / 2, 2 * kN);
      if (BUG == 6) arrive_expect(&bar, 4 * kN);
    }
    if (BUG != 5 || t == 0) wait(&bar, BUG == 1 ? 0 : e & 1);
    out[e * kN + t] = tile[t] + tile[(t + 40) % kN];
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
  }
}

int main() {
  peers(kDev);
  unsigned *src[kDev], *out[kDev];
  std::vector<unsigned> v(kEpochs * kN);
  for (int d = 0; d < kDev; ++d) {
    src[d] = alloc<unsigned>(d, v.size());
    out[d] = alloc<unsigned>(d, v.size());
    for (size_t i = 0; i < v.size(); ++i) v[i] = 1000 * d + 3 * i;
    put(d, src[d], v);
  }
  sync_all(kDev);
  for (int d = 0; d < kDev; ++d) {
    CK(cudaSetDevice(d));
    work<<<1, kN>>>(src[1 - d], out[d]);
  }
  sync_all(kDev);
  long wrong = 0;
  for (int d = 0; d < kDev; ++d) {
    const auto r = get(d, out[d], v.size());
    for (int i = 0; i < kEpochs * kN; ++i) {
      const int j = i / kN * kN + (i % kN + 40) % kN;
      wrong += r[i] != static_cast<unsigned>(2000 * (1 - d) + 3 * (i + j));
    }
  }
  return finish(wrong, kDev);
}
