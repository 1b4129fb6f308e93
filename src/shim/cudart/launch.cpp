// Launches, attributes of kernels, occupancy.
#include <cxxabi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vector>

#include "shim/cudart/runtime.h"

using namespace allranks::shim;

namespace {

// `kernel<<<grid, block, shared, stream>>>(...)` first pushes its configuration, evaluates the
// arguments (which may launch something too) and pops it in the kernel's stub.
struct Configuration {
  dim3 grid, block;
  std::size_t shared;
  cudaStream_t stream;
};
thread_local std::vector<Configuration>* t_configurations = nullptr;

// The runtime finds a bad shape itself and calls it another name than the driver.
bool IsBadShape(dim3 grid, dim3 block) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || block.x == 0 || block.y == 0 || block.z == 0) {
    return true;
  }
  const int device = CurrentDevice();
  const auto limit = [&](CUdevice_attribute attribute) {
    int value = 0;
    cuDeviceGetAttribute(&value, attribute, device);
    return static_cast<unsigned>(value);
  };
  return grid.x > limit(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X) ||
         grid.y > limit(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y) ||
         grid.z > limit(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z) ||
         block.x > limit(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X) ||
         block.y > limit(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y) ||
         block.z > limit(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z) ||
         static_cast<unsigned long long>(block.x) * block.y * block.z >
             limit(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
}

// The arguments of a launch, with the kernel's name instead of an address.
void WriteShape(CUkernel kernel, dim3 grid, dim3 block, std::size_t shared, char* text,
                std::size_t size) {
  const char* name = nullptr;
  if (kernel != nullptr) cuKernelGetName(&name, kernel);
  char* readable = name != nullptr ? abi::__cxa_demangle(name, nullptr, nullptr, nullptr) : nullptr;
  if (readable != nullptr) name = readable;
  snprintf(text, size,
           "(%.100s, %ux%ux%u blocks of %ux%ux%u threads, %zu bytes of dynamic shared memory)",
           name != nullptr ? name : "no kernel of this program", grid.x, grid.y, grid.z, block.x,
           block.y, block.z, shared);
  free(readable);
}

cudaError_t Launch(bool per_thread, CUkernel kernel, dim3 grid, dim3 block, void** arguments,
                   std::size_t shared, cudaStream_t stream, bool cooperative) {
  const auto shape = [&](char* text, std::size_t size) {
    WriteShape(kernel, grid, block, shared, text, size);
  };
  const Arguments given(shape);
  ALLRANKS_ENTER();
  if (kernel == nullptr) return Note(cudaErrorInvalidDeviceFunction);
  if (IsBadShape(grid, block)) return Note(cudaErrorInvalidConfiguration);
  CUlaunchAttribute attribute;
  memset(&attribute, 0, sizeof attribute);
  attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attribute.value.cooperative = 1;
  CUlaunchConfig config;
  memset(&config, 0, sizeof config);
  config.gridDimX = grid.x;
  config.gridDimY = grid.y;
  config.gridDimZ = grid.z;
  config.blockDimX = block.x;
  config.blockDimY = block.y;
  config.blockDimZ = block.z;
  config.sharedMemBytes = static_cast<unsigned>(shared);
  config.hStream = per_thread && stream == nullptr ? CU_STREAM_PER_THREAD : stream;
  config.attrs = &attribute;
  config.numAttrs = cooperative ? 1 : 0;
  return Note(KernelError(
      cuLaunchKernelEx(&config, reinterpret_cast<CUfunction>(kernel), arguments, nullptr)));
}

cudaError_t LaunchEx(bool per_thread, const cudaLaunchConfig_t* config, const void* function,
                     void** arguments) {
  ALLRANKS_ENTER();
  if (config == nullptr) return Note(cudaErrorInvalidValue);
  const CUkernel kernel = FindKernel(function);
  const auto shape = [&](char* text, std::size_t size) {
    WriteShape(kernel, config->gridDim, config->blockDim, config->dynamicSmemBytes, text, size);
  };
  const Arguments given(shape);
  if (kernel == nullptr) return Note(cudaErrorInvalidDeviceFunction);
  if (IsBadShape(config->gridDim, config->blockDim)) return Note(cudaErrorInvalidConfiguration);
  CUlaunchConfig driver;
  memset(&driver, 0, sizeof driver);
  driver.gridDimX = config->gridDim.x;
  driver.gridDimY = config->gridDim.y;
  driver.gridDimZ = config->gridDim.z;
  driver.blockDimX = config->blockDim.x;
  driver.blockDimY = config->blockDim.y;
  driver.blockDimZ = config->blockDim.z;
  driver.sharedMemBytes = static_cast<unsigned>(config->dynamicSmemBytes);
  driver.hStream = per_thread && config->stream == nullptr ? CU_STREAM_PER_THREAD : config->stream;
  // Attributes have the same numbers and layout in both APIs.
  static_assert(sizeof(CUlaunchAttribute) == sizeof(cudaLaunchAttribute));
  driver.attrs = reinterpret_cast<CUlaunchAttribute*>(config->attrs);
  driver.numAttrs = config->numAttrs;
  return Note(KernelError(
      cuLaunchKernelEx(&driver, reinterpret_cast<CUfunction>(kernel), arguments, nullptr)));
}

}  // namespace

ALLRANKS_EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                                     cudaStream_t stream) {
  if (t_configurations == nullptr) t_configurations = new std::vector<Configuration>;
  t_configurations->push_back({grid, block, shared, stream});
  return 0;
}

