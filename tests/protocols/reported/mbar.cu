// A cluster of two blocks: block 0 loads a tile of the peer device by bulk copy into both blocks' stages, block 1 tells the peer.
// EXPECT 1 mbarrier|race: barrier initialised twice, the second time after the copy was expected
// EXPECT 2 race|mbarrier: no cluster barrier behind init: the other block's barrier may not be there yet
// EXPECT 3 race|mbarrier: no fence.mbarrier_init and a relaxed cluster arrive
// EXPECT 4 mbarrier: expect_tx too small: more bytes arrive than expected
#include <cooperative_groups.h>
#include "common.h"
namespace cg = cooperative_groups;
constexpr int W = 512, T = 64;
DEV unsigned sm(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__global__ void __cluster_dims__(2, 1, 1) Load(const int* tile, int* out) {
  __shared__ alignas(128) int stage[W];
  __shared__ alignas(8) unsigned long long bar;
  const unsigned rank = cg::this_cluster().block_rank();
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(sm(&bar)) : "memory");
#if BUG != 3
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
    asm volatile("{\n.reg .b64 s;\nmbarrier.arrive.expect_tx.shared::cta.b64 s, [%0], %1;\n}" ::"r"(
                     sm(&bar)),
                 "r"(BUG == 4 ? W * 2 : W * 4)
                 : "memory");
#if BUG == 1
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(sm(&bar)) : "memory");
    asm volatile("{\n.reg .b64 s;\nmbarrier.arrive.expect_tx.shared::cta.b64 s, [%0], %1;\n}" ::"r"(
                     sm(&bar)),
                 "r"(W * 4)
                 : "memory");
#endif
  }
#if BUG == 3
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;" ::
                   : "memory");
#elif BUG != 2
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
#else
  __syncthreads();
#endif
  if (rank == 0 && threadIdx.x == 0)
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1], %2, [%3], %4;" ::"r"(sm(stage)),
        "l"(tile), "r"(W * 4), "r"(sm(&bar)), "h"((unsigned short)3)
        : "memory");
  asm volatile(
      "{\n.reg .pred p;\nW_%=:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n@!p bra "
      "W_%=;\n}" ::"r"(sm(&bar))
      : "memory");
  for (int i = threadIdx.x; i < W; i += T) out[rank * W + i] = stage[i];
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}
int main() {
  peers(2);
  int *tile = alloc<int>(1, W), *out = alloc<int>(0, 2 * W);
  std::vector<int> v(W);
  for (int i = 0; i < W; ++i) v[i] = 3 * i;
  put(1, tile, v);
  sync_all(2);
  CK(cudaSetDevice(0));
  Load<<<2, T>>>(tile, out);
  sync_all(2);
  long wrong = 0;
  auto w = get(0, out, 2 * W);
  for (int i = 0; i < 2 * W; ++i) wrong += w[i] != 3 * (i % W);
  return finish(wrong, 2);
}
