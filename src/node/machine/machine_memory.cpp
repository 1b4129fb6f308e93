// Allocation, pinned memory, IPC and peer access.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "node/check/errors.h"
#include "node/machine/machine_impl.h"

namespace allranks::node {
namespace {

constexpr std::uint64_t kDeviceGranule = 512;
constexpr std::uint64_t kPinnedGranule = 4096;
constexpr std::ptrdiff_t kMaxPinned = 512;
constexpr Address kArenasEnd = kDeviceArena + kDeviceArenas * kDeviceStride;
static_assert(kReservedArena + kReservedSize == kPinnedArena);
constexpr Address kHostEnd = Address{1} << 47;              // of a process's own addresses
constexpr std::uint64_t kIpcMagic = 0x3143'5049'4b4e'5241;  // "ARNKIPC1"

}  // namespace

Status MachineImpl::MapNew(Process& process, int visible_device, Object::Kind kind,
                           std::uint64_t size, const std::string& name, Mapping* out) {
  const bool pinned = kind == Object::Kind::kPinned || kind == Object::Kind::kManaged;
  const int device = pinned ? -1 : sim_.NumberOf(process, visible_device);
  Arena& arena =
      pinned ? process.pinned : process.device_arenas[static_cast<std::size_t>(visible_device)];
  const std::uint64_t granule = pinned ? kPinnedGranule : kDeviceGranule;
  if (!pinned) {
    const Device& d = sim_.devices[static_cast<std::size_t>(device)];
    const auto capacity = static_cast<std::uint64_t>(profile().device.memory_bytes);
    if (size > capacity || d.allocated > capacity - size) return Status::kOutOfMemory;
  }
  std::shared_ptr<Object> object = sim_.backing.Create(kind, device, process.id, size);
  if (object == nullptr) return Status::kOutOfMemory;
  const Address base = arena.Take(size, granule);
  if (base == 0) return Status::kOutOfMemory;
  object->name = name;
  if (sim_.checker != nullptr) sim_.checker->Allocated(*object);
  if (sim_.errors != nullptr) sim_.errors->Watch(object);
  if (!pinned) sim_.devices[static_cast<std::size_t>(device)].allocated += size;
  Mapping mapping;
  mapping.base = base;
  mapping.size = pinned ? object->mapped : size;
  mapping.object = std::move(object);
  mapping.read_only = kind == Object::Kind::kConst;
  if (out != nullptr) *out = mapping;
  process.table.Insert(std::move(mapping));
  return Status::kSuccess;
}

void MachineImpl::Unmap(Process& process, Address base) {
  const Mapping* found = process.table.Find(base);
  CHECK(found != nullptr && found->base == base);
  if (found->handle != 0) return virtual_memory_.DropMapping(process, base);
  const Mapping mapping = *found;
  Object& object = *mapping.object;
  if (sim_.errors != nullptr) sim_.errors->OnUnmap(process, mapping);
  sim_.waiting.WakeAll(object);  // whoever waits for it will find it gone
  process.table.Erase(base);
  const auto give_back = [&](Arena& arena) {
    sim_.errors != nullptr ? arena.Retire(base) : arena.Return(base);
  };
  if (object.HostVisible()) {
    give_back(process.pinned);  // of registered memory it knows nothing
  } else {
    const int visible = std::max(0, sim_.OrdinalOf(process, object.device));
    give_back(process.device_arenas[static_cast<std::size_t>(visible)]);
    if (object.mappings == 0)
      sim_.devices[static_cast<std::size_t>(object.device)].allocated -= object.size;
  }
}

// What a process that ends in good order has not freed.
void MachineImpl::TellLeft(const Process& process) const {
  const auto fine = [](Status status) { return status == Status::kSuccess; };
  if (Busy(process.id) || !std::all_of(process.sticky.begin(), process.sticky.end(), fine)) return;
  std::vector<const Mapping*> left;
  for (const auto& [base, mapping] : process.table.all()) {
    const Object::Kind kind = mapping.object->kind;
    const bool allocated = kind == Object::Kind::kDevice || mapping.object->HostVisible();
    if (!allocated || mapping.ipc || IsManagedGlobal(process.id, base)) continue;
    if (mapping.object->owner == process.id) left.push_back(&mapping);
  }
  sim_.errors->OnLeft(process, left);
}

Status MachineImpl::Allocate(ProcessId id, int device, std::uint64_t size, Address* address) {
  const Process* found = Find(id);
  if (found == nullptr || DeviceOf(*found, device) == nullptr) return Status::kInvalidDevice;
  if (size == 0) return Status::kInvalidValue;
  Process& process = sim_.ProcessOf(id);
  const std::string name =
      fmt::format("rank {} device {} allocation #{}", process.rank, device, ++names_[{id, device}]);
  Mapping mapping;
  const Status status = MapNew(process, device, Object::Kind::kDevice, size, name, &mapping);
  if (status == Status::kSuccess) *address = mapping.base;
  return status;
}

Status MachineImpl::Free(ProcessId id, Address address) {
  if (Find(id) == nullptr) return Status::kInvalidContext;
  Process& process = sim_.ProcessOf(id);
  if (FindDeviceMemory(process, address) == nullptr) return Status::kInvalidValue;
  ReleaseDeviceMemory(process, address);
  return Status::kSuccess;
}

// Each is a descriptor of the node's; one process must not take them all.
bool MachineImpl::TooManyPinned(const Process& process) const {
  const auto& all = process.table.all();
  return std::count_if(all.begin(), all.end(), [](const auto& entry) {
           return entry.second.object->HostVisible() && entry.second.handle == 0;
         }) >= kMaxPinned;
}

Status MachineImpl::AllocatePinned(ProcessId id, std::uint64_t size, bool managed,
                                   PinnedMemory* memory) {
  if (Find(id) == nullptr) return Status::kInvalidContext;
  if (size == 0) return Status::kInvalidValue;
  Process& process = sim_.ProcessOf(id);
  if (TooManyPinned(process)) return Status::kOutOfMemory;
  const std::string name = fmt::format("rank {} {} #{}", process.rank,
                                       managed ? "managed" : "pinned", ++names_[{id, -1}]);
  Mapping mapping;
  const Status status = MapNew(process, 0, managed ? Object::Kind::kManaged : Object::Kind::kPinned,
                               size, name, &mapping);
  if (status != Status::kSuccess) return status;
  memory->address = mapping.base;
  memory->size = mapping.object->mapped;
  memory->fd = mapping.object->fd;
  return Status::kSuccess;
}

Status MachineImpl::FindRegistered(const HostFile& file, std::uint64_t size,
                                   std::shared_ptr<Object>* object) {
  std::erase_if(registered_files_, [](const auto& entry) { return entry.second.expired(); });
  for (const auto& [other, known] : registered_files_) {
    if (other.device != file.device || other.inode != file.inode) continue;
    const std::shared_ptr<Object> there = known.lock();
    if (other == file && there->size == size) {
      *object = there;
    } else if (other.offset < file.offset + size && file.offset < other.offset + there->size) {
      return Status::kNotSupported;  // one memory file cannot be part of another
    }
  }
  return Status::kSuccess;
}

Status MachineImpl::RegisterHost(ProcessId id, Address address, std::uint64_t size,
                                 const HostFile& file, PinnedMemory* memory) {
  if (Find(id) == nullptr) return Status::kInvalidContext;
  Process& process = sim_.ProcessOf(id);
  const auto meets = [&](Address begin, Address end) {
    return address < end && address + size > begin;
  };
  if (size == 0 || address == 0 || address % kPinnedGranule != 0 || size % kPinnedGranule != 0 ||
      size > kHostEnd || address > kHostEnd - size || meets(kReservedArena, kArenasEnd) ||
      meets(kSharedWindow, kParamWindow + kWindowSize)) {
    return Status::kInvalidValue;
  }
  for (const auto& [base, mapping] : process.table.all()) {
    if (meets(base, base + mapping.size)) return Status::kHostMemoryAlreadyRegistered;
  }
  if (TooManyPinned(process)) return Status::kOutOfMemory;
  std::shared_ptr<Object> object;
  if (file.inode != 0) {
    if (file.offset > kHostEnd) return Status::kInvalidValue;
    const Status found = FindRegistered(file, size, &object);
    if (found != Status::kSuccess) return found;
  }
  const bool shared = object != nullptr;
  if (!shared) {
    object = sim_.backing.Create(Object::Kind::kPinned, -1, process.id, size);
    if (object == nullptr) return Status::kOutOfMemory;
    object->name = fmt::format("rank {} registered #{}", process.rank, ++names_[{id, -1}]);
    if (sim_.checker != nullptr) sim_.checker->Allocated(*object);
    if (file.inode != 0) registered_files_[file] = object;
  }
  *memory = {address, size, object->fd, shared};
  Mapping mapping;
  mapping.base = address;
  mapping.ipc = file.inode != 0;  // who ends its registration does not end those of others
  mapping.size = size;
  mapping.object = std::move(object);
  process.table.Insert(std::move(mapping));
  return Status::kSuccess;
}

Status MachineImpl::Prefetch(ProcessId id, StreamId stream, Address address, std::uint64_t size,
                             int device, Time at, OpId* op_id) {
  Stream* s = FindStream(id, stream);
  if (s == nullptr) return Status::kInvalidHandle;
  if (queued_[id] >= kMaxQueued) return Status::kOutOfMemory;
  const Process& process = sim_.ProcessOf(id);
  if (device >= DeviceCount(id)) return Status::kInvalidDevice;
  Place place;
  if (size == 0 || !Resolve(id, s->device, address, size, true, &place) ||
      place.object->kind != Object::Kind::kManaged) {
    return Status::kInvalidValue;
  }
  Operation& op = NewOperation(Operation::Kind::kMove, id, s->device);
  op.size = size;
  op.whole = size == place.object->size;
  op.dst = std::move(place);
  op.target = device < 0 ? -1 : sim_.NumberOf(process, device);
  *op_id = op.id;
  Enqueue(*s, op, at);
  return Status::kSuccess;
}

void MachineImpl::StartMove(Operation& op) {
  const int from = op.dst.object->device;
  Device& runner = sim_.devices[static_cast<std::size_t>(op.device)];
  if (sim_.timing.faulty_links && !sim_.timing.CanCopy(from, op.target)) {
    FailDevice(op.process, op.device, Status::kNvlinkUncorrectable,
               "managed memory needs a dead link to migrate");
    Complete(op.id, sim_.now);
    return;
  }
  const Time arrival =
      from == op.target
          ? sim_.now
          : sim_.timing.ChargeCopy(runner, FreeEngine(runner), from, op.target, op.size, sim_.now)
                .arrived;
  At(arrival, [this, id = op.id] {
    const auto it = operations_.find(id);
    if (it == operations_.end()) return;
    if (it->second.whole) it->second.dst.object->device = it->second.target;
    Complete(id, sim_.now);
  });
}

Status MachineImpl::FreePinned(ProcessId id, Address address) {
  if (Find(id) == nullptr) return Status::kInvalidContext;
  Process& process = sim_.ProcessOf(id);
  const Mapping* mapping = process.table.Find(address);
  if (mapping == nullptr || mapping->base != address || !mapping->object->HostVisible() ||
      mapping->handle != 0 || IsManagedGlobal(id, address)) {
    return Status::kInvalidValue;
  }
  Unmap(process, address);
  return Status::kSuccess;
}

PointerInfo MachineImpl::Describe(ProcessId id, Address address) const {
  PointerInfo info;
  const Process* process = Find(id);
  if (process == nullptr) return info;
  const Mapping* mapping = process->table.Find(address);
  if (mapping == nullptr) {
    if (virtual_memory_.FindReservation(id, address, &info.range, &info.range_size))
      info.kind = PointerInfo::Kind::kReserved;
    return info;
  }
  const Object& object = *mapping->object;
  info.kind = object.kind == Object::Kind::kPinned    ? PointerInfo::Kind::kPinned
              : object.kind == Object::Kind::kManaged ? PointerInfo::Kind::kManaged
                                                      : PointerInfo::Kind::kDevice;
  info.device = object.device < 0 ? 0 : sim_.OrdinalOf(*process, object.device);
  info.base = info.range = mapping->base;
  info.size = info.range_size = object.size;
  info.object = object.id;
  if (mapping->handle != 0) {
    info.mapped_handle = true;
    info.size = mapping->size;
    info.share = virtual_memory_.ShareOf(id, mapping->handle);
    virtual_memory_.FindReservation(id, address, &info.range, &info.range_size);
    // Memory of a device that the process does not see is that of one that may use it.
    for (std::size_t d = 0; d < process->visible.size() && info.device < 0; ++d) {
      if (mapping->readers[static_cast<std::size_t>(process->visible[d])])
        info.device = static_cast<int>(d);
    }
  } else if (const auto pool = pool_blocks_.find({id, mapping->base}); pool != pool_blocks_.end()) {
    info.pool = pool->second;
  }
  return info;
}

Status MachineImpl::IpcExport(ProcessId id, Address address, IpcHandle* handle) {
  const Process* process = Find(id);
  if (process == nullptr) return Status::kInvalidContext;
  const Mapping* mapping = process->table.Find(address);
  if (mapping == nullptr || mapping->ipc || mapping->rights != Mapping::Rights::kPeers ||
      mapping->object->kind != Object::Kind::kDevice) {
    return Status::kInvalidValue;
  }
  const std::uint64_t object = mapping->object->id;
  const std::uint64_t words[] = {kIpcMagic, object};
  const SharedHandles::Signature signature = shared_handles_.Sign(kIpcMagic, object);
  *handle = {};
  std::memcpy(handle->bytes, words, sizeof words);
  std::memcpy(handle->bytes + sizeof words, signature.data(), signature.size());
  exported_[mapping->object->id] = mapping->object;
  return Status::kSuccess;
}

Status MachineImpl::IpcOpen(ProcessId id, int device, const IpcHandle& handle, Address* address) {
  const Process* found = Find(id);
  if (found == nullptr || DeviceOf(*found, device) == nullptr) return Status::kInvalidContext;
  Process& process = sim_.ProcessOf(id);
  std::uint64_t words[2];
  std::memcpy(words, handle.bytes, sizeof words);
  if (words[0] != kIpcMagic ||
      !shared_handles_.Signed(kIpcMagic, words[1], handle.bytes + sizeof words)) {
    return Status::kInvalidValue;
  }
  const auto it = exported_.find(static_cast<std::uint32_t>(words[1]));
  std::shared_ptr<Object> object = it == exported_.end() ? nullptr : it->second.lock();
  if (object == nullptr || object->mappings == 0) return Status::kInvalidValue;
  // A handle means nothing on another simulated host, nor in the process it comes from.
  const int visible = sim_.OrdinalOf(process, object->device);
  if (visible < 0 || visible >= DeviceCount(id)) return Status::kInvalidValue;
  if (object->owner == id) return Status::kInvalidContext;
  // Opened again, a handle gives the same address; each open wants its close.
  for (const auto& [base, mapping] : process.table.all()) {
    if (mapping.object != object) continue;
    ++ipc_opens_[{id, base}];
    *address = base;
    return Status::kSuccess;
  }
  const Address base =
      process.device_arenas[static_cast<std::size_t>(visible)].Take(object->size, kDeviceGranule);
  if (base == 0) return Status::kOutOfMemory;
  Mapping mapping;
  mapping.base = base;
  mapping.size = object->size;
  mapping.object = std::move(object);
  mapping.ipc = true;
  process.table.Insert(std::move(mapping));
  ipc_opens_[{id, base}] = 1;
  *address = base;
  return Status::kSuccess;
}

Status MachineImpl::IpcClose(ProcessId id, Address address) {
  if (Find(id) == nullptr) return Status::kInvalidContext;
  Process& process = sim_.ProcessOf(id);
  const Mapping* mapping = process.table.Find(address);
  if (mapping == nullptr || mapping->base != address || !mapping->ipc) return Status::kInvalidValue;
  if (--ipc_opens_[{id, address}] > 0) return Status::kSuccess;
  ipc_opens_.erase({id, address});
  Unmap(process, address);
  return Status::kSuccess;
}

bool MachineImpl::CanAccessPeer(ProcessId id, int device, int peer) const {
  const int count = DeviceCount(id);
  return device != peer && device >= 0 && peer >= 0 && device < count && peer < count;
}

Status MachineImpl::EnablePeer(ProcessId id, int device, int peer) {
  if (Find(id) == nullptr) return Status::kInvalidContext;
  if (!CanAccessPeer(id, device, peer)) return Status::kInvalidDevice;
  DeviceSet& peers = sim_.ProcessOf(id).peers[static_cast<std::size_t>(device)];
  if (peers[static_cast<std::size_t>(peer)]) return Status::kPeerAccessAlreadyEnabled;
  peers.set(static_cast<std::size_t>(peer));
  return Status::kSuccess;
}

Status MachineImpl::DisablePeer(ProcessId id, int device, int peer) {
  if (Find(id) == nullptr) return Status::kInvalidContext;
  if (!CanAccessPeer(id, device, peer)) return Status::kInvalidDevice;
  DeviceSet& peers = sim_.ProcessOf(id).peers[static_cast<std::size_t>(device)];
  if (!peers[static_cast<std::size_t>(peer)]) return Status::kPeerAccessNotEnabled;
  peers.reset(static_cast<std::size_t>(peer));
  sim_.ProcessOf(id).table.Touch();
  return Status::kSuccess;
}

}  // namespace allranks::node
