// Finding entry points by name, and the answer to what this library does not have. Every name of
// the real library exists here: those without an implementation are weak stubs (made by CMake from
// entry_points.txt), which a strong definition anywhere in the library replaces.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "shim/cuda/driver.h"

namespace allranks::shim {

int ar_not_supported(const char* name, int error, std::atomic<bool>* said) {
  if (!said->exchange(true)) {
    fprintf(stderr, "allranks: the virtual node does not support %s; it returns error %d\n", name,
            error);
  }
  return error;
}

}  // namespace allranks::shim

using namespace allranks::shim;

namespace {

struct Alias {
  const char* name;
  const char* symbol;
};
#define ALLRANKS_TEXT_OF(name) #name
#define ALLRANKS_TEXT(name) ALLRANKS_TEXT_OF(name)
// The names that cuda.h maps to a later version of the function; the preprocessor knows which.
#define ALLRANKS_ALIAS(name) {#name, ALLRANKS_TEXT(name)}
constexpr Alias kAliases[] = {
    ALLRANKS_ALIAS(cuDeviceTotalMem),
    ALLRANKS_ALIAS(cuCtxCreate),
    ALLRANKS_ALIAS(cuModuleGetGlobal),
    ALLRANKS_ALIAS(cuMemGetInfo),
    ALLRANKS_ALIAS(cuMemAlloc),
    ALLRANKS_ALIAS(cuMemAllocPitch),
    ALLRANKS_ALIAS(cuMemFree),
    ALLRANKS_ALIAS(cuMemGetAddressRange),
    ALLRANKS_ALIAS(cuMemAllocHost),
    ALLRANKS_ALIAS(cuMemHostGetDevicePointer),
    ALLRANKS_ALIAS(cuMemcpyHtoD),
    ALLRANKS_ALIAS(cuMemcpyDtoH),
    ALLRANKS_ALIAS(cuMemcpyDtoD),
    ALLRANKS_ALIAS(cuMemcpyHtoDAsync),
    ALLRANKS_ALIAS(cuMemcpyDtoHAsync),
    ALLRANKS_ALIAS(cuMemcpyDtoDAsync),
    ALLRANKS_ALIAS(cuMemcpy2D),
    ALLRANKS_ALIAS(cuMemcpy2DUnaligned),
    ALLRANKS_ALIAS(cuMemcpy2DAsync),
    ALLRANKS_ALIAS(cuMemcpy3D),
    ALLRANKS_ALIAS(cuMemcpy3DAsync),
    ALLRANKS_ALIAS(cuMemsetD8),
    ALLRANKS_ALIAS(cuMemsetD16),
    ALLRANKS_ALIAS(cuMemsetD32),
    ALLRANKS_ALIAS(cuMemsetD2D8),
    ALLRANKS_ALIAS(cuMemsetD2D16),
    ALLRANKS_ALIAS(cuMemsetD2D32),
    ALLRANKS_ALIAS(cuCtxDestroy),
    ALLRANKS_ALIAS(cuCtxPopCurrent),
    ALLRANKS_ALIAS(cuCtxPushCurrent),
    ALLRANKS_ALIAS(cuStreamDestroy),
    ALLRANKS_ALIAS(cuEventDestroy),
    ALLRANKS_ALIAS(cuEventElapsedTime),
    ALLRANKS_ALIAS(cuDevicePrimaryCtxRelease),
    ALLRANKS_ALIAS(cuDevicePrimaryCtxReset),
    ALLRANKS_ALIAS(cuDevicePrimaryCtxSetFlags),
    ALLRANKS_ALIAS(cuDeviceGetUuid),
    ALLRANKS_ALIAS(cuIpcOpenMemHandle),
    ALLRANKS_ALIAS(cuMemHostRegister),
    ALLRANKS_ALIAS(cuLinkCreate),
    ALLRANKS_ALIAS(cuLinkAddData),
    ALLRANKS_ALIAS(cuLinkAddFile),
    ALLRANKS_ALIAS(cuMemPrefetchAsync),
    ALLRANKS_ALIAS(cuMemAdvise),
    ALLRANKS_ALIAS(cuStreamBeginCapture),
    ALLRANKS_ALIAS(cuStreamGetCaptureInfo),
    ALLRANKS_ALIAS(cuGraphKernelNodeGetParams),
    ALLRANKS_ALIAS(cuGraphAddKernelNode),
    ALLRANKS_ALIAS(cuGraphExecUpdate),
    ALLRANKS_ALIAS(cuArray3DCreate),
    ALLRANKS_ALIAS(cuArray3DGetDescriptor),
    ALLRANKS_ALIAS(cuArrayCreate),
    ALLRANKS_ALIAS(cuArrayGetDescriptor),
    ALLRANKS_ALIAS(cuGraphAddDependencies),
    ALLRANKS_ALIAS(cuGraphAddNode),
    ALLRANKS_ALIAS(cuGraphExecKernelNodeSetParams),
    ALLRANKS_ALIAS(cuGraphGetEdges),
    ALLRANKS_ALIAS(cuGraphInstantiate),
    ALLRANKS_ALIAS(cuGraphKernelNodeSetParams),
    ALLRANKS_ALIAS(cuGraphNodeGetDependencies),
    ALLRANKS_ALIAS(cuGraphNodeGetDependentNodes),
    ALLRANKS_ALIAS(cuGraphRemoveDependencies),
    ALLRANKS_ALIAS(cuGraphicsResourceGetMappedPointer),
    ALLRANKS_ALIAS(cuGraphicsResourceSetMapFlags),
    ALLRANKS_ALIAS(cuMemcpy3DBatchAsync),
    ALLRANKS_ALIAS(cuMemcpyAtoA),
    ALLRANKS_ALIAS(cuMemcpyAtoD),
    ALLRANKS_ALIAS(cuMemcpyAtoH),
    ALLRANKS_ALIAS(cuMemcpyAtoHAsync),
    ALLRANKS_ALIAS(cuMemcpyBatchAsync),
    ALLRANKS_ALIAS(cuMemcpyDtoA),
    ALLRANKS_ALIAS(cuMemcpyHtoA),
    ALLRANKS_ALIAS(cuMemcpyHtoAAsync),
    ALLRANKS_ALIAS(cuStreamBatchMemOp),
    ALLRANKS_ALIAS(cuStreamUpdateCaptureDependencies),
    ALLRANKS_ALIAS(cuStreamWaitValue32),
    ALLRANKS_ALIAS(cuStreamWaitValue64),
    ALLRANKS_ALIAS(cuStreamWriteValue32),
    ALLRANKS_ALIAS(cuStreamWriteValue64),
    ALLRANKS_ALIAS(cuTexRefGetAddress),
    ALLRANKS_ALIAS(cuTexRefSetAddress),
    ALLRANKS_ALIAS(cuTexRefSetAddress2D),
    ALLRANKS_ALIAS(cuGetProcAddress),
};

void* Lookup(const char* name) {
  static void* self = [] {
    Dl_info info;
    dladdr(reinterpret_cast<void*>(&cuInit), &info);
    return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  }();
  return self != nullptr ? dlsym(self, name) : nullptr;
}

}  // namespace

