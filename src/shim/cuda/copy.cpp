// Copies and sets. Memory of the node (device or pinned) is named by address; the process's own
// memory travels as bytes, in chunks that follow each other in the stream.
#include <string.h>

#include "shim/cuda/driver.h"

namespace allranks::shim {
namespace {

// CopyIn's bytes are the last field, so they can be sent from where they lie: the struct is encoded
// without them and their count is written in.
int SendCopyIn(const wire::CopyIn& copy, const void* data, std::size_t size) {
  wire::Blob head = wire::Encode(copy);
  const auto count = static_cast<std::uint32_t>(size);
  memcpy(head.data() + head.size() - sizeof count, &count, sizeof count);
  ArReply reply;
  const int linked = ar_call(static_cast<std::uint16_t>(wire::CopyIn::kOp), head.data(),
                             head.size(), data, size, &reply);
  return linked == kArOk ? reply.status : 999;
}

int ReceiveCopyOut(const wire::CopyOut& copy, void* data) {
  wire::Blob head = wire::Encode(copy);
  ArReply reply;
  if (ar_call(static_cast<std::uint16_t>(wire::CopyOut::kOp), head.data(), head.size(), nullptr, 0,
              &reply) != kArOk) {
    return 999;
  }
  if (reply.status != 0) return reply.status;
  std::uint32_t count = 0;
  if (reply.size < sizeof count) return 999;
  memcpy(&count, reply.body, sizeof count);
  if (count != copy.size || reply.size != sizeof count + count) return 999;
  memcpy(data, static_cast<const std::byte*>(reply.body) + sizeof count, count);
  return 0;
}

}  // namespace

CUresult CopyAny(std::uint64_t dst, std::uint64_t src, std::size_t size, CUstream stream,
                 bool per_thread, bool async) {
  wire::StreamRef ref;
  const CUresult resolved = ResolveStream(stream, per_thread, &ref);
  if (resolved != CUDA_SUCCESS) return resolved;
  if (size == 0) return CUDA_SUCCESS;
  if (dst == 0 || src == 0) return CUDA_ERROR_INVALID_VALUE;
  const bool to_node = IsNodeAddress(dst), from_node = IsNodeAddress(src);
  if (to_node && from_node) {
    wire::Copy copy;
    copy.stream = ref;
    copy.dst = dst;
    copy.src = src;
    copy.size = size;
    // A copy within device memory does not hold up the host, as on hardware.
    copy.wait = !async && (IsPinnedAddress(dst) || IsPinnedAddress(src));
    return Result(Call(copy));
  }
  if (!to_node && !from_node) {
    wire::StreamSync sync;
    sync.stream = ref;
    const int status = Call(sync);
    if (status == 0)
      memmove(reinterpret_cast<void*>(dst), reinterpret_cast<const void*>(src), size);
    return Result(status);
  }
  for (std::size_t offset = 0; offset < size;) {
    const std::size_t part = size - offset < wire::kMaxChunk ? size - offset : wire::kMaxChunk;
    int status;
    if (to_node) {
      wire::CopyIn copy;
      copy.stream = ref;
      copy.dst = dst + offset;
      copy.wait = !async && offset + part == size;
      status = SendCopyIn(copy, reinterpret_cast<const void*>(src + offset), part);
    } else {
      wire::CopyOut copy;
      copy.stream = ref;
      copy.src = src + offset;
      copy.size = part;
      status = ReceiveCopyOut(copy, reinterpret_cast<void*>(dst + offset));
    }
    if (status != 0) return Result(status);
    offset += part;
  }
  return CUDA_SUCCESS;
}

}  // namespace allranks::shim

using namespace allranks::shim;
namespace wire = allranks::wire;

// --- copies ------------------------------------------------------------------------------------

