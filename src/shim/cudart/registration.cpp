// What nvcc's code registers before main, and the kernels and variables found by it later.
// Registering only records: the node is not spoken to before a program's first real call.
#include <pthread.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "shim/cudart/runtime.h"

ALLRANKS_EXPORT CUlibrary ar_library(const void* fat_binary_wrapper);
ALLRANKS_EXPORT CUkernel ar_library_kernel(CUlibrary library, const char* name);

namespace allranks::shim {
namespace {

struct Variable {
  CUlibrary library;
  std::string name;
  std::size_t size;
};

// A __managed__ variable: the program reaches it through a pointer that is set when it is first
// needed.
struct ManagedVariable {
  CUlibrary library;
  std::string name;
  void** pointer;
};

struct Registry {
  std::unordered_map<const void*, CUkernel> kernels;
  std::unordered_map<const void*, Variable> variables;
  std::vector<CUkernel> handles;
  std::vector<ManagedVariable> managed;
};

// Libraries may be loaded by several threads at run time. Never held across a call to the node.
pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
class Hold {
 public:
  Hold() { pthread_mutex_lock(&g_lock); }
  ~Hold() { pthread_mutex_unlock(&g_lock); }
};

Registry& TheRegistry() {
  static Registry* registry = new Registry;
  return *registry;
}

}  // namespace

CUkernel FindKernel(const void* host_function) {
  Hold hold;
  Registry& registry = TheRegistry();
  const auto found = registry.kernels.find(host_function);
  if (found != registry.kernels.end()) return found->second;
  // Since CUDA 12.1 a cudaKernel_t may stand in the place of a function's address.
  for (CUkernel kernel : registry.handles) {
    if (kernel == host_function) return kernel;
  }
  // One of a library that the program has loaded itself.
  auto* kernel = static_cast<CUkernel>(const_cast<void*>(host_function));
  const char* name;
  if (kernel != nullptr && cuKernelGetName(&name, kernel) == CUDA_SUCCESS) return kernel;
  return nullptr;
}

const void* FindHostFunction(const void* kernel) {
  Hold hold;
  for (const auto& [function, known] : TheRegistry().kernels) {
    if (known == kernel) return function;
  }
  return kernel;
}

void RememberKernel(CUkernel kernel) {
  Hold hold;
  std::vector<CUkernel>& handles = TheRegistry().handles;
  if (std::find(handles.begin(), handles.end(), kernel) == handles.end()) handles.push_back(kernel);
}

cudaError_t FindVariable(const void* host_variable, CUdeviceptr* address, std::size_t* size) {
  Variable variable;
  {
    Hold hold;
    const auto found = TheRegistry().variables.find(host_variable);
    if (found == TheRegistry().variables.end()) return cudaErrorInvalidSymbol;
    variable = found->second;
  }
  const CUresult result =
      cuLibraryGetGlobal(address, size, variable.library, variable.name.c_str());
  return result == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidSymbol : static_cast<cudaError_t>(result);
}

cudaError_t KernelError(CUresult result) {
  switch (result) {
    case CUDA_ERROR_NOT_FOUND:
      return cudaErrorInvalidDeviceFunction;
    default:
      return static_cast<cudaError_t>(result);
  }
}

}  // namespace allranks::shim

using namespace allranks::shim;

ALLRANKS_EXPORT void** __cudaRegisterFatBinary(void* wrapper) {
  return reinterpret_cast<void**>(ar_library(wrapper));
}

ALLRANKS_EXPORT void __cudaRegisterFatBinaryEnd(void**) {}

// At exit, or when a shared library goes. The node drops everything with the process; what matters
// is that addresses which may be reused are forgotten.
ALLRANKS_EXPORT void __cudaUnregisterFatBinary(void** handle) {
  Hold hold;
  auto library = reinterpret_cast<CUlibrary>(handle);
  Registry& registry = TheRegistry();
  std::erase_if(registry.variables,
                [&](const auto& entry) { return entry.second.library == library; });
  std::erase_if(registry.managed, [&](const auto& entry) { return entry.library == library; });
}

