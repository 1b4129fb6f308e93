// Tiles are made in shared memory and put to the peer by bulk stores, two stages; then the peer is told.
// EXPECT 1 race: wait_group.read before the signal (source has been read, destination need not be written)
// EXPECT 2 race: no wait at all before the signal
// EXPECT 3 proxy: no fence.proxy.async between the shared stores and the bulk store
// EXPECT 4 race: stage refilled without wait_group.read
// EXPECT 5 race: another thread than the issuer waits for the group and signals
#include "common.h"
constexpr int TILES = 6, W = 256, T = 64;
DEV unsigned sm(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__global__ void Put(int* to, unsigned* flag) {
  __shared__ alignas(128) int stage[2][W];
  for (int t = 0; t < TILES; ++t) {
#if BUG != 4
    if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
#endif
    __syncthreads();
    for (int i = threadIdx.x; i < W; i += T) stage[t % 2][i] = t * W + i;
#if BUG != 3
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
    __syncthreads();
    if (threadIdx.x == 0) {
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to + t * W),
                   "r"(sm(stage[t % 2])), "r"(W * 4)
                   : "memory");
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }
  }
#if BUG == 5
  if (threadIdx.x == 1) {
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    st_release(flag, 1);
  }
  if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
#else
  if (threadIdx.x == 0) {
#if BUG == 1
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
#elif BUG != 2
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
#endif
    st_release(flag, 1);
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  }
#endif
}
__global__ void Take(const int* box, unsigned* flag, int* out) {
  if (threadIdx.x == 0) wait_ge(flag, 1);
  __syncthreads();
  for (int i = threadIdx.x; i < TILES * W; i += T) out[i] = box[i];
}
int main() {
  peers(2);
  int *box = alloc<int>(1, TILES * W), *out = alloc<int>(1, TILES * W);
  unsigned* flag = alloc<unsigned>(1, 1);
  sync_all(2);
  CK(cudaSetDevice(1));
  Take<<<1, T>>>(box, flag, out);
  CK(cudaSetDevice(0));
  Put<<<1, T>>>(box, flag);
  sync_all(2);
  long wrong = 0;
  auto v = get(1, out, TILES * W);
  for (int i = 0; i < TILES * W; ++i) wrong += v[i] != i;
  return finish(wrong, 2);
}
