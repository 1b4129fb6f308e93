// Flags between devices: words in symmetric memory by which one rank tells another how far it is.
// References are written with these; what each function promises is in its name, so that a bug in
// the order is a change of one word: StoreReleaseSys, StoreRelaxedSys, StoreReleaseGpu.
//
// Words are 32 or 64 bits. Scopes: Sys for other devices and the host, Gpu for blocks of the same
// device. Release makes everything that the thread did or has seen before visible to who acquires
// the word; for the work of a whole block, a __syncthreads() comes first.
#pragma once

#include <cstdint>

namespace allranks {

// One definition each for loads, stores, additions and additions that return what was there.
#define ALLRANKS_LOAD(kName, kOrder)                                                           \
  template <class Word>                                                                        \
  __device__ __forceinline__ Word kName(const Word* word) {                                    \
    static_assert(sizeof(Word) == 4 || sizeof(Word) == 8, "a word has 32 or 64 bits");         \
    if constexpr (sizeof(Word) == 4) {                                                         \
      std::uint32_t value;                                                                     \
      asm volatile("ld." kOrder ".global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory"); \
      return static_cast<Word>(value);                                                         \
    } else {                                                                                   \
      std::uint64_t value;                                                                     \
      asm volatile("ld." kOrder ".global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory"); \
      return static_cast<Word>(value);                                                         \
    }                                                                                          \
  }
#define ALLRANKS_STORE(kName, kOrder)                                                  \
  template <class Word>                                                                \
  __device__ __forceinline__ void kName(Word* word, Word value) {                      \
    static_assert(sizeof(Word) == 4 || sizeof(Word) == 8, "a word has 32 or 64 bits"); \
    if constexpr (sizeof(Word) == 4) {                                                 \
      asm volatile("st." kOrder ".global.u32 [%0], %1;" ::"l"(word),                   \
                   "r"(static_cast<std::uint32_t>(value))                              \
                   : "memory");                                                        \
    } else {                                                                           \
      asm volatile("st." kOrder ".global.u64 [%0], %1;" ::"l"(word),                   \
                   "l"(static_cast<std::uint64_t>(value))                              \
                   : "memory");                                                        \
    }                                                                                  \
  }
#define ALLRANKS_ADD(kName, kOrder)                                       \
  template <class Word>                                                   \
  __device__ __forceinline__ void kName(Word* word, Word value) {         \
    if constexpr (sizeof(Word) == 4) {                                    \
      asm volatile("red." kOrder ".global.add.u32 [%0], %1;" ::"l"(word), \
                   "r"(static_cast<std::uint32_t>(value))                 \
                   : "memory");                                           \
    } else {                                                              \
      asm volatile("red." kOrder ".global.add.u64 [%0], %1;" ::"l"(word), \
                   "l"(static_cast<std::uint64_t>(value))                 \
                   : "memory");                                           \
    }                                                                     \
  }
#define ALLRANKS_FETCH_ADD(kName, kOrder)                              \
  template <class Word>                                                \
  __device__ __forceinline__ Word kName(Word* word, Word value) {      \
    if constexpr (sizeof(Word) == 4) {                                 \
      std::uint32_t old;                                               \
      asm volatile("atom." kOrder ".global.add.u32 %0, [%1], %2;"      \
                   : "=r"(old)                                         \
                   : "l"(word), "r"(static_cast<std::uint32_t>(value)) \
                   : "memory");                                        \
      return static_cast<Word>(old);                                   \
    } else {                                                           \
      std::uint64_t old;                                               \
      asm volatile("atom." kOrder ".global.add.u64 %0, [%1], %2;"      \
                   : "=l"(old)                                         \
                   : "l"(word), "l"(static_cast<std::uint64_t>(value)) \
                   : "memory");                                        \
      return static_cast<Word>(old);                                   \
    }                                                                  \
  }
// Waits until the word has come to `value`: counters only grow, and may wrap around.
#define ALLRANKS_WAIT(kName, kLoad)                                                       \
  __device__ __forceinline__ void kName(const std::uint32_t* word, std::uint32_t value) { \
    while (static_cast<std::int32_t>(kLoad(word) - value) < 0) {                          \
    }                                                                                     \
  }

ALLRANKS_LOAD(LoadAcquireSys, "acquire.sys")
ALLRANKS_LOAD(LoadAcquireGpu, "acquire.gpu")
ALLRANKS_LOAD(LoadRelaxedSys, "relaxed.sys")
ALLRANKS_LOAD(LoadRelaxedGpu, "relaxed.gpu")
ALLRANKS_STORE(StoreReleaseSys, "release.sys")
ALLRANKS_STORE(StoreReleaseGpu, "release.gpu")
ALLRANKS_STORE(StoreRelaxedSys, "relaxed.sys")
ALLRANKS_STORE(StoreRelaxedGpu, "relaxed.gpu")
ALLRANKS_ADD(AddReleaseSys, "release.sys")
ALLRANKS_ADD(AddReleaseGpu, "release.gpu")
ALLRANKS_ADD(AddRelaxedSys, "relaxed.sys")
ALLRANKS_ADD(AddRelaxedGpu, "relaxed.gpu")
ALLRANKS_FETCH_ADD(FetchAddAcqRelSys, "acq_rel.sys")
ALLRANKS_FETCH_ADD(FetchAddAcqRelGpu, "acq_rel.gpu")
ALLRANKS_FETCH_ADD(FetchAddRelaxedSys, "relaxed.sys")
ALLRANKS_FETCH_ADD(FetchAddRelaxedGpu, "relaxed.gpu")
ALLRANKS_WAIT(WaitAcquireSys, LoadAcquireSys)
ALLRANKS_WAIT(WaitAcquireGpu, LoadAcquireGpu)
ALLRANKS_WAIT(WaitRelaxedSys, LoadRelaxedSys)
ALLRANKS_WAIT(WaitRelaxedGpu, LoadRelaxedGpu)

#undef ALLRANKS_LOAD
#undef ALLRANKS_STORE
#undef ALLRANKS_ADD
#undef ALLRANKS_FETCH_ADD
#undef ALLRANKS_WAIT

__device__ __forceinline__ void FenceAcqRelSys() {
  asm volatile("fence.acq_rel.sys;" ::: "memory");
}
__device__ __forceinline__ void FenceAcqRelGpu() {
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
}
// What is left of a fence without its order.
__device__ __forceinline__ void FenceRelaxedSys() {}
__device__ __forceinline__ void FenceRelaxedGpu() {}

}  // namespace allranks
