// A producer warp streams tiles of the peer device into a ring of two stages by bulk copies; two
// consumer warps reduce them. Full mbarriers count bytes, empty ones the consumer warps.
// EXPECT 1 race|mbarrier|hang: the producer refills a stage without waiting for it to be empty
// EXPECT 2 race|mbarrier|hang: empty expects one arrival while two consumer warps arrive
// EXPECT 3 race: the consumers arrive on empty before they read the stage
// EXPECT 4 hang: the producer's first wait has parity 0, no phase of an empty barrier has ended
// EXPECT 5 race: lane 0 arrives for its warp without __syncwarp after the other lanes' reads
// EXPECT 6 none: every consumer thread arrives for itself, empty expects 64
#include "common.h"

constexpr int kN = 64, kTiles = 7, kStages = 2, kDev = 2;

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
DEV void load(const void* bar, const unsigned* dst, const unsigned* src) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(s32(bar)), "r"(4 * kN)
               : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(s32(dst)),
      "l"(src), "r"(4 * kN), "r"(s32(bar))
      : "memory");
}

__global__ void work(const unsigned* src, unsigned* out) {
  __shared__ alignas(8) unsigned long long full[kStages], empty[kStages];
  __shared__ alignas(16) unsigned tile[kStages][kN];
  const unsigned t = threadIdx.x, warp = t / 32, lane = t % 32;
  if (t == 0) {
    for (int s = 0; s < kStages; ++s) {
      init(&full[s], 1);
      init(&empty[s], BUG == 6 ? 64 : BUG == 2 ? 1 : 2);
    }
    asm volatile("fence.proxy.async;" ::: "memory");
  }
  __syncthreads();
  if (warp == 0) {
    for (int i = 0; lane == 0 && i < kTiles; ++i) {
      const int s = i % kStages, round = i / kStages;
      if (BUG != 1) wait(&empty[s], BUG == 4 ? round & 1 : (round & 1) ^ 1);
      load(&full[s], tile[s], src + i * kN);
    }
  } else {
    unsigned sum = 0;
    for (int i = 0; i < kTiles; ++i) {
      const int s = i % kStages, round = i / kStages;
      wait(&full[s], round & 1);
      if (BUG == 3 && lane == 0) arrive(&empty[s]);
      sum += tile[s][(t * 7) % kN];
      asm volatile("fence.proxy.async;" ::: "memory");
      if (BUG != 5) __syncwarp();
      if (BUG != 3 && (lane == 0 || BUG == 6)) arrive(&empty[s]);
    }
    out[t - 32] = sum;
  }
}

int main() {
  peers(kDev);
  unsigned *src[kDev], *out[kDev];
  std::vector<unsigned> v(kTiles * kN);
  for (int d = 0; d < kDev; ++d) {
    src[d] = alloc<unsigned>(d, v.size());
    out[d] = alloc<unsigned>(d, 64);
    for (size_t i = 0; i < v.size(); ++i) v[i] = 1000 * d + 3 * i;
    put(d, src[d], v);
  }
  sync_all(kDev);
  for (int d = 0; d < kDev; ++d) {
    CK(cudaSetDevice(d));
    work<<<1, 96>>>(src[1 - d], out[d]);
  }
  sync_all(kDev);
  long wrong = 0;
  for (int d = 0; d < kDev; ++d) {
    const auto r = get(d, out[d], 64);
    for (int t = 0; t < 64; ++t) {
      unsigned want = 0;
      for (int i = 0; i < kTiles; ++i) want += 1000 * (1 - d) + 3 * (i * kN + (t + 32) * 7 % kN);
      wrong += r[t] != want;
    }
  }
  return finish(wrong, kDev);
}
