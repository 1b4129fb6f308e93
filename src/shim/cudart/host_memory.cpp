// Host memory of the runtime API that devices can use: allocated or registered.
#include "shim/cudart/runtime.h"

using namespace allranks::shim;

cudaError_t cudaHostAlloc(void** pointer, size_t size, unsigned flags) {
  ALLRANKS_ENTER();
  return Note(cuMemHostAlloc(pointer, size, flags));
}

cudaError_t cudaMallocHost(void** pointer, size_t size) { return cudaHostAlloc(pointer, size, 0); }

cudaError_t cudaFreeHost(void* pointer) {
  ALLRANKS_ENTER();
  return pointer == nullptr ? cudaSuccess : Note(cuMemFreeHost(pointer));
}

cudaError_t cudaHostRegister(void* pointer, size_t size, unsigned flags) {
  ALLRANKS_ENTER();
  return Note(cuMemHostRegister(pointer, size, flags));
}

cudaError_t cudaHostUnregister(void* pointer) {
  ALLRANKS_ENTER();
  return Note(cuMemHostUnregister(pointer));
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned flags) {
  ALLRANKS_ENTER();
  if (device == nullptr) return Note(cudaErrorInvalidValue);
  CUdeviceptr address = 0;
  const CUresult result = cuMemHostGetDevicePointer(&address, host, flags);
  *device = reinterpret_cast<void*>(address);
  return Note(result);
}

cudaError_t cudaHostGetFlags(unsigned* flags, void* host) {
  ALLRANKS_ENTER();
  return Note(cuMemHostGetFlags(flags, host));
}
