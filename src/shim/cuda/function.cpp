// Attributes of functions and kernels. What the node says about a kernel is fixed; what a program
// sets is kept here, except the limit of dynamic shared memory, which the node enforces.
#include "shim/cuda/driver.h"

using namespace allranks::shim;
namespace wire = allranks::wire;

namespace {

CUresult GetAttribute(int* value, CUfunction_attribute attribute, const Function* function) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const wire::GetKernelReply& info = function->info;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = static_cast<int>(info.max_threads);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = static_cast<int>(info.static_shared);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
      *value = static_cast<int>(info.const_bytes);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *value = static_cast<int>(info.local);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = static_cast<int>(info.registers);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
      *value = static_cast<int>(info.ptx_version);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = static_cast<int>(info.binary_version);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: {
      // Until it is raised: what fits beside the static part without opting in.
      const wire::DeviceInfo& device =
          TheDriver().devices[static_cast<std::size_t>(function->module->device)];
      const int standard =
          static_cast<int>(device.cta_shared_bytes) - static_cast<int>(info.static_shared);
      *value = function->max_dynamic_shared > 0 ? function->max_dynamic_shared
                                                : (standard > 0 ? standard : 0);
      return CUDA_SUCCESS;
    }
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *value = function->carveout;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      *value = function->non_portable_cluster;
      return CUDA_SUCCESS;
    default:
      *value = 0;
      return attribute < CU_FUNC_ATTRIBUTE_MAX ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult SetAttribute(Function* function, CUfunction_attribute attribute, int value) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: {
      if (value < 0) return CUDA_ERROR_INVALID_VALUE;
      Hold hold(TheDriver().load_lock);
      return SetMaxDynamicShared(function, value);
    }
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      function->carveout = value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      function->non_portable_cluster = value != 0;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
  Context* context;
  CUresult result = Current(&context);
  if (result != CUDA_SUCCESS) return result;
  Function* function;
  result = ResolveFunction(handle, context->device, &function);
  return result == CUDA_SUCCESS ? GetAttribute(value, attribute, function) : result;
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  Context* context;
  CUresult result = Current(&context);
  if (result != CUDA_SUCCESS) return result;
  Function* function;
  result = ResolveFunction(handle, context->device, &function);
  return result == CUDA_SUCCESS ? SetAttribute(function, attribute, value) : result;
}

CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel handle,
                              CUdevice device) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  Kernel* kernel = TheDriver().kernels.Find(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Function* function;
  const CUresult result = FunctionOf(kernel, device, &function);
  return result == CUDA_SUCCESS ? GetAttribute(value, attribute, function) : result;
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle,
                              CUdevice device) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  Kernel* kernel = TheDriver().kernels.Find(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Function* function;
  const CUresult result = FunctionOf(kernel, device, &function);
  return result == CUDA_SUCCESS ? SetAttribute(function, attribute, value) : result;
}

CUresult cuFuncSetCacheConfig(CUfunction, CUfunc_cache) { return Ready(); }
CUresult cuKernelSetCacheConfig(CUkernel, CUfunc_cache, CUdevice) { return Ready(); }

CUresult cuFuncGetName(const char** name, CUfunction handle) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const Function* function = TheDriver().functions.Find(handle)) {
    *name = function->name.c_str();
    return CUDA_SUCCESS;
  }
  return cuKernelGetName(name, reinterpret_cast<CUkernel>(handle));
}

CUresult cuFuncGetModule(CUmodule* module, CUfunction handle) {
  Context* context;
  CUresult result = Current(&context);
  if (result != CUDA_SUCCESS) return result;
  Function* function;
  result = ResolveFunction(handle, context->device, &function);
  if (result == CUDA_SUCCESS) *module = reinterpret_cast<CUmodule>(function->module);
  return result;
}

CUresult cuFuncGetParamInfo(CUfunction handle, size_t index, size_t* offset, size_t* size) {
  Context* context;
  CUresult result = Current(&context);
  if (result != CUDA_SUCCESS) return result;
  Function* function;
  result = ResolveFunction(handle, context->device, &function);
  if (result != CUDA_SUCCESS) return result;
  const wire::GetKernelReply& info = function->info;
  if (index >= info.param_offsets.size()) return CUDA_ERROR_INVALID_VALUE;
  if (offset != nullptr) *offset = info.param_offsets[index];
  if (size != nullptr) *size = info.param_sizes[index];
  return CUDA_SUCCESS;
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* size) {
  return cuFuncGetParamInfo(reinterpret_cast<CUfunction>(kernel), index, offset, size);
}

CUresult cuFuncLoad(CUfunction handle) {
  Context* context;
  const CUresult result = Current(&context);
  Function* function;
  return result != CUDA_SUCCESS ? result : ResolveFunction(handle, context->device, &function);
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction handle) {
  const CUresult result = cuFuncLoad(handle);
  if (result == CUDA_SUCCESS && state != nullptr) *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return result;
}
