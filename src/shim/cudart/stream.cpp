// Streams and events of the runtime API. A handle is the driver's own.
#include <string.h>

#include "shim/cudart/runtime.h"

using namespace allranks::shim;

namespace {

cudaStream_t OrPerThread(cudaStream_t stream) {
  return stream == nullptr ? cudaStreamPerThread : stream;
}

}  // namespace

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  ALLRANKS_ENTER();
  return Note(cuStreamCreateWithPriority(stream, flags, priority));
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithPriority(stream, 0, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  ALLRANKS_ENTER();
  return Note(cuStreamDestroy(stream));
}

ALLRANKS_STREAM_CALL(cudaStreamQuery, (cudaStream_t stream), cuStreamQuery(stream),
                     cuStreamQuery(OrPerThread(stream)))
ALLRANKS_STREAM_CALL(cudaStreamSynchronize, (cudaStream_t stream), cuStreamSynchronize(stream),
                     cuStreamSynchronize(OrPerThread(stream)))
ALLRANKS_STREAM_CALL(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags),
                     cuStreamWaitEvent(stream, event, flags),
                     cuStreamWaitEvent(OrPerThread(stream), event, flags))
ALLRANKS_STREAM_CALL(cudaStreamGetFlags, (cudaStream_t stream, unsigned* flags),
                     cuStreamGetFlags(stream, flags), cuStreamGetFlags(OrPerThread(stream), flags))
ALLRANKS_STREAM_CALL(cudaStreamGetPriority, (cudaStream_t stream, int* priority),
                     cuStreamGetPriority(stream, priority),
                     cuStreamGetPriority(OrPerThread(stream), priority))
ALLRANKS_STREAM_CALL(cudaStreamGetId, (cudaStream_t stream, unsigned long long* id),
                     cuStreamGetId(stream, id), cuStreamGetId(OrPerThread(stream), id))
ALLRANKS_STREAM_CALL(cudaStreamGetDevice, (cudaStream_t stream, int* device),
                     cuStreamGetDevice(stream, device),
                     cuStreamGetDevice(OrPerThread(stream), device))
ALLRANKS_STREAM_CALL(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream),
                     cuEventRecord(event, stream), cuEventRecord(event, OrPerThread(stream)))
ALLRANKS_STREAM_CALL(cudaEventRecordWithFlags,
                     (cudaEvent_t event, cudaStream_t stream, unsigned flags),
                     cuEventRecordWithFlags(event, stream, flags),
                     cuEventRecordWithFlags(event, OrPerThread(stream), flags))

ALLRANKS_STREAM_CALL(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void* data),
                     cuLaunchHostFunc(stream, function, data),
                     cuLaunchHostFunc(OrPerThread(stream), function, data))
// The two callbacks differ in nothing but the name of the error's type.
ALLRANKS_STREAM_CALL(cudaStreamAddCallback,
                     (cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                      unsigned flags),
                     cuStreamAddCallback(stream, reinterpret_cast<CUstreamCallback>(callback), data,
                                         flags),
                     cuStreamAddCallback(OrPerThread(stream),
                                         reinterpret_cast<CUstreamCallback>(callback), data, flags))

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  ALLRANKS_ENTER();
  return Note(cuEventCreate(event, flags));
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  ALLRANKS_ENTER();
  return Note(cuEventDestroy(event));
}
static_assert(sizeof(cudaIpcEventHandle_t) == sizeof(CUipcEventHandle));
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  ALLRANKS_ENTER();
  return Note(cuIpcGetEventHandle(reinterpret_cast<CUipcEventHandle*>(handle), event));
}
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  ALLRANKS_ENTER();
  CUipcEventHandle driver;
  memcpy(&driver, &handle, sizeof driver);
  return Note(cuIpcOpenEventHandle(event, driver));
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  ALLRANKS_ENTER();
  return Note(cuEventQuery(event));
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  ALLRANKS_ENTER();
  return Note(cuEventSynchronize(event));
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  ALLRANKS_ENTER();
  return Note(cuEventElapsedTime(milliseconds, start, end));
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version,
                                             unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* status) {
  ALLRANKS_ENTER();
  CUdriverProcAddressQueryResult driver_status;
  const CUresult result =
      cuGetProcAddress(name, function, static_cast<int>(version), flags, &driver_status);
  if (status != nullptr) *status = static_cast<cudaDriverEntryPointQueryResult>(driver_status);
  return Note(result);
}
ALLRANKS_SYMBOL(cudaError_t, cudaGetDriverEntryPointByVersion_ptsz,
                (const char* name, void** function, unsigned version, unsigned long long flags,
                 cudaDriverEntryPointQueryResult* status)) {
  return cudaGetDriverEntryPointByVersion(
      name, function, version, flags | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, status);
}
ALLRANKS_SYMBOL(cudaError_t, cudaGetDriverEntryPoint_ptsz,
                (const char* name, void** function, unsigned long long flags,
                 cudaDriverEntryPointQueryResult* status)) {
  return cudaGetDriverEntryPointByVersion_ptsz(name, function, CUDART_VERSION, flags, status);
}
ALLRANKS_SYMBOL(cudaError_t, cudaGetDriverEntryPoint,
                (const char* name, void** function, unsigned long long flags,
                 cudaDriverEntryPointQueryResult* status)) {
  return cudaGetDriverEntryPointByVersion(name, function, CUDART_VERSION, flags, status);
}
