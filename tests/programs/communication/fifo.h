// A ring in pinned memory with one producer and one consumer, one of them on a device and the other
// on the host. `head` counts items ever pushed and is written by the producer only, `tail` items
// ever popped, by the consumer only.
#pragma once

#include <new>
#include <thread>

#include "check.h"
#include "flags.h"

constexpr uint32_t kSlots = 16;

struct Ring {
  alignas(128) uint32_t head;
  alignas(128) uint32_t tail;
  alignas(128) uint64_t slots[kSlots];
};

__host__ __device__ inline uint64_t Item(uint32_t index) {
  return (index + 1) * 0x9E3779B97F4A7C15ull;
}

// The host's ends. Yielding keeps a poll from taking the core that the producer needs.
inline void HostWaitAbove(const uint32_t* counter, uint32_t bound) {
  while (__atomic_load_n(counter, __ATOMIC_ACQUIRE) <= bound) std::this_thread::yield();
}

inline void HostPublish(uint32_t* counter, uint32_t value) {
  __atomic_store_n(counter, value, __ATOMIC_RELEASE);
}

// A zeroed ring, and the address under which the current device sees it.
inline Ring* NewRing(Ring** on_device) {
  void* memory = nullptr;
  CUDA_CHECK(cudaHostAlloc(&memory, sizeof(Ring), cudaHostAllocMapped | cudaHostAllocPortable));
  Ring* ring = new (memory) Ring{};
  CUDA_CHECK(cudaHostGetDevicePointer(reinterpret_cast<void**>(on_device), ring, 0));
  return ring;
}
