// Managed memory: one memory that both sides can touch, at one address. To the process it is mapped
// like pinned memory; where it lives is the node's matter and moves by prefetching whole
// allocations. Advice is remembered, for cuMemRangeGetAttribute, and changes nothing else.
#include <string.h>

#include <map>

#include "shim/cuda/driver.h"

namespace allranks::shim {
namespace {

constexpr int kNowhere = CU_DEVICE_INVALID;

// What a piece of managed memory was advised, and where it was last prefetched to.
struct Advice {
  bool read_mostly = false;
  int preferred = kNowhere, prefetched = kNowhere;  // device, or CU_DEVICE_CPU
  std::uint64_t accessed_by[2] = {0, 0};            // devices
  bool accessed_by_host = false;
};
static_assert(kMaxDevices <= 128);

// Address -> advice of the bytes from there to the next key.
struct Advices {
  Mutex mutex;
  std::map<std::uint64_t, Advice> pieces{{0, {}}};

  void Split(std::uint64_t at) { pieces.emplace(at, std::prev(pieces.upper_bound(at))->second); }
};
Advices& TheAdvices() {
  static auto* advices = new Advices;
  return *advices;
}

template <class F>
void Change(std::uint64_t begin, std::uint64_t end, F change) {
  Advices& advices = TheAdvices();
  Hold hold(advices.mutex);
  advices.Split(begin);
  advices.Split(end);
  for (auto it = advices.pieces.find(begin); it->first < end; ++it) change(it->second);
}

template <class F>
void Visit(std::uint64_t begin, std::uint64_t end, F visit) {
  Advices& advices = TheAdvices();
  Hold hold(advices.mutex);
  for (auto it = std::prev(advices.pieces.upper_bound(begin));
       it != advices.pieces.end() && it->first < end; ++it) {
    visit(it->second);
  }
}

// The range must lie in one managed allocation or variable.
CUresult CheckManaged(std::uint64_t address, std::size_t size, HostRange* range) {
  Context* context;
  const CUresult ready = Current(&context);
  if (ready != CUDA_SUCCESS) return ready;
  if (size == 0 || !TheDriver().host_ranges.Find(address, range) ||
      range->kind < HostRange::Kind::kManaged || size > range->size - (address - range->base)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult PlaceOf(const CUmemLocation& location, int* place) {
  switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      if (!IsDevice(location.id)) return CUDA_ERROR_INVALID_DEVICE;
      *place = location.id;
      return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
      *place = CU_DEVICE_CPU;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult Prefetch(bool per_thread, CUdeviceptr address, size_t size, CUmemLocation location,
                  unsigned flags, CUstream stream) {
  HostRange range;
  CUresult result = CheckManaged(address, size, &range);
  if (result != CUDA_SUCCESS) return result;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  int place = 0;
  result = PlaceOf(location, &place);
  if (result != CUDA_SUCCESS) return result;
  wire::Prefetch request;
  result = ResolveStream(stream, per_thread, &request.stream);
  if (result != CUDA_SUCCESS) return result;
  request.address = address;
  request.size = size;
  request.device = place;
  const int status = Call(request);
  if (status == 0) Change(address, address + size, [&](Advice& a) { a.prefetched = place; });
  return Result(status);
}

CUmemLocation LocationOf(int device) {
  CUmemLocation location{};
  location.type = device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
  location.id = device;
  return location;
}

CUresult Attach(bool per_thread, CUstream stream, CUdeviceptr address, size_t length,
                unsigned flags) {
  wire::StreamRef ref;
  const CUresult resolved = ResolveStream(stream, per_thread, &ref);
  if (resolved != CUDA_SUCCESS) return resolved;
  HostRange range;
  if (!TheDriver().host_ranges.Find(address, &range) || range.kind < HostRange::Kind::kManaged ||
      range.base != address || (length != 0 && length != range.size)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST &&
      flags != CU_MEM_ATTACH_SINGLE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (flags == CU_MEM_ATTACH_SINGLE && stream == nullptr && !per_thread) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;  // every device can use it at any time anyway
}

}  // namespace
}  // namespace allranks::shim

using namespace allranks::shim;

CUresult cuMemAllocManaged(CUdeviceptr* address, size_t size, unsigned flags) {
  Context* context;
  const CUresult ready = Current(&context);
  if (ready != CUDA_SUCCESS) return ready;
  if (address == nullptr || size == 0 ||
      (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::uint64_t place = 0;
  const CUresult result = AllocateHost(size, true, &place);
  if (result != CUDA_SUCCESS) return result;
  TheDriver().host_ranges.Add({place, size, HostRange::Kind::kManaged, flags});
  Change(place, place + size, [](Advice& advice) { advice = {}; });
  *address = place;
  return CUDA_SUCCESS;
}

CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t size, CUmemLocation location,
                            unsigned flags, CUstream stream) {
  return Prefetch(false, address, size, location, flags, stream);
}
ALLRANKS_SYMBOL(CUresult, cuMemPrefetchAsync_v2_ptsz,
                (CUdeviceptr address, size_t size, CUmemLocation location, unsigned flags,
                 CUstream stream)) {
  return Prefetch(true, address, size, location, flags, stream);
}
#undef cuMemPrefetchAsync
ALLRANKS_SYMBOL(CUresult, cuMemPrefetchAsync,
                (CUdeviceptr address, size_t size, CUdevice device, CUstream stream)) {
  return Prefetch(false, address, size, LocationOf(device), 0, stream);
}
ALLRANKS_SYMBOL(CUresult, cuMemPrefetchAsync_ptsz,
                (CUdeviceptr address, size_t size, CUdevice device, CUstream stream)) {
  return Prefetch(true, address, size, LocationOf(device), 0, stream);
}

CUresult cuMemAdvise(CUdeviceptr address, size_t size, CUmem_advise advice,
                     CUmemLocation location) {
  HostRange range;
  const CUresult result = CheckManaged(address, size, &range);
  if (result != CUDA_SUCCESS) return result;
  int place = 0;
  if (advice != CU_MEM_ADVISE_SET_READ_MOSTLY && advice != CU_MEM_ADVISE_UNSET_READ_MOSTLY &&
      advice != CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION) {
    const CUresult known = PlaceOf(location, &place);
    if (known != CUDA_SUCCESS) return known;
  }
  const auto access = [&](Advice& a, bool set) {
    if (place == CU_DEVICE_CPU) {
      a.accessed_by_host = set;
      return;
    }
    const std::uint64_t bit = std::uint64_t{1} << place % 64;
    std::uint64_t& word = a.accessed_by[place / 64];
    word = set ? word | bit : word & ~bit;
  };
  bool valid = true;
  Change(address, address + size, [&](Advice& a) {
    switch (advice) {
      case CU_MEM_ADVISE_SET_READ_MOSTLY:
      case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
        a.read_mostly = advice == CU_MEM_ADVISE_SET_READ_MOSTLY;
        break;
      case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
        a.preferred = place;
        break;
      case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
        a.preferred = kNowhere;
        break;
      case CU_MEM_ADVISE_SET_ACCESSED_BY:
      case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
        access(a, advice == CU_MEM_ADVISE_SET_ACCESSED_BY);
        break;
      default:
        valid = false;
    }
  });
  return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
#undef cuMemAdvise
ALLRANKS_SYMBOL(CUresult, cuMemAdvise,
                (CUdeviceptr address, size_t size, CUmem_advise advice, CUdevice device)) {
  return cuMemAdvise_v2(address, size, advice, LocationOf(device));
}

CUresult cuMemRangeGetAttribute(void* data, size_t data_size, CUmem_range_attribute attribute,
                                CUdeviceptr address, size_t size) {
  HostRange range;
  const CUresult result = CheckManaged(address, size, &range);
  if (result != CUDA_SUCCESS) return result;
  const auto list = attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY;
  if (data == nullptr || data_size % 4 != 0 || data_size == 0 || (!list && data_size != 4)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // An answer holds for the range only if it holds for all of it.
  bool first = true;
  Advice all;
  Visit(address, address + size, [&](const Advice& piece) {
    if (first) {
      all = piece;
    } else {
      all.read_mostly = all.read_mostly && piece.read_mostly;
      if (all.preferred != piece.preferred) all.preferred = kNowhere;
      if (all.prefetched != piece.prefetched) all.prefetched = kNowhere;
      for (int i = 0; i < 2; ++i) all.accessed_by[i] &= piece.accessed_by[i];
      all.accessed_by_host = all.accessed_by_host && piece.accessed_by_host;
    }
    first = false;
  });
  const auto type = [](int place) {
    return place == kNowhere        ? CU_MEM_LOCATION_TYPE_INVALID
           : place == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST
                                    : CU_MEM_LOCATION_TYPE_DEVICE;
  };
  const auto answer = [&](int value) {
    memcpy(data, &value, sizeof value);
    return CUDA_SUCCESS;
  };
  switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
      return answer(all.read_mostly ? 1 : 0);
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
      return answer(all.preferred);
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
      return answer(all.prefetched);
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
      return answer(type(all.preferred));
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
      return answer(all.preferred);
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
      return answer(type(all.prefetched));
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
      return answer(all.prefetched);
    case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY: {
      auto* out = static_cast<int*>(data);
      const std::size_t room = data_size / 4;
      std::size_t count = 0;
      if (all.accessed_by_host && count < room) out[count++] = CU_DEVICE_CPU;
      for (int device = 0; device < kMaxDevices && count < room; ++device) {
        if ((all.accessed_by[device / 64] >> device % 64 & 1) != 0) out[count++] = device;
      }
      while (count < room) out[count++] = kNowhere;
      return CUDA_SUCCESS;
    }
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuMemRangeGetAttributes(void** data, size_t* data_sizes, CUmem_range_attribute* attributes,
                                 size_t count, CUdeviceptr address, size_t size) {
  if (data == nullptr || data_sizes == nullptr || attributes == nullptr || count == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t i = 0; i < count; ++i) {
    const CUresult result =
        cuMemRangeGetAttribute(data[i], data_sizes[i], attributes[i], address, size);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr address, size_t length,
                                unsigned flags) {
  return Attach(false, stream, address, length, flags);
}
ALLRANKS_SYMBOL(CUresult, cuStreamAttachMemAsync_ptsz,
                (CUstream stream, CUdeviceptr address, size_t length, unsigned flags)) {
  return Attach(true, stream, address, length, flags);
}
