// The driver API without linking to libcuda: entry points by name, as libraries get them.
#pragma once

#include <cuda.h>

#include "check.h"

inline void* DriverEntry(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  CUDA_CHECK(
      cudaGetDriverEntryPointByVersion(name, &function, CUDART_VERSION, cudaEnableDefault, &found));
  REQUIRE(found == cudaDriverEntryPointSuccess && function != nullptr, "no %s", name);
  return function;
}

// DRIVER(cuMemAlloc)(&address, size): the version of the function that cuda.h declares.
#define DRIVER(name) (reinterpret_cast<decltype(&name)>(DriverEntry(#name)))

#define DRIVER_EXPECT(expected, call)                                                            \
  do {                                                                                           \
    const CUresult driver_result = (call);                                                       \
    REQUIRE(driver_result == (expected), "%s: error %d, expected %d", #call, int(driver_result), \
            int(expected));                                                                      \
  } while (0)
#define DRIVER_CHECK(call) DRIVER_EXPECT(CUDA_SUCCESS, call)
