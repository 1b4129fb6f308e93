// One mbarrier object serves two uses in turn: 64 arrivals of threads that fetched words of a peer
// device, then, invalidated and initialised anew, one arrival and the bytes of a bulk copy.
// EXPECT 1 mbarrier: mbarrier.init on a location that holds a valid mbarrier object (no inval)
// EXPECT 2 mbarrier|race: invalidated while other threads may still poll it (no barrier before)
// EXPECT 3 mbarrier|race: used by the other threads before the new init is ordered (no barrier)
// EXPECT 4 mbarrier: its memory is used for ordinary data while it holds a valid object
// EXPECT 5 none: the last object stays valid when the block ends, which needs no inval
#include "common.h"

constexpr int kN = 64, kEpochs = 3, kDev = 2;

DEV unsigned s32(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
DEV void init(const void* bar, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(s32(bar)), "r"(count) : "memory");
  asm volatile("fence.proxy.async;" ::: "memory");
}
DEV void inval(const void* bar) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(s32(bar)) : "memory");
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
  __shared__ union {
    alignas(16) unsigned long long bar;
    unsigned scratch[4];
  } u;
  __shared__ alignas(16) unsigned a[kN], b[kN];
  const unsigned t = threadIdx.x;
  for (int e = 0; e < kEpochs; ++e) {
    if (t == 0) init(&u.bar, kN);
    __syncthreads();
    a[t] = src[e * kN + t];
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(s32(&u.bar)) : "memory");
    wait(&u.bar, 0);
    unsigned sum = a[(t + 1) % kN];
    if (BUG != 2) __syncthreads();
    if (t == 0) {
      if (BUG != 1) inval(&u.bar);
      init(&u.bar, 1);
    }
    if (BUG != 3) __syncthreads();
    if (t == 0) load(&u.bar, b, src + e * kN);
    wait(&u.bar, 0);
    sum += b[(t + 2) % kN];
    out[e * kN + t] = sum;
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (BUG == 4 && t == 0) u.scratch[0] = sum;
    if (t == 0 && BUG != 4 && !(BUG == 5 && e == kEpochs - 1)) inval(&u.bar);
    if (BUG == 4 && t == 0) {
      out[e * kN + t] = u.scratch[0];
      inval(&u.bar);
    }
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
      const int base = i / kN * kN, j = (i % kN + 1) % kN, k = (i % kN + 2) % kN;
      wrong += r[i] != static_cast<unsigned>(2000 * (1 - d) + 3 * (2 * base + j + k));
    }
  }
  return finish(wrong, kDev);
}
