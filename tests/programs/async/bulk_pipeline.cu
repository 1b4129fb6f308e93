// A producer thread streams tiles into a ring of stages with bulk copies and full/empty barriers;
// results leave with bulk copies as well. The shape of a Hopper kernel without tensor maps.
// nvcc: -arch=sm_90
#include <cuda/barrier>

#include <vector>

#include "check.h"

namespace {

using Barrier = cuda::barrier<cuda::thread_scope_block>;

constexpr int kThreads = 128;
constexpr int kTile = 512;  // floats
constexpr int kStages = 3;
constexpr int kTiles = 10;

__device__ void StoreBulk(float* to, const float* from, int bytes) {
  const auto shared = static_cast<uint32_t>(__cvta_generic_to_shared(from));
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(shared),
               "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

__global__ void Scale(const float* in, float* out, float factor) {
  __shared__ alignas(128) float stage[kStages][kTile];
  __shared__ alignas(128) float result[kTile];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ Barrier full[kStages], empty[kStages];
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      init(&full[s], 1);
      init(&empty[s], kThreads);
    }
    cuda::device::experimental::fence_proxy_async_shared_cta();
  }
  __syncthreads();
  const int first = blockIdx.x * kTiles * kTile;
  const auto produce = [&](int tile) {
    const int s = tile % kStages;
    cuda::device::memcpy_async_tx(stage[s], in + first + tile * kTile,
                                  cuda::aligned_size_t<16>(kTile * sizeof(float)), full[s]);
    (void)cuda::device::barrier_arrive_tx(full[s], 1, kTile * sizeof(float));
  };
  if (threadIdx.x == 0) {
    for (int tile = 0; tile < kStages; ++tile) produce(tile);
  }
  for (int tile = 0; tile < kTiles; ++tile) {
    const int s = tile % kStages;
    const int phase = tile / kStages % 2;
    full[s].wait_parity(phase);
    if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    __syncthreads();
    for (int i = threadIdx.x; i < kTile; i += kThreads) result[i] = stage[s][i] * factor;
    (void)empty[s].arrive();
    cuda::device::experimental::fence_proxy_async_shared_cta();
    __syncthreads();
    if (threadIdx.x == 0) {
      StoreBulk(out + first + tile * kTile, result, kTile * sizeof(float));
      if (tile + kStages < kTiles) {
        empty[s].wait_parity(phase);
        produce(tile + kStages);
      }
    }
  }
  if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

}  // namespace

int main() {
  constexpr int kBlocks = 5, kCount = kBlocks * kTiles * kTile;
  std::vector<float> host(kCount), result(kCount);
  for (int i = 0; i < kCount; ++i) host[i] = static_cast<float>(i % 1000);
  float *in, *out;
  CUDA_CHECK(cudaMalloc(&in, kCount * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&out, kCount * sizeof(float)));
  CUDA_CHECK(cudaMemcpy(in, host.data(), kCount * sizeof(float), cudaMemcpyHostToDevice));
  Scale<<<kBlocks, kThreads>>>(in, out, 2.0f);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaMemcpy(result.data(), out, kCount * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) {
    REQUIRE(result[i] == host[i] * 2, "element %d is %f", i, result[i]);
  }
  return 0;
}
