// Memory of the host by handles: creation, and what the host itself may do with its mappings; see
// virtual_memory.h. Devices and the checker treat it as pinned memory, which it is.
#include "node/check/checker.h"
#include "node/machine/virtual_memory_impl.h"

namespace allranks::node {
namespace {

constexpr std::uint32_t kMaxHostMemories = 512;  // of a process: each is a descriptor of the node's

}  // namespace

Status VirtualMemoryImpl::CreateHost(ProcessId id, MemoryPlace place, std::uint64_t size,
                                     std::uint32_t share, HandleId* handle) {
  const Process* process = Find(id);
  if (process == nullptr) return Status::kInvalidContext;
  if (place == MemoryPlace::kDevice || size == 0 || size % kGranularity != 0)
    return Status::kInvalidValue;
  // cuda.h: memory of the host that names no NUMA node cannot be shared; and no link takes that of
  // a NUMA node to another host (CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED is 0).
  const std::uint32_t ways = place == MemoryPlace::kHostNuma ? kShareByDescriptor : 0;
  if ((share & ~ways) != 0) return Status::kInvalidValue;
  shared_.Reap();
  const std::shared_ptr<std::uint32_t> count = owned_[id].host_memories;
  if (*count >= kMaxHostMemories) return Status::kOutOfMemory;
  auto allocation = std::make_shared<Allocation>();
  allocation->host = process->host;
  allocation->share = share;
  allocation->place = place;
  allocation->object = sim_.backing.Create(Object::Kind::kPinned, -1, id, size);
  if (allocation->object == nullptr) return Status::kOutOfMemory;
  allocation->object->name = fmt::format("rank {} host memory #{}", process->rank, ++names_);
  if (sim_.checker != nullptr) sim_.checker->Allocated(*allocation->object);
  ++*count;
  allocation->counted = count;
  return Add(id, std::move(allocation), handle);
}

const Allocation* VirtualMemoryImpl::AllocationOf(ProcessId process, const Mapping& mapping) const {
  return dynamic_cast<const Allocation*>(owned_.at(process).handles.at(mapping.handle).what.get());
}

int VirtualMemoryImpl::FileAt(ProcessId id, Address address) const {
  const Process* process = Find(id);
  const Mapping* mapping = process == nullptr ? nullptr : process->table.Find(address);
  return mapping == nullptr || mapping->handle == 0 ? -1 : mapping->object->fd;
}

Status VirtualMemoryImpl::SetHostAccess(ProcessId id, Address address, std::uint64_t size,
                                        MemoryPlace place, AccessRight right) {
  Process* process = Find(id);
  if (process == nullptr) return Status::kInvalidContext;
  const std::vector<const Mapping*> mappings = MappingsOf(*process, address, size);
  if (mappings.empty()) return Status::kInvalidValue;
  for (const Mapping* mapping : mappings) {
    const Allocation* allocation = AllocationOf(id, *mapping);
    const bool of_host = allocation != nullptr && allocation->place != MemoryPlace::kDevice;
    // cuda.h: HOST_NUMA accessibility is not for allocations that have another location.
    if (!of_host || (place == MemoryPlace::kHostNuma && allocation->place != place))
      return Status::kInvalidValue;
  }
  for (const Mapping* mapping : mappings) {
    process->table.GrantHost(mapping->base, right != AccessRight::kNone,
                             right == AccessRight::kReadWrite);
  }
  return Status::kSuccess;
}

Status VirtualMemoryImpl::GetHostAccess(ProcessId id, Address address, AccessRight* right) {
  const Process* process = Find(id);
  if (process == nullptr) return Status::kInvalidContext;
  const Mapping* mapping = process->table.Find(address);
  if (mapping == nullptr || mapping->handle == 0) return Status::kInvalidValue;
  *right = mapping->host_writes  ? AccessRight::kReadWrite
           : mapping->host_reads ? AccessRight::kRead
                                 : AccessRight::kNone;
  return Status::kSuccess;
}

}  // namespace allranks::node
