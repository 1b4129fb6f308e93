// The device API without streams: devices, modules, memory. Each handler checks what the Machine
// takes on trust (ordinals, ownership of modules and kernels, how many things a process may have)
// and passes on.
#include "server/device_calls.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "server/device_info.h"

namespace allranks::server {

using node::Hosts;
using node::Status;

namespace {

// What a link has carried. `first_end`: seen from the first of its two ends.
wire::LinkBytes BytesOf(const std::vector<node::LinkRecord>& records, int link, bool first_end) {
  const auto record = std::find_if(records.begin(), records.end(),
                                   [&](const auto& each) { return each.link == link; });
  if (record == records.end()) return {};  // nothing
  const auto payload = [](const node::DirectionRecord& direction) {
    return std::accumulate(direction.bytes.begin(), direction.bytes.end(), std::uint64_t{0});
  };
  const node::DirectionRecord& out = record->directions[first_end ? 0 : 1];
  const node::DirectionRecord& in = record->directions[first_end ? 1 : 0];
  return {payload(out), payload(in), out.wire_bytes, in.wire_bytes};
}

}  // namespace

DeviceCalls::DeviceCalls(Desk& desk)
    : desk_(desk),
      hosts_(desk.hosts()),
      machine_(desk.machine()),
      files_(desk.options().judged ? std::optional(desk.options().judged->libraries)
                                   : std::nullopt) {}

// The machine-wide number of the first device of the thread's host.
int DeviceCalls::FirstDevice(Thread thread) const {
  return desk_.ProcessOf(thread).host *
         static_cast<int>(machine_.profile().machine.devices_per_host);
}

void DeviceCalls::Handle(Thread thread, const wire::Init&, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  wire::InitReply reply;
  const int count = machine_.DeviceCount(desk_.MachineOf(thread));
  const int first = FirstDevice(thread);
  for (int i = 0; i < count; ++i) {
    wire::DeviceInfo& info = reply.devices.emplace_back();
    info = DescribeDevice(machine_.profile(), first + i);
    // Libraries that try them make do without, so that the judge has nothing to refuse.
    if (desk_.judged() != nullptr) info.host_handles = info.ranges = false;
  }
  desk_.Reply<wire::Init>(thread, reply);
}

void DeviceCalls::Handle(Thread thread, const wire::LinkTraffic& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  const node::Profile& profile = machine_.profile();
  if (message.host_device < 0 || message.host_device >= profile.machine.devices_per_host)
    return desk_.Fail<wire::LinkTraffic>(thread, Status::kInvalidDevice);
  const int device = FirstDevice(thread) + message.host_device;
  const std::vector<node::LinkRecord>& records = machine_.stats().links;
  wire::LinkTrafficReply reply;
  for (const NvLinksOfDevice& links : NvLinksOf(profile, device)) {
    const bool first_end = profile.topology.links[static_cast<std::size_t>(links.link)].a == device;
    reply.links.push_back(BytesOf(records, links.link, first_end));
  }
  desk_.Reply<wire::LinkTraffic>(thread, reply);
}

// --- modules ------------------------------------------------------------------------------------

void DeviceCalls::Handle(Thread thread, wire::PutImage& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  desk_.MachineOf(thread);  // images live and die with it
  Process& process = desk_.ProcessOf(thread);
  Image* image = nullptr;
  if (auto found = process.images.find(message.image);
      found != process.images.end() && found->second.whole)
    return desk_.Reply<wire::PutImage>(thread);  // another thread has sent it
  if (message.offset == 0) {
    if (process.images.contains(message.image) || process.images.size() >= desk_.limits().objects ||
        message.total > desk_.limits().image_bytes)
      return desk_.Fail<wire::PutImage>(thread, Status::kInvalidValue);
    image = &process.images[message.image];
    image->total = message.total;
  } else if (auto found = process.images.find(message.image); found != process.images.end()) {
    image = &found->second;
  }
  if (image == nullptr || image->bytes.size() != message.offset || image->total != message.total ||
      message.bytes.size() > image->total - image->bytes.size() ||
      message.bytes.size() > desk_.limits().image_bytes - process.image_bytes)
    return desk_.Fail<wire::PutImage>(thread, Status::kInvalidValue);
  process.image_bytes += message.bytes.size();
  if (image->bytes.empty()) {
    image->bytes = std::move(message.bytes);
  } else {
    image->bytes.insert(image->bytes.end(), message.bytes.begin(), message.bytes.end());
  }
  if (image->bytes.size() == image->total) image->whole.emplace(std::span(image->bytes));
  desk_.Reply<wire::PutImage>(thread);
}

void DeviceCalls::Handle(Thread thread, const wire::FileImage& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  desk_.MachineOf(thread);
  Process& process = desk_.ProcessOf(thread);
  if (process.images.size() >= desk_.limits().objects)
    return desk_.Fail<wire::FileImage>(thread, Status::kInvalidValue);
  wire::FileImageReply reply;
  const auto found = process.images.find(message.image);
  reply.known = found != process.images.end() && found->second.whole;  // by another thread
  if (found == process.images.end()) {
    auto image = files_.Find(message);
    reply.known = image.has_value();
    // The library of a judged run is not on trial.
    if (image && desk_.judged() != nullptr) image->Trust();
    if (image) process.images[message.image].whole = std::move(*image);
  }
  desk_.Reply<wire::FileImage>(thread, reply);
}

void DeviceCalls::Handle(Thread thread, const wire::DropImage& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  Process& process = desk_.ProcessOf(thread);
  if (auto found = process.images.find(message.image); found != process.images.end()) {
    process.image_bytes -= found->second.bytes.size();
    process.images.erase(found);
    // The number may come back for another image.
    std::erase_if(process.loaded,
                  [&](const auto& entry) { return entry.first.second == message.image; });
  }
  desk_.Reply<wire::DropImage>(thread);
}

void DeviceCalls::Handle(Thread thread, const wire::LoadModule& message, Time) {
  if (!desk_.DeviceOk(thread, message.device))
    return desk_.Fail<wire::LoadModule>(thread, Status::kInvalidDevice);
  Process& process = desk_.ProcessOf(thread);
  auto image = process.images.find(message.image);
  if (image == process.images.end() || !image->second.whole)
    return desk_.Fail<wire::LoadModule>(thread, Status::kInvalidValue);
  if (auto found = process.loaded.find({message.device, message.image});
      found != process.loaded.end())
    return desk_.Reply<wire::LoadModule>(thread, {.module = found->second, .message = {}});
  if (process.modules.size() >= desk_.limits().objects)
    return desk_.Fail<wire::LoadModule>(thread, Status::kOutOfMemory);
  if (desk_.judged() != nullptr && !desk_.judged()->IsOwnModule(*image->second.whole)) {
    desk_.judged()->Forbidden(thread.rank,
                              "a module that was not compiled from the source is not allowed");
    return desk_.Fail<wire::LoadModule>(thread, Status::kNotPermitted);
  }
  Status status = Status::kSuccess;
  const Result<node::ModuleId> module =
      machine_.LoadModule(desk_.MachineOf(thread), message.device, *image->second.whole, &status);
  wire::LoadModuleReply reply;
  if (module) {
    reply.module = *module;
    process.modules.insert(*module);
    process.loaded[{message.device, message.image}] = *module;
  } else {
    reply.message = module.error().message;
    if (status == Status::kSuccess) status = Status::kInvalidImage;
    if (message.launched) desk_.RefusedImage(reply.message);
  }
  desk_.Reply<wire::LoadModule>(thread, reply, status);
}

void DeviceCalls::Handle(Thread thread, const wire::UnloadModule& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  Process& process = desk_.ProcessOf(thread);
  if (process.modules.erase(message.module) == 0)
    return desk_.Fail<wire::UnloadModule>(thread, Status::kInvalidHandle);
  std::erase_if(process.loaded, [&](const auto& entry) { return entry.second == message.module; });
  std::erase_if(process.kernels, [&](const auto& entry) { return entry.second == message.module; });
  desk_.Fail<wire::UnloadModule>(thread,
                                 machine_.UnloadModule(desk_.MachineOf(thread), message.module));
}

void DeviceCalls::Handle(Thread thread, const wire::GetKernel& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  Process& process = desk_.ProcessOf(thread);
  if (!process.modules.contains(message.module))
    return desk_.Fail<wire::GetKernel>(thread, Status::kInvalidHandle);
  node::KernelInfo info;
  const Status status = machine_.GetKernel(message.module, message.name, &info);
  if (status != Status::kSuccess) return desk_.Fail<wire::GetKernel>(thread, status);
  process.kernels[info.id] = message.module;
  wire::GetKernelReply reply;
  reply.kernel = info.id;
  reply.param_offsets = info.param_offsets;
  reply.param_sizes = info.param_sizes;
  reply.param_bytes = info.param_bytes;
  reply.registers = info.registers;
  reply.static_shared = info.static_shared;
  reply.local = info.local;
  reply.max_threads = info.max_threads;
  reply.const_bytes = info.const_bytes;
  reply.ptx_version = info.ptx_version;
  reply.binary_version = info.binary_version;
  desk_.Reply<wire::GetKernel>(thread, reply);
}

void DeviceCalls::Handle(Thread thread, const wire::GetGlobal& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  if (!desk_.ProcessOf(thread).modules.contains(message.module))
    return desk_.Fail<wire::GetGlobal>(thread, Status::kInvalidHandle);
  node::GlobalInfo info;
  const Status status = machine_.GetGlobal(message.module, message.name, &info);
  if (info.managed && desk_.judged() != nullptr) {
    desk_.judged()->Forbidden(thread.rank, "a __managed__ variable is not allowed");
    return desk_.Fail<wire::GetGlobal>(thread, Status::kNotPermitted);
  }
  if (info.managed) desk_.ProcessOf(thread).pinned = true;
  desk_.Reply<wire::GetGlobal>(
      thread,
      {.address = info.address, .size = info.size, .managed = info.managed, .mapped = info.mapped},
      status, info.fd);
}

void DeviceCalls::Handle(Thread thread, const wire::SetLimit& message, Time) {
  if (!desk_.DeviceOk(thread, message.device))
    return desk_.Fail<wire::SetLimit>(thread, Status::kInvalidDevice);
  const auto limit = static_cast<node::DeviceLimit>(message.limit);
  if (limit != node::DeviceLimit::kPrintfFifo && limit != node::DeviceLimit::kMallocHeap)
    return desk_.Fail<wire::SetLimit>(thread, Status::kUnsupportedLimit);
  desk_.Fail<wire::SetLimit>(
      thread, machine_.SetLimit(desk_.MachineOf(thread), message.device, limit, message.value));
}

void DeviceCalls::Handle(Thread thread, const wire::ListKernels& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  if (!desk_.ProcessOf(thread).modules.contains(message.module))
    return desk_.Fail<wire::ListKernels>(thread, Status::kInvalidHandle);
  wire::ListKernelsReply reply;
  const Status status = machine_.ListKernels(message.module, &reply.names);
  desk_.Reply<wire::ListKernels>(thread, reply, status);
}

void DeviceCalls::Handle(Thread thread, const wire::SetMaxDynamicShared& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  if (!desk_.ProcessOf(thread).kernels.contains(message.kernel))
    return desk_.Fail<wire::SetMaxDynamicShared>(thread, Status::kInvalidHandle);
  desk_.Fail<wire::SetMaxDynamicShared>(
      thread, machine_.SetMaxDynamicShared(message.kernel, message.bytes));
}

void DeviceCalls::Handle(Thread thread, const wire::Occupancy& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  if (!desk_.ProcessOf(thread).kernels.contains(message.kernel))
    return desk_.Fail<wire::Occupancy>(thread, Status::kInvalidHandle);
  int ctas = 0;
  int clusters = 0;
  Status status =
      machine_.Occupancy(message.kernel, message.threads, message.dynamic_shared, &ctas);
  if (status == Status::kSuccess) {
    status = machine_.ClusterOccupancy(message.kernel, message.threads, message.dynamic_shared,
                                       message.cluster, &clusters);
  }
  desk_.Reply<wire::Occupancy>(thread, {.ctas_per_sm = ctas, .clusters = clusters}, status);
}

// --- memory -------------------------------------------------------------------------------------

void DeviceCalls::Handle(Thread thread, const wire::Alloc& message, Time) {
  if (!desk_.DeviceOk(thread, message.device))
    return desk_.Fail<wire::Alloc>(thread, Status::kInvalidDevice);
  Process& process = desk_.ProcessOf(thread);
  if (process.allocations >= desk_.limits().objects)
    return desk_.Fail<wire::Alloc>(thread, Status::kOutOfMemory);
  node::Address address = 0;
  const Status status =
      machine_.Allocate(desk_.MachineOf(thread), message.device, message.size, &address);
  if (status == Status::kSuccess) ++process.allocations;
  desk_.Reply<wire::Alloc>(thread, {.address = address}, status);
}

void DeviceCalls::Handle(Thread thread, const wire::Free& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  Process& process = desk_.ProcessOf(thread);
  const Status status = machine_.Free(desk_.MachineOf(thread), message.address);
  if (status == Status::kSuccess && process.allocations > 0) --process.allocations;
  desk_.Fail<wire::Free>(thread, status);
}

void DeviceCalls::Handle(Thread thread, const wire::AllocPinned& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  Process& process = desk_.ProcessOf(thread);
  if (process.allocations >= desk_.limits().objects)
    return desk_.Fail<wire::AllocPinned>(thread, Status::kOutOfMemory);
  node::PinnedMemory memory;
  if (desk_.judged() != nullptr) {
    if (desk_.judged()->TakePinned(thread.rank, message.size, &memory))
      return desk_.Reply<wire::AllocPinned>(
          thread, {.address = memory.address, .size = memory.size}, Status::kSuccess, memory.fd);
    if (!desk_.judged()->library()) {
      desk_.judged()->Forbidden(thread.rank, "additional pinned host memory is not allowed");
      return desk_.Fail<wire::AllocPinned>(thread, Status::kNotPermitted);
    }
  }
  const Status status =
      machine_.AllocatePinned(desk_.MachineOf(thread), message.size, message.managed, &memory);
  if (status != Status::kSuccess) return desk_.Fail<wire::AllocPinned>(thread, status);
  process.pinned = true;
  ++process.allocations;
  desk_.Reply<wire::AllocPinned>(thread, {.address = memory.address, .size = memory.size}, status,
                                 memory.fd);
}

void DeviceCalls::Handle(Thread thread, const wire::FreePinned& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  Process& process = desk_.ProcessOf(thread);
  const Status status = machine_.FreePinned(desk_.MachineOf(thread), message.address);
  if (status == Status::kSuccess && process.allocations > 0) --process.allocations;
  desk_.Fail<wire::FreePinned>(thread, status);
}

void DeviceCalls::Handle(Thread thread, const wire::Describe& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  const node::PointerInfo info = machine_.Describe(desk_.MachineOf(thread), message.address);
  wire::DescribeReply reply;
  switch (info.kind) {
    case node::PointerInfo::Kind::kUnknown:
      reply.kind = wire::DescribeReply::Kind::kUnknown;
      break;
    case node::PointerInfo::Kind::kDevice:
      reply.kind = wire::DescribeReply::Kind::kDevice;
      break;
    case node::PointerInfo::Kind::kPinned:
      reply.kind = wire::DescribeReply::Kind::kPinned;
      break;
    case node::PointerInfo::Kind::kManaged:
      reply.kind = wire::DescribeReply::Kind::kManaged;
      break;
    case node::PointerInfo::Kind::kReserved:
      reply.kind = wire::DescribeReply::Kind::kReserved;
      break;
  }
  reply.device = info.device;
  reply.base = info.base;
  reply.size = info.size;
  reply.object = info.object;
  reply.mapped_handle = info.mapped_handle;
  reply.range = info.range;
  reply.range_size = info.range_size;
  reply.share = info.share;
  reply.pool = info.pool;
  desk_.Reply<wire::Describe>(thread, reply);
}

void DeviceCalls::Handle(Thread thread, const wire::IpcExport& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  node::IpcHandle handle{};
  const Status status = machine_.IpcExport(desk_.MachineOf(thread), message.address, &handle);
  wire::IpcExportReply reply;
  static_assert(sizeof reply.handle == sizeof handle.bytes);
  if (status == Status::kSuccess)
    std::memcpy(reply.handle.data(), handle.bytes, sizeof handle.bytes);
  desk_.Reply<wire::IpcExport>(thread, reply, status);
}

void DeviceCalls::Handle(Thread thread, const wire::IpcOpen& message, Time) {
  if (!desk_.DeviceOk(thread, message.device))
    return desk_.Fail<wire::IpcOpen>(thread, Status::kInvalidDevice);
  Process& process = desk_.ProcessOf(thread);
  if (process.allocations >= desk_.limits().objects)
    return desk_.Fail<wire::IpcOpen>(thread, Status::kOutOfMemory);
  node::IpcHandle handle{};
  std::memcpy(handle.bytes, message.handle.data(), sizeof handle.bytes);
  node::Address address = 0;
  const Status status = machine_.IpcOpen(desk_.MachineOf(thread), message.device, handle, &address);
  if (status == Status::kSuccess) ++process.allocations;
  desk_.Reply<wire::IpcOpen>(thread, {.address = address}, status);
}

void DeviceCalls::Handle(Thread thread, const wire::IpcClose& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  Process& process = desk_.ProcessOf(thread);
  const Status status = machine_.IpcClose(desk_.MachineOf(thread), message.address);
  if (status == Status::kSuccess && process.allocations > 0) --process.allocations;
  desk_.Fail<wire::IpcClose>(thread, status);
}

void DeviceCalls::Handle(Thread thread, const wire::CanAccessPeer& message, Time) {
  if (!desk_.DeviceOk(thread, message.device) || !desk_.DeviceOk(thread, message.peer))
    return desk_.Fail<wire::CanAccessPeer>(thread, Status::kInvalidDevice);
  desk_.Reply<wire::CanAccessPeer>(
      thread,
      {.can = machine_.CanAccessPeer(desk_.MachineOf(thread), message.device, message.peer)});
}

void DeviceCalls::Handle(Thread thread, const wire::EnablePeer& message, Time) {
  if (!desk_.DeviceOk(thread, message.device) || !desk_.DeviceOk(thread, message.peer))
    return desk_.Fail<wire::EnablePeer>(thread, Status::kInvalidDevice);
  desk_.Fail<wire::EnablePeer>(
      thread, machine_.EnablePeer(desk_.MachineOf(thread), message.device, message.peer));
}

void DeviceCalls::Handle(Thread thread, const wire::DisablePeer& message, Time) {
  if (!desk_.DeviceOk(thread, message.device) || !desk_.DeviceOk(thread, message.peer))
    return desk_.Fail<wire::DisablePeer>(thread, Status::kInvalidDevice);
  desk_.Fail<wire::DisablePeer>(
      thread, machine_.DisablePeer(desk_.MachineOf(thread), message.device, message.peer));
}

void DeviceCalls::Handle(Thread thread, const wire::MemInfo& message, Time) {
  if (!desk_.DeviceOk(thread, message.device))
    return desk_.Fail<wire::MemInfo>(thread, Status::kInvalidDevice);
  desk_.Reply<wire::MemInfo>(
      thread, {.free = machine_.FreeMemory(desk_.MachineOf(thread), message.device),
               .total = static_cast<std::uint64_t>(machine_.profile().device.memory_bytes)});
}

void DeviceCalls::Handle(Thread thread, const wire::StickyError& message, Time) {
  if (!desk_.DeviceOk(thread, message.device))
    return desk_.Fail<wire::StickyError>(thread, Status::kInvalidDevice);
  desk_.Fail<wire::StickyError>(thread,
                                machine_.StickyError(desk_.MachineOf(thread), message.device));
}

void DeviceCalls::Handle(Thread thread, const wire::ResetDevice& message, Time) {
  if (!desk_.DeviceOk(thread, message.device))
    return desk_.Fail<wire::ResetDevice>(thread, Status::kInvalidDevice);
  Process& process = desk_.ProcessOf(thread);
  machine_.ResetDevice(desk_.MachineOf(thread), message.device);
  std::erase_if(process.streams, [&](const auto& entry) { return entry.second == message.device; });
  std::erase_if(process.events, [&](const auto& entry) { return entry.second == message.device; });
  desk_.Reply<wire::ResetDevice>(thread);
}

}  // namespace allranks::server
