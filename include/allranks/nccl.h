// NCCL among the ranks of a judged run. `setup` runs once for every case: the communicator of all
// ranks is made in the first one, and is the same in all others.
#pragma once

#include <allranks/boot.h>
#include <nccl.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace allranks {

// Ends the rank with NCCL's own words if a call has failed.
inline void NcclCheck(ncclResult_t result, const char* call) {
  if (result == ncclSuccess) return;
  std::fprintf(stderr, "%s: %s: %s\n", call, ncclGetErrorString(result), ncclGetLastError(nullptr));
  std::exit(1);
}

inline ncclComm_t NcclWorld(Boot& boot) {
  static ncclComm_t world = nullptr;
  if (world != nullptr) return world;
  ncclUniqueId own = {}, all[64];
  if (boot.rank() == 0) NcclCheck(ncclGetUniqueId(&own), "ncclGetUniqueId");
  static_assert(sizeof own <= 4096);
  boot.AllGather(&own, all, sizeof own);
  NcclCheck(ncclCommInitRank(&world, boot.world(), all[0], boot.rank()), "ncclCommInitRank");
  return world;
}

// Memory of the device for what a call leaves between its steps. All cases share it: `setup`
// reserves what its case needs, `launch` uses it.
inline void* reserved = nullptr;

inline void Reserve(std::size_t bytes) {
  static std::size_t most = 0;
  if (bytes <= most) return;
  most = bytes;
  const cudaError_t error = cudaMalloc(&reserved, bytes);
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "cudaMalloc: %s\n", cudaGetErrorString(error));
  std::exit(1);
}

template <class T>
T* Reserved() {
  return static_cast<T*>(reserved);
}

}  // namespace allranks
