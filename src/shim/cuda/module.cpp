// Modules, libraries and their kernels. An image travels to the node once per process, when it is
// first needed on some device; a kernel is looked up when it is first used. A library (and with it
// everything that the runtime registers before main) exists without the node until then.
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/link_set.h"
#include "shim/cuda/driver.h"

namespace allranks::shim {
namespace {

constexpr std::uint32_t kWrapperMagic = 0x466243b1;
constexpr std::uint32_t kFatMagic = 0xba55ed50;

struct FatWrapper {  // what nvcc places in .nvFatBinSegment
  std::uint32_t magic, version;
  const void* data;
  const void* more;
};
struct FatHeader {
  std::uint32_t magic;
  std::uint16_t version, header_size;
  std::uint64_t size;
};

// What a version 2 wrapper's data was linked from; nullptr for any other image.
const void* const* LinkedFrom(const void* image) {
  FatWrapper wrapper;
  std::uint32_t magic;
  memcpy(&magic, image, sizeof magic);
  if (magic != kWrapperMagic) return nullptr;
  memcpy(&wrapper, image, sizeof wrapper);
  return wrapper.version == 2 ? static_cast<const void* const*>(wrapper.more) : nullptr;
}

// Follows a wrapper to its data and finds out how many bytes an image has; 0 if it is none.
std::size_t ImageSize(const void** image) {
  std::uint32_t magic;
  memcpy(&magic, *image, sizeof magic);
  if (magic == kWrapperMagic) {
    FatWrapper wrapper;
    memcpy(&wrapper, *image, sizeof wrapper);
    *image = wrapper.data;
    memcpy(&magic, *image, sizeof magic);
  }
  if (magic == kFatMagic) {
    FatHeader header;
    memcpy(&header, *image, sizeof header);
    return header.header_size + header.size;
  }
  if (magic == kLinkSetMagic) {
    LinkSetHeader header;
    memcpy(&header, *image, sizeof header);
    return header.bytes;
  }
  if (memcmp(*image, ELFMAG, SELFMAG) == 0) {
    Elf64_Ehdr header;
    memcpy(&header, *image, sizeof header);
    const std::size_t sections = header.e_shoff + std::size_t{header.e_shentsize} * header.e_shnum;
    const std::size_t segments = header.e_phoff + std::size_t{header.e_phentsize} * header.e_phnum;
    return sections > segments ? sections : segments;
  }
  return strlen(static_cast<const char*>(*image)) + 1;  // PTX
}

// The linked machine code, which tells resources, and the PTX of every file: the node links again.
std::vector<char> LinkSetOf(const void* linked, std::size_t size, const void* const* files) {
  LinkSetBuilder set;
  set.Add("", linked, size);
  for (; *files != nullptr; ++files) {
    const void* file = *files;
    const std::size_t bytes = ImageSize(&file);
    set.Add("", file, bytes);
  }
  return set.Finish();
}

int PutImage(std::uint64_t image, const void* data, std::size_t size) {
  std::size_t offset = 0;
  do {
    const std::size_t part = size - offset < wire::kMaxChunk ? size - offset : wire::kMaxChunk;
    wire::PutImage put;
    put.image = image;
    put.total = size;
    put.offset = offset;
    const auto* bytes = static_cast<const std::byte*>(data) + offset;
    put.bytes.assign(bytes, bytes + part);
    const int status = Call(put);
    if (status != 0) return status;
    offset += part;
  } while (offset < size);
  return 0;
}

// Where bytes lie in the library from which they are mapped and which nothing has changed. The
// program itself has no name here.
struct FilePlace {
  std::uintptr_t begin = 0;
  std::size_t size = 0;
  std::string path;
  std::uint64_t offset = 0;
};

int FindInObject(dl_phdr_info* object, std::size_t, void* data) {
  auto* place = static_cast<FilePlace*>(data);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const Elf64_Phdr& segment = object->dlpi_phdr[i];
    const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0 || place->begin < begin ||
        place->begin - begin > segment.p_filesz ||
        place->size > segment.p_filesz - (place->begin - begin))
      continue;
    place->path = object->dlpi_name[0] == '/' ? object->dlpi_name : "";
    place->offset = segment.p_offset + (place->begin - begin);
    return 1;
  }
  return 0;
}

