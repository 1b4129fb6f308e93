// Host memory that devices can use: allocated as such, or registered later.
//
// Registered memory keeps its address, so the node maps it where it lies. Two registrations may
// share a page; pages are therefore kept in segments, each one object of the node, which live as
// long as a registration needs them.
#include <string.h>

#include <algorithm>

#include "shim/cuda/capture.h"
#include "shim/cuda/driver.h"

namespace allranks::shim {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr unsigned kAllocFlags =
    CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;

std::uint64_t Number(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

// Puts the node's memory under pages that have none of it yet. `begin`, `end`: what the program
// registers; pages that are only partly within hold something else as well.
CUresult AddSegment(std::uint64_t address, std::uint64_t size, std::uint64_t begin,
                    std::uint64_t end, bool* shared) {
  wire::RegisterHost request;
  ArFile file = {};
  switch (ar_host_pages(address, size, &file)) {
    case kArPagesPrivate:
      break;
    case kArPagesShared:
      request.file_device = file.device;
      request.file_inode = file.inode;
      request.file_offset = file.offset;
      *shared = true;
      break;
    case kArPagesMissing:
      return CUDA_ERROR_INVALID_VALUE;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
  request.address = address;
  request.size = size;
  wire::RegisterHostReply reply;
  int fd = -1;
  const int status = Call(request, &reply, &fd);
  if (status != 0) return Result(status);
  const std::uint64_t head = begin > address ? kPage : 0;
  const std::uint64_t tail = end < address + size && size > head ? kPage : 0;
  if (fd >= 0 && ar_register_pages(address, size, head, tail, !reply.shared, fd))
    return CUDA_SUCCESS;
  wire::FreePinned undo;
  undo.address = address;
  Call(undo);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

void DropSegment(std::uint64_t address, bool shared) {
  // What has been stored there must have reached the node before the pages go.
  wire::FreePinned request;
  request.address = address;
  Call(request);
  ar_unregister_pages(address, shared);
}

}  // namespace

CUresult AllocateHost(std::uint64_t size, bool managed, std::uint64_t* address) {
  if (const CUresult unsafe = CheckUnsafeCall(); unsafe != CUDA_SUCCESS) return unsafe;
  wire::AllocPinned alloc;
  alloc.size = size;
  alloc.managed = managed;
  wire::AllocPinnedReply reply;
  int fd = -1;
  const int status = Call(alloc, &reply, &fd);
  if (status != 0) return Result(status);
  if (fd < 0 || !ar_map_pinned(reply.address, reply.size, fd)) {
    wire::FreePinned undo;
    undo.address = reply.address;
    Call(undo);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *address = reply.address;
  return CUDA_SUCCESS;
}

CUresult FreeHost(std::uint64_t address) {
  const CUresult idle = cuCtxSynchronize();
  if (idle != CUDA_SUCCESS) return idle;
  wire::FreePinned request;
  request.address = address;
  // What has been stored there must have reached the node before the pages go.
  const int status = Call(request);
  if (status == 0) ar_unmap_pinned(request.address);
  return Result(status);
}

// --- the tables --------------------------------------------------------------------------------

void HostRanges::Add(const HostRange& range) {
  Hold hold(mutex_);
  ranges_[range.base] = range;
}

bool HostRanges::Remove(std::uint64_t base) {
  Hold hold(mutex_);
  return ranges_.erase(base) != 0;
}

bool HostRanges::Find(std::uint64_t address, HostRange* range) {
  Hold hold(mutex_);
  auto it = ranges_.upper_bound(address);
  if (it == ranges_.begin()) return false;
  --it;
  if (address - it->first >= it->second.size) return false;
  *range = it->second;
  return true;
}

bool HostRanges::Overlaps(std::uint64_t begin, std::uint64_t end) {
  Hold hold(mutex_);
  auto it = ranges_.lower_bound(end);
  if (it == ranges_.begin()) return false;
  --it;
  return it->first + it->second.size > begin;
}

bool HostRanges::FindMapped(std::uint64_t begin, std::uint64_t end, HostRange* range) {
  Hold hold(mutex_);
  for (auto it = ranges_.lower_bound(begin); it != ranges_.end() && it->first < end; ++it) {
    if (it->second.kind != HostRange::Kind::kMapped) continue;
    *range = it->second;
    return true;
  }
  return false;
}

CUresult HostRanges::Register(std::uint64_t begin, std::uint64_t end, unsigned flags) {
  Hold hold(register_lock_);
  if (Overlaps(begin, end)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  const std::uint64_t first = begin / kPage * kPage, last = (end + kPage - 1) / kPage * kPage;
  std::vector<std::uint64_t> used, made;
  CUresult result = CUDA_SUCCESS;
  for (std::uint64_t at = first; at < last && result == CUDA_SUCCESS;) {
    auto next = segments_.upper_bound(at);
    if (next != segments_.begin()) {
      const auto& [base, segment] = *std::prev(next);
      if (at - base < segment.size) {
        used.push_back(base);
        at = base + segment.size;
        continue;
      }
    }
    const std::uint64_t until = next == segments_.end() ? last : std::min(last, next->first);
    bool shared = false;
    result = AddSegment(at, until - at, begin, end, &shared);
    if (result != CUDA_SUCCESS) break;
    segments_[at] = {until - at, 0, shared};
    used.push_back(at);
    made.push_back(at);
    at = until;
  }
  if (result != CUDA_SUCCESS) {
    for (const std::uint64_t base : made) {
      DropSegment(base, segments_[base].shared);
      segments_.erase(base);
    }
    return result;
  }
  for (const std::uint64_t base : used) ++segments_[base].uses;
  Add({begin, end - begin, HostRange::Kind::kRegistered, flags});
  any_registered_.store(true, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

CUresult HostRanges::Unregister(std::uint64_t begin) {
  Hold hold(register_lock_);
  HostRange range;
  if (!Find(begin, &range) || range.base != begin || range.kind != HostRange::Kind::kRegistered) {
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  }
  Remove(begin);
  const std::uint64_t first = begin / kPage * kPage, end = begin + range.size;
  auto it = segments_.upper_bound(first);
  if (it != segments_.begin()) --it;
  while (it != segments_.end() && it->first < end) {
    if (it->first + it->second.size <= first || --it->second.uses > 0) {
      ++it;
      continue;
    }
    DropSegment(it->first, it->second.shared);
    it = segments_.erase(it);
  }
  return CUDA_SUCCESS;
}

bool HostRanges::InRegistered(std::uint64_t address, std::uint64_t size) {
  if (!any_registered_.load(std::memory_order_relaxed)) return false;
  HostRange range;
  if (!Find(address, &range) || range.kind != HostRange::Kind::kRegistered ||
      size > range.size - (address - range.base)) {
    return false;
  }
  Hold hold(register_lock_);
  const auto it = segments_.upper_bound(address);
  if (it == segments_.begin()) return false;
  const auto& [base, segment] = *std::prev(it);
  return address - base < segment.size && size <= segment.size - (address - base);
}

}  // namespace allranks::shim

using namespace allranks::shim;

CUresult cuMemHostAlloc(void** pointer, size_t size, unsigned flags) {
  Context* context;
  const CUresult ready = Current(&context);
  if (ready != CUDA_SUCCESS) return ready;
  if (pointer == nullptr || (flags & ~kAllocFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  *pointer = nullptr;
  if (size == 0) return CUDA_SUCCESS;
  std::uint64_t address = 0;
  const CUresult result = AllocateHost(size, false, &address);
  if (result != CUDA_SUCCESS) return result;
  TheDriver().host_ranges.Add({address, size, HostRange::Kind::kAllocated, flags});
  *pointer = reinterpret_cast<void*>(address);
  return CUDA_SUCCESS;
}

CUresult cuMemAllocHost(void** pointer, size_t size) { return cuMemHostAlloc(pointer, size, 0); }

CUresult cuMemFreeHost(void* pointer) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  HostRange range;
  if (!TheDriver().host_ranges.Find(Number(pointer), &range) || range.base != Number(pointer) ||
      range.kind != HostRange::Kind::kAllocated) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const CUresult result = FreeHost(range.base);
  if (result == CUDA_SUCCESS) TheDriver().host_ranges.Remove(range.base);
  return result;
}

CUresult cuMemHostRegister(void* pointer, size_t size, unsigned flags) {
  Context* context;
  const CUresult ready = Current(&context);
  if (ready != CUDA_SUCCESS) return ready;
  constexpr unsigned kFlags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                              CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
  const std::uint64_t begin = Number(pointer);
  if (begin == 0 || size == 0 || begin + size < begin || (flags & ~kFlags) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if ((flags & CU_MEMHOSTREGISTER_IOMEMORY) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  if (IsPinnedAddress(begin)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  if (IsDeviceAddress(begin)) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult unsafe = CheckUnsafeCall(); unsafe != CUDA_SUCCESS) return unsafe;
  return TheDriver().host_ranges.Register(begin, begin + size, flags);
}

CUresult cuMemHostUnregister(void* pointer) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult idle = cuCtxSynchronize();
  if (idle != CUDA_SUCCESS) return idle;
  return TheDriver().host_ranges.Unregister(Number(pointer));
}

namespace {

bool FindHost(void* pointer, HostRange* range) {
  return TheDriver().host_ranges.Find(Number(pointer), range) &&
         range->kind <= HostRange::Kind::kRegistered;
}

}  // namespace

CUresult cuMemHostGetDevicePointer(CUdeviceptr* address, void* pointer, unsigned flags) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  HostRange range;
  if (address == nullptr || flags != 0 || !FindHost(pointer, &range)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *address = Number(pointer);
  return CUDA_SUCCESS;
}

// With one address space everything is mapped and portable, but only the former is reported.
CUresult cuMemHostGetFlags(unsigned* flags, void* pointer) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  HostRange range;
  if (flags == nullptr || !FindHost(pointer, &range)) return CUDA_ERROR_INVALID_VALUE;
  *flags = range.flags | CU_MEMHOSTALLOC_DEVICEMAP;
  return CUDA_SUCCESS;
}
