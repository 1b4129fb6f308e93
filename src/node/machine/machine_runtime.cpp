// What the functions of the device runtime (builtins.cpp) keep between kernels: printed text until
// a host call takes it, and each device's heap.
#include <utility>

#include "node/machine/machine_impl.h"

namespace allranks::node {
namespace {

constexpr std::uint64_t kMaxFifo = std::uint64_t{64} << 20;
constexpr std::size_t kEntryBytes = 32;       // what a call takes of the buffer beside its text
constexpr std::size_t kMaxErrors = 32 << 10;  // bytes of failed assertions: the first tell enough

}  // namespace

void MachineImpl::OnText(const struct Launch& launch, bool error, std::string text) {
  Text& kept = texts_[launch.process];
  if (error) {
    if (kept.err.size() + text.size() <= kMaxErrors) kept.err += text;
    return;
  }
  // As on hardware the buffer is a ring: what does not fit overwrites the oldest.
  const std::uint64_t limit = runtimes_[{launch.process, launch.device->number}].fifo_limit;
  if (text.empty()) return;
  kept.bytes += text.size() + kEntryBytes;
  kept.out.push_back(std::move(text));
  while (kept.bytes > limit && kept.out.size() > 1) {
    kept.bytes -= kept.out.front().size() + kEntryBytes;
    kept.out.pop_front();
  }
}

DeviceText MachineImpl::TakeText(ProcessId process, std::size_t limit) {
  DeviceText text;
  const auto it = texts_.find(process);
  if (it == texts_.end()) return text;
  Text& kept = it->second;
  if (kept.err.size() <= limit) text.err = std::exchange(kept.err, {});
  limit -= text.err.size();
  while (!kept.out.empty() && text.out.size() + kept.out.front().size() <= limit) {
    kept.bytes -= kept.out.front().size() + kEntryBytes;
    text.out += kept.out.front();
    kept.out.pop_front();
  }
  if (kept.out.empty() && kept.err.empty()) texts_.erase(it);
  return text;
}

Status MachineImpl::SetLimit(ProcessId id, int device, DeviceLimit limit, std::uint64_t value) {
  const Process* process = Find(id);
  const Device* found = process == nullptr ? nullptr : DeviceOf(*process, device);
  if (found == nullptr) return Status::kInvalidDevice;
  Runtime& runtime = runtimes_[{id, found->number}];
  switch (limit) {
    case DeviceLimit::kPrintfFifo:
      runtime.fifo_limit = std::min(value, kMaxFifo);
      return Status::kSuccess;
    case DeviceLimit::kMallocHeap:
      if (runtime.heap_base != 0) return Status::kInvalidValue;
      runtime.heap_limit = value;
      return Status::kSuccess;
  }
  return Status::kUnsupportedLimit;
}

DeviceHeap* MachineImpl::HeapOf(const struct Launch& launch, const Mapping** mapping) {
  Process& process = sim_.ProcessOf(launch.process);
  const int number = launch.device->number;
  Runtime& runtime = runtimes_[{launch.process, number}];
  if (runtime.heap_base == 0) {
    const int visible = sim_.OrdinalOf(process, number);
    Mapping made;
    // Not kDevice: nobody but the kernels may free it.
    if (MapNew(process, visible, Object::Kind::kGlobal, runtime.heap_limit,
               fmt::format("device {} heap", visible), &made) != Status::kSuccess) {
      return nullptr;
    }
    runtime.heap_base = made.base;
    runtime.heap = DeviceHeap(runtime.heap_limit);
  }
  *mapping = process.table.Find(runtime.heap_base);
  return *mapping == nullptr ? nullptr : &runtime.heap;
}

void MachineImpl::DropHeap(ProcessId id, int device_number) {
  const auto it = runtimes_.find({id, device_number});
  if (it == runtimes_.end()) return;
  if (it->second.heap_base != 0) Unmap(sim_.ProcessOf(id), it->second.heap_base);
  runtimes_.erase(it);
}

}  // namespace allranks::node