// Tells the node where it can read the image itself: `data`, then `files`, which are linked with it
// (nullptr: none). Sent images are copied through a socket by every process. False: it has to be
// sent.
bool ReadInFile(std::uint64_t image, const void* data, std::size_t size, const void* const* files) {
  wire::FileImage message;
  message.image = image;
  const auto add = [&](const void* part, std::size_t bytes) {
    FilePlace place;
    place.begin = reinterpret_cast<std::uintptr_t>(part);
    place.size = bytes;
    dl_iterate_phdr(FindInObject, &place);
    if (place.path.empty() || (!message.parts.empty() && place.path != message.path)) return false;
    message.path = place.path;
    message.parts.push_back({place.offset, bytes});
    return true;
  };
  if (!add(data, size)) return false;
  for (; files != nullptr && *files != nullptr; ++files) {
    const void* file = *files;
    const std::size_t bytes = ImageSize(&file);
    if (!add(file, bytes)) return false;
  }
  wire::FileImageReply reply;
  return Call(message, &reply) == 0 && reply.known;
}

// Once: a program meets the same image on every device and at every launch. load_lock is held.
void Complain(const std::string& message) {
  static auto* said = new std::vector<std::string>;
  if (message.empty() || std::find(said->begin(), said->end(), message) != said->end()) return;
  said->push_back(message);
  fprintf(stderr, "allranks: %s\n", message.c_str());
}

CUresult LoadModule(int device, std::uint64_t image, Module** module, std::string* message) {
  wire::LoadModule load;
  load.device = device;
  load.image = image;
  wire::LoadModuleReply reply;
  const int status = Call(load, &reply);
  *message = reply.message;
  if (status != 0) return Result(status);
  auto* loaded = new Module;
  loaded->id = reply.module;
  loaded->device = device;
  loaded->image = image;
  *module = TheDriver().modules.Add(loaded);
  return CUDA_SUCCESS;
}

CUresult FindFunction(Module* module, const std::string& name, Function** function) {
  const auto known = module->functions.find(name);
  if (known != module->functions.end()) {
    *function = known->second;
    return CUDA_SUCCESS;
  }
  wire::GetKernel get;
  get.module = module->id;
  get.name = name;
  auto* found = new Function;
  const int status = Call(get, &found->info);
  if (status != 0) {
    delete found;
    return Result(status);
  }
  found->module = module;
  found->name = name;
  module->functions[name] = found;
  *function = TheDriver().functions.Add(found);
  return CUDA_SUCCESS;
}

Kernel* KernelOf(Library* library, const char* name) {
  Kernel*& kernel = library->kernels[name];
  if (kernel == nullptr) {
    kernel = new Kernel;
    kernel->library = library;
    kernel->name = name;
    TheDriver().kernels.Add(kernel);
  }
  return kernel;
}

void DropModule(Module* module) {
  Driver& driver = TheDriver();
  for (auto& [name, function] : module->functions) driver.functions.Remove(function);
  driver.modules.Remove(module);
}

CUresult LoadImage(CUmodule* handle, const void* image, std::string* message) {
  Context* context;
  const CUresult ready = Current(&context);
  if (ready != CUDA_SUCCESS) return ready;
  if (handle == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const void* const* linked = LinkedFrom(image);
  std::size_t size = ImageSize(&image);
  std::vector<char> set;
  if (linked != nullptr) {
    set = LinkSetOf(image, size, linked);
    image = set.data();
    size = set.size();
  }
  Driver& driver = TheDriver();
  Hold hold(driver.load_lock);
  const std::uint64_t number = driver.next_image++;
  const int put = PutImage(number, image, size);
  if (put != 0) return Result(put);
  Module* module;
  std::string why;
  const CUresult result = LoadModule(context->device, number, &module, &why);
  Complain(why);
  if (message != nullptr) *message = why;
  if (result == CUDA_SUCCESS) {
    module->own_image = true;
    *handle = reinterpret_cast<CUmodule>(module);
  } else {
    wire::DropImage drop;
    drop.image = number;
    Call(drop);
  }
  return result;
}

}  // namespace

