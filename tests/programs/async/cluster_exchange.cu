// Clusters through cooperative groups: a histogram whose bins are spread over the shared memory of
// a cluster, with the size at compile time and at launch; sizes that are refused.
// nvcc: -arch=sm_90
// finds: api_error
#include <cooperative_groups.h>

#include <vector>

#include "check.h"

namespace {

namespace cg = cooperative_groups;

constexpr int kThreads = 128;
constexpr int kBinsPerBlock = 16;
constexpr int kCount = 4096;

__device__ void Histogram(const int* in, int* out) {
  __shared__ int bins[kBinsPerBlock];
  const cg::cluster_group cluster = cg::this_cluster();
  const int ranks = static_cast<int>(cluster.num_blocks());
  for (int i = threadIdx.x; i < kBinsPerBlock; i += kThreads) bins[i] = 0;
  cluster.sync();
  for (int i = cluster.thread_rank(); i < kCount; i += cluster.num_threads()) {
    const int bin = in[i] % (ranks * kBinsPerBlock);
    int* other = cluster.map_shared_rank(bins, bin / kBinsPerBlock);
    atomicAdd(other + bin % kBinsPerBlock, 1);
  }
  cluster.sync();
  const int first = blockIdx.x / ranks * ranks * kBinsPerBlock;
  for (int i = threadIdx.x; i < kBinsPerBlock; i += kThreads) {
    out[first + cluster.block_rank() * kBinsPerBlock + i] = bins[i];
  }
}

__global__ void AtLaunch(const int* in, int* out) { Histogram(in, out); }
__global__ void __cluster_dims__(2, 1, 1) Compiled(const int* in, int* out) { Histogram(in, out); }

void Check(const std::vector<int>& values, const int* device_out, int blocks, int ranks) {
  std::vector<int> bins(blocks * kBinsPerBlock);
  CUDA_CHECK(
      cudaMemcpy(bins.data(), device_out, bins.size() * sizeof(int), cudaMemcpyDeviceToHost));
  std::vector<int> expected(ranks * kBinsPerBlock);
  for (const int value : values) ++expected[value % expected.size()];
  for (size_t i = 0; i < bins.size(); ++i) {
    REQUIRE(bins[i] == expected[i % expected.size()], "%d ranks: bin %zu is %d, expected %d", ranks,
            i, bins[i], expected[i % expected.size()]);
  }
}

cudaError_t Launch(int blocks, int cluster, const int* in, int* out) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = cluster;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = kThreads;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, AtLaunch, in, out);
}

}  // namespace

int main() {
  std::vector<int> values(kCount);
  for (int i = 0; i < kCount; ++i) values[i] = i * 7919 % 1021;
  int *in, *out;
  CUDA_CHECK(cudaMalloc(&in, kCount * sizeof(int)));
  CUDA_CHECK(cudaMalloc(&out, 32 * kBinsPerBlock * sizeof(int)));
  CUDA_CHECK(cudaMemcpy(in, values.data(), kCount * sizeof(int), cudaMemcpyHostToDevice));

  Compiled<<<4, kThreads>>>(in, out);
  CUDA_CHECK_LAUNCH();
  Check(values, out, 4, 2);
  for (const int ranks : {1, 4, 8}) {
    CUDA_CHECK(Launch(16, ranks, in, out));
    Check(values, out, 16, ranks);
  }

  // 16 only on request; a grid that is no multiple never.
  REQUIRE(Launch(16, 16, in, out) != cudaSuccess, "16 blocks are not portable");
  CUDA_CHECK(cudaFuncSetAttribute(reinterpret_cast<const void*>(AtLaunch),
                                  cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  CUDA_CHECK(Launch(32, 16, in, out));
  Check(values, out, 32, 16);
  REQUIRE(Launch(6, 4, in, out) != cudaSuccess, "6 blocks in clusters of 4");
  (void)cudaGetLastError();
  CUDA_CHECK(cudaDeviceSynchronize());
  return 0;
}
