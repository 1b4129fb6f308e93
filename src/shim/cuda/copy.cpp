// Copies. Memory of the node (device or pinned) is named by address; the process's own memory
// travels as bytes, packed, in chunks that follow each other in the stream.
#include <string.h>

#include <algorithm>

#include "shim/cuda/capture.h"
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
  const int linked = ar_call(static_cast<std::uint16_t>(wire::kOpOf<wire::CopyIn>), head.data(),
                             head.size(), data, size, -1, &reply);
  return linked == kArOk ? reply.status : 999;
}

// The rows that come back are put `pitch` bytes apart.
int ReceiveCopyOut(const wire::CopyOut& copy, char* data, std::uint64_t pitch) {
  wire::Blob head = wire::Encode(copy);
  ArReply reply;
  if (ar_call(static_cast<std::uint16_t>(wire::kOpOf<wire::CopyOut>), head.data(), head.size(),
              nullptr, 0, -1, &reply) != kArOk) {
    return 999;
  }
  if (reply.status != 0) return reply.status;
  std::uint32_t count = 0;
  if (reply.size < sizeof count) return 999;
  memcpy(&count, reply.body, sizeof count);
  if (count != copy.size * copy.rows.height || reply.size != sizeof count + count) return 999;
  const auto* bytes = static_cast<const std::byte*>(reply.body) + sizeof count;
  for (std::uint64_t row = 0; row < copy.rows.height; ++row, bytes += copy.size) {
    memcpy(data + row * pitch, bytes, copy.size);
  }
  return 0;
}

// A region in one piece, if it has no gaps.
void Flatten(Region* region) {
  wire::Rows& rows = region->rows;
  const auto gap = [&](std::uint64_t pitch, std::uint64_t slice) {
    return (rows.height > 1 && pitch != region->width) ||
           (rows.depth > 1 && slice != region->width * rows.height);
  };
  if (gap(rows.dst_pitch, rows.dst_slice) || gap(rows.src_pitch, rows.src_slice)) return;
  region->width *= rows.height * rows.depth;
  rows = {};
}

// Calls `visit` for consecutive runs of rows of one plane that fit into a message together, with
// both ends' places. A row that does not fit alone is visited in parts.
template <class F>
CUresult ForEachRun(const Region& region, F visit) {
  const wire::Rows& rows = region.rows;
  for (std::uint64_t plane = 0; plane < rows.depth; ++plane) {
    for (std::uint64_t row = 0; row < rows.height;) {
      Region run = region;
      run.rows.depth = 1;
      run.dst += plane * rows.dst_slice + row * rows.dst_pitch;
      run.src += plane * rows.src_slice + row * rows.src_pitch;
      if (region.width <= wire::kMaxChunk) {
        run.rows.height = std::min(rows.height - row, wire::kMaxChunk / region.width);
        row += run.rows.height;
        const bool last = plane + 1 == rows.depth && row == rows.height;
        if (const int status = visit(run, last); status != 0) return Result(status);
        continue;
      }
      run.rows = {};
      for (std::uint64_t done = 0; done < region.width; done += run.width) {
        run.width = std::min<std::uint64_t>(region.width - done, wire::kMaxChunk);
        const bool last =
            plane + 1 == rows.depth && row + 1 == rows.height && done + run.width == region.width;
        if (const int status = visit(run, last); status != 0) return Result(status);
        run.dst += run.width;
        run.src += run.width;
      }
      ++row;
    }
  }
  return CUDA_SUCCESS;
}

const char* At(std::uint64_t address) { return reinterpret_cast<const char*>(address); }
char* Into(std::uint64_t address) { return reinterpret_cast<char*>(address); }

// The rows of a run, one behind the other.
std::vector<char> Pack(const Region& run) {
  std::vector<char> packed(run.width * run.rows.height);
  for (std::uint64_t row = 0; row < run.rows.height; ++row) {
    memcpy(packed.data() + row * run.width, At(run.src + row * run.rows.src_pitch), run.width);
  }
  return packed;
}

}  // namespace

CUresult CopyRegion(Region region, CUstream stream, bool per_thread, bool async) {
  if (Stream* capturing = Capturing(stream, per_thread)) return CaptureCopy(capturing, region);
  wire::StreamRef ref;
  const CUresult resolved = ResolveStream(stream, per_thread, &ref);
  if (resolved != CUDA_SUCCESS) return resolved;
  if (region.width == 0 || region.rows.height == 0 || region.rows.depth == 0) return CUDA_SUCCESS;
  if (region.dst == 0 || region.src == 0) return CUDA_ERROR_INVALID_VALUE;
  Flatten(&region);
  const auto span = [&](std::uint64_t pitch, std::uint64_t slice) {
    return (region.rows.depth - 1) * slice + (region.rows.height - 1) * pitch + region.width;
  };
  const bool to_node =
      IsNodeAddress(region.dst, span(region.rows.dst_pitch, region.rows.dst_slice));
  const bool from_node =
      IsNodeAddress(region.src, span(region.rows.src_pitch, region.rows.src_slice));
  if (to_node && from_node) {
    wire::Copy copy;
    copy.stream = ref;
    copy.dst = region.dst;
    copy.src = region.src;
    copy.size = region.width;
    copy.rows = region.rows;
    // A copy within device memory does not hold up the host, as on hardware.
    copy.wait = !async && (!IsDeviceMemory(region.dst) || !IsDeviceMemory(region.src));
    return Result(Call(copy));
  }
  if (to_node) {
    return ForEachRun(region, [&](const Region& run, bool last) {
      wire::CopyIn copy;
      copy.stream = ref;
      copy.dst = run.dst;
      copy.size = run.width;
      copy.rows = run.rows;
      copy.wait = !async && last;
      if (run.rows.height == 1) return SendCopyIn(copy, At(run.src), run.width);
      const std::vector<char> packed = Pack(run);
      return SendCopyIn(copy, packed.data(), packed.size());
    });
  }
  if (from_node) {
    return ForEachRun(region, [&](const Region& run, bool) {
      wire::CopyOut copy;
      copy.stream = ref;
      copy.src = run.src;
      copy.size = run.width;
      copy.rows = run.rows;
      return ReceiveCopyOut(copy, Into(run.dst), run.rows.dst_pitch);
    });
  }
  wire::StreamSync sync;
  sync.stream = ref;
  if (const int status = Call(sync); status != 0) return Result(status);
  for (std::uint64_t plane = 0; plane < region.rows.depth; ++plane) {
    for (std::uint64_t row = 0; row < region.rows.height; ++row) {
      memmove(Into(region.dst + plane * region.rows.dst_slice + row * region.rows.dst_pitch),
              At(region.src + plane * region.rows.src_slice + row * region.rows.src_pitch),
              region.width);
    }
  }
  return CUDA_SUCCESS;
}

CUresult CopyAny(std::uint64_t dst, std::uint64_t src, std::size_t size, CUstream stream,
                 bool per_thread, bool async) {
  Region region;
  region.dst = dst;
  region.src = src;
  region.width = size;
  return CopyRegion(region, stream, per_thread, async);
}

}  // namespace allranks::shim

using namespace allranks::shim;

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
  ALLRANKS_SYMBOL(CUresult, name##suffix, parameters) {                                        \
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
