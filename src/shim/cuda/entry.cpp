// Finding entry points by name, and the answer to what this library does not have. Every name of
// the real library exists here: those without an implementation are weak stubs (made by CMake from
// entry_points.txt), which a strong definition anywhere in the library replaces.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "shim/cuda/driver.h"

namespace allranks::shim {

int ar_not_supported(const char* name, int error, std::atomic<bool>* said) {
  if (!said->exchange(true)) {
    fprintf(stderr, "allranks: the virtual node does not support %s; it returns error %d\n", name,
            error);
  }
  return error;
}

}  // namespace allranks::shim

using namespace allranks::shim;

namespace {

struct Versions {
  const char* name;
  int since[4];  // ascending, 0 behind the last
};
#define ALLRANKS_FORMS(name, ...) {#name, {__VA_ARGS__}},
constexpr Versions kVersions[] = {
#include "shim/cuda/versions.def"
};
#undef ALLRANKS_FORMS
static_assert(std::is_sorted(std::begin(kVersions), std::end(kVersions),
                             [](const Versions& a, const Versions& b) {
                               return std::string_view(a.name) < std::string_view(b.name);
                             }));

const Versions* FindVersions(const char* name) {
  const auto* found = std::lower_bound(
      std::begin(kVersions), std::end(kVersions), name,
      [](const Versions& row, const char* wanted) { return strcmp(row.name, wanted) < 0; });
  return found != std::end(kVersions) && strcmp(found->name, name) == 0 ? found : nullptr;
}

void* Lookup(const char* name) {
  static void* self = [] {
    Dl_info info;
    dladdr(reinterpret_cast<void*>(&cuInit), &info);
    return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  }();
  return self != nullptr ? dlsym(self, name) : nullptr;
}

}  // namespace

// Returns the newest form introduced at or before `version`: the caller passes that form's
// parameters.
CUresult cuGetProcAddress(const char* name, void** function, int version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult* status) {
  if (name == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *function = nullptr;
  if (version > kDriverVersion) return CUDA_ERROR_INVALID_VALUE;
  char symbol[256];
  snprintf(symbol, sizeof symbol, "%s", name);
  if (const Versions* versions = FindVersions(name); versions != nullptr) {
    int form = 0;
    for (const int since : versions->since) form += since != 0 && since <= version ? 1 : 0;
    if (form == 0) {
      if (status != nullptr) *status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
      return CUDA_SUCCESS;
    }
    if (form > 1) snprintf(symbol, sizeof symbol, "%s_v%d", name, form);
    // The only name that cuda.h gives to a function of another name.
    if (strcmp(name, "cuGraphInstantiate") == 0 && version >= 11040)
      snprintf(symbol, sizeof symbol, "cuGraphInstantiateWithFlags");
  }
  if ((flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0) {
    char per_thread[272];
    for (const char* suffix : {"_ptsz", "_ptds"}) {
      snprintf(per_thread, sizeof per_thread, "%s%s", symbol, suffix);
      if (*function == nullptr) *function = Lookup(per_thread);
    }
  }
  if (*function == nullptr) *function = Lookup(symbol);
  if (status != nullptr) {
    *status =
        *function != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return CUDA_SUCCESS;
}
#undef cuGetProcAddress
ALLRANKS_SYMBOL(CUresult, cuGetProcAddress,
                (const char* name, void** function, int version, cuuint64_t flags)) {
  const CUresult result = cuGetProcAddress_v2(name, function, version, flags, nullptr);
  return result == CUDA_SUCCESS && *function == nullptr ? CUDA_ERROR_NOT_FOUND : result;
}

// A runtime that is linked statically asks for private tables of the real driver.
CUresult cuGetExportTable(const void** table, const CUuuid*) {
  static std::atomic<bool> said{false};
  if (!said.exchange(true)) {
    fprintf(stderr,
            "allranks: this program has a static CUDA runtime that is not redirected, which needs "
            "private interfaces of the real driver. Do not strip it, or relink it with "
            "`nvcc -cudart shared`.\n");
  }
  if (table != nullptr) *table = nullptr;
  return CUDA_ERROR_NOT_SUPPORTED;
}

ALLRANKS_SYMBOL(CUresult, cuProfilerStart, ()) { return CUDA_SUCCESS; }
ALLRANKS_SYMBOL(CUresult, cuProfilerStop, ()) { return CUDA_SUCCESS; }
