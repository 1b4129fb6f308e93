// Memory of the runtime API: allocation, what a pointer is, sharing.
#include <string.h>

#include "shim/cudart/runtime.h"

using namespace allranks::shim;

cudaError_t cudaMalloc(void** pointer, size_t size) {
  ALLRANKS_ENTER();
  if (pointer == nullptr) return Note(cudaErrorInvalidValue);
  *pointer = nullptr;
  if (size == 0) return cudaSuccess;
  CUdeviceptr address = 0;
  const CUresult result = cuMemAlloc(&address, size);
  *pointer = reinterpret_cast<void*>(address);
  return Note(result);
}

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  ALLRANKS_ENTER();
  if (pointer == nullptr || pitch == nullptr) return Note(cudaErrorInvalidValue);
  *pointer = nullptr;
  *pitch = 0;
  if (width == 0 || height == 0) return cudaSuccess;
  CUdeviceptr address = 0;
  const CUresult result = cuMemAllocPitch(&address, pitch, width, height, 4);
  *pointer = reinterpret_cast<void*>(address);
  return Note(result);
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* pointer, cudaExtent extent) {
  ALLRANKS_ENTER();
  if (pointer == nullptr) return Note(cudaErrorInvalidValue);
  *pointer = {nullptr, 0, extent.width, extent.height};
  std::size_t rows = 0;
  if (__builtin_mul_overflow(extent.height, extent.depth, &rows)) {
    return Note(cudaErrorMemoryAllocation);
  }
  return cudaMallocPitch(&pointer->ptr, &pointer->pitch, extent.width, rows);
}

cudaError_t cudaFree(void* pointer) {
  ALLRANKS_ENTER();  // cudaFree(0) is how programs initialise
  return Note(cuMemFree(Ptr(pointer)));
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  ALLRANKS_ENTER();
  return Note(cuMemGetInfo(free, total));
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  ALLRANKS_ENTER();
  if (attributes == nullptr) return Note(cudaErrorInvalidValue);
  memset(attributes, 0, sizeof *attributes);
  attributes->device = -2;
  CUmemorytype type = static_cast<CUmemorytype>(0);
  const CUresult result =
      cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, Ptr(pointer));
  if (result == CUDA_ERROR_INVALID_VALUE) {  // the program's own memory: an answer, not an error
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->hostPointer = const_cast<void*>(pointer);
    return cudaSuccess;
  }
  if (result != CUDA_SUCCESS) return Note(result);
  int device = 0;
  cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, Ptr(pointer));
  attributes->device = device < 0 ? CurrentDevice() : device;
  attributes->devicePointer = const_cast<void*>(pointer);
  unsigned managed = 0;
  cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, Ptr(pointer));
  if (managed != 0) {
    attributes->type = cudaMemoryTypeManaged;
    attributes->hostPointer = const_cast<void*>(pointer);
  } else if (type == CU_MEMORYTYPE_DEVICE) {
    attributes->type = cudaMemoryTypeDevice;
  } else {
    attributes->type = cudaMemoryTypeHost;
    cuPointerGetAttribute(&attributes->hostPointer, CU_POINTER_ATTRIBUTE_HOST_POINTER,
                          Ptr(pointer));
  }
  return cudaSuccess;
}

// --- sharing -----------------------------------------------------------------------------------

static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle));

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer) {
  ALLRANKS_ENTER();
  return Note(cuIpcGetMemHandle(reinterpret_cast<CUipcMemHandle*>(handle), Ptr(pointer)));
}

cudaError_t cudaIpcOpenMemHandle(void** pointer, cudaIpcMemHandle_t handle, unsigned flags) {
  ALLRANKS_ENTER();
  if (pointer == nullptr) return Note(cudaErrorInvalidValue);
  CUipcMemHandle driver;
  memcpy(&driver, &handle, sizeof driver);
  CUdeviceptr address = 0;
  const CUresult result = cuIpcOpenMemHandle(&address, driver, flags);
  *pointer = reinterpret_cast<void*>(address);
  return Note(result);
}

cudaError_t cudaIpcCloseMemHandle(void* pointer) {
  ALLRANKS_ENTER();
  return Note(cuIpcCloseMemHandle(Ptr(pointer)));
}
