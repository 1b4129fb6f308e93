// What the node does itself, for whoever watches over a run: actions in stream order, and bytes of
// memory outside of time.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "node/check/errors.h"
#include "node/machine/machine_impl.h"

namespace allranks::node {
namespace {

constexpr std::uint64_t kHidden = 1 << 20;  // bytes of which LateWrites is asked at once
constexpr std::uint64_t kPage = 4096;

bool CanMap(const Place& place, const FileBytes& bytes) {
  const auto whole = [](std::uint64_t at) { return at % kPage == 0; };
  return place.parts == nullptr && place.object->kind == Object::Kind::kDevice &&
         whole(place.offset) && whole(bytes.offset) && whole(bytes.size);
}

// What was there before is unmapped in the same step: nothing else can come between.
void Map(const Place& place, const FileBytes& bytes) {
  const int kind = bytes.fd < 0 ? MAP_ANONYMOUS | MAP_NORESERVE : 0;
  const void* const at =
      mmap(place.data(), bytes.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | kind,
           bytes.fd, static_cast<off_t>(bytes.offset));
  CHECK(at == place.data());
}

}  // namespace

Status MachineImpl::Act(ProcessId process, StreamId stream, Time delay,
                        std::function<void(Time)> action, Time at, OpId* id) {
  Stream* s = FindStream(process, stream);
  if (s == nullptr) return Status::kInvalidHandle;
  if (queued_[process] >= kMaxQueued) return Status::kOutOfMemory;
  if (delay < 0) return Status::kInvalidValue;
  Operation& op = NewOperation(Operation::Kind::kAct, process, s->device);
  op.delay = delay;
  op.action = std::move(action);
  *id = op.id;
  Enqueue(*s, op, at);
  return Status::kSuccess;
}

bool MachineImpl::Busy(ProcessId process) const {
  const auto it = queued_.find(process);
  return it != queued_.end() && it->second != 0;
}

bool MachineImpl::Peek(ProcessId process, Address address, std::span<std::byte> bytes) const {
  if (Find(process) == nullptr) return false;
  if (bytes.empty()) return true;
  Place place;
  const auto anybody = [](const Mapping&) { return RangeError::Reason::kNone; };
  if (FindRange(sim_.ProcessOf(process).table, address, bytes.size(), false, &place, anybody)
          .reason != RangeError::Reason::kNone) {
    return false;
  }
  place.Read(bytes.data(), bytes.size());
  if (sim_.checker != nullptr && acting_ != nullptr) {
    place.ForParts(bytes.size(),
                   [&](Object& object, std::uint64_t offset, std::uint64_t, std::uint64_t size) {
                     checker_->Direct(acting_, object, offset, size, false);
                   });
  }
  // What is still on its way has not arrived for this reader, either.
  place.ForParts(bytes.size(),
                 [&](Object& object, std::uint64_t offset, std::uint64_t at, std::uint64_t size) {
                   HideLate(object, offset, bytes.subspan(at, size));
                 });
  return true;
}

void MachineImpl::HideLate(const Object& object, std::uint64_t offset,
                           std::span<std::byte> bytes) const {
  if (!object.late.Pending(sim_.now)) return;
  for (std::uint64_t done = 0; done < bytes.size(); done += kHidden) {
    const auto part = static_cast<std::uint32_t>(std::min(kHidden, bytes.size() - done));
    object.late.Hide(offset + done, part, bytes.data() + done, sim_.now, 0);
  }
}

bool MachineImpl::Poke(ProcessId process, Address address, std::span<const std::byte> bytes) {
  if (bytes.empty()) return Find(process) != nullptr;
  Place place;
  if (!FindForPoke(process, address, bytes.size(), &place)) return false;
  place.ForParts(bytes.size(),
                 [&](Object& object, std::uint64_t offset, std::uint64_t at, std::uint64_t size) {
                   if (sim_.checker != nullptr)
                     checker_->Direct(acting_, object, offset, size, true);
                   std::memcpy(object.data + offset, bytes.data() + at, size);
                   Poked(object, offset, size);
                 });
  return true;
}

bool MachineImpl::PokeFile(ProcessId process, Address address, const FileBytes& bytes) {
  Place place;
  if (!FindForPoke(process, address, bytes.size, &place) || !CanMap(place, bytes)) return false;
  if (sim_.checker != nullptr)
    checker_->Direct(acting_, *place.object, place.offset, bytes.size, true);
  Map(place, bytes);
  Poked(*place.object, place.offset, bytes.size);
  return true;
}

bool MachineImpl::KeepInFile(ProcessId process, Address address, const FileBytes& bytes) {
  Place place;
  if (!FindForPoke(process, address, bytes.size, &place) || !CanMap(place, bytes)) return false;
  if (place.object->late.Pending(sim_.now)) return false;
  Map(place, bytes);
  return true;
}

bool MachineImpl::FindForPoke(ProcessId process, Address address, std::uint64_t size,
                              Place* place) {
  if (Find(process) == nullptr || size == 0) return false;
  const auto anybody = [](const Mapping&) { return RangeError::Reason::kNone; };
  return FindRange(sim_.ProcessOf(process).table, address, size, true, place, anybody).reason ==
         RangeError::Reason::kNone;
}

// Bytes have changed outside of time.
void MachineImpl::Poked(Object& object, std::uint64_t offset, std::uint64_t size) {
  sim_.last_change = sim_.now;
  sim_.timer_wakes = 0;
  check::Errors::OnWrite(object, offset, size);
  if (object.late.Pending(sim_.now)) {
    for (std::uint64_t done = 0; done < size; done += kHidden) {
      object.late.Reveal(offset + done, static_cast<std::uint32_t>(std::min(kHidden, size - done)),
                         sim_.now);
    }
    // Writes under way are revealed whole: all of their lines may have changed for who waits.
    const std::uint64_t begin = offset / LateWrites::kLineBytes * LateWrites::kLineBytes;
    size = (offset + size - begin + LateWrites::kLineBytes - 1) / LateWrites::kLineBytes *
           LateWrites::kLineBytes;
    offset = begin;
  }
  if (!object.watches.empty()) sim_.waiting.NotifyWrite(object, offset, size, sim_.now, sim_.now);
}

Time MachineImpl::VisibleAt(ProcessId process, Address address, std::uint64_t size) const {
  Place place;
  const auto anybody = [](const Mapping&) { return RangeError::Reason::kNone; };
  if (Find(process) == nullptr || size == 0 ||
      FindRange(sim_.ProcessOf(process).table, address, size, false, &place, anybody).reason !=
          RangeError::Reason::kNone) {
    return sim_.now;
  }
  Time settled = sim_.now;
  place.ForParts(size,
                 [&](Object& object, std::uint64_t offset, std::uint64_t, std::uint64_t bytes) {
                   if (!object.late.Pending(sim_.now)) return;
                   for (std::uint64_t done = 0; done < bytes; done += kHidden) {
                     const auto part = static_cast<std::uint32_t>(std::min(kHidden, bytes - done));
                     for (Time next = object.late.Next(offset + done, part, sim_.now);
                          next != kTimeNever; next = object.late.Next(offset + done, part, next))
                       settled = std::max(settled, next);
                   }
                 });
  return settled;
}

void MachineImpl::HideFromDevices(ProcessId id, Address address) {
  if (Find(id) == nullptr) return;
  AddressTable& table = sim_.ProcessOf(id).table;
  if (const Mapping* mapping = table.Find(address); mapping != nullptr)
    table.Grant(mapping->base, Mapping::Rights::kMapped, {}, {});
}

}  // namespace allranks::node
