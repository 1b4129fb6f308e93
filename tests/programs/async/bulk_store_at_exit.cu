// Blocks end while their bulk copies out of shared memory are open. PTX wants the thread to wait until
// the source has been read, and the checker says so; the bytes arrive all the same, and as they were
// when the block ended.
// finds: race
// nvcc: -arch=sm_90
#include <cstdint>
#include <vector>

#include "check.h"

namespace {

constexpr int kBlocks = 64, kWords = 1024;

__global__ void Put(int* out) {
  __shared__ alignas(128) int tile[kWords];
  for (int i = threadIdx.x; i < kWords; i += blockDim.x) tile[i] = 1000 * blockIdx.x + i + 1;
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  if (threadIdx.x != 0) return;
  asm volatile(
      "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 4096;\n"
      "cp.async.bulk.commit_group;" ::"l"(out + blockIdx.x * kWords),
      "r"(static_cast<uint32_t>(__cvta_generic_to_shared(tile)))
      : "memory");
}

}  // namespace

int main() {
  int* out = nullptr;
  std::vector<int> host(kBlocks * kWords);
  CUDA_CHECK(cudaMalloc(&out, host.size() * 4));
  CUDA_CHECK(cudaMemset(out, 0, host.size() * 4));
  Put<<<kBlocks, 128>>>(out);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaMemcpy(host.data(), out, host.size() * 4, cudaMemcpyDeviceToHost));
  for (int i = 0; i < kBlocks * kWords; ++i) {
    REQUIRE(host[i] == 1000 * (i / kWords) + i % kWords + 1, "word %d is %d", i, host[i]);
  }
  CUDA_CHECK(cudaFree(out));
  std::puts("PASS bulk_store_at_exit");
}