CUresult cuGetProcAddress(const char* name, void** function, int, cuuint64_t flags,
                          CUdriverProcAddressQueryResult* status) {
  if (name == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  char symbol[256];
  snprintf(symbol, sizeof symbol, "%s", name);
  for (const Alias& alias : kAliases) {
    if (strcmp(alias.name, name) == 0) snprintf(symbol, sizeof symbol, "%s", alias.symbol);
  }
  *function = nullptr;
  if ((flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0) {
    char per_thread[272];
    for (const char* suffix : {"_ptsz", "_ptds"}) {
      snprintf(per_thread, sizeof per_thread, "%s%s", symbol, suffix);
      if (*function == nullptr) *function = Lookup(per_thread);
    }
  }
  if (*function == nullptr) *function = Lookup(symbol);
  if (status != nullptr) {
    *status =
        *function != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
#undef cuGetProcAddress
ALLRANKS_EXPORT CUresult cuGetProcAddress(const char* name, void** function, int version,
                                          cuuint64_t flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}

// A runtime that is linked statically asks for private tables of the real driver.
CUresult cuGetExportTable(const void** table, const CUuuid*) {
  static std::atomic<bool> said{false};
  if (!said.exchange(true)) {
    fprintf(stderr,
            "allranks: this program has a static CUDA runtime that is not redirected, which needs "
            "private "
            "interfaces of the real driver. Do not strip it, or relink it with `nvcc -cudart "
            "shared`.\n");
  }
  if (table != nullptr) *table = nullptr;
  return CUDA_ERROR_NOT_SUPPORTED;
}

ALLRANKS_EXPORT CUresult cuProfilerStart() { return CUDA_SUCCESS; }
ALLRANKS_EXPORT CUresult cuProfilerStop() { return CUDA_SUCCESS; }
