// Pools in several processes: their export and import, and that of single allocations.
#include <cstring>

#include "node/machine/machine_impl.h"

namespace allranks::node {
namespace {

constexpr std::uint64_t kPointerMagic = 0x3152'5450'4b4e'5241;  // "ARNKPTR1"
constexpr std::uint64_t kGranule = 512;

}  // namespace

Status MachineImpl::ExportPool(ProcessId process, PoolId id, int* fd) {
  const Pool* pool = FindPool(process, id);
  if (pool == nullptr || pool->imported || pool->shared == nullptr ||
      (pool->shared->share & kShareByDescriptor) == 0) {
    return Status::kInvalidValue;
  }
  *fd = shared_handles_.Export(process, pool->shared);
  return *fd < 0 ? Status::kOutOfMemory : Status::kSuccess;
}

Status MachineImpl::ExportPool(ProcessId process, PoolId id, FabricHandle* fabric) {
  const Pool* pool = FindPool(process, id);
  if (pool == nullptr || pool->imported || pool->shared == nullptr ||
      (pool->shared->share & kShareByFabric) == 0) {
    return Status::kInvalidValue;
  }
  *fabric = shared_handles_.ExportFabric(pool->shared);
  return Status::kSuccess;
}

Status MachineImpl::ImportPool(ProcessId process, const std::shared_ptr<Shared>& what, bool fabric,
                               PoolId* pool, int* device) {
  const Process* found = Find(process);
  if (found == nullptr) return Status::kInvalidContext;
  const auto shared = std::dynamic_pointer_cast<SharedPool>(what);
  if (shared == nullptr) return Status::kInvalidValue;
  const bool here =
      fabric ? sim_.SameFabric(found->host, shared->host) : found->host == shared->host;
  if (!here) return Status::kNotPermitted;
  const Status status = NewPool(process, pool);
  if (status != Status::kSuccess) return status;
  Pool& made = pools_[*pool];
  made.device = shared->device;
  made.access.set(static_cast<std::size_t>(made.device));
  made.imported = true;
  made.shared = shared;
  *device = sim_.OrdinalOf(*found, made.device);
  return Status::kSuccess;
}

Status MachineImpl::ImportPool(ProcessId process, int fd, PoolId* pool, int* device) {
  return ImportPool(process, shared_handles_.Find(fd), false, pool, device);
}

Status MachineImpl::ImportPool(ProcessId process, const FabricHandle& fabric, PoolId* pool,
                               int* device) {
  return ImportPool(process, shared_handles_.Find(fabric), true, pool, device);
}

// The data is no secret: without the pool it is worth nothing.
Status MachineImpl::ExportPointer(ProcessId id, Address address, IpcHandle* data) {
  const Process* process = Find(id);
  if (process == nullptr) return Status::kInvalidContext;
  const Mapping* mapping = process->table.Find(address);
  const auto block = pool_blocks_.find({id, address});
  if (mapping == nullptr || mapping->base != address || block == pool_blocks_.end() ||
      freeing_.contains({id, address})) {
    return Status::kInvalidValue;
  }
  const Pool& pool = pools_.at(block->second);
  if (pool.imported || pool.shared == nullptr) return Status::kInvalidValue;
  const std::uint64_t words[] = {kPointerMagic, mapping->object->id, block->second};
  *data = {};
  std::memcpy(data->bytes, words, sizeof words);
  exported_[mapping->object->id] = mapping->object;
  return Status::kSuccess;
}

Status MachineImpl::ImportPointer(ProcessId id, PoolId pool_id, const IpcHandle& data,
                                  Address* address) {
  if (Find(id) == nullptr) return Status::kInvalidContext;
  Pool* pool = FindPool(id, pool_id);
  std::uint64_t words[3];
  std::memcpy(words, data.bytes, sizeof words);
  if (pool == nullptr || !pool->imported || words[0] != kPointerMagic ||
      words[2] != pool->shared->pool) {
    return Status::kInvalidValue;
  }
  const auto it = exported_.find(static_cast<std::uint32_t>(words[1]));
  std::shared_ptr<Object> object = it == exported_.end() ? nullptr : it->second.lock();
  // Of that pool, still: the owner's block.
  if (object == nullptr || object->mappings == 0 || object->id != words[1]) {
    return Status::kInvalidValue;
  }
  bool found = false;
  for (auto block = pool_blocks_.lower_bound({object->owner, 0});
       block != pool_blocks_.end() && block->first.first == object->owner && !found; ++block) {
    if (block->second != words[2]) continue;
    const Mapping* mapping = sim_.ProcessOf(object->owner).table.Find(block->first.second);
    found = mapping != nullptr && mapping->object == object;
  }
  if (!found) return Status::kInvalidValue;
  Process& process = sim_.ProcessOf(id);
  // Addresses of a device that is not seen come from where the first one's do.
  const int visible = std::max(0, sim_.OrdinalOf(process, object->device));
  Mapping mapping;
  mapping.base =
      process.device_arenas[static_cast<std::size_t>(visible)].Take(object->size, kGranule);
  if (mapping.base == 0) return Status::kOutOfMemory;
  mapping.size = object->size;
  mapping.object = std::move(object);
  *address = mapping.base;
  pool->used += mapping.size;
  pool_blocks_[{id, mapping.base}] = pool_id;
  process.table.Insert(std::move(mapping));
  GrantPool(process, *address, *pool);
  return Status::kSuccess;
}

}  // namespace allranks::node
