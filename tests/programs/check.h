// What every program here shares on the host: a failed call or a wrong value ends the process with
// exit code 1 and one line on stderr. `_Exit` because other threads may still be waiting on a
// device, and destructors would wait for them.
#pragma once

#include <cuda_runtime.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

[[noreturn]] inline void Fail(const char* file, int line, const char* format, ...) {
  std::fprintf(stderr, "FAIL %s:%d: ", file, line);
  va_list args;
  va_start(args, format);
  std::vfprintf(stderr, format, args);
  va_end(args);
  std::fputc('\n', stderr);
  std::fflush(nullptr);
  std::_Exit(1);
}

#define REQUIRE(condition, ...)                              \
  do {                                                       \
    if (!(condition)) Fail(__FILE__, __LINE__, __VA_ARGS__); \
  } while (0)

// The call must return `expected`; used directly where an error is what is being tested.
#define CUDA_EXPECT(expected, call)                                                               \
  do {                                                                                            \
    const cudaError_t cuda_error = (call);                                                        \
    REQUIRE(cuda_error == (expected), "%s: %s, expected %s", #call, cudaGetErrorName(cuda_error), \
            cudaGetErrorName(expected));                                                          \
  } while (0)

#define CUDA_CHECK(call) CUDA_EXPECT(cudaSuccess, call)

// After `kernel<<<...>>>(...)`: a refused launch is only seen here.
#define CUDA_CHECK_LAUNCH() CUDA_CHECK(cudaGetLastError())

// The decimal argument `argv[index]`, or `fallback` where it is absent.
inline long Argument(int argc, char** argv, int index, long fallback) {
  return argc > index ? std::strtol(argv[index], nullptr, 10) : fallback;
}

inline void RequireDevices(int wanted) {
  int count = 0;
  CUDA_CHECK(cudaGetDeviceCount(&count));
  REQUIRE(count >= wanted, "%d devices are needed, %d are visible", wanted, count);
}

// Lets `device` read and write the memory of `peer`.
inline void EnablePeer(int device, int peer) {
  int possible = 0;
  CUDA_CHECK(cudaDeviceCanAccessPeer(&possible, device, peer));
  REQUIRE(possible, "device %d cannot reach device %d", device, peer);
  CUDA_CHECK(cudaSetDevice(device));
  CUDA_CHECK(cudaDeviceEnablePeerAccess(peer, 0));
}

// Zeroed memory on `device`, which becomes the current one.
template <class T>
T* ZeroedOn(int device, size_t count = 1) {
  void* memory = nullptr;
  CUDA_CHECK(cudaSetDevice(device));
  CUDA_CHECK(cudaMalloc(&memory, count * sizeof(T)));
  CUDA_CHECK(cudaMemset(memory, 0, count * sizeof(T)));
  // cudaMemset returns before it is done, and a peer's kernel is not ordered behind it.
  CUDA_CHECK(cudaDeviceSynchronize());
  return static_cast<T*>(memory);
}

// Copies from ordinary host memory, and is done when it returns: cudaMemcpy alone promises that
// only to work in the default stream.
template <class T>
void Upload(T* device_memory, const T* host, size_t count) {
  CUDA_CHECK(cudaMemcpy(device_memory, host, count * sizeof(T), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaDeviceSynchronize());
}

// A copy on the host of one object in device memory.
template <class T>
T Fetch(const T* device_memory) {
  T value;
  CUDA_CHECK(cudaMemcpy(&value, device_memory, sizeof(T), cudaMemcpyDeviceToHost));
  return value;
}
