// How many blocks and clusters of a kernel fit. The node answers for blocks and clusters of a given
// shape; the rest is arithmetic on its answers.
#include <algorithm>

#include "shim/cuda/driver.h"

using namespace allranks::shim;
namespace wire = allranks::wire;

namespace {

// `cluster`: blocks of a cluster, for reply.clusters.
CUresult Occupancy(CUfunction handle, int block_size, std::size_t shared, std::uint32_t cluster,
                   wire::OccupancyReply* reply, Function** function) {
  Context* context;
  CUresult result = Current(&context);
  if (result != CUDA_SUCCESS) return result;
  if (block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
  result = ResolveFunction(handle, context->device, function);
  if (result != CUDA_SUCCESS) return result;
  wire::Occupancy request;
  request.kernel = (*function)->info.kernel;
  request.threads = static_cast<std::uint32_t>(block_size);
  request.dynamic_shared = static_cast<std::uint32_t>(std::min<std::size_t>(shared, 1u << 30));
  request.cluster = cluster;
  return Result(Call(request, reply));
}

const wire::DeviceInfo& InfoOf(const Function* function) {
  return TheDriver().devices[static_cast<std::size_t>(function->module->device)];
}

// The shape in a configuration: threads of a block, blocks of a cluster (0: none is given).
CUresult ShapeOf(const CUlaunchConfig* config, int* threads, std::uint32_t* cluster) {
  if (config == nullptr || (config->numAttrs != 0 && config->attrs == nullptr))
    return CUDA_ERROR_INVALID_VALUE;
  const auto count =
      static_cast<std::uint64_t>(config->blockDimX) * config->blockDimY * config->blockDimZ;
  if (count == 0 || count > 1024) return CUDA_ERROR_INVALID_VALUE;
  *threads = static_cast<int>(count);
  *cluster = 0;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    if (config->attrs[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
    const auto& size = config->attrs[i].value.clusterDim;
    if (size.x == 0 || size.y == 0 || size.z == 0 || size.x > 64 || size.y > 64 || size.z > 64)
      return CUDA_ERROR_INVALID_VALUE;
    *cluster = size.x * size.y * size.z;
  }
  return CUDA_SUCCESS;
}

std::uint32_t LargestCluster(const Function* function) {
  // Twice the portable size, as an H100 has it.
  const std::uint32_t portable = InfoOf(function).max_cluster_size;
  return function->non_portable_cluster ? portable * 2 : portable;
}

}  // namespace

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction handle,
                                                              int block_size, size_t shared,
                                                              unsigned flags) {
  if (blocks == nullptr || flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
    return CUDA_ERROR_INVALID_VALUE;
  wire::OccupancyReply reply;
  Function* function;
  const CUresult result = Occupancy(handle, block_size, shared, 1, &reply, &function);
  if (result == CUDA_SUCCESS) *blocks = reply.ctas_per_sm;
  return result;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function,
                                                     int block_size, size_t shared) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size, shared,
                                                              CU_OCCUPANCY_DEFAULT);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, CUfunction handle,
                                                   CUoccupancyB2DSize shared_of, size_t shared,
                                                   int limit, unsigned flags) {
  if (grid == nullptr || block == nullptr) return CUDA_ERROR_INVALID_VALUE;
  int most = 0;
  CUresult result = cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, handle);
  if (result != CUDA_SUCCESS) return result;
  if (limit > 0 && limit < most) most = limit;
  int best = 0;
  *grid = *block = 0;
  for (int size = most; size > 0; size = (size - 1) / 32 * 32) {
    int blocks = 0;
    result = cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        &blocks, handle, size, shared_of != nullptr ? shared_of(size) : shared, flags);
    if (result != CUDA_SUCCESS) return result;
    if (blocks * size <= best) continue;
    best = blocks * size;
    *block = size;
    *grid =
        blocks * static_cast<int>(
                     TheDriver().devices[static_cast<std::size_t>(CurrentContext()->device)].sms);
  }
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction function,
                                          CUoccupancyB2DSize shared_of, size_t shared, int limit) {
  return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, function, shared_of, shared, limit,
                                                   0);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* size, CUfunction handle, int blocks,
                                                 int block_size) {
  if (size == nullptr || blocks <= 0) return CUDA_ERROR_INVALID_VALUE;
  wire::OccupancyReply reply;
  Function* function;
  const CUresult result = Occupancy(handle, block_size, 0, 1, &reply, &function);
  if (result != CUDA_SUCCESS) return result;
  if (reply.ctas_per_sm < blocks) return CUDA_ERROR_INVALID_VALUE;
  // Each block has its share of the SM's memory, less what the system and the kernel itself take.
  constexpr std::uint32_t kGranularity = 128;
  const wire::DeviceInfo& info = InfoOf(function);
  const std::uint32_t share =
      info.sm_shared_bytes / static_cast<std::uint32_t>(blocks) / kGranularity * kGranularity;
  const std::uint32_t whole =
      std::min(share - std::min(share, info.cta_shared_reserved), info.cta_shared_optin_bytes);
  *size = whole - std::min(whole, function->info.static_shared);
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialClusterSize(int* size, CUfunction handle,
                                            const CUlaunchConfig* config) {
  int threads;
  std::uint32_t cluster;
  CUresult result = ShapeOf(config, &threads, &cluster);
  if (result != CUDA_SUCCESS) return result;
  if (size == nullptr) return CUDA_ERROR_INVALID_VALUE;
  wire::OccupancyReply reply;
  Function* function;
  result = Occupancy(handle, threads, config->sharedMemBytes, 1, &reply, &function);
  if (result != CUDA_SUCCESS) return result;
  *size = 0;
  for (std::uint32_t tried = LargestCluster(function); tried > 0; tried /= 2) {
    result = Occupancy(handle, threads, config->sharedMemBytes, tried, &reply, &function);
    if (result != CUDA_SUCCESS) return result;
    if (reply.clusters == 0) continue;
    *size = static_cast<int>(tried);
    break;
  }
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction handle,
                                      const CUlaunchConfig* config) {
  int threads;
  std::uint32_t cluster;
  CUresult result = ShapeOf(config, &threads, &cluster);
  if (result != CUDA_SUCCESS) return result;
  if (clusters == nullptr || cluster == 0) return CUDA_ERROR_INVALID_VALUE;
  wire::OccupancyReply reply;
  Function* function;
  result = Occupancy(handle, threads, config->sharedMemBytes, cluster, &reply, &function);
  if (result != CUDA_SUCCESS) return result;
  if (cluster > LargestCluster(function)) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  *clusters = reply.clusters;
  return CUDA_SUCCESS;
}
