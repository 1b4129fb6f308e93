// Multicast objects: teams of devices and what they bind; see virtual_memory.h.
#include <algorithm>
#include <set>

#include "base/check.h"
#include "node/machine/virtual_memory_impl.h"

namespace allranks::node {
namespace {

constexpr std::size_t kMaxBindings = 512;  // of one object; each one is looked at for every other

bool Aligned(std::uint64_t value) { return value % VirtualMemory::kGranularity == 0; }

}  // namespace

bool HasMulticast(const Profile& profile) { return profile.multicast.supported; }

void MulticastObject::Rebuild() {
  view->segments.clear();
  if (!Complete()) return;
  std::set<std::uint64_t> edges;
  for (const Binding& binding : bindings) {
    edges.insert(binding.offset);
    edges.insert(binding.offset + binding.size);
  }
  for (auto it = edges.begin(); it != edges.end() && std::next(it) != edges.end(); ++it) {
    Multicast::Segment segment;
    segment.begin = *it;
    segment.end = *std::next(it);
    std::map<int, Replica> by_device;  // in an order that depends on nobody's haste
    for (const Binding& binding : bindings) {
      if (segment.begin - binding.offset >= binding.size) continue;
      Replica replica = binding.replica;
      replica.offset += segment.begin - binding.offset;
      by_device[binding.device] = std::move(replica);
    }
    if (by_device.size() != devices) continue;
    for (auto& [device, replica] : by_device) segment.replicas.push_back(std::move(replica));
    view->segments.push_back(std::move(segment));
  }
}

Status VirtualMemoryImpl::CreateMulticast(ProcessId id, std::uint32_t devices, std::uint64_t size,
                                          std::uint32_t share, HandleId* handle) {
  const Process* process = Find(id);
  if (process == nullptr) return Status::kInvalidContext;
  if (!HasMulticast(sim_.profile)) return Status::kNotSupported;
  if (devices == 0 || devices > sim_.devices.size() || size == 0 || !Aligned(size) ||
      size > kReservedSize || (share & ~(kShareByDescriptor | kShareByFabric)) != 0) {
    return Status::kInvalidValue;
  }
  auto multicast = std::make_shared<MulticastObject>();
  multicast->host = process->host;
  multicast->share = share;
  multicast->size = size;
  multicast->devices = devices;
  multicast->view = std::make_shared<Multicast>();
  multicast->object = std::make_shared<Object>();
  multicast->object->kind = Object::Kind::kMulticast;
  multicast->object->owner = id;
  multicast->object->size = size;
  multicast->object->name = fmt::format("rank {} multicast #{}", process->rank, ++names_);
  return Add(id, std::move(multicast), handle);
}

Status VirtualMemoryImpl::AddDevice(ProcessId id, HandleId handle, int device) {
  const Process* process = Find(id);
  if (process == nullptr) return Status::kInvalidContext;
  const auto multicast = Find<MulticastObject>(id, handle);
  if (multicast == nullptr) return Status::kInvalidValue;
  const int number = Number(*process, device);
  if (number < 0) return Status::kInvalidDevice;
  const auto bit = static_cast<std::size_t>(number);
  DeviceSet& team = multicast->view->team;
  if (team[bit] || multicast->Complete()) return Status::kInvalidValue;
  // One switch serves them all.
  std::vector<int> members = {number};
  for (std::size_t other = 0; other < team.size(); ++other) {
    if (team[other]) members.push_back(static_cast<int>(other));
  }
  if (!sim_.fabric.SharesSwitch(members)) return Status::kInvalidDevice;
  team.set(bit);
  return Status::kSuccess;
}

Status VirtualMemoryImpl::Bind(MulticastObject& multicast, MulticastObject::Binding binding) {
  if (binding.size == 0 || !Aligned(binding.size) || !Aligned(binding.offset) ||
      binding.size > multicast.size || binding.offset > multicast.size - binding.size ||
      multicast.bindings.size() >= kMaxBindings) {
    return Status::kInvalidValue;
  }
  // The arguments are looked at before anybody waits.
  if (!multicast.Complete()) return Status::kNotReady;
  if (!multicast.view->team[static_cast<std::size_t>(binding.device)])
    return Status::kInvalidDevice;
  for (const MulticastObject::Binding& other : multicast.bindings) {
    if (other.device == binding.device && other.offset < binding.offset + binding.size &&
        binding.offset < other.offset + other.size) {
      return Status::kInvalidValue;
    }
  }
  multicast.bindings.push_back(std::move(binding));
  multicast.Rebuild();
  return Status::kSuccess;
}

Status VirtualMemoryImpl::Bind(ProcessId process, HandleId handle, std::uint64_t offset,
                               HandleId memory, std::uint64_t memory_offset, std::uint64_t size) {
  const auto multicast = Find<MulticastObject>(process, handle);
  const auto allocation = Find<Allocation>(process, memory);
  if (multicast == nullptr || allocation == nullptr || allocation->place != MemoryPlace::kDevice ||
      !Aligned(memory_offset) || size > allocation->object->size ||
      memory_offset > allocation->object->size - size ||
      (multicast->share != 0 && allocation->share == 0)) {
    return Status::kInvalidValue;
  }
  MulticastObject::Binding binding;
  binding.device = allocation->object->device;
  binding.offset = offset;
  binding.size = size;
  binding.replica = {allocation->object, memory_offset};
  binding.memory = allocation;
  return Bind(*multicast, std::move(binding));
}

Status VirtualMemoryImpl::BindAddress(ProcessId id, HandleId handle, std::uint64_t offset,
                                      Address address, std::uint64_t size) {
  const Process* process = Find(id);
  if (process == nullptr) return Status::kInvalidContext;
  const auto multicast = Find<MulticastObject>(id, handle);
  const Mapping* mapping = process->table.Find(address);
  if (multicast == nullptr || mapping == nullptr || !Aligned(address) ||
      mapping->multicast != nullptr || mapping->rights == Mapping::Rights::kPeers ||
      mapping->object->HostVisible()) {
    return Status::kInvalidValue;
  }
  const std::uint64_t within = address - mapping->base;
  if (size > mapping->Room() || within > mapping->Room() - size) return Status::kInvalidValue;
  MulticastObject::Binding binding;
  binding.device = mapping->object->device;
  binding.offset = offset;
  binding.size = size;
  binding.replica = {mapping->object, mapping->offset + within};
  if (mapping->handle != 0) {
    binding.memory = owned_.at(id).handles.at(mapping->handle).what;
    if (multicast->share != 0 && binding.memory->share == 0) return Status::kInvalidValue;
  }
  return Bind(*multicast, std::move(binding));
}

Status VirtualMemoryImpl::Unbind(ProcessId id, HandleId handle, int device, std::uint64_t offset,
                                 std::uint64_t size) {
  const Process* process = Find(id);
  if (process == nullptr) return Status::kInvalidContext;
  auto multicast = Find<MulticastObject>(id, handle);
  const int number = Number(*process, device);
  if (number < 0) return Status::kInvalidDevice;
  if (multicast == nullptr) {
    // Libraries release the handle first. What nobody holds has no bindings left.
    const Owned& owned = owned_[id];
    const auto released = owned.released.find(handle);
    if (released == owned.released.end()) return Status::kInvalidValue;
    multicast = released->second.lock();
    if (multicast == nullptr) return Status::kSuccess;
  }
  const auto gone = std::find_if(multicast->bindings.begin(), multicast->bindings.end(),
                                 [&](const MulticastObject::Binding& binding) {
                                   return binding.device == number && binding.offset == offset &&
                                          binding.size == size;
                                 });
  if (gone == multicast->bindings.end()) return Status::kInvalidValue;
  WakeMulticast(*multicast);
  multicast->bindings.erase(gone);
  multicast->Rebuild();
  return Status::kSuccess;
}

// Who waits for a multicast address waits for the memory behind it.
void VirtualMemoryImpl::WakeMulticast(MulticastObject& multicast) {
  for (const MulticastObject::Binding& binding : multicast.bindings)
    sim_.waiting.WakeAll(*binding.replica.object);
}

}  // namespace allranks::node
