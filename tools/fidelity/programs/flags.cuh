// Flags between devices: the strong accesses the experiments signal with, and a barrier of all
// ranks that lets them start a measurement together.
#pragma once

#include <cstdint>

#include "bench.h"

__device__ inline uint32_t LoadAcquire(const uint32_t* flag) {
  uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}

__device__ inline uint32_t LoadRelaxed(const uint32_t* flag) {
  uint32_t value;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}

__device__ inline void StoreRelaxed(uint32_t* flag, uint32_t value) {
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}

__device__ inline void StoreRelease(uint32_t* flag, uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}

// An inbox of one word per sender and slot on every rank; a barrier writes one's epoch into every
// peer's inbox and waits for all to be as far. Only threads below `ranks` take part in the signals;
// the whole CTA leaves together. Without kRelease it orders nothing that was written before.
struct Inbox {
  PerRank<uint32_t> words;

  template <bool kRelease>
  __device__ void Barrier(int rank, int ranks, int slot, uint32_t epoch) const {
    __syncthreads();
    if (int(threadIdx.x) < ranks) {
      uint32_t* theirs = &words.at[threadIdx.x][slot * kMaxRanks + rank];
      if (kRelease)
        StoreRelease(theirs, epoch);
      else
        StoreRelaxed(theirs, epoch);
      while (int32_t(LoadAcquire(&words.at[rank][slot * kMaxRanks + threadIdx.x]) - epoch) < 0) {
      }
    }
    __syncthreads();
  }
};

inline Inbox NewInbox(int ranks, int slots) {
  return {AllocateOnAll<uint32_t>(ranks, size_t(slots) * kMaxRanks * sizeof(uint32_t))};
}

static __global__ void MeetKernel(Inbox inbox, int rank, int ranks, uint32_t epoch) {
  inbox.Barrier<true>(rank, ranks, 0, epoch);
}

// All ranks' streams pass this point together.
class Meeting {
 public:
  explicit Meeting(int ranks) : ranks_(ranks), inbox_(NewInbox(ranks, 1)) {}
  void operator()(int rank, cudaStream_t stream) {
    MeetKernel<<<1, 32, 0, stream>>>(inbox_, rank, ranks_, ++epoch_[rank]);
    CHECK(cudaGetLastError());
  }

 private:
  int ranks_;
  Inbox inbox_;
  uint32_t epoch_[kMaxRanks] = {};
};
