// Source of the stored PTX and fat binaries beside it (regenerate.sh): the constructs of a small
// exchange between two GPUs, with an instruction or two that only the newer targets have.
#include <cooperative_groups.h>

__constant__ float scale[2] = {0.5f, 2.0f};
__device__ int epoch = 3;
__device__ int* epoch_address = &epoch;

__device__ __noinline__ float Weigh(float x, int which) { return x * scale[which & 1]; }

__global__ void __launch_bounds__(256)
    Exchange(float4* mine, const float4* peer, int* flag, int n) {
  __shared__ float partial[256];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  if (i < n) {
    const float4 v = peer[i];
    mine[i] = make_float4(v.x + 1, v.y, v.z, v.w);
    sum = v.x + v.y + Weigh(v.z, n);
  }
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
  if (threadIdx.x == 0) {
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(*epoch_address) : "memory");
    asm volatile(
        "{\n\t.reg .pred p;\nWAIT:\n\t.reg .u32 seen;\n\tld.acquire.sys.global.u32 seen, [%0];\n\t"
        "setp.ne.u32 p, seen, %1;\n\t@p bra WAIT;\n}" ::"l"(flag + 1),
        "r"(epoch)
        : "memory");
  }
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async;");
#endif
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("wgmma.fence.sync.aligned;");
#endif
#if defined(__CUDA_ARCH_FEAT_SM100_ALL)
  asm volatile("tcgen05.fence::after_thread_sync;");
#endif
  mine[i].w = sum + partial[255 - threadIdx.x];
}

__global__ void Together(int* counts) {
  counts[blockIdx.x] += 1;
  cooperative_groups::this_grid().sync();
  counts[blockIdx.x + gridDim.x] = counts[0];
}
