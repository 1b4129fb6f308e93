// Rows of bf16-like shorts with a header of 8 bytes are put by vectors.
// EXPECT 1 misaligned: float4 store behind the 8-byte header
// EXPECT 2 misaligned: bulk copy size or address no multiple of 16
// EXPECT 3 misaligned: atomicAdd on an odd half word pair
#include "common.h"
constexpr int N = 128, T = 32;
struct Row {
  unsigned head[2];
  float x[N];
};
__global__ void Put(char* to, unsigned* flag) {
  Row* r = (Row*)to;
  if (threadIdx.x < 2) r->head[threadIdx.x] = 7;
#if BUG == 1
  float4 v = {1, 1, 1, 1};
  *(float4*)(r->x + threadIdx.x * 4) = v;
#else
  float2 v = {1, 1};
  *(float2*)(r->x + threadIdx.x * 4) = v;
  *(float2*)(r->x + threadIdx.x * 4 + 2) = v;
#endif
#if BUG == 2
  __shared__ alignas(128) float s[N];
  for (int i = threadIdx.x; i < N; i += T) s[i] = 1;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncwarp();
  if (threadIdx.x == 0)
    asm volatile(
        "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], "
        "512;\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::"l"(r->x),
        "r"((unsigned)__cvta_generic_to_shared(s))
        : "memory");
#endif
#if BUG == 3
  if (threadIdx.x == 0) atomicAdd_system((unsigned*)(to + 2), 0);
#endif
  __syncwarp();
  if (threadIdx.x == 0) st_release(flag, 1);
}
__global__ void Take(const char* box, unsigned* flag, float* out) {
  if (threadIdx.x == 0) wait_ge(flag, 1);
  __syncthreads();
  for (int i = threadIdx.x; i < N; i += T) out[i] = ((const Row*)box)->x[i];
}
int main() {
  peers(2);
  char* box = alloc<char>(1, sizeof(Row));
  float* out = alloc<float>(1, N);
  unsigned* flag = alloc<unsigned>(1, 1);
  sync_all(2);
  CK(cudaSetDevice(0));
  Put<<<1, T>>>(box, flag);
  CK(cudaDeviceSynchronize());
  CK(cudaSetDevice(1));
  Take<<<1, T>>>(box, flag, out);
  sync_all(2);
  long wrong = 0;
  auto v = get(1, out, N);
  for (float f : v) wrong += f != 1;
  return finish(wrong, 2);
}
