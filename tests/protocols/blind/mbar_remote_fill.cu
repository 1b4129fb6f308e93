// A cluster of two blocks per device: block 1 stores a tile of the peer device into block 0's
// shared memory and arrives on block 0's mbarrier; block 0 sums it and arrives on block 1's.
// EXPECT 1 mbarrier|race: a block barrier only after mbarrier.init, a remote arrive may precede it
// EXPECT 2 scope|race: the remote arrive releases at .cta scope, the waiter is in another block
// EXPECT 3 scope|race: a try_wait of default scope (.acquire.cta), the stores are another block's
// EXPECT 4 race: one thread arrives for all (count 1), no block barrier after the others' stores
// EXPECT 5 use_after_free|race|mbarrier: block 1 leaves, block 0 still arrives on its mbarrier
// EXPECT 6 none: fence.mbarrier_init.release.cluster + relaxed cluster arrive publishes the init
#include "common.h"

constexpr int kN = 64, kEpochs = 4, kDev = 2;

DEV unsigned s32(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
DEV unsigned mapa(const void* p, unsigned rank) {
  unsigned r;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(s32(p)), "r"(rank));
  return r;
}
DEV void arrive_remote(unsigned bar, bool narrow) {
  if (narrow)
    asm volatile("mbarrier.arrive.release.cta.shared::cluster.b64 _, [%0];" ::"r"(bar) : "memory");
  else
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(bar)
                 : "memory");
}
DEV void wait(const void* bar, unsigned parity, bool narrow) {
  if (narrow)
    asm volatile(
        "{\n.reg .pred p;\nW_%=: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
        "@!p bra W_%=;\n}" ::"r"(s32(bar)),
        "r"(parity)
        : "memory");
  else
    asm volatile(
        "{\n.reg .pred p;\nW_%=: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], "
        "%1;\n@!p bra W_%=;\n}" ::"r"(s32(bar)),
        "r"(parity)
        : "memory");
}
DEV void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;\n barrier.cluster.wait.acquire;" ::: "memory");
}

__global__ void __cluster_dims__(2, 1, 1) work(const unsigned* src, unsigned* out) {
  __shared__ alignas(8) unsigned long long full, empty;
  __shared__ unsigned tile[kN];
  const unsigned t = threadIdx.x, rank = blockIdx.x;
  if (t == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(s32(&full)), "r"(BUG == 4 ? 1 : kN)
                 : "memory");
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(s32(&empty)), "r"(kN) : "memory");
    if (BUG == 6) asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if (BUG == 1)
    __syncthreads();
  else if (BUG == 6)
    asm volatile("barrier.cluster.arrive.relaxed;\n barrier.cluster.wait.acquire;" ::: "memory");
  else
    cluster_sync();
  for (int e = 0; e < kEpochs; ++e) {
    if (rank == 1) {
      if (e > 0) wait(&empty, (e - 1) & 1, false);
      asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(mapa(&tile[t], 0)), "r"(src[e * kN + t])
                   : "memory");
      if (BUG != 4 || t == 0) arrive_remote(mapa(&full, 0), BUG == 2);
    } else {
      wait(&full, e & 1, BUG == 3);
      out[e * kN + t] = tile[t] + tile[(t + 7) % kN];
      arrive_remote(mapa(&empty, 1), false);
    }
  }
  if (BUG != 5) cluster_sync();
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
    work<<<2, kN>>>(src[1 - d], out[d]);
    CK(cudaGetLastError());
  }
  sync_all(kDev);
  long wrong = 0;
  for (int d = 0; d < kDev; ++d) {
    const auto r = get(d, out[d], v.size());
    for (int i = 0; i < kEpochs * kN; ++i) {
      const int j = i / kN * kN + (i % kN + 7) % kN;
      wrong += r[i] != static_cast<unsigned>(2000 * (1 - d) + 3 * (i + j));
    }
  }
  return finish(wrong, kDev);
}
