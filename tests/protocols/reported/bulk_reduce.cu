// Partial sums are added to the owner's memory by cp.reduce.async.bulk, one device after the other (a token goes round).
// EXPECT 1 portability: all devices at once
// EXPECT 2 race: the token is passed before the bulk reduction is complete (wait_group.read)
#include "common.h"
constexpr int R = 4, W = 256, T = 64;
struct Ptrs {
  unsigned* token[R];
};
__global__ void Add(unsigned* sum, Ptrs p, int rank, unsigned* out) {
  __shared__ alignas(128) unsigned st[W];
  for (int i = threadIdx.x; i < W; i += T) st[i] = rank + i;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
#if BUG != 1
    wait_ge(p.token[rank], 1);
#endif
    asm volatile(
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], "
        "%2;\ncp.async.bulk.commit_group;" ::"l"(sum),
        "r"((unsigned)__cvta_generic_to_shared(st)), "r"(W * 4)
        : "memory");
#if BUG == 2
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
#else
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
#endif
#if BUG == 1
    if (rank)
      red_release(p.token[0], 1);
    else
      wait_ge(p.token[0], R);
#else
    st_release(p.token[(rank + 1) % R], rank == R - 1 ? 2 : 1);
    if (rank == 0) wait_ge(p.token[0], 2);
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
#endif
  }
  __syncthreads();
  if (rank == 0)
    for (int i = threadIdx.x; i < W; i += T) out[i] = sum[i];
}
int main() {
  peers(R);
  unsigned *sum = alloc<unsigned>(0, W), *out = alloc<unsigned>(0, W);
  Ptrs p;
  for (int r = 0; r < R; ++r) p.token[r] = alloc<unsigned>(r, 1);
  put(0, p.token[0], std::vector<unsigned>{1});
  sync_all(R);
  for (int r = 0; r < R; ++r) {
    CK(cudaSetDevice(r));
    Add<<<1, T>>>(sum, p, r, out);
  }
  sync_all(R);
  long wrong = 0;
  auto v = get(0, out, W);
  for (int i = 0; i < W; ++i) wrong += v[i] != 6u + 4u * i;
  return finish(wrong, R);
}
