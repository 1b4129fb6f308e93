// Memory that every rank has a copy of, with one address that reaches all copies: multicast objects
// of the driver API, all devices in one process. The entry points come by name, so that nothing
// links to libcuda.
#pragma once

#include <cuda.h>

#include "flags.cuh"

inline void* DriverEntry(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  CHECK(
      cudaGetDriverEntryPointByVersion(name, &function, CUDART_VERSION, cudaEnableDefault, &found));
  if (found != cudaDriverEntryPointSuccess || function == nullptr) {
    std::fprintf(stderr, "no %s\n", name);
    std::_Exit(1);
  }
  return function;
}

#define DRIVER(name, ...)                                                                       \
  do {                                                                                          \
    const CUresult result = reinterpret_cast<decltype(&name)>(DriverEntry(#name))(__VA_ARGS__); \
    if (result != CUDA_SUCCESS) {                                                               \
      std::fprintf(stderr, "%s:%d: %s: error %d\n", __FILE__, __LINE__, #name, int(result));    \
      std::_Exit(1);                                                                            \
    }                                                                                           \
  } while (0)

template <class T>
struct Symmetric {
  PerRank<T> own;  // each rank's copy
  T* all;          // reaches every copy
};

inline CUdeviceptr MapOnAll(CUmemGenericAllocationHandle handle, size_t bytes, int ranks) {
  CUdeviceptr address = 0;
  DRIVER(cuMemAddressReserve, &address, bytes, 0, 0, 0);
  DRIVER(cuMemMap, address, bytes, 0, handle, 0);
  std::vector<CUmemAccessDesc> access(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    access[rank].location = {CU_MEM_LOCATION_TYPE_DEVICE, rank};
    access[rank].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  }
  DRIVER(cuMemSetAccess, address, bytes, access.data(), access.size());
  return address;
}

// Zeroed; lives until the process ends.
template <class T>
Symmetric<T> NewSymmetric(int ranks, size_t wanted) {
  for (int rank = 0; rank < ranks; ++rank) {
    CHECK(cudaSetDevice(rank));
    CHECK(cudaFree(nullptr));
  }
  CUmulticastObjectProp group{};
  group.numDevices = ranks;
  group.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  group.size = wanted;
  size_t granularity = 0;
  DRIVER(cuMulticastGetGranularity, &granularity, &group, CU_MULTICAST_GRANULARITY_RECOMMENDED);
  const size_t bytes = (wanted + granularity - 1) / granularity * granularity;
  group.size = bytes;
  CUmemGenericAllocationHandle multicast;
  DRIVER(cuMulticastCreate, &multicast, &group);
  for (int rank = 0; rank < ranks; ++rank) DRIVER(cuMulticastAddDevice, multicast, rank);
  Symmetric<T> memory{};
  for (int rank = 0; rank < ranks; ++rank) {
    CUmemAllocationProp property{};
    property.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    property.location = {CU_MEM_LOCATION_TYPE_DEVICE, rank};
    property.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CUmemGenericAllocationHandle handle;
    DRIVER(cuMemCreate, &handle, bytes, &property, 0);
    DRIVER(cuMulticastBindMem, multicast, 0, handle, 0, bytes, 0);
    const CUdeviceptr address = MapOnAll(handle, bytes, ranks);
    memory.own.at[rank] = reinterpret_cast<T*>(address);
    CHECK(cudaSetDevice(rank));
    CHECK(cudaMemset(memory.own.at[rank], 0, bytes));
    CHECK(cudaDeviceSynchronize());
  }
  memory.all = reinterpret_cast<T*>(MapOnAll(multicast, bytes, ranks));
  return memory;
}

__device__ inline float4 LoadSum(const float4* all) {
  float4 value;
  asm volatile("multimem.ld_reduce.global.add.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
               : "l"(all)
               : "memory");
  return value;
}

__device__ inline void StoreAll(float4* all, float4 value) {
  asm volatile("multimem.st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(all), "f"(value.x),
               "f"(value.y), "f"(value.z), "f"(value.w)
               : "memory");
}

__device__ inline uint32_t LoadSumPair(const uint32_t* all) {
  uint32_t value;
  asm volatile("multimem.ld_reduce.global.add.bf16x2 %0, [%1];"
               : "=r"(value)
               : "l"(all)
               : "memory");
  return value;
}

__device__ inline void StoreAllPair(uint32_t* all, uint32_t value) {
  asm volatile("multimem.st.global.bf16x2 [%0], %1;" ::"l"(all), "r"(value) : "memory");
}

// One thread of every rank adds to everyone's counter, waits for all and takes its share away.
static __global__ void CountedBarrierKernel(Symmetric<uint32_t> counter, int rank, int ranks) {
  asm volatile("multimem.red.release.sys.global.add.u32 [%0], 1;" ::"l"(counter.all) : "memory");
  uint32_t* own = counter.own.at[rank];
  while (LoadAcquire(own) < uint32_t(ranks)) {
  }
  asm volatile("red.release.sys.global.add.s32 [%0], %1;" ::"l"(own), "r"(-ranks) : "memory");
}