CUresult ModuleOf(Library* library, int device, Module** module) {
  if (library->modules[device] == nullptr) {
    if (!library->sent) {
      if (library->image == 0) library->image = TheDriver().next_image++;
      if (!ReadInFile(library->image, library->data, library->size, library->linked)) {
        if (library->linked != nullptr) {
          library->copy = LinkSetOf(library->data, library->size, library->linked);
          library->data = library->copy.data();
          library->size = library->copy.size();
          library->linked = nullptr;
        }
        const int status = PutImage(library->image, library->data, library->size);
        if (status != 0) return Result(status);
      }
      library->sent = true;
    }
    std::string why;
    const CUresult result = LoadModule(device, library->image, &library->modules[device], &why);
    // A program may ask about kernels that are not for this device: told when one is launched.
    if (result != CUDA_ERROR_NO_BINARY_FOR_GPU) Complain(why);
    if (result != CUDA_SUCCESS) return result;
  }
  *module = library->modules[device];
  return CUDA_SUCCESS;
}

CUresult ReadFile(const char* path, std::vector<char>* bytes) {
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  FILE* file = fopen(path, "rb");
  if (file == nullptr) return CUDA_ERROR_FILE_NOT_FOUND;
  char buffer[65536];
  std::size_t got;
  while ((got = fread(buffer, 1, sizeof buffer, file)) > 0) {
    bytes->insert(bytes->end(), buffer, buffer + got);
  }
  fclose(file);
  return CUDA_SUCCESS;
}

CUresult SetMaxDynamicShared(Function* function, int bytes) {
  wire::SetMaxDynamicShared set;
  set.kernel = function->info.kernel;
  set.bytes = static_cast<std::uint32_t>(bytes);
  const int status = Call(set);
  if (status == 0) function->max_dynamic_shared = bytes;
  return Result(status);
}

CUresult FunctionOf(Kernel* kernel, int device, Function** function) {
  Driver& driver = TheDriver();
  Hold hold(driver.load_lock);
  if (kernel->functions[device] == nullptr) {
    Module* module;
    CUresult result = ModuleOf(kernel->library, device, &module);
    if (result != CUDA_SUCCESS) return result;
    Function* found;
    result = FindFunction(module, kernel->name, &found);
    if (result != CUDA_SUCCESS) return result;
    if (kernel->max_dynamic_shared > 0) {
      result = SetMaxDynamicShared(found, kernel->max_dynamic_shared);
      if (result != CUDA_SUCCESS) return result;
    }
    kernel->functions[device] = found;
  }
  *function = kernel->functions[device];
  return CUDA_SUCCESS;
}

CUresult ResolveFunction(CUfunction handle, int device, Function** function) {
  Driver& driver = TheDriver();
  *function = driver.functions.Find(handle);
  if (*function != nullptr) return CUDA_SUCCESS;
  Kernel* kernel = driver.kernels.Find(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return FunctionOf(kernel, device, function);
}

CUresult ResolveLaunched(CUfunction handle, int device, Function** function) {
  const CUresult result = ResolveFunction(handle, device, function);
  if (result != CUDA_ERROR_NO_BINARY_FOR_GPU) return result;
  Hold hold(TheDriver().load_lock);
  const Kernel* kernel = TheDriver().kernels.Find(handle);
  if (kernel == nullptr || kernel->library->image == 0) return result;
  wire::LoadModule load;
  load.device = device;
  load.image = kernel->library->image;
  load.launched = true;
  wire::LoadModuleReply reply;
  Call(load, &reply);
  Complain(reply.message);
  return result;
}

void ForgetModules(int device) {
  // The libraries are known through their kernels only; a library without kernels has no use for
  // its module but globals, which are looked up again.
  TheDriver().libraries.ForEach([&](Library* library) {
    if (library->modules[device] == nullptr) return;
    for (auto& [name, kernel] : library->kernels) kernel->functions[device] = nullptr;
    DropModule(library->modules[device]);
    library->modules[device] = nullptr;
  });
}

CUlibrary ar_library(const void* image) {
  auto* library = new Library;
  library->data = image;
  library->linked = LinkedFrom(image);
  library->size = ImageSize(&library->data);
  return reinterpret_cast<CUlibrary>(TheDriver().libraries.Add(library));
}

CUkernel ar_library_kernel(CUlibrary handle, const char* name) {
  Hold hold(TheDriver().load_lock);
  return reinterpret_cast<CUkernel>(KernelOf(reinterpret_cast<Library*>(handle), name));
}

}  // namespace allranks::shim

