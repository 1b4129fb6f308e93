// A shared library that probes, as NCCL does, and copes.
#include <cuda.h>

extern "C" int CallsOfLibrary() {
  int failed = 0;
  failed += cudaSetDevice(99) != cudaSuccess ? 1 : 0;
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  cudaGetDriverEntryPointByVersion("cuCtxEnablePeerAccess", &function, CUDART_VERSION,
                                   cudaEnableDefault, &found);
  failed += reinterpret_cast<decltype(&cuCtxEnablePeerAccess)>(function)(nullptr, 0) != CUDA_SUCCESS
                ? 1
                : 0;
  cudaGetLastError();
  return failed;
}
