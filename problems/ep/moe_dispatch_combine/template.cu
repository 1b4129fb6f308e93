// Dispatch and combine of a mixture of experts: complete the region between the markers.
// statement.md says what holds and what is asked for.
#include "problem.h"

// Words in memory of any GPU of the node. A flag of 64 bits has room for a small value beside a
// number of the call. Stronger and weaker forms, to choose from.
__device__ inline void StoreReleaseSys(std::uint64_t* word, std::uint64_t value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
__device__ inline void StoreReleaseGpu(std::uint64_t* word, std::uint64_t value) {
  asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
__device__ inline void StoreRelaxedSys(std::uint64_t* word, std::uint64_t value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
__device__ inline std::uint64_t LoadAcquireSys(const std::uint64_t* word) {
  std::uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}
__device__ inline std::uint64_t LoadAcquireGpu(const std::uint64_t* word) {
  std::uint64_t value;
  asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}
__device__ inline std::uint64_t LoadRelaxedSys(const std::uint64_t* word) {
  std::uint64_t value;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}

// >>> edit
extern "C" void dispatch(const Args& args, cudaStream_t stream) {
  // Enqueue the sending of this rank's tokens on `stream`.
}

extern "C" void combine(const Args& args, cudaStream_t stream) {
  // Enqueue the gathering of the answers on `stream`.
}
// <<< edit
