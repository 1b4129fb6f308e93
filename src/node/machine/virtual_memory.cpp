// Memory by handles: creation, addresses, rights, sharing; see virtual_memory.h.
#include "node/virtual_memory.h"
#include "node/check/checker.h"
#include "node/check/errors.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "node/machine/virtual_memory_impl.h"

namespace allranks::node {
namespace {

constexpr std::uint64_t kPage = 4096;
// Of a process.
constexpr std::size_t kMaxHandles = 1 << 16;
constexpr std::size_t kMaxReservations = 1 << 16;
constexpr std::size_t kMaxHostMappings = 1 << 10;  // each is looked at when its process speaks

bool Aligned(std::uint64_t value) { return value % VirtualMemory::kGranularity == 0; }

}  // namespace

Allocation::~Allocation() {
  if (charged != nullptr) *charged -= object->size;
  if (counted != nullptr) --*counted;
}

// --- finding -----------------------------------------------------------------------------------

Process* VirtualMemoryImpl::Find(ProcessId id) const {
  if (id == 0 || id > sim_.processes.size()) return nullptr;
  Process* process = sim_.processes[id - 1].get();
  return process->alive ? process : nullptr;
}

int VirtualMemoryImpl::Number(const Process& process, int device) const {
  if (device < 0 || static_cast<std::size_t>(device) >= process.visible.size()) return -1;
  return sim_.NumberOf(process, device);
}

std::shared_ptr<Shared> VirtualMemoryImpl::Find(ProcessId process, HandleId id) const {
  const auto owned = owned_.find(process);
  if (owned == owned_.end()) return nullptr;
  const auto it = owned->second.handles.find(id);
  if (it == owned->second.handles.end() || it->second.references == 0) return nullptr;
  return it->second.what;
}

Status VirtualMemoryImpl::Add(ProcessId process, std::shared_ptr<Shared> what, HandleId* handle) {
  Owned& owned = owned_[process];
  if (owned.handles.size() >= kMaxHandles) return Status::kOutOfMemory;
  *handle = next_++;
  owned.handles[*handle] = {std::move(what), 1, 0};
  return Status::kSuccess;
}

void VirtualMemoryImpl::Drop(Owned& owned, HandleId handle) {
  const auto it = owned.handles.find(handle);
  if (it->second.references == 0 && it->second.mappings == 0) owned.handles.erase(it);
}

std::uint32_t VirtualMemoryImpl::ShareOf(ProcessId process, HandleId handle) const {
  return owned_.at(process).handles.at(handle).what->share;
}

bool VirtualMemoryImpl::Used(ProcessId process) const {
  const auto it = owned_.find(process);
  return it != owned_.end() && !(it->second.handles.empty() && it->second.reservations.empty());
}

// --- handles -----------------------------------------------------------------------------------

Status VirtualMemoryImpl::Create(ProcessId id, int device, std::uint64_t size, std::uint32_t share,
                                 HandleId* handle) {
  const Process* process = Find(id);
  if (process == nullptr) return Status::kInvalidContext;
  const int number = Number(*process, device);
  if (number < 0) return Status::kInvalidDevice;
  if (size == 0 || !Aligned(size) || (share & ~(kShareByDescriptor | kShareByFabric)) != 0)
    return Status::kInvalidValue;
  shared_.Reap();
  Device& home = sim_.devices[static_cast<std::size_t>(number)];
  const auto capacity = static_cast<std::uint64_t>(sim_.profile.device.memory_bytes);
  if (size > capacity || home.allocated > capacity - size) return Status::kOutOfMemory;
  auto allocation = std::make_shared<Allocation>();
  allocation->host = process->host;
  allocation->share = share;
  allocation->object = sim_.backing.Create(Object::Kind::kDevice, number, id, size);
  if (allocation->object == nullptr) return Status::kOutOfMemory;
  allocation->object->name =
      fmt::format("rank {} device {} memory #{}", process->rank, device, ++names_);
  if (sim_.checker != nullptr) sim_.checker->Allocated(*allocation->object);
  if (sim_.errors != nullptr) sim_.errors->Watch(allocation->object);
  home.allocated += size;
  allocation->charged = &home.allocated;
  return Add(id, std::move(allocation), handle);
}

Status VirtualMemoryImpl::Release(ProcessId process, HandleId id) {
  if (Find(process, id) == nullptr) return Status::kInvalidValue;
  Owned& owned = owned_[process];
  if (const auto multicast = Find<MulticastObject>(process, id)) owned.released[id] = multicast;
  --owned.handles.at(id).references;
  Drop(owned, id);
  shared_.Reap();
  return Status::kSuccess;
}

Status VirtualMemoryImpl::Retain(ProcessId id, Address address, HandleId* handle) {
  const Process* process = Find(id);
  if (process == nullptr) return Status::kInvalidContext;
  const Mapping* mapping = process->table.Find(address);
  if (mapping == nullptr || mapping->handle == 0) return Status::kInvalidValue;
  *handle = mapping->handle;
  ++owned_[id].handles.at(*handle).references;
  return Status::kSuccess;
}

Status VirtualMemoryImpl::Info(ProcessId id, HandleId handle, HandleInfo* info) {
  const Process* process = Find(id);
  if (process == nullptr) return Status::kInvalidContext;
  const std::shared_ptr<Shared> what = Find(id, handle);
  if (what == nullptr) return Status::kInvalidValue;
  *info = {};
  info->share = what->share;
  if (const auto* multicast = dynamic_cast<const MulticastObject*>(what.get())) {
    info->multicast = true;
    info->size = multicast->size;
  } else if (const auto* allocation = dynamic_cast<const Allocation*>(what.get())) {
    info->place = allocation->place;
    if (allocation->place == MemoryPlace::kDevice)
      info->device = sim_.OrdinalOf(*process, allocation->object->device);
    info->size = allocation->object->size;
  }
  return Status::kSuccess;
}

// --- addresses ---------------------------------------------------------------------------------

Status VirtualMemoryImpl::Reserve(ProcessId id, std::uint64_t size, std::uint64_t alignment,
                                  Address hint, Address* address) {
  if (Find(id) == nullptr) return Status::kInvalidContext;
  if (size == 0 || size % kPage != 0 || hint % kPage != 0 ||
      (alignment != 0 && !std::has_single_bit(alignment))) {
    return Status::kInvalidValue;
  }
  if (size > kReservedSize || alignment > kReservedSize) return Status::kOutOfMemory;
  auto& reservations = owned_[id].reservations;
  if (reservations.size() >= kMaxReservations) return Status::kOutOfMemory;
  const std::uint64_t step = std::max(alignment, kGranularity);
  const Address end = kReservedArena + kReservedSize;
  const auto up = [&](Address at) { return (at + step - 1) / step * step; };
  // A wish is granted with its own alignment, if nothing is in the way.
  if (hint >= kReservedArena && hint < end && size <= end - hint &&
      (alignment == 0 || hint % alignment == 0)) {
    const auto next = reservations.lower_bound(hint);
    const bool below =
        next == reservations.begin() || std::prev(next)->first + std::prev(next)->second <= hint;
    if (below && (next == reservations.end() || next->first - hint >= size)) {
      reservations[hint] = size;
      *address = hint;
      return Status::kSuccess;
    }
  }
  // First fit, with a gap behind every range, so that an overrun meets no neighbour.
  Address at = up(kReservedArena);
  for (const auto& [start, length] : reservations) {
    if (start >= at && start - at >= size + kGranularity) break;
    at = std::max(at, up(start + length + kGranularity));
  }
  if (at >= end || size > end - at) return Status::kOutOfMemory;
  reservations[at] = size;
  *address = at;
  return Status::kSuccess;
}

Status VirtualMemoryImpl::FreeReserved(ProcessId id, Address address, std::uint64_t size) {
  const Process* process = Find(id);
  if (process == nullptr) return Status::kInvalidContext;
  auto& reservations = owned_[id].reservations;
  const auto it = reservations.find(address);
  if (it == reservations.end() || it->second != size) return Status::kInvalidValue;
  const auto& all = process->table.all();
  const auto mapped = all.lower_bound(address);
  if (mapped != all.end() && mapped->first - address < size) return Status::kInvalidValue;
  reservations.erase(it);
  return Status::kSuccess;
}

bool VirtualMemoryImpl::FindReservation(ProcessId process, Address address, Address* base,
                                        std::uint64_t* size) const {
  const auto owned = owned_.find(process);
  if (owned == owned_.end()) return false;
  const auto& reservations = owned->second.reservations;
  auto it = reservations.upper_bound(address);
  if (it == reservations.begin()) return false;
  --it;
  if (address - it->first >= it->second) return false;
  *base = it->first;
  *size = it->second;
  return true;
}

Status VirtualMemoryImpl::Map(ProcessId id, Address address, std::uint64_t size,
                              std::uint64_t offset, HandleId handle) {
  Process* process = Find(id);
  if (process == nullptr) return Status::kInvalidContext;
  const std::shared_ptr<Shared> what = Find(id, handle);
  if (what == nullptr || size == 0 || !Aligned(address) || !Aligned(size) || !Aligned(offset))
    return Status::kInvalidValue;
  Address base = 0;
  std::uint64_t length = 0;
  if (!FindReservation(id, address, &base, &length) || size > length - (address - base))
    return Status::kInvalidValue;
  const auto& all = process->table.all();
  const auto next = all.lower_bound(address);
  if (process->table.Find(address) != nullptr ||
      (next != all.end() && next->first - address < size)) {
    return Status::kInvalidValue;
  }
  Mapping mapping;
  mapping.base = address;
  mapping.size = size;
  mapping.offset = offset;
  mapping.rights = Mapping::Rights::kMapped;
  mapping.handle = handle;
  if (const auto* multicast = dynamic_cast<const MulticastObject*>(what.get())) {
    if (size > multicast->size || offset > multicast->size - size) return Status::kInvalidValue;
    if (!multicast->Complete()) return Status::kNotReady;
    mapping.object = multicast->object;
    mapping.multicast = multicast->view;
  } else {
    const auto* allocation = dynamic_cast<const Allocation*>(what.get());
    // cuda.h: the offset of memory must be zero.
    if (allocation == nullptr || offset != 0 || size > allocation->object->size)
      return Status::kInvalidValue;
    if (allocation->place != MemoryPlace::kDevice &&
        process->table.host_visible().size() >= kMaxHostMappings) {
      return Status::kOutOfMemory;
    }
    mapping.object = allocation->object;
  }
  ++owned_[id].handles.at(handle).mappings;
  process->table.Insert(std::move(mapping));
  return Status::kSuccess;
}

std::vector<const Mapping*> VirtualMemoryImpl::MappingsOf(const Process& process, Address address,
                                                          std::uint64_t size) const {
  std::vector<const Mapping*> found;
  const auto& all = process.table.all();
  for (std::uint64_t at = 0; at < size;) {
    const auto it = all.find(address + at);
    if (it == all.end() || it->second.handle == 0 || it->second.size > size - at) return {};
    found.push_back(&it->second);
    at += it->second.size;
  }
  return found;
}

void VirtualMemoryImpl::DropMapping(Process& process, Address base) {
  const Mapping* mapping = process.table.Find(base);
  CHECK(mapping != nullptr && mapping->base == base && mapping->handle != 0);
  const HandleId id = mapping->handle;
  Owned& owned = owned_.at(process.id);
  Handle& handle = owned.handles.at(id);
  if (auto* multicast = dynamic_cast<MulticastObject*>(handle.what.get())) {
    WakeMulticast(*multicast);
  } else {
    sim_.waiting.WakeAll(*mapping->object);  // whoever waits for it will find it gone
  }
  if (sim_.errors != nullptr) sim_.errors->OnUnmap(process, *mapping);
  process.table.Erase(base);
  --handle.mappings;
  Drop(owned, id);
}

Status VirtualMemoryImpl::Unmap(ProcessId id, Address address, std::uint64_t size) {
  Process* process = Find(id);
  if (process == nullptr) return Status::kInvalidContext;
  std::vector<Address> bases;
  for (const Mapping* mapping : MappingsOf(*process, address, size)) bases.push_back(mapping->base);
  if (bases.empty()) return Status::kInvalidValue;
  for (const Address base : bases) DropMapping(*process, base);
  shared_.Reap();
  return Status::kSuccess;
}

Status VirtualMemoryImpl::SetAccess(ProcessId id, Address address, std::uint64_t size, int device,
                                    AccessRight right) {
  Process* process = Find(id);
  if (process == nullptr) return Status::kInvalidContext;
  const int number = Number(*process, device);
  if (number < 0) return Status::kInvalidDevice;
  const auto bit = static_cast<std::size_t>(number);
  const std::vector<const Mapping*> mappings = MappingsOf(*process, address, size);
  if (mappings.empty()) return Status::kInvalidValue;
  for (const Mapping* mapping : mappings) {
    const bool reachable = mapping->multicast != nullptr ? mapping->multicast->team[bit]
                           : mapping->object->HostVisible()
                               ? true  // of this host: no other can have its handle
                               : sim_.CanReach(number, mapping->object->device);
    if (!reachable) return Status::kInvalidDevice;
  }
  for (const Mapping* mapping : mappings) {
    DeviceSet readers = mapping->readers, writers = mapping->writers;
    readers.set(bit, right != AccessRight::kNone);
    writers.set(bit, right == AccessRight::kReadWrite);
    process->table.Grant(mapping->base, Mapping::Rights::kMapped, readers, writers);
  }
  return Status::kSuccess;
}

Status VirtualMemoryImpl::GetAccess(ProcessId id, Address address, int device, AccessRight* right) {
  const Process* process = Find(id);
  if (process == nullptr) return Status::kInvalidContext;
  const int number = Number(*process, device);
  if (number < 0) return Status::kInvalidDevice;
  const Mapping* mapping = process->table.Find(address);
  if (mapping == nullptr || mapping->handle == 0) return Status::kInvalidValue;
  const auto bit = static_cast<std::size_t>(number);
  *right = mapping->writers[bit]   ? AccessRight::kReadWrite
           : mapping->readers[bit] ? AccessRight::kRead
                                   : AccessRight::kNone;
  return Status::kSuccess;
}

bool VirtualMemoryImpl::InUse(ProcessId id, Address address, std::uint64_t size, int device) const {
  const Process* process = Find(id);
  const int number = process == nullptr ? -1 : Number(*process, device);
  if (number < 0) return false;
  const auto mappings = MappingsOf(*process, address, size);
  return std::any_of(mappings.begin(), mappings.end(), [&](const Mapping* mapping) {
    return mapping->readers[static_cast<std::size_t>(number)];
  });
}

// --- sharing -----------------------------------------------------------------------------------

Status VirtualMemoryImpl::ExportDescriptor(ProcessId process, HandleId handle, int* fd) {
  const std::shared_ptr<Shared> what = Find(process, handle);
  if (what == nullptr || (what->share & kShareByDescriptor) == 0) return Status::kInvalidValue;
  *fd = shared_.Export(process, what);
  return *fd < 0 ? Status::kOutOfMemory : Status::kSuccess;
}

Status VirtualMemoryImpl::ExportFabric(ProcessId process, HandleId handle, FabricHandle* fabric) {
  const std::shared_ptr<Shared> what = Find(process, handle);
  if (what == nullptr || (what->share & kShareByFabric) == 0) return Status::kInvalidValue;
  *fabric = shared_.ExportFabric(what);
  return Status::kSuccess;
}

Status VirtualMemoryImpl::Import(ProcessId id, std::shared_ptr<Shared> what, bool fabric,
                                 HandleId* handle) {
  const Process* process = Find(id);
  if (process == nullptr) return Status::kInvalidContext;
  // A descriptor of a pool is no memory.
  const bool memory = dynamic_cast<const Allocation*>(what.get()) != nullptr ||
                      dynamic_cast<const MulticastObject*>(what.get()) != nullptr;
  if (!memory) return Status::kInvalidValue;
  // Descriptors do not leave their host, nor does its memory; a fabric handle of anything else is
  // good wherever the links go.
  const auto* allocation = dynamic_cast<const Allocation*>(what.get());
  const bool goes_far =
      fabric && (allocation == nullptr || allocation->place == MemoryPlace::kDevice);
  const bool here =
      goes_far ? sim_.SameFabric(process->host, what->host) : process->host == what->host;
  if (!here) return Status::kNotPermitted;
  return Add(id, std::move(what), handle);
}

Status VirtualMemoryImpl::ImportDescriptor(ProcessId process, int fd, HandleId* handle) {
  return Import(process, shared_.Find(fd), false, handle);
}

Status VirtualMemoryImpl::ImportFabric(ProcessId process, const FabricHandle& fabric,
                                       HandleId* handle) {
  return Import(process, shared_.Find(fabric), true, handle);
}

void VirtualMemoryImpl::RemoveProcess(ProcessId process) {
  owned_.erase(process);
  shared_.Reap();
}

}  // namespace allranks::node
