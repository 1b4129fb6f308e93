// Devices, threads' state, errors.
#include "shim/cudart/runtime.h"

#include <string.h>

#include <atomic>
#include <cstdint>

#include "shim/abi.h"

namespace allranks::shim {
namespace {

thread_local int t_device = 0;
thread_local cudaError_t t_last = cudaSuccess;

struct Entry {
  int number;
  const char* name;
  const char* text;
};
constexpr Entry kErrors[] = {
#define ALLRANKS_ERROR(number, driver, runtime, text) {number, runtime, text},
#include "shim/errors.inc"
#undef ALLRANKS_ERROR
};

const Entry* FindError(cudaError_t error) {
  for (const Entry& entry : kErrors) {
    if (entry.number == static_cast<int>(error) && entry.name != nullptr) return &entry;
  }
  return nullptr;
}

// Retained once for the life of the process, like the runtime of the real library does.
CUresult PrimaryContext(int device, CUcontext* context) {
  static std::atomic<CUcontext> retained[128];
  if (device < 0 || device >= 128) return CUDA_ERROR_INVALID_DEVICE;
  *context = retained[device].load();
  if (*context != nullptr) return CUDA_SUCCESS;
  const CUresult result = cuDevicePrimaryCtxRetain(context, device);
  if (result == CUDA_SUCCESS) retained[device].store(*context);
  return result;
}

}  // namespace

thread_local Arguments* Arguments::current_ = nullptr;

namespace {

// The node wants to know of errors where it wants stacks.
bool ErrorsWanted() {
  std::uint64_t frame;
  return ar_stack(&frame, 1) != 0;
}

void Report(cudaError_t error) {
  if (!ErrorsWanted()) return;
  char arguments[256];
  Arguments::Write(arguments, sizeof arguments);
  wire::ApiError message;
  message.error = static_cast<std::int32_t>(error);
  message.name = cudaGetErrorName(error);
  message.text = cudaGetErrorString(error);
  message.arguments = arguments;
  wire::Empty reply;
  Call(message, &reply);
}

}  // namespace

cudaError_t Note(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) {
    t_last = error;
    Report(error);
  }
  return error;
}

CUresult InitDriver() { return cuInit(0); }

CUresult Enter() {
  CUresult result = InitDriver();
  if (result != CUDA_SUCCESS) return result;
  CUcontext context = nullptr;
  result = cuCtxGetCurrent(&context);
  if (result != CUDA_SUCCESS || context != nullptr) return result;
  result = PrimaryContext(t_device, &context);
  return result == CUDA_SUCCESS ? cuCtxSetCurrent(context) : result;
}

int CurrentDevice() {
  CUdevice device;
  return cuCtxGetDevice(&device) == CUDA_SUCCESS ? device : t_device;
}

}  // namespace allranks::shim

using namespace allranks::shim;

extern "C" int ar_not_supported(const char* name, int error, std::atomic<bool>* said);
// What stubs call: the error is the thread's last one, too.
extern "C" __attribute__((visibility("hidden"))) int cudaArNotSupported(const char* name, int error,
                                                                        std::atomic<bool>* said) {
  return Note(static_cast<cudaError_t>(ar_not_supported(name, error, said)));
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  t_last = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() {
  if (t_last != cudaSuccess && ErrorsWanted()) {
    allranks::wire::Empty reply;
    Call(allranks::wire::ApiErrorSeen{}, &reply);
  }
  return t_last;
}

const char* cudaGetErrorName(cudaError_t error) {
  const Entry* entry = FindError(error);
  return entry != nullptr ? entry->name : "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  const Entry* entry = FindError(error);
  if (entry == nullptr) return "unrecognized error code";
  return entry->text != nullptr ? entry->text : entry->name;
}

cudaError_t cudaDriverGetVersion(int* version) { return Note(cuDriverGetVersion(version)); }

cudaError_t cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return Note(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}

// --- devices -----------------------------------------------------------------------------------

cudaError_t cudaGetDeviceCount(int* count) {
  if (count == nullptr) return Note(cudaErrorInvalidValue);
  *count = 0;
  const CUresult result = InitDriver();
  return Note(result != CUDA_SUCCESS ? result : cuDeviceGetCount(count));
}

cudaError_t cudaSetDevice(int device) {
  CUresult result = InitDriver();
  if (result != CUDA_SUCCESS) return Note(result);
  CUcontext context;
  result = PrimaryContext(device, &context);
  if (result == CUDA_SUCCESS) result = cuCtxSetCurrent(context);
  if (result == CUDA_SUCCESS) t_device = device;
  return Note(result);
}

cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
  const CUresult result = InitDriver();
  if (result != CUDA_SUCCESS) return Note(result);
  CUcontext context;
  return Note(PrimaryContext(device, &context));
}

