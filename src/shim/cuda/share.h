// What the node hands to other processes: descriptors and fabric handles, of memory and of pools.
// `M` is a request with a field `by` (and `fabric`, to import).
#pragma once

#include <fcntl.h>
#include <string.h>

#include "shim/cuda/driver.h"

namespace allranks::shim {

inline bool ShareByOf(CUmemAllocationHandleType type, wire::ShareBy* by) {
  if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    *by = wire::ShareBy::kDescriptor;
    return true;
  }
  *by = wire::ShareBy::kFabric;
  return type == CU_MEM_HANDLE_TYPE_FABRIC;
}

// *out becomes an int or a CUmemFabricHandle.
template <class M>
CUresult ExportTo(M request, CUmemAllocationHandleType type, void* out) {
  if (!ShareByOf(type, &request.by)) return CUDA_ERROR_INVALID_VALUE;
  wire::ExportReply reply;
  int fd = -1;
  const int status = Call(request, &reply, &fd);
  if (status != 0) return Result(status);
  if (request.by == wire::ShareBy::kFabric) {
    static_assert(sizeof(CUmemFabricHandle) == sizeof reply.fabric);
    memcpy(out, reply.fabric.data(), sizeof reply.fabric);
    return CUDA_SUCCESS;
  }
  if (fd < 0) return CUDA_ERROR_UNKNOWN;
  fcntl(fd, F_SETFD, 0);  // programs started by this one may have it
  memcpy(out, &fd, sizeof fd);
  return CUDA_SUCCESS;
}

// `from` is a descriptor's number or points to a CUmemFabricHandle.
template <class M>
CUresult ImportFrom(M request, CUmemAllocationHandleType type, void* from,
                    typename M::Reply* reply) {
  if (!ShareByOf(type, &request.by)) return CUDA_ERROR_INVALID_VALUE;
  if (request.by == wire::ShareBy::kFabric) {
    if (from == nullptr) return CUDA_ERROR_INVALID_VALUE;
    memcpy(request.fabric.data(), from, sizeof request.fabric);
    return Result(Call(request, reply));
  }
  const auto fd = static_cast<int>(reinterpret_cast<std::intptr_t>(from));
  if (fcntl(fd, F_GETFD) < 0) return CUDA_ERROR_INVALID_VALUE;
  return Result(Call(request, reply, nullptr, fd));
}

}  // namespace allranks::shim
