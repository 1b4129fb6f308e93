// Clusters: ranks, sizes and indices, distributed shared memory by map_shared_rank, a histogram
// spread over the blocks of a cluster, atomics on a neighbour's shared memory, and cluster.sync.
// nvcc: -arch=sm_90
// finds: api_error
#include <cooperative_groups.h>

#include "arrays.h"

namespace cg = cooperative_groups;

namespace {

constexpr int kCluster = 4, kThreads = 64, kBins = 64;

__global__ void __cluster_dims__(kCluster, 1, 1) Ring(int* out) {
  __shared__ int mine[kThreads];
  cg::cluster_group cluster = cg::this_cluster();
  const unsigned rank = cluster.block_rank();
  mine[threadIdx.x] = static_cast<int>(blockIdx.x * 1000 + threadIdx.x);
  cluster.sync();
  const int* next = cluster.map_shared_rank(mine, (rank + 1) % kCluster);
  out[blockIdx.x * kThreads + threadIdx.x] = next[kThreads - 1 - threadIdx.x];
  // Nobody may leave while a neighbour still reads.
  cluster.sync();
}

__global__ void __cluster_dims__(kCluster, 1, 1)
    Histogram(const unsigned* in, int count, unsigned* bins) {
  constexpr int kOwn = kBins / kCluster;
  __shared__ unsigned part[kOwn];
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x < kOwn) part[threadIdx.x] = 0;
  cluster.sync();
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < count; i += gridDim.x * kThreads) {
    const unsigned bin = in[i] % kBins;
    atomicAdd(cluster.map_shared_rank(part, bin / kOwn) + bin % kOwn, 1);
  }
  cluster.sync();
  if (threadIdx.x < kOwn)
    atomicAdd(&bins[cluster.block_rank() * kOwn + threadIdx.x], part[threadIdx.x]);
}

__global__ void Shape(unsigned* out) {
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x) return;
  unsigned* r = out + (blockIdx.y * gridDim.x + blockIdx.x) * 4;
  r[0] = cluster.block_rank();
  r[1] = cluster.num_blocks();
  r[2] = cluster.block_index().x * 10 + cluster.block_index().y;
  r[3] = cluster.dim_blocks().x * 10 + cluster.dim_blocks().y;
}

}  // namespace

int main() {
  constexpr int kBlocks = 3 * kCluster;
  int* out = Unwritten<int>(kBlocks * kThreads);
  Ring<<<kBlocks, kThreads>>>(out);
  std::vector<int> expected;
  for (int block = 0; block < kBlocks; ++block) {
    const int next = block / kCluster * kCluster + (block + 1) % kCluster;
    for (int thread = 0; thread < kThreads; ++thread)
      expected.push_back(next * 1000 + kThreads - 1 - thread);
  }
  REQUIRE_SAME(ToHost(out, expected.size()), expected);

  constexpr int kCount = 5000;
  Random random(97);
  std::vector<unsigned> values, counts(kBins, 0);
  for (int i = 0; i < kCount; ++i) {
    values.push_back(random.Next());
    ++counts[values.back() % kBins];
  }
  unsigned* bins = Zeroed<unsigned>(kBins);
  Histogram<<<2 * kCluster, kThreads>>>(ToDevice(values), kCount, bins);
  REQUIRE_SAME(ToHost(bins, kBins), counts);

  // The size as a launch attribute: 2 x 2 blocks in a grid of 4 x 4.
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(4, 4);
  config.blockDim = dim3(32);
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = 2, attribute.val.clusterDim.y = 2, attribute.val.clusterDim.z = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  unsigned* shape = Unwritten<unsigned>(64);
  CUDA_CHECK(cudaLaunchKernelEx(&config, Shape, shape));
  std::vector<unsigned> expected_shape;
  for (unsigned y = 0; y < 4; ++y) {
    for (unsigned x = 0; x < 4; ++x) {
      expected_shape.insert(expected_shape.end(), {x % 2 + y % 2 * 2, 4, x % 2 * 10 + y % 2, 22});
    }
  }
  REQUIRE_SAME(ToHost(shape, 64), expected_shape);

  // A grid that is no multiple of the cluster is refused; which error is not documented.
  config.gridDim = dim3(3, 4);
  REQUIRE(cudaLaunchKernelEx(&config, Shape, shape) != cudaSuccess, "3 blocks in clusters of 2");
  cudaGetLastError();
  std::puts("PASS cluster");
}
