// Arrays between host and device for programs that compare whole results: a vector in, a vector
// out, and a comparison that names the first element that is wrong. Memory lives until the process
// ends.
#pragma once

#include <utility>
#include <vector>

#include "check.h"

template <class T>
T* ToDevice(const std::vector<T>& host) {
  void* memory = nullptr;
  CUDA_CHECK(cudaMalloc(&memory, host.size() * sizeof(T)));
  Upload(static_cast<T*>(memory), host.data(), host.size());
  return static_cast<T*>(memory);
}

// An array whose bytes are all 0xee, so that what a kernel did not write is noticed.
template <class T>
T* Unwritten(size_t count) {
  void* memory = nullptr;
  CUDA_CHECK(cudaMalloc(&memory, count * sizeof(T)));
  CUDA_CHECK(cudaMemset(memory, 0xee, count * sizeof(T)));
  return static_cast<T*>(memory);
}

template <class T>
T* Zeroed(size_t count) {
  void* memory = nullptr;
  CUDA_CHECK(cudaMalloc(&memory, count * sizeof(T)));
  CUDA_CHECK(cudaMemset(memory, 0, count * sizeof(T)));
  return static_cast<T*>(memory);
}

// Waits for all work of the device first, so that a kernel that failed is reported here.
template <class T>
std::vector<T> ToHost(const T* device_memory, size_t count) {
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  std::vector<T> host(count);
  CUDA_CHECK(cudaMemcpy(host.data(), device_memory, count * sizeof(T), cudaMemcpyDeviceToHost));
  return host;
}

template <class T, class U>
void RequireSame(const char* file, int line, const char* what, const std::vector<T>& got,
                 const std::vector<U>& expected) {
  if (got.size() != expected.size()) {
    Fail(file, line, "%s: %zu elements, expected %zu", what, got.size(), expected.size());
  }
  for (size_t i = 0; i < got.size(); ++i) {
    if (!(got[i] == static_cast<T>(expected[i]))) {
      Fail(file, line, "%s[%zu] is %.17g (0x%llx), expected %.17g (0x%llx)", what, i,
           static_cast<double>(got[i]), static_cast<unsigned long long>(got[i]),
           static_cast<double>(expected[i]), static_cast<unsigned long long>(expected[i]));
    }
  }
}

// `got` is compared element by element with `expected`, exactly.
#define REQUIRE_SAME(got, expected) RequireSame(__FILE__, __LINE__, #got, got, expected)

// Numbers that are the same in every run: a linear congruential generator of 64 bits.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 2 + 1) {}
  uint32_t Next() {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<uint32_t>(state_ >> 32);
  }
  uint64_t Next64() { return (static_cast<uint64_t>(Next()) << 32) | Next(); }

 private:
  uint64_t state_;
};
