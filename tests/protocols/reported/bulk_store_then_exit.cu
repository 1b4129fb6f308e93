// Each block makes a tile in shared memory and stores it to the peer by one bulk copy. Its shared memory ends with the
// block, so the copy must have read it by then; the bytes arrive by the end of the kernel.
// EXPECT 1 race: the block exits with the copy open; the tile arrives all the same
// EXPECT 2 race: commits after its wait, which therefore waits for nothing
// EXPECT 3 none: waits for the whole copy, not for the read alone
#include "common.h"
constexpr int TILE = 512, BLOCKS = 16, T = 64;
__global__ void Store(int* out) {
  __shared__ alignas(128) int tile[TILE];
  for (int i = threadIdx.x; i < TILE; i += T) tile[i] = blockIdx.x * TILE + i + 7;
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  if (threadIdx.x != 0) return;
  asm volatile(
      "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(out + blockIdx.x * TILE),
      "r"((unsigned)__cvta_generic_to_shared(tile)), "n"(TILE * 4)
      : "memory");
#if BUG != 2
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#endif
#if BUG == 3
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
#elif BUG != 1
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
#endif
#if BUG == 2
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#endif
}
int main() {
  peers(2);
  int* out = alloc<int>(1, BLOCKS * TILE);
  sync_all(2);
  CK(cudaSetDevice(0));
  Store<<<BLOCKS, T>>>(out);
  sync_all(2);
  long wrong = 0;
  const auto got = get(1, out, BLOCKS * TILE);
  for (int i = 0; i < BLOCKS * TILE; ++i) wrong += got[i] != i + 7;
  return finish(wrong, 2);
}