using namespace allranks::shim;
namespace wire = allranks::wire;

// --- modules -----------------------------------------------------------------------------------

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return LoadImage(module, image, nullptr);
}

CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return LoadImage(module, image, nullptr);
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count,
                            CUjit_option* options, void** values) {
  std::string message;
  const CUresult result = LoadImage(module, image, &message);
  char* log = nullptr;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) log = static_cast<char*>(values[i]);
  }
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] != CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES || log == nullptr) continue;
    const auto size = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(values[i]));
    if (size > 0) snprintf(log, size, "%s", message.c_str());
  }
  return result;
}

CUresult cuModuleLoad(CUmodule* module, const char* path) {
  std::vector<char> bytes;
  const CUresult read = ReadFile(path, &bytes);
  if (read != CUDA_SUCCESS) return read;
  bytes.push_back('\0');  // PTX text ends like a string
  return LoadImage(module, bytes.data(), nullptr);
}

CUresult cuModuleUnload(CUmodule handle) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  Driver& driver = TheDriver();
  Hold hold(driver.load_lock);
  Module* module = driver.modules.Find(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  wire::UnloadModule unload;
  unload.module = module->id;
  const int status = Call(unload);
  if (module->own_image) {
    wire::DropImage drop;
    drop.image = module->image;
    Call(drop);
  }
  DropModule(module);
  return Result(status);
}

CUresult cuModuleGetFunction(CUfunction* handle, CUmodule module_handle, const char* name) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (handle == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Driver& driver = TheDriver();
  Hold hold(driver.load_lock);
  Module* module = driver.modules.Find(module_handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Function* function;
  const CUresult result = FindFunction(module, name, &function);
  if (result == CUDA_SUCCESS) *handle = reinterpret_cast<CUfunction>(function);
  return result;
}

namespace {

// A managed variable is one memory for all devices and stays mapped.
CUresult MapManaged(const wire::GetGlobalReply& variable, int fd) {
  Hold hold(TheDriver().load_lock);
  HostRange known;
  if (TheDriver().host_ranges.Find(variable.address, &known)) {
    if (fd >= 0) close(fd);
    return CUDA_SUCCESS;
  }
  if (fd < 0 || !ar_map_pinned(variable.address, variable.mapped, fd)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  TheDriver().host_ranges.Add(
      {variable.address, variable.size, HostRange::Kind::kVariable, CU_MEM_ATTACH_GLOBAL});
  return CUDA_SUCCESS;
}

CUresult GetGlobal(CUdeviceptr* address, size_t* size, Module* module, const char* name,
                   bool* managed = nullptr) {
  wire::GetGlobal get;
  get.module = module->id;
  get.name = name;
  wire::GetGlobalReply reply;
  int fd = -1;
  const int status = Call(get, &reply, &fd);
  if (status != 0) return Result(status);
  if (reply.managed) {
    const CUresult mapped = MapManaged(reply, fd);
    if (mapped != CUDA_SUCCESS) return mapped;
  }
  if (managed != nullptr) *managed = reply.managed;
  if (address != nullptr) *address = reply.address;
  if (size != nullptr) *size = reply.size;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuModuleGetGlobal(CUdeviceptr* address, size_t* size, CUmodule handle, const char* name) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Module* module = TheDriver().modules.Find(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return GetGlobal(address, size, module, name);
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetManaged(CUdeviceptr* address, size_t* size, CUlibrary library,
                             const char* name) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUmodule module;
  CUresult result = cuLibraryGetModule(&module, library);
  if (result != CUDA_SUCCESS) return result;
  bool managed = false;
  result = GetGlobal(address, size, reinterpret_cast<Module*>(module), name, &managed);
  return result == CUDA_SUCCESS && !managed ? CUDA_ERROR_NOT_FOUND : result;
}