cudaError_t cudaGetDevice(int* device) {
  if (device == nullptr) return Note(cudaErrorInvalidValue);
  const CUresult result = InitDriver();
  if (result != CUDA_SUCCESS) return Note(result);
  *device = CurrentDevice();
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  const CUresult result = InitDriver();
  if (result != CUDA_SUCCESS) return Note(result);
  // The two APIs number the attributes alike.
  return Note(cuDeviceGetAttribute(value, static_cast<CUdevice_attribute>(attribute), device));
}

cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp*) {
  if (device == nullptr) return Note(cudaErrorInvalidValue);
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
  const CUresult result = InitDriver();
  return Note(result != CUDA_SUCCESS ? result : cuDeviceGetPCIBusId(text, size, device));
}

cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* text) {
  const CUresult result = InitDriver();
  return Note(result != CUDA_SUCCESS ? result : cuDeviceGetByPCIBusId(device, text));
}

cudaError_t cudaDeviceSynchronize() {
  ALLRANKS_ENTER();
  return Note(cuCtxSynchronize());
}

cudaError_t cudaDeviceReset() {
  ALLRANKS_ENTER();
  return Note(cuDevicePrimaryCtxReset(CurrentDevice()));
}

cudaError_t cudaSetDeviceFlags(unsigned flags) {
  const CUresult result = InitDriver();
  return Note(result != CUDA_SUCCESS ? result : cuDevicePrimaryCtxSetFlags(CurrentDevice(), flags));
}

cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  ALLRANKS_ENTER();
  return Note(cuCtxGetFlags(flags));
}

cudaError_t cudaSetValidDevices(int*, int) { return cudaSuccess; }

cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  ALLRANKS_ENTER();
  return Note(cuCtxGetLimit(value, static_cast<CUlimit>(limit)));
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  ALLRANKS_ENTER();
  return Note(cuCtxSetLimit(static_cast<CUlimit>(limit), value));
}

cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  if (config == nullptr) return Note(cudaErrorInvalidValue);
  *config = cudaFuncCachePreferNone;
  return cudaSuccess;
}
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  ALLRANKS_ENTER();
  return Note(cuCtxGetStreamPriorityRange(least, greatest));
}

// --- peers -------------------------------------------------------------------------------------

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  const CUresult result = InitDriver();
  return Note(result != CUDA_SUCCESS ? result : cuDeviceCanAccessPeer(can, device, peer));
}

cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int source,
                                      int destination) {
  const CUresult result = InitDriver();
  if (result != CUDA_SUCCESS) return Note(result);
  return Note(cuDeviceGetP2PAttribute(value, static_cast<CUdevice_P2PAttribute>(attribute), source,
                                      destination));
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  ALLRANKS_ENTER();
  CUcontext context;
  const CUresult result = PrimaryContext(peer, &context);
  return Note(result != CUDA_SUCCESS ? result : cuCtxEnablePeerAccess(context, flags));
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  ALLRANKS_ENTER();
  CUcontext context;
  const CUresult result = PrimaryContext(peer, &context);
  return Note(result != CUDA_SUCCESS ? result : cuCtxDisablePeerAccess(context));
}

ALLRANKS_SYMBOL(cudaError_t, cudaProfilerStart, ()) { return cudaSuccess; }
ALLRANKS_SYMBOL(cudaError_t, cudaProfilerStop, ()) { return cudaSuccess; }
