// What the kernels of several ranks share: everyone's memory as one rank sees it, waiting for a
// flag, and the meeting of a block with its namesakes on the other ranks.
#pragma once

#include "flags.h"

constexpr int kMaxRanks = 8;

// The same allocation of every rank. Passed to kernels by value.
template <class T>
struct Peers {
  T* of[kMaxRanks];
  __host__ __device__ T* operator[](int rank) const { return of[rank]; }
};

// Epochs only grow; the difference is compared, so that they may wrap around.
__device__ inline void WaitAtLeast(const uint32_t* flag, uint32_t epoch) {
  while (int32_t(LoadAcquireSys(flag) - epoch) < 0) {
  }
}

// Lets a thread be late, by another time for each rank and step. Equal devices keep in step where
// nothing disturbs them, and then a wait that is missing would not show.
__device__ inline void Stumble(int rank, uint32_t step) {
  const uint32_t hash = (rank + 1) * 0x9e3779b1u ^ (step + 1) * 0x85ebca77u;
  const uint32_t mixed = (hash ^ hash >> 15) * 0xc2b2ae3du;
  if (mixed >> 30 != 0) return;
  const uint64_t until = GlobalTimer() + 4000 + (mixed >> 12) % 16384;
  while (GlobalTimer() < until) {
  }
}

// One flag per block and peer: the last epoch which that peer's block has reached. A rank polls
// only its own memory.
template <int kBlocks>
struct Meeting {
  uint32_t reached[kBlocks][kMaxRanks];
};

// All threads of block b of every rank meet: what any of them wrote before, to whatever memory, all
// of them may read afterwards. Each call needs an epoch greater than the one before.
template <int kBlocks>
__device__ inline void Meet(Peers<Meeting<kBlocks>> meeting, int rank, int ranks, uint32_t epoch) {
  __syncthreads();
  if (threadIdx.x < ranks) {
    StoreReleaseSys(&meeting[threadIdx.x]->reached[blockIdx.x][rank], epoch);
    WaitAtLeast(&meeting[rank]->reached[blockIdx.x][threadIdx.x], epoch);
  }
  if (threadIdx.x == 0) Stumble(rank * gridDim.x + blockIdx.x, epoch);
  __syncthreads();
}

// The part of `count` elements that belongs to one of `parts`; sizes differ by one at most.
struct Slice {
  int begin, end;
  __host__ __device__ int size() const { return end - begin; }
};
__host__ __device__ inline Slice SliceOf(int count, int part, int parts) {
  const int whole = count / parts, rest = count % parts;
  const int begin = part * whole + (part < rest ? part : rest);
  return {begin, begin + whole + (part < rest ? 1 : 0)};
}
