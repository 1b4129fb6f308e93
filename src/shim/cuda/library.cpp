// Libraries: code that is loaded into a device when it is first used there, and the kernels in it;
// also the lists of what modules and libraries contain.
#include "shim/cuda/driver.h"

using namespace allranks::shim;
namespace wire = allranks::wire;

CUresult cuLibraryLoadData(CUlibrary* handle, const void* code, CUjit_option*, void**, unsigned,
                           CUlibraryOption* options, void**, unsigned option_count) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (handle == nullptr || code == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *handle = ar_library(code);
  auto* library = reinterpret_cast<Library*>(*handle);
  bool preserved = false;
  for (unsigned i = 0; i < option_count; ++i) {
    preserved = preserved || options[i] == CU_LIBRARY_BINARY_IS_PRESERVED;
  }
  if (!preserved && library->linked == nullptr) {
    const auto* bytes = static_cast<const char*>(library->data);
    library->copy.assign(bytes, bytes + library->size);
    library->data = library->copy.data();
  }
  return CUDA_SUCCESS;
}

CUresult cuLibraryLoadFromFile(CUlibrary* handle, const char* path, CUjit_option*, void**, unsigned,
                               CUlibraryOption* options, void**, unsigned option_count) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  for (unsigned i = 0; i < option_count; ++i) {
    if (options[i] == CU_LIBRARY_BINARY_IS_PRESERVED) return CUDA_ERROR_INVALID_VALUE;
  }
  std::vector<char> bytes;
  const CUresult read = handle == nullptr ? CUDA_ERROR_INVALID_VALUE : ReadFile(path, &bytes);
  if (read != CUDA_SUCCESS) return read;
  bytes.push_back('\0');  // PTX text ends like a string
  return cuLibraryLoadData(handle, bytes.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
}

namespace {

// The names of all kernels in a module, in the order of its text.
CUresult KernelNames(const Module* module, std::vector<std::string>* names) {
  wire::ListKernels list;
  list.module = module->id;
  wire::ListKernelsReply reply;
  const int status = Call(list, &reply);
  *names = std::move(reply.names);
  return Result(status);
}

// Those of a library, of whichever device is current.
CUresult KernelNames(CUlibrary handle, Library** library) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  *library = TheDriver().libraries.Find(handle);
  if (*library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!(*library)->names.empty()) return CUDA_SUCCESS;
  Hold hold(TheDriver().load_lock);
  const Context* context = CurrentContext();
  Module* module;
  const CUresult result = ModuleOf(*library, context != nullptr ? context->device : 0, &module);
  return result != CUDA_SUCCESS ? result : KernelNames(module, &(*library)->names);
}

}  // namespace

CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary handle) {
  Library* library;
  const CUresult result = KernelNames(handle, &library);
  if (result != CUDA_SUCCESS) return result;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<unsigned>(library->names.size());
  return CUDA_SUCCESS;
}

CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned count, CUlibrary handle) {
  Library* library;
  const CUresult result = KernelNames(handle, &library);
  if (result != CUDA_SUCCESS) return result;
  if (kernels == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count && i < library->names.size(); ++i)
    kernels[i] = ar_library_kernel(handle, library->names[i].c_str());
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunctionCount(unsigned* count, CUmodule handle) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Module* module = TheDriver().modules.Find(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::vector<std::string> names;
  const CUresult result = KernelNames(module, &names);
  *count = static_cast<unsigned>(names.size());
  return result;
}

CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned count, CUmodule handle) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (functions == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Module* module = TheDriver().modules.Find(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::vector<std::string> names;
  CUresult result = KernelNames(module, &names);
  for (unsigned i = 0; i < count && i < names.size() && result == CUDA_SUCCESS; ++i)
    result = cuModuleGetFunction(&functions[i], handle, names[i].c_str());
  return result;
}

CUresult cuLibraryUnload(CUlibrary handle) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  Driver& driver = TheDriver();
  Library* library = driver.libraries.Find(handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  for (Module* module : library->modules) {
    if (module != nullptr) cuModuleUnload(reinterpret_cast<CUmodule>(module));
  }
  Hold hold(driver.load_lock);
  for (auto& [name, kernel] : library->kernels) driver.kernels.Remove(kernel);
  driver.libraries.Remove(library);
  if (library->sent) {
    wire::DropImage drop;
    drop.image = library->image;
    Call(drop);
  }
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel* handle, CUlibrary library_handle, const char* name) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (handle == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Library* library = TheDriver().libraries.Find(library_handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const CUkernel kernel = ar_library_kernel(library_handle, name);
  // The name must exist; any device can tell.
  const Context* context = CurrentContext();
  Function* function;
  const CUresult result = FunctionOf(reinterpret_cast<Kernel*>(kernel),
                                     context != nullptr ? context->device : 0, &function);
  if (result == CUDA_SUCCESS) *handle = kernel;
  return result;
}

CUresult cuLibraryGetModule(CUmodule* handle, CUlibrary library_handle) {
  Context* context;
  const CUresult ready = Current(&context);
  if (ready != CUDA_SUCCESS) return ready;
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Library* library = TheDriver().libraries.Find(library_handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Hold hold(TheDriver().load_lock);
  Module* module;
  const CUresult result = ModuleOf(library, context->device, &module);
  if (result == CUDA_SUCCESS) *handle = reinterpret_cast<CUmodule>(module);
  return result;
}

CUresult cuLibraryGetGlobal(CUdeviceptr* address, size_t* size, CUlibrary library,
                            const char* name) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUmodule module;
  const CUresult result = cuLibraryGetModule(&module, library);
  if (result != CUDA_SUCCESS) return result;
  return cuModuleGetGlobal(address, size, module, name);
}

CUresult cuKernelGetFunction(CUfunction* handle, CUkernel kernel_handle) {
  Context* context;
  const CUresult ready = Current(&context);
  if (ready != CUDA_SUCCESS) return ready;
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Kernel* kernel = TheDriver().kernels.Find(kernel_handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Function* function;
  const CUresult result = FunctionOf(kernel, context->device, &function);
  if (result == CUDA_SUCCESS) *handle = reinterpret_cast<CUfunction>(function);
  return result;
}

CUresult cuKernelGetLibrary(CUlibrary* library, CUkernel handle) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  Kernel* kernel = TheDriver().kernels.Find(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *library = reinterpret_cast<CUlibrary>(kernel->library);
  return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char** name, CUkernel handle) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  Kernel* kernel = TheDriver().kernels.Find(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *name = kernel->name.c_str();
  return CUDA_SUCCESS;
}
