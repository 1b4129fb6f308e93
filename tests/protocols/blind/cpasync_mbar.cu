// All threads of a block fetch a tile of the peer device by cp.async; the completion of the copies
// arrives on an mbarrier of 64 (cp.async.mbarrier.arrive.noinc), whose phases the readers wait for.
// EXPECT 1 hang: without .noinc each arrival is offset by an increment, the count never reaches zero
// EXPECT 2 race: a plain mbarrier.arrive does not wait for the copies in flight
// EXPECT 3 race: the second copy is issued after the arrive, which covers prior copies only
// EXPECT 4 race: no barrier before the next epoch's copies overwrite what others still read
// EXPECT 5 none: arrive without .noinc is neutral, and every thread arrives for itself as well
#include "common.h"

constexpr int kThreads = 64, kWords = 8 * kThreads, kEpochs = 4, kDev = 2;

DEV unsigned s32(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
DEV void fetch(unsigned* dst, const unsigned* src) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(s32(dst)), "l"(src) : "memory");
}
DEV void arrive(const void* bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(s32(bar)) : "memory");
}
DEV void arrive_async(const void* bar, bool noinc) {
  if (noinc)
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(s32(bar)) : "memory");
  else
    asm volatile("cp.async.mbarrier.arrive.shared::cta.b64 [%0];" ::"r"(s32(bar)) : "memory");
}
DEV void wait(const void* bar, unsigned parity) {
  asm volatile(
      "{\n.reg .pred p;\nW_%=: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
      "@!p bra W_%=;\n}" ::"r"(s32(bar)),
      "r"(parity)
      : "memory");
}

__global__ void work(const unsigned* src, unsigned* out) {
  __shared__ alignas(8) unsigned long long bar;
  __shared__ alignas(16) unsigned tile[kWords];
  const unsigned t = threadIdx.x;
  if (t == 0)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(s32(&bar)), "r"(kThreads)
                 : "memory");
  __syncthreads();
  for (int e = 0; e < kEpochs; ++e) {
    const unsigned* from = src + e * kWords;
    fetch(&tile[4 * t], from + 4 * t);
    if (BUG != 3) fetch(&tile[kWords / 2 + 4 * t], from + kWords / 2 + 4 * t);
    if (BUG == 2)
      arrive(&bar);
    else
      arrive_async(&bar, BUG != 1 && BUG != 5);
    if (BUG == 3) fetch(&tile[kWords / 2 + 4 * t], from + kWords / 2 + 4 * t);
    if (BUG == 5) arrive(&bar);
    wait(&bar, e & 1);
    out[e * kThreads + t] = tile[t] + tile[(5 * t + 301) % kWords];
    if (BUG != 4) __syncthreads();
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
}

int main() {
  peers(kDev);
  unsigned *src[kDev], *out[kDev];
  std::vector<unsigned> v(kEpochs * kWords);
  for (int d = 0; d < kDev; ++d) {
    src[d] = alloc<unsigned>(d, v.size());
    out[d] = alloc<unsigned>(d, kEpochs * kThreads);
    for (size_t i = 0; i < v.size(); ++i) v[i] = 10000 * d + 3 * i;
    put(d, src[d], v);
  }
  sync_all(kDev);
  for (int d = 0; d < kDev; ++d) {
    CK(cudaSetDevice(d));
    work<<<1, kThreads>>>(src[1 - d], out[d]);
  }
  sync_all(kDev);
  long wrong = 0;
  for (int d = 0; d < kDev; ++d) {
    const auto r = get(d, out[d], kEpochs * kThreads);
    for (int i = 0; i < kEpochs * kThreads; ++i) {
      const int t = i % kThreads, base = i / kThreads * kWords;
      wrong += r[i] != 20000u * (1 - d) + 3 * (2 * base + t + (5 * t + 301) % kWords);
    }
  }
  return finish(wrong, kDev);
}
