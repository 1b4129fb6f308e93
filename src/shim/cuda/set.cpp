// Sets of memory, in one row or in several.
#include "shim/cuda/capture.h"
#include "shim/cuda/driver.h"

using namespace allranks::shim;
namespace wire = allranks::wire;

namespace {

CUresult Set(bool per_thread, CUdeviceptr dst, std::size_t pitch, std::uint32_t value, int width,
             std::size_t columns, std::size_t rows, CUstream stream, bool async) {
  Context* context;
  const CUresult ready = Current(&context);
  if (ready != CUDA_SUCCESS) return ready;
  wire::Memset request;
  Stream* capturing = Capturing(stream, per_thread);
  if (capturing == nullptr) {
    const CUresult resolved = ResolveStream(stream, per_thread, &request.stream);
    if (resolved != CUDA_SUCCESS) return resolved;
  }
  if (columns == 0 || rows == 0) return CUDA_SUCCESS;
  const auto step = static_cast<unsigned>(width);
  if (!IsNodeAddress(dst) || dst % step != 0) return CUDA_ERROR_INVALID_VALUE;
  if (rows > 1 && (pitch % step != 0 || pitch / step < columns)) return CUDA_ERROR_INVALID_VALUE;
  request.dst = dst;
  request.value = value;
  request.width = static_cast<std::uint8_t>(width);
  request.count = columns;
  request.rows.height = rows;
  request.rows.dst_pitch = pitch;
  request.wait = !async && !IsDeviceMemory(dst);
  return capturing != nullptr ? CaptureMemset(capturing, request) : Result(Call(request));
}

}  // namespace

#define ALLRANKS_SET(type, bits, bytes)                                                            \
  CUresult cuMemsetD##bits(CUdeviceptr dst, type value, size_t count) {                            \
    return Set(false, dst, 0, value, bytes, count, 1, nullptr, false);                             \
  }                                                                                                \
  ALLRANKS_SYMBOL(CUresult, cuMemsetD##bits##_v2_ptds,                                             \
                  (CUdeviceptr dst, type value, size_t count)) {                                   \
    return Set(true, dst, 0, value, bytes, count, 1, nullptr, false);                              \
  }                                                                                                \
  CUresult cuMemsetD##bits##Async(CUdeviceptr dst, type value, size_t count, CUstream stream) {    \
    return Set(false, dst, 0, value, bytes, count, 1, stream, true);                               \
  }                                                                                                \
  ALLRANKS_SYMBOL(CUresult, cuMemsetD##bits##Async_ptsz,                                           \
                  (CUdeviceptr dst, type value, size_t count, CUstream stream)) {                  \
    return Set(true, dst, 0, value, bytes, count, 1, stream, true);                                \
  }                                                                                                \
  CUresult cuMemsetD2D##bits(CUdeviceptr dst, size_t pitch, type value, size_t width,              \
                             size_t height) {                                                      \
    return Set(false, dst, pitch, value, bytes, width, height, nullptr, false);                    \
  }                                                                                                \
  ALLRANKS_SYMBOL(CUresult, cuMemsetD2D##bits##_v2_ptds,                                           \
                  (CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height)) {      \
    return Set(true, dst, pitch, value, bytes, width, height, nullptr, false);                     \
  }                                                                                                \
  CUresult cuMemsetD2D##bits##Async(CUdeviceptr dst, size_t pitch, type value, size_t width,       \
                                    size_t height, CUstream stream) {                              \
    return Set(false, dst, pitch, value, bytes, width, height, stream, true);                      \
  }                                                                                                \
  ALLRANKS_SYMBOL(                                                                                 \
      CUresult, cuMemsetD2D##bits##Async_ptsz,                                                     \
      (CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height, CUstream stream)) { \
    return Set(true, dst, pitch, value, bytes, width, height, stream, true);                       \
  }

ALLRANKS_SET(unsigned char, 8, 1)
ALLRANKS_SET(unsigned short, 16, 2)
ALLRANKS_SET(unsigned, 32, 4)
