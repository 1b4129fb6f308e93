// Descriptors of ranges of device memory, which drivers of other devices take: what
// cuMemGetHandleForAddressRange makes. See virtual_memory.h and shared_handles.h.
#include <algorithm>

#include "node/machine/virtual_memory_impl.h"

namespace allranks::node {
namespace {

constexpr std::uint64_t kHostPage = 4096;

}  // namespace

// cuda.h: memory of cuMemAlloc, or addresses that are mapped without a gap, all of it on one device
// and with the same properties. Memory of pools and of other processes' IPC handles is neither.
Status VirtualMemoryImpl::ExportRange(ProcessId id, Address address, std::uint64_t size, int* fd) {
  const Process* process = Find(id);
  if (process == nullptr) return Status::kInvalidContext;
  if (size == 0 || address % kHostPage != 0 || size % kHostPage != 0 || address + size < address)
    return Status::kInvalidValue;
  auto range = std::make_shared<SharedRange>();
  range->host = process->host;
  const Mapping* first = process->table.Find(address);
  for (std::uint64_t done = 0; done < size;) {
    const Mapping* mapping = process->table.Find(address + done);
    if (mapping == nullptr || mapping->multicast != nullptr) return Status::kInvalidValue;
    // CU_DEVICE_ATTRIBUTE_HOST_ALLOC_DMA_BUF_SUPPORTED is 0.
    if (mapping->object->HostVisible()) return Status::kNotSupported;
    const std::uint64_t within = address + done - mapping->base;
    const bool allocated = mapping->rights == Mapping::Rights::kPeers && !mapping->ipc &&
                           mapping->object->kind == Object::Kind::kDevice;
    if (within >= mapping->Room() || mapping->object->device != first->object->device ||
        (mapping->handle == 0 && !allocated) || (mapping->handle == 0) != (first->handle == 0)) {
      return Status::kInvalidValue;
    }
    SharedRange::Part part;
    part.object = mapping->object;
    part.offset = mapping->offset + within;
    part.size = std::min(size - done, mapping->Room() - within);
    if (mapping->handle != 0) {
      part.memory = owned_.at(id).handles.at(mapping->handle).what;
      if (part.memory->share != ShareOf(id, first->handle)) return Status::kInvalidValue;
    } else if (part.size != size) {
      return Status::kInvalidValue;
    }
    done += part.size;
    range->parts.push_back(std::move(part));
  }
  *fd = shared_.Export(id, range);
  return *fd < 0 ? Status::kOutOfMemory : Status::kSuccess;
}

Status VirtualMemoryImpl::FindRange(ProcessId id, int fd, MemoryRange* range) const {
  const Process* process = Find(id);
  if (process == nullptr) return Status::kInvalidContext;
  const auto found = std::dynamic_pointer_cast<SharedRange>(shared_.Find(fd));
  if (found == nullptr || found->host != process->host) return Status::kInvalidValue;
  *range = {};
  range->device = found->parts.front().object->device;
  for (const SharedRange::Part& part : found->parts) {
    range->size += part.size;
    range->parts.push_back({part.object->id, part.offset, part.size});
  }
  return Status::kSuccess;
}

}  // namespace allranks::node
