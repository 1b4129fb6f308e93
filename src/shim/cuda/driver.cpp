// Initialisation, contexts and the thread's current one.
#include "shim/cuda/driver.h"

#include <stdio.h>
#include <stdlib.h>

#include "shim/cuda/capture.h"

namespace allranks::shim {
namespace {

constexpr int kMaxStack = 32;
thread_local Context* t_stack[kMaxStack];
thread_local int t_depth = 0;

// The devices that CUDA_VISIBLE_DEVICES names by number or by the beginning of "GPU-" and its UUID.
// The list ends at the first that does not exist or was named before.
std::vector<std::int32_t> VisibleDevices(const std::string& wanted,
                                         const std::vector<wire::DeviceInfo>& devices) {
  std::vector<std::int32_t> visible;
  for (std::size_t at = 0; at <= wanted.size();) {
    std::size_t end = wanted.find(',', at);
    if (end == std::string::npos) end = wanted.size();
    std::string name = wanted.substr(at, end - at);
    at = end + 1;
    while (!name.empty() && name.front() == ' ') name.erase(0, 1);
    while (!name.empty() && name.back() == ' ') name.pop_back();
    int found = -1;
    if (name.starts_with("GPU-") && name.size() > 4) {
      for (std::size_t i = 0; i < devices.size(); ++i) {
        if (!wire::UuidText(devices[i]).starts_with(name)) continue;
        if (found >= 0) return visible;  // names several
        found = static_cast<int>(i);
      }
    } else if (!name.empty() && name.find_first_not_of("0123456789") == std::string::npos &&
               name.size() < 5) {
      found = atoi(name.c_str());
    }
    if (found < 0 || static_cast<std::size_t>(found) >= devices.size()) break;
    for (const std::int32_t known : visible) {
      if (known == found) return visible;
    }
    visible.push_back(found);
  }
  return visible;
}

Context* FindContext(CUcontext handle) { return TheDriver().contexts.Find(handle); }
CUcontext ToHandle(Context* context) { return reinterpret_cast<CUcontext>(context); }

}  // namespace

Driver& TheDriver() {
  static Driver* driver = new Driver;
  return *driver;
}

CUresult Ready() {
  if (ar_cuda_lost_by_fork()) return CUDA_ERROR_NOT_INITIALIZED;
  if (InHostFunction()) return CUDA_ERROR_NOT_PERMITTED;
  return TheDriver().initialised.load() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

bool IsDevice(int device) {
  return device >= 0 && static_cast<std::size_t>(device) < TheDriver().devices.size();
}

Context* CurrentContext() { return t_depth > 0 ? t_stack[t_depth - 1] : nullptr; }

CUresult Current(Context** context) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  *context = CurrentContext();
  return *context != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

}  // namespace allranks::shim

using namespace allranks::shim;
namespace wire = allranks::wire;

CUresult cuInit(unsigned flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (ar_cuda_lost_by_fork()) return CUDA_ERROR_NOT_INITIALIZED;
  Driver& driver = TheDriver();
  if (driver.initialised.load()) return CUDA_SUCCESS;
  Hold hold(driver.init_lock);
  if (driver.initialised.load()) return CUDA_SUCCESS;
  wire::InitReply reply;
  const int status = Call(wire::Init{}, &reply);
  if (status == CUDA_ERROR_UNKNOWN) {
    fprintf(stderr,
            "allranks: no node is running; start the program with `allranks exec -- PROGRAM`\n");
  }
  if (status != 0) return Result(status);
  if (reply.devices.size() > kMaxDevices) reply.devices.resize(kMaxDevices);
  const bool first = driver.all_devices.empty();  // not again: NVML has pointers into it
  if (first) {
    driver.all_devices = reply.devices;
    for (std::size_t i = 0; i < reply.devices.size(); ++i)
      driver.visible.push_back(static_cast<std::int32_t>(i));
  }
  if (const char* wanted = getenv("CUDA_VISIBLE_DEVICES")) {
    wire::SetVisible visible;
    visible.devices = VisibleDevices(wanted, reply.devices);
    std::vector<wire::DeviceInfo> seen;
    for (const int device : visible.devices)
      seen.push_back(reply.devices[static_cast<std::size_t>(device)]);
    reply.devices = std::move(seen);
    if (first) driver.visible = visible.devices;
    if (const int set = Call(visible); set != 0) return Result(set);
  }
  if (reply.devices.empty()) return CUDA_ERROR_NO_DEVICE;
  driver.devices = std::move(reply.devices);
  for (std::size_t i = 0; i < driver.devices.size(); ++i) {
    driver.primary[i].device = static_cast<int>(i);
    driver.primary[i].primary = true;
    driver.contexts.Add(&driver.primary[i]);
  }
  ar_cuda_initialised();
  driver.initialised.store(true);
  return CUDA_SUCCESS;
}

const std::vector<wire::DeviceInfo>* allranks::shim::ar_all_devices() {
  Driver& driver = TheDriver();
  {
    Hold hold(driver.init_lock);
    if (!driver.all_devices.empty()) return &driver.all_devices;
  }
  cuInit(0);
  return &driver.all_devices;
}

unsigned long long allranks::shim::ar_free_bytes(int device) {
  const Driver& driver = TheDriver();
  for (std::size_t i = 0; i < driver.visible.size(); ++i) {
    if (driver.visible[i] != device) continue;
    wire::MemInfo request;
    request.device = static_cast<std::int32_t>(i);
    wire::MemInfoReply reply;
    if (Call(request, &reply) == 0) return reply.free;
  }
  return driver.all_devices[static_cast<std::size_t>(device)].memory_bytes;
}

void allranks::shim::ar_link_traffic(int device, std::vector<wire::LinkBytes>* links) {
  wire::LinkTrafficReply reply;
  if (Call(wire::LinkTraffic{device}, &reply) == 0) *links = std::move(reply.links);
}

CUresult cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = kDriverVersion;
  return CUDA_SUCCESS;
}

