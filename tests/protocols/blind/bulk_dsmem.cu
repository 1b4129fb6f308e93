// Two blocks of a cluster exchange tiles fetched from the peer device by bulk copies from shared to
// the other block's shared memory, which complete on the receiver's mbarrier.
// EXPECT 1 proxy: no fence.proxy.async between the stores to the tile and the copy reading it
// EXPECT 2 race: a block barrier ends an epoch, the other block may still read what is overwritten
// EXPECT 3 race: the source is overwritten in the epoch in which the copy may still read it
// EXPECT 4 mbarrier|race: no cluster barrier after mbarrier.init, a copy may complete on it before
// EXPECT 5 use_after_free|race: no cluster barrier at the end, a block exits while its copy is read
// EXPECT 6 none: the receiver expects the bytes only after it has issued its own copy
#include "common.h"

constexpr int kN = 64, kEpochs = 4, kDev = 2;

DEV unsigned s32(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
DEV unsigned mapa(const void* p, unsigned rank) {
  unsigned r;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(s32(p)), "r"(rank));
  return r;
}
DEV void wait(const void* bar, unsigned parity) {
  asm volatile(
      "{\n.reg .pred p;\nW_%=: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], "
      "%1;\n@!p bra W_%=;\n}" ::"r"(s32(bar)),
      "r"(parity)
      : "memory");
}
DEV void arrive_expect(const void* bar, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(s32(bar)), "r"(bytes)
               : "memory");
}
DEV void send(unsigned dst, const unsigned* src, unsigned bar) {
  asm volatile(
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, "
      "[%3];" ::"r"(dst),
      "r"(s32(src)), "r"(4 * kN), "r"(bar)
      : "memory");
}
DEV void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;\n barrier.cluster.wait.acquire;" ::: "memory");
}

__global__ void __cluster_dims__(2, 1, 1) work(const unsigned* src, unsigned* out) {
  __shared__ alignas(8) unsigned long long bar;
  __shared__ alignas(16) unsigned tile[kN], in[kN];
  const unsigned t = threadIdx.x, rank = blockIdx.x;
  if (t == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(s32(&bar)) : "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
  }
  if (BUG == 4)
    __syncthreads();
  else
    cluster_sync();
  for (int e = 0; e < kEpochs; ++e) {
    tile[t] = src[(e * 2 + rank) * kN + t];
    if (BUG != 1) asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (t == 0) {
      if (BUG != 6) arrive_expect(&bar, 4 * kN);
      send(mapa(in, 1 - rank), tile, mapa(&bar, 1 - rank));
      if (BUG == 6) arrive_expect(&bar, 4 * kN);
    }
    wait(&bar, e & 1);
    out[(e * 2 + rank) * kN + t] = in[(t + 9) % kN];
    if (BUG == 3) tile[t] = 0;
    asm volatile("fence.proxy.async;" ::: "memory");
    if (BUG == 2)
      __syncthreads();
    else if (BUG != 5 || e < kEpochs - 1)
      cluster_sync();
  }
  if (BUG == 2) cluster_sync();
}

int main() {
  peers(kDev);
  unsigned *src[kDev], *out[kDev];
  std::vector<unsigned> v(kEpochs * 2 * kN);
  for (int d = 0; d < kDev; ++d) {
    src[d] = alloc<unsigned>(d, v.size());
    out[d] = alloc<unsigned>(d, v.size());
    for (size_t i = 0; i < v.size(); ++i) v[i] = 10000 * d + 3 * i;
    put(d, src[d], v);
  }
  sync_all(kDev);
  for (int d = 0; d < kDev; ++d) {
    CK(cudaSetDevice(d));
    work<<<2, kN>>>(src[1 - d], out[d]);
  }
  sync_all(kDev);
  long wrong = 0;
  for (int d = 0; d < kDev; ++d) {
    const auto r = get(d, out[d], v.size());
    for (int i = 0; i < kEpochs * 2 * kN; ++i) {
      const int j = (i / kN ^ 1) * kN + (i % kN + 9) % kN;
      wrong += r[i] != static_cast<unsigned>(10000 * (1 - d) + 3 * j);
    }
  }
  return finish(wrong, kDev);
}
