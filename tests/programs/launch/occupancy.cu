// Occupancy: what fits, as the occupancy calculator of an H100 says, and attributes of functions.
//
// finds: api_error
#include <cstring>

#include "check.h"

namespace {

__global__ void Light(int* out) { out[threadIdx.x] = int(threadIdx.x); }

__global__ void Static(int* out) {
  __shared__ int data[8192];  // 32 KB
  data[threadIdx.x] = int(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = data[blockDim.x - 1 - threadIdx.x];
}

__global__ void __launch_bounds__(64) Bounded(int* out, float factor, long count) {
  out[threadIdx.x] = int(factor * float(count));
}

int Blocks(const void* kernel, int threads, size_t shared) {
  int blocks = -1;
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared));
  return blocks;
}

cudaLaunchConfig_t Config(cudaLaunchAttribute* cluster, unsigned size) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(64);
  config.blockDim = dim3(128);
  cluster->id = cudaLaunchAttributeClusterDimension;
  cluster->val.clusterDim.x = size;
  cluster->val.clusterDim.y = cluster->val.clusterDim.z = 1;
  config.attrs = cluster;
  config.numAttrs = size > 0 ? 1 : 0;
  return config;
}

}  // namespace

int main() {
  const void* light = reinterpret_cast<const void*>(Light);
  const void* fixed = reinterpret_cast<const void*>(Static);
  CUDA_CHECK(cudaFuncSetAttribute(light, cudaFuncAttributeMaxDynamicSharedMemorySize, 232448));
  // Threads, blocks, shared memory: each is the limit once.
  REQUIRE(Blocks(light, 1024, 0) == 2, "%d", Blocks(light, 1024, 0));
  REQUIRE(Blocks(light, 256, 0) == 8, "%d", Blocks(light, 256, 0));
  REQUIRE(Blocks(light, 32, 0) == 32, "%d", Blocks(light, 32, 0));
  REQUIRE(Blocks(light, 33, 0) == 32, "%d", Blocks(light, 33, 0));
  REQUIRE(Blocks(fixed, 32, 0) == 6, "%d", Blocks(fixed, 32, 0));  // 228 KB / (32 + 1) KB
  REQUIRE(Blocks(light, 32, 40 << 10) == 5, "%d", Blocks(light, 32, 40 << 10));
  int blocks = -1;
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
      &blocks, light, 512, 0, cudaOccupancyDisableCachingOverride));
  REQUIRE(blocks == 4, "%d", blocks);
  int grid = 0, block = 0;
  CUDA_CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, Light, 0, 0));
  REQUIRE(block == 1024 && grid == 2 * 132, "%d blocks of %d", grid, block);
  CUDA_CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, Bounded, 0, 0));
  REQUIRE(block == 64, "blocks of %d", block);

  // Shared memory that is left for a given number of blocks.
  size_t size = 0;
  CUDA_CHECK(cudaOccupancyAvailableDynamicSMemPerBlock(&size, light, 1, 128));
  REQUIRE(size == 232448, "%zu", size);
  CUDA_CHECK(cudaOccupancyAvailableDynamicSMemPerBlock(&size, light, 2, 128));
  REQUIRE(size == 116736 - 1024, "%zu", size);
  REQUIRE(Blocks(light, 128, size) == 2 && Blocks(light, 128, size + 128) == 1, "does not fit");

  // Clusters.
  cudaLaunchAttribute attribute = {};
  cudaLaunchConfig_t config = Config(&attribute, 0);
  int largest = 0;
  CUDA_CHECK(cudaOccupancyMaxPotentialClusterSize(&largest, light, &config));
  REQUIRE(largest == 8, "largest portable cluster %d", largest);
  int pairs = 0, eights = 0;
  config = Config(&attribute, 2);
  CUDA_CHECK(cudaOccupancyMaxActiveClusters(&pairs, light, &config));
  config = Config(&attribute, 8);
  CUDA_CHECK(cudaOccupancyMaxActiveClusters(&eights, light, &config));
  const int all = 132 * Blocks(light, 128, 0);
  REQUIRE(pairs > 0 && pairs <= all / 2 && eights > 0 && eights <= all / 8 && eights * 4 <= pairs,
          "%d pairs, %d eights", pairs, eights);
  CUDA_CHECK(cudaFuncSetAttribute(light, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  config = Config(&attribute, 0);
  CUDA_CHECK(cudaOccupancyMaxPotentialClusterSize(&largest, light, &config));
  REQUIRE(largest == 16, "largest cluster %d", largest);

  // Attributes of functions.
  cudaFuncAttributes attributes;
  CUDA_CHECK(cudaFuncGetAttributes(&attributes, Static));
  REQUIRE(attributes.sharedSizeBytes == 32768 && attributes.numRegs > 0 &&
              attributes.maxThreadsPerBlock == 1024 && attributes.binaryVersion == 90,
          "static %zu, %d registers", attributes.sharedSizeBytes, attributes.numRegs);
  CUDA_CHECK(cudaFuncGetAttributes(&attributes, Bounded));
  REQUIRE(attributes.maxThreadsPerBlock == 64, "bound %d", attributes.maxThreadsPerBlock);
  CUDA_CHECK(cudaFuncSetAttribute(light, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000));
  CUDA_CHECK(cudaFuncSetAttribute(light, cudaFuncAttributePreferredSharedMemoryCarveout, 50));
  CUDA_CHECK(cudaFuncGetAttributes(&attributes, Light));
  REQUIRE(attributes.maxDynamicSharedSizeBytes == 100000 && attributes.preferredShmemCarveout == 50,
          "attributes that were set");
  CUDA_CHECK(cudaFuncSetCacheConfig(Light, cudaFuncCachePreferL1));
  const char* name = nullptr;
  CUDA_CHECK(cudaFuncGetName(&name, light));
  REQUIRE(std::strstr(name, "Light") != nullptr, "name %s", name);
  size_t offset = 99, bytes = 0;
  CUDA_CHECK(cudaFuncGetParamInfo(reinterpret_cast<const void*>(Bounded), 2, &offset, &bytes));
  REQUIRE(offset == 16 && bytes == 8, "parameter at %zu, %zu bytes", offset, bytes);
  CUDA_EXPECT(cudaErrorInvalidValue,
              cudaFuncGetParamInfo(reinterpret_cast<const void*>(Bounded), 3, &offset, &bytes));
  std::printf("PASS occupancy\n");
  return 0;
}
