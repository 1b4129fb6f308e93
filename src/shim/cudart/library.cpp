// Code loaded at run time: the runtime's names for the driver's libraries. Their kernels may stand
// where a host function's address would.
#include "shim/cudart/runtime.h"

using namespace allranks::shim;

namespace {

CUlibrary Driver(cudaLibrary_t library) { return reinterpret_cast<CUlibrary>(library); }

}  // namespace

// The numbers of the options are the driver's.
cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption* jit,
                                void** jit_values, unsigned jit_count, cudaLibraryOption* options,
                                void** values, unsigned count) {
  ALLRANKS_ENTER();
  return Note(cuLibraryLoadData(reinterpret_cast<CUlibrary*>(library), code,
                                reinterpret_cast<CUjit_option*>(jit), jit_values, jit_count,
                                reinterpret_cast<CUlibraryOption*>(options), values, count));
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* path, cudaJitOption* jit,
                                    void** jit_values, unsigned jit_count,
                                    cudaLibraryOption* options, void** values, unsigned count) {
  ALLRANKS_ENTER();
  return Note(cuLibraryLoadFromFile(reinterpret_cast<CUlibrary*>(library), path,
                                    reinterpret_cast<CUjit_option*>(jit), jit_values, jit_count,
                                    reinterpret_cast<CUlibraryOption*>(options), values, count));
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  ALLRANKS_ENTER();
  return Note(cuLibraryUnload(Driver(library)));
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  ALLRANKS_ENTER();
  CUkernel found;
  const CUresult result = cuLibraryGetKernel(&found, Driver(library), name);
  if (result != CUDA_SUCCESS) {
    return Note(result == CUDA_ERROR_NOT_FOUND ? cudaErrorSymbolNotFound
                                               : static_cast<cudaError_t>(result));
  }
  if (kernel == nullptr) return Note(cudaErrorInvalidValue);
  RememberKernel(found);
  *kernel = reinterpret_cast<cudaKernel_t>(found);
  return cudaSuccess;
}

cudaError_t cudaLibraryGetGlobal(void** address, size_t* size, cudaLibrary_t library,
                                 const char* name) {
  ALLRANKS_ENTER();
  return Note(
      cuLibraryGetGlobal(reinterpret_cast<CUdeviceptr*>(address), size, Driver(library), name));
}

cudaError_t cudaLibraryGetKernelCount(unsigned* count, cudaLibrary_t library) {
  ALLRANKS_ENTER();
  return Note(cuLibraryGetKernelCount(count, Driver(library)));
}

cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned count,
                                        cudaLibrary_t library) {
  ALLRANKS_ENTER();
  return Note(
      cuLibraryEnumerateKernels(reinterpret_cast<CUkernel*>(kernels), count, Driver(library)));
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute,
                                            int value, int device) {
  ALLRANKS_ENTER();
  return Note(KernelError(cuKernelSetAttribute(static_cast<CUfunction_attribute>(attribute), value,
                                               reinterpret_cast<CUkernel>(kernel), device)));
}
