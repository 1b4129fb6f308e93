// Contexts beyond the current one: calls that name a context, older names of functions whose
// arguments have not changed, and settings that mean nothing to the node.
#include "shim/cuda/capture.h"
#include "shim/cuda/driver.h"

using namespace allranks::shim;
namespace wire = allranks::wire;

namespace {

// The context, or the current one for null.
CUresult ContextOf(CUcontext handle, Context** context) {
  if (handle == nullptr) return Current(context);
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  *context = TheDriver().contexts.Find(handle);
  return *context != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

// Of cuCtxRecordEvent and cuCtxWaitEvent: here null is no context.
CUresult ContextAndEvent(CUcontext context_handle, CUevent event_handle, Context** context,
                         Event** event) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  *context = TheDriver().contexts.Find(context_handle);
  if (*context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *event = TheDriver().events.Find(event_handle);
  return *event != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace

CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext handle) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context;
  const CUresult result = ContextOf(handle, &context);
  if (result == CUDA_SUCCESS) *device = context->device;
  return result;
}

CUresult cuCtxSynchronize_v2(CUcontext handle) {
  Context* context;
  CUresult result = ContextOf(handle, &context);
  if (result != CUDA_SUCCESS) return result;
  result = cuCtxPushCurrent(reinterpret_cast<CUcontext>(context));
  if (result != CUDA_SUCCESS) return result;
  result = cuCtxSynchronize();
  cuCtxPopCurrent(nullptr);
  return result;
}

CUresult cuCtxRecordEvent(CUcontext context_handle, CUevent event_handle) {
  Context* context;
  Event* event;
  CUresult result = ContextAndEvent(context_handle, event_handle, &context, &event);
  if (result != CUDA_SUCCESS) return result;
  if (event->device != context->device && !event->imported) return CUDA_ERROR_INVALID_HANDLE;
  result = CheckContextUse(context->device, 0);
  if (result != CUDA_SUCCESS) return result;
  event->capture = 0;
  event->tail.clear();
  wire::RecordContext request;
  request.device = context->device;
  request.event = event->id;
  return Result(Call(request));
}

CUresult cuCtxWaitEvent(CUcontext context_handle, CUevent event_handle) {
  Context* context;
  Event* event;
  CUresult result = ContextAndEvent(context_handle, event_handle, &context, &event);
  if (result != CUDA_SUCCESS) return result;
  result = CheckContextUse(context->device, event->capture);
  if (result == CUDA_SUCCESS) result = CheckEventUse(event);
  if (result != CUDA_SUCCESS) return result;
  wire::WaitContext request;
  request.device = context->device;
  request.event = event->id;
  return Result(Call(request));
}

// Contexts are not counted any more: as many handles as one likes, until it is destroyed.
CUresult cuCtxAttach(CUcontext* handle, unsigned flags) {
  if (handle == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  Context* context;
  const CUresult result = Current(&context);
  if (result == CUDA_SUCCESS) *handle = reinterpret_cast<CUcontext>(context);
  return result;
}
CUresult cuCtxDetach(CUcontext handle) {
  Context* context;
  return ContextOf(handle, &context);
}

// Banks of shared memory have had one size since Maxwell.
CUresult cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  Context* context;
  const CUresult result = Current(&context);
  if (result != CUDA_SUCCESS) return result;
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
  return CUDA_SUCCESS;
}
CUresult cuCtxSetSharedMemConfig(CUsharedconfig) {
  Context* context;
  return Current(&context);
}
CUresult cuFuncSetSharedMemConfig(CUfunction function, CUsharedconfig) {
  return cuFuncLoad(function);
}

CUresult cuCtxResetPersistingL2Cache() {
  Context* context;
  return Current(&context);
}

CUresult cuDeviceGetExecAffinitySupport(int* supported, CUexecAffinityType type, CUdevice device) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (supported == nullptr || type >= CU_EXEC_AFFINITY_TYPE_MAX) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  *supported = 0;
  return CUDA_SUCCESS;
}

// --- memory of graphs: there are no nodes that allocate any --------------------------------------

CUresult cuDeviceGraphMemTrim(CUdevice device) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  return IsDevice(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute,
                                      void* value) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (value == nullptr || attribute > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
    return CUDA_ERROR_INVALID_VALUE;
  *static_cast<cuuint64_t*>(value) = 0;
  return CUDA_SUCCESS;
}
CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute,
                                      void* value) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  // Only the high-water marks can be set, and only to 0.
  const bool resets = value != nullptr && *static_cast<const cuuint64_t*>(value) == 0 &&
                      (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH ||
                       attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH);
  return resets ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// --- atomics over links --------------------------------------------------------------------------