ALLRANKS_EXPORT void __cudaRegisterFunction(void** handle, const char* host_function, char*,
                                            const char* name, int, uint3*, uint3*, dim3*, dim3*,
                                            int*) {
  Hold hold;
  const CUkernel kernel = ar_library_kernel(reinterpret_cast<CUlibrary>(handle), name);
  TheRegistry().kernels[host_function] = kernel;
  TheRegistry().handles.push_back(kernel);
}

ALLRANKS_EXPORT void __cudaRegisterVar(void** handle, char* host_variable, char*, const char* name,
                                       int, size_t size, int, int) {
  Hold hold;
  TheRegistry().variables[host_variable] = {reinterpret_cast<CUlibrary>(handle), name, size};
}

ALLRANKS_EXPORT void __cudaRegisterManagedVar(void** handle, void** pointer, char* host_variable,
                                              const char* name, int, size_t size, int, int) {
  Hold hold;
  auto library = reinterpret_cast<CUlibrary>(handle);
  TheRegistry().managed.push_back({library, name, pointer});
  // As a symbol it goes by its own address or by that of the pointer.
  TheRegistry().variables[host_variable] = {library, name, size};
  TheRegistry().variables[static_cast<void*>(pointer)] = {library, name, size};
}

// Called by nvcc's code before the host touches a managed variable of this module.
ALLRANKS_EXPORT char __cudaInitModule(void** handle) {
  std::vector<ManagedVariable> managed;
  {
    Hold hold;
    for (const ManagedVariable& variable : TheRegistry().managed) {
      if (variable.library == reinterpret_cast<CUlibrary>(handle)) managed.push_back(variable);
    }
  }
  const CUresult entered = Enter();
  if (entered != CUDA_SUCCESS) {
    Note(entered);
    return 0;
  }
  for (const ManagedVariable& variable : managed) {
    CUdeviceptr address = 0;
    std::size_t size = 0;
    const CUresult result =
        cuLibraryGetManaged(&address, &size, variable.library, variable.name.c_str());
    if (result != CUDA_SUCCESS) {
      Note(result);
      return 0;
    }
    *variable.pointer = reinterpret_cast<void*>(address);
    Hold hold;
    TheRegistry().variables[*variable.pointer] = {variable.library, variable.name, size};
  }
  return 1;
}

cudaError_t cudaLibraryGetManaged(void** address, size_t* size, cudaLibrary_t library,
                                  const char* name) {
  ALLRANKS_ENTER();
  CUdeviceptr place = 0;
  const CUresult result = cuLibraryGetManaged(&place, size, library, name);
  if (address != nullptr) *address = reinterpret_cast<void*>(place);
  return Note(result == CUDA_ERROR_NOT_FOUND ? cudaErrorSymbolNotFound
                                             : static_cast<cudaError_t>(result));
}

ALLRANKS_SYMBOL(cudaError_t, __cudaGetKernel, (cudaKernel_t * kernel, const void* host_function)) {
  const CUkernel found = FindKernel(host_function);
  *kernel = reinterpret_cast<cudaKernel_t>(found);
  return found != nullptr ? cudaSuccess : Note(cudaErrorInvalidDeviceFunction);
}

cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* host_function) {
  if (kernel == nullptr) return Note(cudaErrorInvalidValue);
  return __cudaGetKernel(kernel, host_function);
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const void* host_function) {
  ALLRANKS_ENTER();
  const CUkernel kernel = FindKernel(host_function);
  if (kernel == nullptr || function == nullptr) return Note(cudaErrorInvalidDeviceFunction);
  return Note(KernelError(cuKernelGetFunction(reinterpret_cast<CUfunction*>(function), kernel)));
}

cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  ALLRANKS_ENTER();
  if (address == nullptr) return Note(cudaErrorInvalidValue);
  CUdeviceptr place = 0;
  std::size_t size;
  const cudaError_t error = FindVariable(symbol, &place, &size);
  *address = reinterpret_cast<void*>(place);
  return Note(error);
}

cudaError_t cudaGetSymbolSize(size_t* size, const void* symbol) {
  ALLRANKS_ENTER();
  if (size == nullptr) return Note(cudaErrorInvalidValue);
  CUdeviceptr place;
  return Note(FindVariable(symbol, &place, size));
}
