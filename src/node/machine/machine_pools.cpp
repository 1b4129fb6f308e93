// Stream-ordered memory: pools, and frees that take effect when their stream gets there.
//
// Pooled memory is an ordinary mapping with the pool's rights. What the pool holds beyond it
// (`spare`) is only a number that counts against the device's capacity. A free is an operation;
// until it is done the memory is still there, and the next allocation of the same size in the same
// stream takes it over, as on hardware: a loop that allocates and frees needs no synchronisation.
#include <algorithm>

#include "base/check.h"
#include "node/machine/machine_impl.h"

namespace allranks::node {
namespace {

// Pools take memory from the device in pieces of this size.
constexpr std::uint64_t kPoolGranule = std::uint64_t{32} << 20;
constexpr std::size_t kMaxPools = 1 << 12;  // of a process

}  // namespace

Pool* MachineImpl::FindPool(ProcessId process, PoolId pool) {
  const auto it = pools_.find(pool);
  if (it == pools_.end() || it->second.process != process || it->second.destroyed) return nullptr;
  return &it->second;
}

void MachineImpl::GrantPool(Process& process, Address base, const Pool& pool) {
  process.table.Grant(base, Mapping::Rights::kPool, pool.access, pool.access);
}

void MachineImpl::SetSpare(Pool& pool, std::uint64_t bytes) {
  Device& device = sim_.devices[static_cast<std::size_t>(pool.device)];
  device.allocated = device.allocated - pool.spare + bytes;
  pool.spare = bytes;
  pool.reserved_high = std::max(pool.reserved_high, pool.Reserved());
}

PoolId MachineImpl::DefaultPool(ProcessId process, int device) {
  const Process* found = Find(process);
  if (found == nullptr || DeviceOf(*found, device) == nullptr) return 0;
  PoolId& id = default_pools_[{process, sim_.NumberOf(*found, device)}];
  if (id == 0) {
    id = next_id_++;
    Pool& pool = pools_[id];
    pool.process = process;
    pool.device = sim_.NumberOf(*found, device);
    pool.access.set(static_cast<std::size_t>(pool.device));
  }
  return id;
}

Status MachineImpl::NewPool(ProcessId process, PoolId* pool) {
  const auto count = std::count_if(pools_.begin(), pools_.end(), [&](const auto& entry) {
    return entry.second.process == process;
  });
  if (static_cast<std::size_t>(count) >= kMaxPools) return Status::kOutOfMemory;
  *pool = next_id_++;
  pools_[*pool].process = process;
  return Status::kSuccess;
}

Status MachineImpl::CreatePool(ProcessId process, int device, std::uint64_t max_size,
                               std::uint32_t share, PoolId* pool) {
  const Process* found = Find(process);
  if (found == nullptr || DeviceOf(*found, device) == nullptr) return Status::kInvalidDevice;
  if ((share & ~(kShareByDescriptor | kShareByFabric)) != 0) return Status::kInvalidValue;
  const Status status = NewPool(process, pool);
  if (status != Status::kSuccess) return status;
  Pool& made = pools_[*pool];
  made.device = sim_.NumberOf(*found, device);
  made.max_size = max_size;
  made.access.set(static_cast<std::size_t>(made.device));
  if (share != 0) {
    made.shared = std::make_shared<SharedPool>();
    made.shared->host = found->host;
    made.shared->share = share;
    made.shared->pool = *pool;
    made.shared->device = made.device;
  }
  return Status::kSuccess;
}

Status MachineImpl::DestroyPool(ProcessId process, PoolId id) {
  Pool* pool = FindPool(process, id);
  if (pool == nullptr) return Status::kInvalidValue;
  const auto standard = default_pools_.find({process, pool->device});
  if (standard != default_pools_.end() && standard->second == id) return Status::kInvalidValue;
  SetSpare(*pool, 0);
  pool->destroyed = true;
  if (pool->used == 0) pools_.erase(id);
  return Status::kSuccess;
}

Status MachineImpl::GetPoolAttribute(ProcessId process, PoolId id, PoolAttribute attribute,
                                     std::uint64_t* value) {
  const Pool* pool = FindPool(process, id);
  if (pool == nullptr) return Status::kInvalidValue;
  switch (attribute) {
    case PoolAttribute::kReuseFollowEvents:
    case PoolAttribute::kReuseOpportunistic:
    case PoolAttribute::kReuseInternal:
      *value = pool->reuse[static_cast<int>(attribute) - 1];
      return Status::kSuccess;
    case PoolAttribute::kReleaseThreshold:
      *value = pool->threshold;
      return Status::kSuccess;
    case PoolAttribute::kReservedCurrent:
      *value = pool->Reserved();
      return Status::kSuccess;
    case PoolAttribute::kReservedHigh:
      *value = pool->reserved_high;
      return Status::kSuccess;
    case PoolAttribute::kUsedCurrent:
      *value = pool->used;
      return Status::kSuccess;
    case PoolAttribute::kUsedHigh:
      *value = pool->used_high;
      return Status::kSuccess;
  }
  return Status::kInvalidValue;
}

Status MachineImpl::SetPoolAttribute(ProcessId process, PoolId id, PoolAttribute attribute,
                                     std::uint64_t value) {
  Pool* pool = FindPool(process, id);
  if (pool == nullptr) return Status::kInvalidValue;
  switch (attribute) {
    case PoolAttribute::kReuseFollowEvents:
    case PoolAttribute::kReuseOpportunistic:
    case PoolAttribute::kReuseInternal:
      pool->reuse[static_cast<int>(attribute) - 1] = value != 0 ? 1 : 0;
      return Status::kSuccess;
    case PoolAttribute::kReleaseThreshold:
      pool->threshold = value;
      return Status::kSuccess;
    // High-water marks can only be set back.
    case PoolAttribute::kReservedHigh:
      if (value != 0) return Status::kInvalidValue;
      pool->reserved_high = pool->Reserved();
      return Status::kSuccess;
    case PoolAttribute::kUsedHigh:
      if (value != 0) return Status::kInvalidValue;
      pool->used_high = pool->used;
      return Status::kSuccess;
    case PoolAttribute::kReservedCurrent:
    case PoolAttribute::kUsedCurrent:
      break;
  }
  return Status::kInvalidValue;
}

Status MachineImpl::TrimPool(ProcessId process, PoolId id, std::uint64_t keep) {
  Pool* pool = FindPool(process, id);
  if (pool == nullptr) return Status::kInvalidValue;
  SetSpare(*pool, std::min(pool->spare, keep > pool->used ? keep - pool->used : 0));
  return Status::kSuccess;
}

Status MachineImpl::SetPoolAccess(ProcessId process, PoolId id, int device, bool access) {
  Pool* pool = FindPool(process, id);
  if (pool == nullptr) return Status::kInvalidValue;
  Process& owner = sim_.ProcessOf(process);
  if (DeviceOf(owner, device) == nullptr) return Status::kInvalidDevice;
  const int number = sim_.NumberOf(owner, device);
  if (number == pool->device) return access ? Status::kSuccess : Status::kInvalidValue;
  if (!sim_.CanReach(number, pool->device)) return Status::kInvalidDevice;
  pool->access.set(static_cast<std::size_t>(number), access);
  for (const auto& [block, owner_pool] : pool_blocks_) {
    if (block.first == process && owner_pool == id) GrantPool(owner, block.second, *pool);
  }
  return Status::kSuccess;
}

Status MachineImpl::GetPoolAccess(ProcessId process, PoolId id, int device, bool* access) {
  const Pool* pool = FindPool(process, id);
  if (pool == nullptr) return Status::kInvalidValue;
  const Process& owner = sim_.ProcessOf(process);
  if (DeviceOf(owner, device) == nullptr) return Status::kInvalidDevice;
  *access = pool->access[static_cast<std::size_t>(sim_.NumberOf(owner, device))];
  return Status::kSuccess;
}

Status MachineImpl::AllocateAsync(ProcessId process, StreamId stream, PoolId id, std::uint64_t size,
                                  Address* address) {
  const Stream* s = FindStream(process, stream);
  if (s == nullptr) return Status::kInvalidHandle;
  Pool* pool = FindPool(process, id);
  if (pool == nullptr || pool->imported || size == 0) return Status::kInvalidValue;
  Process& owner = sim_.ProcessOf(process);
  for (auto it = freeing_.lower_bound({process, 0});
       it != freeing_.end() && it->first.first == process; ++it) {
    const auto block = pool_blocks_.find(it->first);
    if (it->second.stream != stream || block == pool_blocks_.end() || block->second != id) continue;
    if (owner.table.Find(it->first.second)->object->size != size) continue;
    *address = it->first.second;
    if (sim_.checker != nullptr) checker_->Allocated(*owner.table.Find(*address)->object);
    freeing_.erase(it);  // the free will find that it is void
    return Status::kSuccess;
  }
  if (pool->max_size != 0 && (size > pool->max_size || pool->used > pool->max_size - size)) {
    return Status::kOutOfMemory;
  }
  const int visible = sim_.OrdinalOf(owner, pool->device);
  if (visible < 0) return Status::kInvalidDevice;
  const std::uint64_t spare = pool->spare;
  SetSpare(*pool, spare > size ? spare - size : 0);
  const std::string name = fmt::format("rank {} device {} allocation #{}", owner.rank, visible,
                                       ++names_[{process, visible}]);
  Mapping mapping;
  const Status status = MapNew(owner, visible, Object::Kind::kDevice, size, name, &mapping);
  if (status != Status::kSuccess) {
    SetSpare(*pool, spare);
    return status;
  }
  GrantPool(owner, mapping.base, *pool);
  pool_blocks_[{process, mapping.base}] = id;
  pool->used += size;
  pool->used_high = std::max(pool->used_high, pool->used);
  if (spare < size) {
    const std::uint64_t want = (pool->used + kPoolGranule - 1) / kPoolGranule * kPoolGranule;
    SetSpare(*pool, std::min(want - pool->used, FreeMemory(process, visible)));
  }
  pool->reserved_high = std::max(pool->reserved_high, pool->Reserved());
  *address = mapping.base;
  return Status::kSuccess;
}

// What Free and FreeAsync may free: device memory at its first byte, and not freed already.
const Mapping* MachineImpl::FindDeviceMemory(Process& process, Address address) const {
  const Mapping* mapping = process.table.Find(address);
  if (mapping == nullptr || mapping->base != address || mapping->ipc || mapping->handle != 0 ||
      mapping->object->kind != Object::Kind::kDevice || freeing_.contains({process.id, address})) {
    return nullptr;
  }
  return mapping;
}

void MachineImpl::ReleaseDeviceMemory(Process& process, Address address) {
  const std::uint64_t size = process.table.Find(address)->object->size;
  Unmap(process, address);
  const auto block = pool_blocks_.find({process.id, address});
  if (block == pool_blocks_.end()) return;
  const PoolId id = block->second;
  pool_blocks_.erase(block);
  Pool& pool = pools_.at(id);
  pool.used -= size;
  if (pool.imported && !pool.destroyed) return;
  if (pool.destroyed) {
    if (pool.used == 0) pools_.erase(id);
    return;
  }
  const std::uint64_t keep = pool.threshold > pool.used ? pool.threshold - pool.used : 0;
  SetSpare(pool, std::min(pool.spare + size, keep));
}

Status MachineImpl::FreeAsync(ProcessId process, StreamId stream, Address address, Time at,
                              OpId* id) {
  Stream* s = FindStream(process, stream);
  if (s == nullptr) return Status::kInvalidHandle;
  if (queued_[process] >= kMaxQueued) return Status::kOutOfMemory;
  Process& owner = sim_.ProcessOf(process);
  if (FindDeviceMemory(owner, address) == nullptr) return Status::kInvalidValue;
  Operation& op = NewOperation(Operation::Kind::kFree, process, s->device);
  op.address = address;
  freeing_[{process, address}] = {stream, op.id};
  *id = op.id;
  Enqueue(*s, op, at);
  return Status::kSuccess;
}

void MachineImpl::FinishFree(const Operation& op) {
  const auto it = freeing_.find({op.process, op.address});
  if (it == freeing_.end() || it->second.op != op.id) return;  // taken over, or gone by a reset
  freeing_.erase(it);
  if (sim_.checker == nullptr) return ReleaseDeviceMemory(sim_.ProcessOf(op.process), op.address);
  const SiteId caller = std::exchange(checker_->caller, op.clocks.site);
  checker_->freeing = op.stream;
  ReleaseDeviceMemory(sim_.ProcessOf(op.process), op.address);
  checker_->caller = caller;
  checker_->freeing = 0;
}

void MachineImpl::DropPools(ProcessId process, int device) {
  const auto drops = [&](PoolId id) {
    const auto it = pools_.find(id);
    return it != pools_.end() && (device < 0 || it->second.device == device);
  };
  for (auto it = pool_blocks_.lower_bound({process, 0});
       it != pool_blocks_.end() && it->first.first == process;) {
    it = drops(it->second) ? pool_blocks_.erase(it) : std::next(it);
  }
  for (auto it = pools_.begin(); it != pools_.end();) {
    if (it->second.process != process || (device >= 0 && it->second.device != device)) {
      ++it;
      continue;
    }
    SetSpare(it->second, 0);
    default_pools_.erase({process, it->second.device});
    it = pools_.erase(it);
  }
  std::erase_if(freeing_, [&](const auto& entry) {
    if (entry.first.first != process) return false;
    const Mapping* mapping = sim_.ProcessOf(process).table.Find(entry.first.second);
    return device < 0 || mapping == nullptr || mapping->object->device == device;
  });
}

}  // namespace allranks::node