ALLRANKS_SYMBOL(cudaError_t, __cudaPopCallConfiguration,
                (dim3 * grid, dim3* block, size_t* shared, void* stream)) {
  if (t_configurations == nullptr || t_configurations->empty()) {
    return Note(cudaErrorMissingConfiguration);
  }
  const Configuration configuration = t_configurations->back();
  t_configurations->pop_back();
  *grid = configuration.grid;
  *block = configuration.block;
  *shared = configuration.shared;
  *static_cast<cudaStream_t*>(stream) = configuration.stream;
  return cudaSuccess;
}

ALLRANKS_SYMBOL(cudaError_t, __cudaLaunchKernel,
                (cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                 cudaStream_t stream)) {
  return Launch(false, reinterpret_cast<CUkernel>(kernel), grid, block, arguments, shared, stream,
                false);
}

ALLRANKS_SYMBOL(cudaError_t, __cudaLaunchKernel_ptsz,
                (cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                 cudaStream_t stream)) {
  return Launch(true, reinterpret_cast<CUkernel>(kernel), grid, block, arguments, shared, stream,
                false);
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                             size_t shared, cudaStream_t stream) {
  return Launch(false, FindKernel(function), grid, block, arguments, shared, stream, false);
}

ALLRANKS_SYMBOL(cudaError_t, cudaLaunchKernel_ptsz,
                (const void* function, dim3 grid, dim3 block, void** arguments, size_t shared,
                 cudaStream_t stream)) {
  return Launch(true, FindKernel(function), grid, block, arguments, shared, stream, false);
}

cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block,
                                        void** arguments, size_t shared, cudaStream_t stream) {
  return Launch(false, FindKernel(function), grid, block, arguments, shared, stream, true);
}

ALLRANKS_SYMBOL(cudaError_t, cudaLaunchCooperativeKernel_ptsz,
                (const void* function, dim3 grid, dim3 block, void** arguments, size_t shared,
                 cudaStream_t stream)) {
  return Launch(true, FindKernel(function), grid, block, arguments, shared, stream, true);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                void** arguments) {
  return LaunchEx(false, config, function, arguments);
}

ALLRANKS_SYMBOL(cudaError_t, cudaLaunchKernelExC_ptsz,
                (const cudaLaunchConfig_t* config, const void* function, void** arguments)) {
  return LaunchEx(true, config, function, arguments);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  ALLRANKS_ENTER();
  if (attributes == nullptr) return Note(cudaErrorInvalidValue);
  const CUkernel kernel = FindKernel(function);
  if (kernel == nullptr) return Note(cudaErrorInvalidDeviceFunction);
  memset(attributes, 0, sizeof *attributes);
  const int device = CurrentDevice();
  CUresult result = CUDA_SUCCESS;
  const auto get = [&](CUfunction_attribute attribute) {
    int value = 0;
    const CUresult got = cuKernelGetAttribute(&value, attribute, kernel, device);
    if (got != CUDA_SUCCESS) result = got;
    return value;
  };
  attributes->maxThreadsPerBlock = get(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  if (result != CUDA_SUCCESS) return Note(KernelError(result));
  attributes->sharedSizeBytes = static_cast<std::size_t>(get(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
  attributes->constSizeBytes = static_cast<std::size_t>(get(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES));
  attributes->localSizeBytes = static_cast<std::size_t>(get(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
  attributes->numRegs = get(CU_FUNC_ATTRIBUTE_NUM_REGS);
  attributes->ptxVersion = get(CU_FUNC_ATTRIBUTE_PTX_VERSION);
  attributes->binaryVersion = get(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
  attributes->maxDynamicSharedSizeBytes = get(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  attributes->preferredShmemCarveout = get(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
  attributes->nonPortableClusterSizeAllowed =
      get(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
  return Note(result);
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  ALLRANKS_ENTER();
  const CUkernel kernel = FindKernel(function);
  if (kernel == nullptr) return Note(cudaErrorInvalidDeviceFunction);
  return Note(KernelError(cuKernelSetAttribute(static_cast<CUfunction_attribute>(attribute), value,
                                               kernel, CurrentDevice())));
}

cudaError_t cudaFuncSetCacheConfig(const void* function, cudaFuncCache) {
  return FindKernel(function) != nullptr ? cudaSuccess : Note(cudaErrorInvalidDeviceFunction);
}

cudaError_t cudaFuncGetName(const char** name, const void* function) {
  ALLRANKS_ENTER();
  const CUkernel kernel = FindKernel(function);
  if (kernel == nullptr) return Note(cudaErrorInvalidDeviceFunction);
  return Note(cuKernelGetName(name, kernel));
}

cudaError_t cudaFuncGetParamInfo(const void* function, size_t index, size_t* offset, size_t* size) {
  ALLRANKS_ENTER();
  const CUkernel kernel = FindKernel(function);
  if (kernel == nullptr) return Note(cudaErrorInvalidDeviceFunction);
  return Note(KernelError(cuKernelGetParamInfo(kernel, index, offset, size)));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks,
                                                                   const void* function,
                                                                   int block_size, size_t shared,
                                                                   unsigned flags) {
  ALLRANKS_ENTER();
  const CUkernel kernel = FindKernel(function);
  if (kernel == nullptr) return Note(cudaErrorInvalidDeviceFunction);
  return Note(KernelError(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
      blocks, reinterpret_cast<CUfunction>(kernel), block_size, shared, flags)));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function,
                                                          int block_size, size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size,
                                                                shared, 0);
}