namespace {

std::uint64_t Place(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

// `dst_node`, `src_node`: what the call's name demands of its arguments.
CUresult Copy(bool per_thread, std::uint64_t dst, bool dst_node, std::uint64_t src, bool src_node,
              std::size_t size, CUstream stream, bool async) {
  Context* context;
  const CUresult ready = Current(&context);
  if (ready != CUDA_SUCCESS) return ready;
  if (size != 0 && ((dst_node && !IsNodeAddress(dst)) || (src_node && !IsNodeAddress(src)))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CopyAny(dst, src, size, stream, per_thread, async);
}

}  // namespace

#define ALLRANKS_COPY(name, suffix, parameters, dst, dst_node, src, src_node, stream, async) \
  CUresult name parameters {                                                                 \
    return Copy(false, dst, dst_node, src, src_node, size, stream, async);                   \
  }                                                                                          \
  ALLRANKS_COPY_SUFFIXED(name, suffix, parameters, dst, dst_node, src, src_node, stream, async)
#define ALLRANKS_COPY_SUFFIXED(name, suffix, parameters, dst, dst_node, src, src_node, stream, \
                               async)                                                          \
  ALLRANKS_EXPORT CUresult name##suffix parameters {                                           \
    return Copy(true, dst, dst_node, src, src_node, size, stream, async);                      \
  }

ALLRANKS_COPY(cuMemcpy, _ptds, (CUdeviceptr dst, CUdeviceptr src, size_t size), dst, false, src,
              false, nullptr, false)
ALLRANKS_COPY(cuMemcpyAsync, _ptsz,
              (CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream), dst, false, src,
              false, stream, true)
ALLRANKS_COPY(cuMemcpyHtoD, _ptds, (CUdeviceptr dst, const void* src, size_t size), dst, true,
              Place(src), false, nullptr, false)
ALLRANKS_COPY(cuMemcpyDtoH, _ptds, (void* dst, CUdeviceptr src, size_t size), Place(dst), false,
              src, true, nullptr, false)
ALLRANKS_COPY(cuMemcpyDtoD, _ptds, (CUdeviceptr dst, CUdeviceptr src, size_t size), dst, true, src,
              true, nullptr, false)
ALLRANKS_COPY(cuMemcpyHtoDAsync, _ptsz,
              (CUdeviceptr dst, const void* src, size_t size, CUstream stream), dst, true,
              Place(src), false, stream, true)
ALLRANKS_COPY(cuMemcpyDtoHAsync, _ptsz, (void* dst, CUdeviceptr src, size_t size, CUstream stream),
              Place(dst), false, src, true, stream, true)
ALLRANKS_COPY(cuMemcpyDtoDAsync, _ptsz,
              (CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream), dst, true, src,
              true, stream, true)
// With one address space for all devices the contexts say nothing that the addresses do not.
ALLRANKS_COPY(cuMemcpyPeer, _ptds,
              (CUdeviceptr dst, CUcontext, CUdeviceptr src, CUcontext, size_t size), dst, true, src,
              true, nullptr, false)
ALLRANKS_COPY(cuMemcpyPeerAsync, _ptsz,
              (CUdeviceptr dst, CUcontext, CUdeviceptr src, CUcontext, size_t size,
               CUstream stream),
              dst, true, src, true, stream, true)

namespace {

CUresult Copy2D(bool per_thread, const CUDA_MEMCPY2D* copy, CUstream stream, bool async) {
  Context* context;
  const CUresult ready = Current(&context);
  if (ready != CUDA_SUCCESS) return ready;
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (copy->srcMemoryType == CU_MEMORYTYPE_ARRAY || copy->dstMemoryType == CU_MEMORYTYPE_ARRAY) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  std::uint64_t src =
      copy->srcMemoryType == CU_MEMORYTYPE_HOST ? Place(copy->srcHost) : copy->srcDevice;
  std::uint64_t dst =
      copy->dstMemoryType == CU_MEMORYTYPE_HOST ? Place(copy->dstHost) : copy->dstDevice;
  src += copy->srcY * copy->srcPitch + copy->srcXInBytes;
  dst += copy->dstY * copy->dstPitch + copy->dstXInBytes;
  for (std::size_t row = 0; row < copy->Height; ++row) {
    const CUresult result = CopyAny(dst + row * copy->dstPitch, src + row * copy->srcPitch,
                                    copy->WidthInBytes, stream, per_thread, async);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemcpy2D(const CUDA_MEMCPY2D* copy) { return Copy2D(false, copy, nullptr, false); }
CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D* copy) {
  return Copy2D(false, copy, nullptr, false);
}
CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return Copy2D(false, copy, stream, true);
}
ALLRANKS_EXPORT CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D* copy) {
  return Copy2D(true, copy, nullptr, false);
}
ALLRANKS_EXPORT CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return Copy2D(true, copy, stream, true);
}

