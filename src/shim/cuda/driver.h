// The inside of libcuda.so.1: what stands behind the driver API's handles, and the helpers that
// every entry point uses. All real state is the node's; a handle here is a node's number and the
// device it belongs to. Handles are looked up in a set before they are followed, so a stale one is
// an error code.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/address_map.h"
#include "shim/abi.h"
#include "shim/cuda/names.h"
#include "wire/device_facts.h"
#include "wire/messages.h"

namespace allranks::shim {

using allranks::IsDeviceAddress;
using allranks::IsPinnedAddress;
using allranks::IsReservedAddress;

inline constexpr int kMaxDevices = 128;
inline constexpr int kDriverVersion = wire::kCudaVersion;

// Visible to the node when contended, so it may be held across calls to it.
class Mutex {
 public:
  void Lock() { pthread_mutex_lock(&mutex_); }
  void Unlock() { pthread_mutex_unlock(&mutex_); }

 private:
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};
class Hold {
 public:
  explicit Hold(Mutex& mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~Hold() { mutex_.Unlock(); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  Mutex& mutex_;
};

struct Context {
  int device = 0;
  bool primary = false;
  unsigned flags = 0;
  int retained = 0;
  // Stack, printf buffer and heap, by CUlimit: at first the hardware's defaults.
  std::array<std::atomic<std::size_t>, 3> limits = {1024, 1 << 20, 8 << 20};
};

struct Module;

// One kernel of one module, as the node described it.
struct Function {
  Module* module = nullptr;
  std::string name;
  wire::GetKernelReply info;
  int max_dynamic_shared = 0;
  int carveout = -1;
  bool non_portable_cluster = false;
};

struct Module {
  std::uint64_t id = 0;
  int device = 0;
  std::uint64_t image = 0;
  bool own_image = false;  // dropped with the module
  std::unordered_map<std::string, Function*> functions;
};

struct Kernel;

// Code that is loaded into a device when it is first used there.
struct Library {
  const void* data = nullptr;
  std::size_t size = 0;
  std::vector<char> copy;               // if the caller's bytes need not stay
  const void* const* linked = nullptr;  // -rdc=true: what `data` was linked from, ended by nullptr
  std::uint64_t image = 0;
  bool sent = false;
  Module* modules[kMaxDevices] = {};
  std::unordered_map<std::string, Kernel*> kernels;
  std::vector<std::string> names;  // of all its kernels, once somebody has asked for them
};
struct Kernel {
  Library* library = nullptr;
  std::string name;
  Function* functions[kMaxDevices] = {};
  int max_dynamic_shared = 0;
};

struct Capture;    // capture.h
struct GraphNode;  // graph.h

struct Stream {
  std::uint64_t id = 0;
  int device = 0;
  unsigned flags = 0;
  int priority = 0;
  std::unordered_map<int, CUlaunchAttributeValue> attributes;  // that were set
  Capture* capture = nullptr;                                  // that it takes part in
  std::vector<GraphNode*> tail;                                // what it captured last
};
struct Event {
  std::uint64_t id = 0;
  int device = 0;
  unsigned flags = 0;
  bool imported = false;         // from another process: streams of any device may record it
  std::uint64_t capture = 0;     // that it was last recorded in
  std::vector<GraphNode*> tail;  // what it stands for there
};

struct Pool {
  std::uint64_t id = 0;  // 0: a default pool whose number has not been asked for yet
  int device = 0;
  bool standard = false;
  bool imported = false;  // another process's
};

// Host memory that devices can use.
struct HostRange {
  // kMapped: by cuMemMap. The last two are managed.
  enum class Kind { kAllocated, kRegistered, kMapped, kManaged, kVariable };
  std::uint64_t base = 0, size = 0;
  Kind kind = Kind::kAllocated;
  unsigned flags = 0;
};
class HostRanges {
 public:
  void Add(const HostRange& range);
  bool Remove(std::uint64_t base);
  bool Find(std::uint64_t address, HostRange* range);
  bool Overlaps(std::uint64_t begin, std::uint64_t end);
  // The first mapping by cuMemMap that begins in the range.
  bool FindMapped(std::uint64_t begin, std::uint64_t end, HostRange* range);
  // cudaHostRegister and its end, errors included.
  CUresult Register(std::uint64_t begin, std::uint64_t end, unsigned flags);
  CUresult Unregister(std::uint64_t begin);
  // True if the node can be told to use these bytes of registered memory.
  bool InRegistered(std::uint64_t address, std::uint64_t size);

 private:
  struct Segment {
    std::uint64_t size = 0;
    int uses = 0;
    bool shared = false;  // a part of a file that others may register, too
  };
  Mutex mutex_;
  std::map<std::uint64_t, HostRange> ranges_;
  std::atomic<bool> any_registered_{false};
  Mutex register_lock_;  // held across calls to the node
  std::map<std::uint64_t, Segment> segments_;
};

// The live handles of one type.
template <class T>
class Handles {
 public:
  T* Add(T* object) {
    Hold hold(mutex_);
    live_.insert(object);
    return object;
  }
  // The object, or nullptr if there is none behind the handle.
  template <class H>
  T* Find(H handle) {
    Hold hold(mutex_);
    auto* object = reinterpret_cast<T*>(handle);
    return live_.count(object) != 0 ? object : nullptr;
  }
  template <class F>
  void ForEach(F visit) {
    Hold hold(mutex_);
    for (T* object : live_) visit(object);
  }
  bool Remove(T* object) {
    Hold hold(mutex_);
    return live_.erase(object) != 0;
  }

 private:
  Mutex mutex_;
  std::unordered_set<T*> live_;
};

// Made at first use and never destroyed: programs call CUDA before main and after exit.
struct Driver {
  std::vector<wire::DeviceInfo> devices;
  std::vector<wire::DeviceInfo> all_devices;  // of the host; `devices` are those that are visible
  std::vector<std::int32_t> visible;          // numbers of `devices` among them
  std::atomic<bool> initialised{false};
  Mutex init_lock;
  Mutex load_lock;  // images, modules, kernels
  Mutex context_lock;
  std::uint64_t next_image = 1;
  Context primary[kMaxDevices];
  Handles<Context> contexts;
  Handles<Module> modules;
  Handles<Function> functions;
  Handles<Library> libraries;
  Handles<Kernel> kernels;
  Handles<Stream> streams;
  Handles<Event> events;
  Handles<Pool> pools;
  HostRanges host_ranges;
  Pool* default_pools[kMaxDevices] = {};  // made at first use; under context_lock
  Pool* current_pools[kMaxDevices] = {};  // null: the default one; under context_lock
};
Driver& TheDriver();

// Memory that the node has: device memory, pinned, managed or registered.
inline bool IsNodeAddress(std::uint64_t a, std::uint64_t size = 1) {
  return IsPinnedAddress(a) || IsDeviceAddress(a) || TheDriver().host_ranges.InRegistered(a, size);
}

// Pinned or managed memory, mapped into the process.
CUresult AllocateHost(std::uint64_t size, bool managed, std::uint64_t* address);
CUresult FreeHost(std::uint64_t address);

// Of a device, for all that is known here.
inline bool IsDeviceMemory(std::uint64_t a) {
  HostRange range;
  return IsDeviceAddress(a) && !(IsReservedAddress(a) && TheDriver().host_ranges.Find(a, &range));
}

inline CUresult Result(int status) { return static_cast<CUresult>(status); }

// What every call but cuInit begins with: initialised, and not in a child that lost CUDA by fork.
CUresult Ready();
// The same, and the calling thread's context.
CUresult Current(Context** context);
bool IsDevice(int device);
Context* CurrentContext();

// What a stream argument means: the node's stream, and its device. `per_thread`: 0 is the thread's
// own default stream instead of the legacy one.
CUresult ResolveStream(CUstream stream, bool per_thread, wire::StreamRef* ref);
// The same for questions about the stream, which a capture does not mind. *found is nullptr for the
// legacy default stream.
CUresult LocateStream(CUstream stream, bool per_thread, wire::StreamRef* ref, Stream** found);

// A function for a device, from a CUfunction or a CUkernel passed as one.
CUresult ResolveFunction(CUfunction handle, int device, Function** function);
CUresult FunctionOf(Kernel* kernel, int device, Function** function);
// The same of a kernel that is launched, or will be: says why if it has no PTX for the device, here
// and in the run's report.
CUresult ResolveLaunched(CUfunction handle, int device, Function** function);
// The library's module on a device. load_lock is held.
CUresult ModuleOf(Library* library, int device, Module** module);

// Appends what the file holds.
CUresult ReadFile(const char* path, std::vector<char>* bytes);

// Tells the node. load_lock is held.
CUresult SetMaxDynamicShared(Function* function, int bytes);

// A reset took the device's modules away. load_lock is held.
void ForgetModules(int device);
// And its pools.
void ForgetPools(int device);

// The thread that runs the program's host functions (host_function.cpp): made at first use.
CUresult StartHostThread();
// True inside such a function, where no CUDA call is permitted.
bool InHostFunction();
void RunHostFunction(CUhostFn function, void* data);

// A kernel's arguments as the node wants them: from an array of pointers, or from the buffer in
// `extra`.
CUresult PackParameters(const wire::GetKernelReply& info, void** pointers, void** extra,
                        wire::Blob* out);
// What launch attributes say, in the message.
CUresult ApplyAttributes(const CUlaunchAttribute* attributes, unsigned count, wire::Launch* launch);

CUresult TranslateValues(unsigned count, const CUstreamBatchMemOpParams* params,
                         std::vector<wire::ValueOp>* out);

// Where a copy goes from and to: `width` bytes, in rows and planes.
struct Region {
  std::uint64_t dst = 0, src = 0, width = 0;
  wire::Rows rows;
};
CUresult RegionOf(const CUDA_MEMCPY3D& copy, Region* region);
// Copies between any two places, in chunks. Rows must not overlap.
CUresult CopyRegion(Region region, CUstream stream, bool per_thread, bool async);
// The same in one row.
CUresult CopyAny(std::uint64_t dst, std::uint64_t src, std::size_t size, CUstream stream,
                 bool per_thread, bool async);

// Without the checks that the public entry points make; for the runtime's registration before main.
ALLRANKS_EXPORT CUlibrary ar_library(const void* fat_binary_wrapper);
ALLRANKS_EXPORT CUkernel ar_library_kernel(CUlibrary library, const char* name);
// For NVML, which counts all devices of the host.
ALLRANKS_EXPORT const std::vector<wire::DeviceInfo>* ar_all_devices();
ALLRANKS_EXPORT unsigned long long ar_free_bytes(int device);
// In the order of DeviceInfo::nvlinks; left as it is if the node is gone.
ALLRANKS_EXPORT void ar_link_traffic(int device, std::vector<wire::LinkBytes>* links);
// The node's number of a stream; 0: the handle is none, or stands for a default stream.
ALLRANKS_EXPORT unsigned long long ar_number_of_stream(void* handle);
// One line on stderr at a function's first use.
ALLRANKS_EXPORT int ar_not_supported(const char* name, int error, std::atomic<bool>* said);

}  // namespace allranks::shim

// An entry point that exists for the legacy default stream and, under another name, for the
// per-thread one. The parenthesised list is passed on with the stream's meaning in front.
#define ALLRANKS_BOTH_STREAMS(name, suffix, parameters, ...)         \
  CUresult name parameters { return Do_##name(false, __VA_ARGS__); } \
  ALLRANKS_SYMBOL(CUresult, name##suffix, parameters) { return Do_##name(true, __VA_ARGS__); }