// Between devices everything that works at home works over NVLink.
CUresult cuDeviceGetP2PAtomicCapabilities(unsigned* capabilities,
                                          const CUatomicOperation* operations, unsigned count,
                                          CUdevice source, CUdevice target) {
  if (capabilities == nullptr || operations == nullptr || count == 0)
    return CUDA_ERROR_INVALID_VALUE;
  int can = 0;
  const CUresult result = cuDeviceCanAccessPeer(&can, source, target);
  if (result != CUDA_SUCCESS) return result;
  if (source == target) return CUDA_ERROR_INVALID_DEVICE;
  constexpr unsigned kBoth = CU_ATOMIC_CAPABILITY_REDUCTION | CU_ATOMIC_CAPABILITY_SCALAR_32;
  constexpr unsigned kWide = kBoth | CU_ATOMIC_CAPABILITY_SCALAR_64;
  for (unsigned i = 0; i < count; ++i) {
    switch (operations[i]) {
      case CU_ATOMIC_OPERATION_INTEGER_ADD:
      case CU_ATOMIC_OPERATION_INTEGER_MIN:
      case CU_ATOMIC_OPERATION_INTEGER_MAX:
        capabilities[i] = kWide | CU_ATOMIC_CAPABILITY_SIGNED | CU_ATOMIC_CAPABILITY_UNSIGNED;
        break;
      case CU_ATOMIC_OPERATION_INTEGER_INCREMENT:
      case CU_ATOMIC_OPERATION_INTEGER_DECREMENT:
        capabilities[i] = kBoth | CU_ATOMIC_CAPABILITY_UNSIGNED;
        break;
      case CU_ATOMIC_OPERATION_AND:
      case CU_ATOMIC_OPERATION_OR:
      case CU_ATOMIC_OPERATION_XOR:
        capabilities[i] = kWide;
        break;
      case CU_ATOMIC_OPERATION_EXCHANGE:
      case CU_ATOMIC_OPERATION_CAS:
        capabilities[i] = CU_ATOMIC_CAPABILITY_SCALAR_32 | CU_ATOMIC_CAPABILITY_SCALAR_64 |
                          CU_ATOMIC_CAPABILITY_SCALAR_128;
        break;
      case CU_ATOMIC_OPERATION_FLOAT_ADD:
        capabilities[i] = kWide | CU_ATOMIC_CAPABILITY_VECTOR_32x4;
        break;
      case CU_ATOMIC_OPERATION_FLOAT_MIN:
      case CU_ATOMIC_OPERATION_FLOAT_MAX:
        capabilities[i] = 0;
        break;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (can == 0) capabilities[i] = 0;
  }
  return CUDA_SUCCESS;
}

// PCIe has none that the host's own atomics would respect.
CUresult cuDeviceGetHostAtomicCapabilities(unsigned* capabilities,
                                           const CUatomicOperation* operations, unsigned count,
                                           CUdevice device) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (capabilities == nullptr || operations == nullptr || count == 0)
    return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    if (operations[i] >= CU_ATOMIC_OPERATION_MAX) return CUDA_ERROR_INVALID_VALUE;
    capabilities[i] = 0;
  }
  return CUDA_SUCCESS;
}

// --- old names of what has not changed -----------------------------------------------------------

#undef cuCtxDestroy
#undef cuCtxPushCurrent
#undef cuCtxPopCurrent
#undef cuStreamDestroy
#undef cuEventDestroy
#undef cuDevicePrimaryCtxRelease
#undef cuDevicePrimaryCtxReset
#undef cuDevicePrimaryCtxSetFlags
#undef cuDeviceGetUuid
ALLRANKS_SYMBOL(CUresult, cuCtxDestroy, (CUcontext context)) { return cuCtxDestroy_v2(context); }
ALLRANKS_SYMBOL(CUresult, cuCtxPushCurrent, (CUcontext context)) {
  return cuCtxPushCurrent_v2(context);
}
ALLRANKS_SYMBOL(CUresult, cuCtxPopCurrent, (CUcontext * context)) {
  return cuCtxPopCurrent_v2(context);
}
ALLRANKS_SYMBOL(CUresult, cuStreamDestroy, (CUstream stream)) { return cuStreamDestroy_v2(stream); }
ALLRANKS_SYMBOL(CUresult, cuEventDestroy, (CUevent event)) { return cuEventDestroy_v2(event); }
ALLRANKS_SYMBOL(CUresult, cuDevicePrimaryCtxRelease, (CUdevice device)) {
  return cuDevicePrimaryCtxRelease_v2(device);
}
ALLRANKS_SYMBOL(CUresult, cuDevicePrimaryCtxReset, (CUdevice device)) {
  return cuDevicePrimaryCtxReset_v2(device);
}
ALLRANKS_SYMBOL(CUresult, cuDevicePrimaryCtxSetFlags, (CUdevice device, unsigned flags)) {
  return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}
ALLRANKS_SYMBOL(CUresult, cuDeviceGetUuid, (CUuuid * uuid, CUdevice device)) {
  return cuDeviceGetUuid_v2(uuid, device);
}

ALLRANKS_SYMBOL(CUresult, cuStreamGetCtx_v2,
                (CUstream stream, CUcontext* context, CUgreenCtx* green)) {
  if (green != nullptr) *green = nullptr;
  return cuStreamGetCtx(stream, context);
}
ALLRANKS_SYMBOL(CUresult, cuStreamGetCtx_v2_ptsz,
                (CUstream stream, CUcontext* context, CUgreenCtx* green)) {
  if (green != nullptr) *green = nullptr;
  return cuStreamGetCtx(stream == nullptr ? CU_STREAM_PER_THREAD : stream, context);
}
