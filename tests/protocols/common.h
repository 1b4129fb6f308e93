// What protocol programs share: checked CUDA calls, strong accesses of system scope, memory that is
// freed at the end.
//
// A protocol program compiles with -DBUG=n; 0 is correct, and its header names what every other n
// breaks. Programs are also compiled several variants at a time, each included into a namespace of
// its own (tools/protocols), so a program defines no name of the global namespace and everything
// here is safe to share between variants.
#pragma once
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#ifndef BUG
#define BUG 0
#endif

#define CK(call)                                                                       \
  do {                                                                                 \
    const cudaError_t status_ = (call);                                                \
    if (status_ != cudaSuccess) {                                                      \
      std::printf("CUDA %s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(status_)); \
      std::exit(3);                                                                    \
    }                                                                                  \
  } while (0)

#define DEV static __device__ __forceinline__

DEV void st_release(unsigned* p, unsigned v) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
DEV void st_relaxed(unsigned* p, unsigned v) {
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
DEV unsigned ld_acquire(const unsigned* p) {
  unsigned v;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
DEV unsigned ld_relaxed(const unsigned* p) {
  unsigned v;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
DEV void red_release(unsigned* p, unsigned v) {
  asm volatile("red.release.sys.global.add.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
DEV void wait_ge(const unsigned* p, unsigned v) {
  while (static_cast<int>(ld_acquire(p) - v) < 0) {
  }
}

static std::vector<std::pair<int, void*>> g_mem;

static inline void peers(int n) {
  for (int d = 0; d < n; ++d) {
    CK(cudaSetDevice(d));
    for (int p = 0; p < n; ++p)
      if (p != d) CK(cudaDeviceEnablePeerAccess(p, 0));
  }
}

// n elements on a device, every byte set to fill unless it is negative; finish() frees them.
template <class T>
static T* alloc(int dev, size_t n, int fill = 0) {
  T* p;
  CK(cudaSetDevice(dev));
  CK(cudaMalloc(&p, n * sizeof(T)));
  if (fill >= 0) CK(cudaMemset(p, fill, n * sizeof(T)));
  g_mem.push_back({dev, p});
  return p;
}

static inline void sync_all(int n) {
  for (int d = 0; d < n; ++d) {
    CK(cudaSetDevice(d));
    CK(cudaDeviceSynchronize());
  }
}

template <class T>
static std::vector<T> get(int dev, const T* p, size_t n) {
  std::vector<T> v(n);
  CK(cudaSetDevice(dev));
  CK(cudaMemcpy(v.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost));
  return v;
}

template <class T>
static void put(int dev, T* p, const std::vector<T>& v) {
  CK(cudaSetDevice(dev));
  CK(cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
}

// Waits for all devices, frees, says OK or WRONG; the exit code.
static inline int finish(long wrong, int n) {
  sync_all(n);
  for (auto& m : g_mem) {
    CK(cudaSetDevice(m.first));
    CK(cudaFree(m.second));
  }
  g_mem.clear();
  std::printf(wrong ? "WRONG %ld\n" : "OK\n", wrong);
  return wrong ? 1 : 0;
}
