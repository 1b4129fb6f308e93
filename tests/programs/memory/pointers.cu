// nvcc: -lcuda
// finds: api_error
// What a pointer is: attributes and ranges of device, pinned and ordinary
// memory; how much memory there is; which frees are refused.
#include <cuda.h>

#include "check.h"

int main() {
  RequireDevices(2);
  CUDA_CHECK(cudaFree(nullptr));
  size_t free_before = 0, free_now = 0, total = 0;
  CUDA_CHECK(cudaMemGetInfo(&free_before, &total));
  REQUIRE(free_before > 0 && free_before <= total, "%zu of %zu", free_before, total);
  CUDA_CHECK(cudaSetDevice(1));
  char *device = nullptr, *pinned = nullptr, *own = static_cast<char*>(malloc(100));
  CUDA_CHECK(cudaMalloc(&device, 10000));
  CUDA_CHECK(cudaMallocHost(&pinned, 5000));
  CUDA_CHECK(cudaMemGetInfo(&free_now, &total));
  REQUIRE(free_before - free_now >= 10000, "%zu bytes were taken", free_before - free_now);

  cudaPointerAttributes attributes;
  CUDA_CHECK(cudaPointerGetAttributes(&attributes, device + 100));
  REQUIRE(attributes.type == cudaMemoryTypeDevice && attributes.device == 1 &&
              attributes.devicePointer == device + 100 && attributes.hostPointer == nullptr,
          "device memory: type %d, device %d", attributes.type, attributes.device);
  CUDA_CHECK(cudaPointerGetAttributes(&attributes, pinned + 100));
  REQUIRE(attributes.type == cudaMemoryTypeHost && attributes.devicePointer == pinned + 100 &&
              attributes.hostPointer == pinned + 100,
          "pinned memory: type %d", attributes.type);
  CUDA_CHECK(cudaPointerGetAttributes(&attributes, own));
  REQUIRE(attributes.type == cudaMemoryTypeUnregistered && attributes.devicePointer == nullptr &&
              attributes.hostPointer == own,
          "ordinary memory: type %d", attributes.type);
  CUDA_EXPECT(cudaErrorInvalidValue, cudaPointerGetAttributes(nullptr, device));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaGetLastError());

  // The driver's questions.
  const auto address = reinterpret_cast<CUdeviceptr>(device);
  CUdeviceptr base = 0;
  size_t size = 0;
  REQUIRE(cuMemGetAddressRange(&base, &size, address + 9999) == CUDA_SUCCESS && base == address &&
              size == 10000,
          "range %zu", size);
  REQUIRE(cuMemGetAddressRange(&base, &size, address + 10000) == CUDA_ERROR_NOT_FOUND, "beyond");
  unsigned type = 0, managed = 7, mapped = 0;
  int ordinal = -1;
  void* host = nullptr;
  CUcontext context = nullptr, current = nullptr;
  size_t range = 0;
  REQUIRE(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) == CUDA_SUCCESS &&
              type == CU_MEMORYTYPE_DEVICE,
          "type %u", type);
  REQUIRE(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, address) ==
              CUDA_ERROR_INVALID_VALUE,
          "device memory has no host pointer");
  REQUIRE(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                reinterpret_cast<CUdeviceptr>(own)) == CUDA_ERROR_INVALID_VALUE,
          "ordinary memory has no type");
  CUpointer_attribute names[] = {
      CU_POINTER_ATTRIBUTE_CONTEXT,    CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
      CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
      CU_POINTER_ATTRIBUTE_RANGE_SIZE, CU_POINTER_ATTRIBUTE_MAPPED};
  void* values[] = {&context, &type, &managed, &ordinal, &range, &mapped};
  REQUIRE(cuPointerGetAttributes(6, names, values, address + 5) == CUDA_SUCCESS, "attributes");
  REQUIRE(cuCtxGetCurrent(&current) == CUDA_SUCCESS && context == current, "context");
  REQUIRE(type == CU_MEMORYTYPE_DEVICE && managed == 0 && ordinal == 1 && range == 10000 && mapped,
          "%u %u %d %zu %u", type, managed, ordinal, range, mapped);
  REQUIRE(cuPointerGetAttributes(6, names, values, reinterpret_cast<CUdeviceptr>(own)) ==
                  CUDA_SUCCESS &&
              context == nullptr && type == 0 && ordinal == -2,
          "ordinary memory: %p %u %d", static_cast<void*>(context), type, ordinal);

  // Each kind of memory is freed in its own way, at its first byte, and once.
  CUDA_EXPECT(cudaErrorInvalidValue, cudaFree(device + 1));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaFree(own));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaFree(pinned));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaFreeHost(device));
  CUDA_CHECK(cudaFree(device));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaFree(device));
  CUDA_CHECK(cudaMemGetInfo(&free_now, &total));
  REQUIRE(free_now == free_before, "%zu bytes are missing", free_before - free_now);
  CUDA_CHECK(cudaPointerGetAttributes(&attributes, device));
  REQUIRE(attributes.type == cudaMemoryTypeUnregistered, "freed memory: type %d", attributes.type);
  CUDA_CHECK(cudaFreeHost(pinned));

  // More than there is.
  CUDA_EXPECT(cudaErrorMemoryAllocation, cudaMalloc(&device, total * 2));
  REQUIRE(device == nullptr, "a failed allocation gives no address");
  CUDA_EXPECT(cudaErrorMemoryAllocation, cudaGetLastError());
  CUDA_EXPECT(cudaErrorInvalidValue, cudaMalloc(nullptr, 10));
  CUDA_CHECK(cudaMalloc(&device, 0));
  REQUIRE(device == nullptr, "nothing has no address");

  // Copies that miss.
  CUDA_CHECK(cudaMalloc(&device, 100));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaMemcpy(device, own, 101, cudaMemcpyHostToDevice));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaMemcpy(own, device, 10, cudaMemcpyHostToDevice));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaMemcpy(nullptr, device, 10, cudaMemcpyDeviceToHost));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaMemset(own, 0, 10));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaMemset(device + 50, 0, 51));
  CUDA_EXPECT(cudaErrorInvalidMemcpyDirection,
              cudaMemcpy(device, own, 10, static_cast<cudaMemcpyKind>(-1)));
  CUDA_CHECK(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyDefault));
  CUDA_EXPECT(cudaErrorInvalidDevice, cudaMemcpyPeer(device, 0, device, 64, 10));
  CUmemGenericAllocationHandle handle;
  CUmemAllocationProp property{};
  REQUIRE(cuMemCreate(&handle, 1 << 21, &property, 0) == CUDA_ERROR_INVALID_VALUE, "cuMemCreate");
  free(own);
  std::puts("ok");
}
