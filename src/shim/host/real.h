// The C library's own functions behind the ones this library interposes.
#pragma once

#include <dlfcn.h>

#include <atomic>

namespace allranks::shim {

// Looks a name up behind this library, once. dlsym takes no lock that is interposed here.
template <class F>
F RealSymbol(std::atomic<void*>& cache, const char* name) {
  void* found = cache.load(std::memory_order_relaxed);
  if (found == nullptr) {
    found = dlsym(RTLD_NEXT, name);
    cache.store(found, std::memory_order_relaxed);
  }
  return reinterpret_cast<F>(found);
}

}  // namespace allranks::shim

// ALLRANKS_REAL(read)(fd, buffer, size)
#define ALLRANKS_REAL(name)                                               \
  ([]() {                                                                 \
    static constinit std::atomic<void*> cache{nullptr};                   \
    return ::allranks::shim::RealSymbol<decltype(&::name)>(cache, #name); \
  }())

#define ALLRANKS_INTERPOSE extern "C" __attribute__((visibility("default")))
