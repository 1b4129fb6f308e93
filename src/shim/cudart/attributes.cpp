// Settings and questions of the runtime API that are the driver's own under another name: stream
// attributes, occupancy of clusters, atomics over links, and settings that mean nothing to the
// node.
#include "shim/cudart/runtime.h"

using namespace allranks::shim;

namespace {

cudaStream_t OrPerThread(cudaStream_t stream) {
  return stream == nullptr ? cudaStreamPerThread : stream;
}

// The driver's form of a configuration; its attributes have the same numbers and layout.
CUlaunchConfig ToDriver(const cudaLaunchConfig_t& config) {
  CUlaunchConfig driver{};
  driver.gridDimX = config.gridDim.x;
  driver.gridDimY = config.gridDim.y;
  driver.gridDimZ = config.gridDim.z;
  driver.blockDimX = config.blockDim.x;
  driver.blockDimY = config.blockDim.y;
  driver.blockDimZ = config.blockDim.z;
  driver.sharedMemBytes = static_cast<unsigned>(config.dynamicSmemBytes);
  driver.hStream = config.stream;
  driver.attrs = reinterpret_cast<CUlaunchAttribute*>(config.attrs);
  driver.numAttrs = config.numAttrs;
  return driver;
}

template <class F>
cudaError_t WithFunction(const void* function, F act) {
  ALLRANKS_ENTER();
  const CUkernel kernel = FindKernel(function);
  if (kernel == nullptr) return Note(cudaErrorInvalidDeviceFunction);
  return Note(KernelError(act(reinterpret_cast<CUfunction>(kernel))));
}

}  // namespace

// --- streams -----------------------------------------------------------------------------------

ALLRANKS_STREAM_CALL(cudaStreamGetAttribute,
                     (cudaStream_t stream, cudaLaunchAttributeID id,
                      cudaLaunchAttributeValue* value),
                     cuStreamGetAttribute(stream, static_cast<CUlaunchAttributeID>(id),
                                          reinterpret_cast<CUlaunchAttributeValue*>(value)),
                     cuStreamGetAttribute(OrPerThread(stream), static_cast<CUlaunchAttributeID>(id),
                                          reinterpret_cast<CUlaunchAttributeValue*>(value)))
ALLRANKS_STREAM_CALL(cudaStreamSetAttribute,
                     (cudaStream_t stream, cudaLaunchAttributeID id,
                      const cudaLaunchAttributeValue* value),
                     cuStreamSetAttribute(stream, static_cast<CUlaunchAttributeID>(id),
                                          reinterpret_cast<const CUlaunchAttributeValue*>(value)),
                     cuStreamSetAttribute(OrPerThread(stream), static_cast<CUlaunchAttributeID>(id),
                                          reinterpret_cast<const CUlaunchAttributeValue*>(value)))
ALLRANKS_STREAM_CALL(cudaStreamCopyAttributes, (cudaStream_t to, cudaStream_t from),
                     cuStreamCopyAttributes(to, from),
                     cuStreamCopyAttributes(OrPerThread(to), OrPerThread(from)))

// --- occupancy ---------------------------------------------------------------------------------

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* size, const void* function,
                                                      int blocks, int block_size) {
  return WithFunction(function, [&](CUfunction kernel) {
    return cuOccupancyAvailableDynamicSMemPerBlock(size, kernel, blocks, block_size);
  });
}
cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, const void* function,
                                                 const cudaLaunchConfig_t* config) {
  if (config == nullptr) return Note(cudaErrorInvalidValue);
  return WithFunction(function, [&](CUfunction kernel) {
    const CUlaunchConfig driver = ToDriver(*config);
    return cuOccupancyMaxPotentialClusterSize(size, kernel, &driver);
  });
}
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* function,
                                           const cudaLaunchConfig_t* config) {
  if (config == nullptr) return Note(cudaErrorInvalidValue);
  return WithFunction(function, [&](CUfunction kernel) {
    const CUlaunchConfig driver = ToDriver(*config);
    return cuOccupancyMaxActiveClusters(clusters, kernel, &driver);
  });
}

// --- devices -----------------------------------------------------------------------------------

cudaError_t cudaDeviceGetP2PAtomicCapabilities(unsigned* capabilities,
                                               const cudaAtomicOperation* operations,
                                               unsigned count, int source, int target) {
  ALLRANKS_ENTER();
  return Note(cuDeviceGetP2PAtomicCapabilities(
      capabilities, reinterpret_cast<const CUatomicOperation*>(operations), count, source, target));
}
cudaError_t cudaDeviceGetHostAtomicCapabilities(unsigned* capabilities,
                                                const cudaAtomicOperation* operations,
                                                unsigned count, int device) {
  ALLRANKS_ENTER();
  return Note(cuDeviceGetHostAtomicCapabilities(
      capabilities, reinterpret_cast<const CUatomicOperation*>(operations), count, device));
}
cudaError_t cudaCtxResetPersistingL2Cache() {
  ALLRANKS_ENTER();
  return Note(cuCtxResetPersistingL2Cache());
}
cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  ALLRANKS_ENTER();
  if (config == nullptr) return Note(cudaErrorInvalidValue);
  *config = cudaSharedMemBankSizeFourByte;  // has been the only one since Maxwell
  return cudaSuccess;
}
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) {
  ALLRANKS_ENTER();
  return cudaSuccess;
}
cudaError_t cudaFuncSetSharedMemConfig(const void* function, cudaSharedMemConfig) {
  return WithFunction(function, [](CUfunction) { return CUDA_SUCCESS; });
}
cudaError_t cudaDeviceGraphMemTrim(int device) {
  ALLRANKS_ENTER();
  return Note(cuDeviceGraphMemTrim(device));
}
cudaError_t cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute,
                                           void* value) {
  ALLRANKS_ENTER();
  return Note(
      cuDeviceGetGraphMemAttribute(device, static_cast<CUgraphMem_attribute>(attribute), value));
}
cudaError_t cudaDeviceSetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute,
                                           void* value) {
  ALLRANKS_ENTER();
  return Note(
      cuDeviceSetGraphMemAttribute(device, static_cast<CUgraphMem_attribute>(attribute), value));
}

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind f) {
  return {x, y, z, w, f};
}