// --- sets --------------------------------------------------------------------------------------

namespace {

CUresult Set(bool per_thread, CUdeviceptr dst, std::uint32_t value, int width, std::size_t count,
             CUstream stream, bool async) {
  Context* context;
  const CUresult ready = Current(&context);
  if (ready != CUDA_SUCCESS) return ready;
  wire::Memset request;
  const CUresult resolved = ResolveStream(stream, per_thread, &request.stream);
  if (resolved != CUDA_SUCCESS) return resolved;
  if (count == 0) return CUDA_SUCCESS;
  if (!IsNodeAddress(dst) || dst % static_cast<unsigned>(width) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  request.dst = dst;
  request.value = value;
  request.width = static_cast<std::uint8_t>(width);
  request.count = count;
  request.wait = !async && IsPinnedAddress(dst);
  return Result(Call(request));
}

CUresult Set2D(bool per_thread, CUdeviceptr dst, std::size_t pitch, std::uint32_t value, int width,
               std::size_t columns, std::size_t rows, CUstream stream, bool async) {
  for (std::size_t row = 0; row < rows; ++row) {
    const CUresult result =
        Set(per_thread, dst + row * pitch, value, width, columns, stream, async);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace

#define ALLRANKS_SET(type, bits, bytes)                                                           \
  CUresult cuMemsetD##bits(CUdeviceptr dst, type value, size_t count) {                           \
    return Set(false, dst, value, bytes, count, nullptr, false);                                  \
  }                                                                                               \
  ALLRANKS_EXPORT CUresult cuMemsetD##bits##_v2_ptds(CUdeviceptr dst, type value, size_t count) { \
    return Set(true, dst, value, bytes, count, nullptr, false);                                   \
  }                                                                                               \
  CUresult cuMemsetD##bits##Async(CUdeviceptr dst, type value, size_t count, CUstream stream) {   \
    return Set(false, dst, value, bytes, count, stream, true);                                    \
  }                                                                                               \
  ALLRANKS_EXPORT CUresult cuMemsetD##bits##Async_ptsz(CUdeviceptr dst, type value, size_t count, \
                                                       CUstream stream) {                         \
    return Set(true, dst, value, bytes, count, stream, true);                                     \
  }                                                                                               \
  CUresult cuMemsetD2D##bits(CUdeviceptr dst, size_t pitch, type value, size_t width,             \
                             size_t height) {                                                     \
    return Set2D(false, dst, pitch, value, bytes, width, height, nullptr, false);                 \
  }                                                                                               \
  CUresult cuMemsetD2D##bits##Async(CUdeviceptr dst, size_t pitch, type value, size_t width,      \
                                    size_t height, CUstream stream) {                             \
    return Set2D(false, dst, pitch, value, bytes, width, height, stream, true);                   \
  }                                                                                               \
  ALLRANKS_EXPORT CUresult cuMemsetD2D##bits##Async_ptsz(                                         \
      CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height, CUstream stream) {  \
    return Set2D(true, dst, pitch, value, bytes, width, height, stream, true);                    \
  }

ALLRANKS_SET(unsigned char, 8, 1)
ALLRANKS_SET(unsigned short, 16, 2)
ALLRANKS_SET(unsigned, 32, 4)
