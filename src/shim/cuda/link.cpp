// cuLink: PTX that a program puts together at run time. The inputs are collected here; the node
// links them, once when the program completes the link, to say what is wrong with it, and again
// whenever the result, a link set, is loaded.
#include <stdio.h>
#include <string.h>

#include "base/link_set.h"
#include "shim/cuda/driver.h"

namespace allranks::shim {
namespace {

constexpr std::uint32_t kFatMagic = 0xba55ed50;

struct Link {
  LinkSetBuilder set;
  std::vector<CUjit_option> options;
  void** values = nullptr;  // the caller's, who gets the logs' lengths there
  std::vector<char> result;
};

Handles<Link>& Links() {
  static auto* links = new Handles<Link>;
  return *links;
}

// Fat binaries in an object or a library: they begin with a magic number, at an even place.
bool AddContainers(Link* link, const char* name, const char* data, std::size_t size) {
  struct {
    std::uint32_t magic;
    std::uint16_t version, header_size;
    std::uint64_t size;
  } header;
  bool found = false;
  for (std::size_t at = 0; at + sizeof header <= size; at += 2) {
    memcpy(&header, data + at, sizeof header);
    if (header.magic != kFatMagic || header.version != 1 || header.header_size != sizeof header ||
        header.size > size - at - sizeof header) {
      continue;
    }
    link->set.Add(name, data + at, sizeof header + header.size);
    at += (sizeof header + header.size) / 2 * 2 - 2;
    found = true;
  }
  return found;
}

CUresult Add(Link* link, CUjitInputType type, const char* data, std::size_t size,
             const char* name) {
  switch (type) {
    case CU_JIT_INPUT_PTX:
    case CU_JIT_INPUT_FATBINARY:
      link->set.Add(name, data, size);
      return CUDA_SUCCESS;
    case CU_JIT_INPUT_OBJECT:
    case CU_JIT_INPUT_LIBRARY:
      return AddContainers(link, name, data, size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
    case CU_JIT_INPUT_CUBIN:
      fprintf(stderr, "allranks: %s is machine code; the virtual device links only PTX\n", name);
      return CUDA_ERROR_NO_BINARY_FOR_GPU;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

void* Value(const Link& link, CUjit_option option) {
  for (std::size_t i = 0; i < link.options.size(); ++i) {
    if (link.options[i] == option) return link.values[i];
  }
  return nullptr;
}

// Fills a log buffer of the caller's and tells its length where its size was given.
void Write(const Link& link, CUjit_option buffer_option, CUjit_option size_option,
           const char* text) {
  for (std::size_t i = 0; i < link.options.size(); ++i) {
    if (link.options[i] != size_option) continue;
    const auto room = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(link.values[i]));
    auto* buffer = static_cast<char*>(Value(link, buffer_option));
    if (buffer == nullptr || room == 0) continue;
    snprintf(buffer, room, "%s", text);
    link.values[i] = reinterpret_cast<void*>(strlen(buffer));
  }
}

}  // namespace
}  // namespace allranks::shim

using namespace allranks::shim;

CUresult cuLinkCreate(unsigned count, CUjit_option* options, void** values, CUlinkState* state) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (state == nullptr || (count > 0 && (options == nullptr || values == nullptr))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto* link = new Link;
  link->options.assign(options, options + count);
  link->values = values;
  *state = reinterpret_cast<CUlinkState>(Links().Add(link));
  return CUDA_SUCCESS;
}

CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t size,
                       const char* name, unsigned, CUjit_option*, void**) {
  Link* link = Links().Find(state);
  if (link == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (data == nullptr || !link->result.empty()) return CUDA_ERROR_INVALID_VALUE;
  return Add(link, type, static_cast<const char*>(data), size, name != nullptr ? name : "");
}

CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path, unsigned,
                       CUjit_option*, void**) {
  Link* link = Links().Find(state);
  if (link == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!link->result.empty()) return CUDA_ERROR_INVALID_VALUE;
  std::vector<char> bytes;
  const CUresult read = ReadFile(path, &bytes);
  if (read != CUDA_SUCCESS) return read;
  return Add(link, type, bytes.data(), bytes.size(), path);
}

CUresult cuLinkComplete(CUlinkState state, void** image, size_t* size) {
  Link* link = Links().Find(state);
  if (link == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (link->result.empty()) link->result = link->set.Finish();
  char log[4096] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  CUmodule module;
  const CUresult result = cuModuleLoadDataEx(&module, link->result.data(), 2, options, values);
  Write(*link, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, log);
  Write(*link, CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, "");
  if (result != CUDA_SUCCESS) return result;
  cuModuleUnload(module);
  *image = link->result.data();
  if (size != nullptr) *size = link->result.size();
  return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState state) {
  Link* link = Links().Find(state);
  if (link == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (Links().Remove(link)) delete link;
  return CUDA_SUCCESS;
}
