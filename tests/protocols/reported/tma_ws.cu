// Device 1 writes tiles and raises a flag per tile; on device 0 a producer warp loads them by bulk copies into a ring of
// stages (mbarriers full/empty), consumer warps add them up.
// EXPECT 1 proxy: no fence.proxy.async between the flag and the bulk copy
// EXPECT 2 race: producer does not wait for empty stages
// EXPECT 3 race: consumers wait for the wrong parity
// EXPECT 4 race: producer does not wait for the peer's flag
// EXPECT 5 mbarrier: empty barrier counts one warp, two arrive
#include "common.h"
constexpr int TILES = 12, W = 256, ST = 3, T = 96;
DEV unsigned sm(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
DEV void mb_init(void* b, int n) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(sm(b)), "r"(n) : "memory");
}
DEV void mb_wait(void* b, unsigned parity) {
  asm volatile(
      "{\n.reg .pred p;\nW_%=:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra "
      "W_%=;\n}" ::"r"(sm(b)),
      "r"(parity)
      : "memory");
}
DEV void mb_arrive(void* b) {
  asm volatile("{\n.reg .b64 s;\nmbarrier.arrive.shared::cta.b64 s, [%0];\n}" ::"r"(sm(b))
               : "memory");
}
DEV void mb_expect(void* b, unsigned n) {
  asm volatile(
      "{\n.reg .b64 s;\nmbarrier.arrive.expect_tx.shared::cta.b64 s, [%0], %1;\n}" ::"r"(sm(b)),
      "r"(n)
      : "memory");
}
DEV void bulk(void* d, const void* s, unsigned n, void* b) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(sm(d)),
      "l"(s), "r"(n), "r"(sm(b))
      : "memory");
}
__global__ void Make(int* tiles, unsigned* flag) {
  for (int t = 0; t < TILES; ++t) {
    for (int i = threadIdx.x; i < W; i += blockDim.x) tiles[t * W + i] = t * 10 + i;
    __syncthreads();
    if (threadIdx.x == 0) st_release(flag, t + 1);
  }
}
__global__ void Sum(const int* tiles, unsigned* flag, int* out) {
  __shared__ alignas(128) int stage[ST][W];
  __shared__ alignas(8) unsigned long long full[ST], empty[ST];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    for (int s = 0; s < ST; ++s) {
      mb_init(full + s, 1);
      mb_init(empty + s, BUG == 5 ? 1 : 2);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  if (warp == 0) {
    if (lane == 0)
      for (int t = 0; t < TILES; ++t) {
        const int s = t % ST, round = t / ST;
#if BUG != 4
        wait_ge(flag, t + 1);
#endif
#if BUG != 1
        asm volatile("fence.proxy.async.global;" ::: "memory");
#endif
#if BUG != 2
        mb_wait(empty + s, (round & 1) ^ 1);
#endif
        mb_expect(full + s, W * 4);
        bulk(stage[s], tiles + t * W, W * 4, full + s);
      }
  } else {
    int sum = 0;
    for (int t = 0; t < TILES; ++t) {
      const int s = t % ST, round = t / ST;
#if BUG == 3
      mb_wait(full + s, (round & 1) ^ 1);
#else
      mb_wait(full + s, round & 1);
#endif
      for (int i = lane + (warp - 1) * 32; i < W; i += 64) sum += stage[s][i];
      __syncwarp();
      if (lane == 0) mb_arrive(empty + s);
    }
    atomicAdd(out, sum);
  }
}
int main() {
  peers(2);
  int *tiles = alloc<int>(1, TILES * W), *out = alloc<int>(0, 1);
  unsigned* flag = alloc<unsigned>(0, 1);
  sync_all(2);
  CK(cudaSetDevice(0));
  Sum<<<1, T>>>(tiles, flag, out);
  CK(cudaSetDevice(1));
  Make<<<1, 64>>>(tiles, flag);
  sync_all(2);
  int want = 0;
  for (int t = 0; t < TILES; ++t)
    for (int i = 0; i < W; ++i) want += t * 10 + i;
  return finish(get(0, out, 1)[0] != want, 2);
}