// --- primary contexts --------------------------------------------------------------------------

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  Driver& driver = TheDriver();
  Hold hold(driver.context_lock);
  ++driver.primary[device].retained;
  *context = reinterpret_cast<CUcontext>(&driver.primary[device]);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  Driver& driver = TheDriver();
  Hold hold(driver.context_lock);
  if (driver.primary[device].retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
  --driver.primary[device].retained;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  Driver& driver = TheDriver();
  {
    // Modules on the device go with it and are loaded again when they are used again.
    Hold hold(driver.load_lock);
    ForgetModules(device);
  }
  ForgetPools(device);
  wire::ResetDevice reset;
  reset.device = device;
  return Result(Call(reset));
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (flags != nullptr) *flags = TheDriver().primary[device].flags;
  if (active != nullptr) *active = TheDriver().primary[device].retained > 0;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  TheDriver().primary[device].flags = flags;
  return CUDA_SUCCESS;
}

// --- the current context -----------------------------------------------------------------------

CUresult cuCtxSetCurrent(CUcontext handle) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (handle == nullptr) {
    if (t_depth > 0) --t_depth;
    return CUDA_SUCCESS;
  }
  Context* context = FindContext(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (t_depth == 0) t_depth = 1;
  t_stack[t_depth - 1] = context;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *context = ToHandle(CurrentContext());
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext handle) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  Context* context = FindContext(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (t_depth == kMaxStack) return CUDA_ERROR_OUT_OF_MEMORY;
  t_stack[t_depth++] = context;
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext* context) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (t_depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
  --t_depth;
  if (context != nullptr) *context = ToHandle(t_stack[t_depth]);
  return CUDA_SUCCESS;
}

namespace {

// The node has one context per process and device; a second one shares it.
CUresult CreateContext(CUcontext* handle, unsigned flags, CUdevice device) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (t_depth == kMaxStack) return CUDA_ERROR_OUT_OF_MEMORY;
  auto* context = new Context;
  context->device = device;
  context->flags = flags;
  TheDriver().contexts.Add(context);
  t_stack[t_depth++] = context;
  *handle = ToHandle(context);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuCtxCreate(CUcontext* context, CUctxCreateParams*, unsigned flags, CUdevice device) {
  return CreateContext(context, flags, device);
}
#undef cuCtxCreate
ALLRANKS_SYMBOL(CUresult, cuCtxCreate_v2, (CUcontext * context, unsigned flags, CUdevice device)) {
  return CreateContext(context, flags, device);
}
ALLRANKS_SYMBOL(CUresult, cuCtxCreate_v3,
                (CUcontext * context, CUexecAffinityParam*, int, unsigned flags, CUdevice device)) {
  return CreateContext(context, flags, device);
}

CUresult cuCtxDestroy(CUcontext handle) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  Context* context = FindContext(handle);
  if (context == nullptr || context->primary) return CUDA_ERROR_INVALID_CONTEXT;
  if (CurrentContext() == context) --t_depth;
  TheDriver().contexts.Remove(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
  Context* context;
  const CUresult ready = Current(&context);
  if (ready != CUDA_SUCCESS) return ready;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = context->device;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned* flags) {
  Context* context;
  const CUresult ready = Current(&context);
  if (ready != CUDA_SUCCESS) return ready;
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = context->flags;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned flags) {
  Context* context;
  const CUresult ready = Current(&context);
  if (ready == CUDA_SUCCESS) context->flags = flags;
  return ready;
}

CUresult cuCtxGetId(CUcontext handle, unsigned long long* id) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  Context* context = handle == nullptr ? CurrentContext() : FindContext(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = static_cast<unsigned long long>(context->device) + 1;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext, unsigned* version) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = 3020;
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize() {
  Context* context;
  const CUresult ready = Current(&context);
  if (ready != CUDA_SUCCESS) return ready;
  const CUresult captured = CheckUnsafeCall();
  if (captured != CUDA_SUCCESS) return captured;
  wire::DeviceSync sync;
  sync.device = context->device;
  return Result(Call(sync));
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  Context* context;
  const CUresult ready = Current(&context);
  if (ready != CUDA_SUCCESS) return ready;
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return CUDA_SUCCESS;
}

// The node bounds stacks by itself; of what is set here it asks for the sizes of the printf buffer
// and of the heap.
CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  Context* context;
  const CUresult ready = Current(&context);
  if (ready != CUDA_SUCCESS) return ready;
  if (limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  if (limit == CU_LIMIT_PRINTF_FIFO_SIZE || limit == CU_LIMIT_MALLOC_HEAP_SIZE) {
    const CUresult set = Result(Call(wire::SetLimit{context->device, limit, value}));
    if (set != CUDA_SUCCESS) return set;
  }
  if (static_cast<std::size_t>(limit) < context->limits.size()) context->limits[limit] = value;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
  Context* context;
  const CUresult ready = Current(&context);
  if (ready != CUDA_SUCCESS) return ready;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (limit < 0 || static_cast<std::size_t>(limit) >= context->limits.size()) {
    return CUDA_ERROR_UNSUPPORTED_LIMIT;
  }
  *value = context->limits[limit];
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
  Context* context;
  const CUresult ready = Current(&context);
  if (ready == CUDA_SUCCESS && config != nullptr) *config = CU_FUNC_CACHE_PREFER_NONE;
  return ready;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache) {
  Context* context;
  return Current(&context);
}

// --- peers -------------------------------------------------------------------------------------

CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device) || !IsDevice(peer)) return CUDA_ERROR_INVALID_DEVICE;
  wire::CanAccessPeer request;
  request.device = device;
  request.peer = peer;
  wire::CanAccessPeerReply reply;
  const int status = Call(request, &reply);
  *can = reply.can;
  return Result(status);
}

CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice source,
                                 CUdevice destination) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  int can = 0;
  const CUresult result = cuDeviceCanAccessPeer(&can, source, destination);
  if (result != CUDA_SUCCESS) return result;
  *value = attribute == CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ? 0 : can;
  return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer_handle, unsigned flags) {
  Context* context;
  const CUresult ready = Current(&context);
  if (ready != CUDA_SUCCESS) return ready;
  Context* peer = FindContext(peer_handle);
  if (peer == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  wire::EnablePeer request;
  request.device = context->device;
  request.peer = peer->device;
  return Result(Call(request));
}

CUresult cuCtxDisablePeerAccess(CUcontext peer_handle) {
  Context* context;
  const CUresult ready = Current(&context);
  if (ready != CUDA_SUCCESS) return ready;
  Context* peer = FindContext(peer_handle);
  if (peer == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  wire::DisablePeer request;
  request.device = context->device;
  request.peer = peer->device;
  return Result(Call(request));
}
