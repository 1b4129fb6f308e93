// What a process can reach of its memory, for whoever judges it: memory that is taken away for a
// while, pinned memory that its host sees through a view, and pinned memory that no other process
// sees any more.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "node/machine/machine_impl.h"
#include "node/state/host_view.h"

namespace allranks::node {

void MachineImpl::Withdraw(ProcessId process, Address address) {
  if (Find(process) == nullptr) return;
  AddressTable& table = sim_.ProcessOf(process).table;
  const Mapping* there = table.Find(address);
  if (there == nullptr) return;
  // By whatever name: a second mapping of the same memory goes with it.
  const Object* object = there->object.get();
  std::vector<Mapping>& away = withdrawn_[process];
  const std::size_t first = away.size();
  for (const auto& [base, mapping] : table.all())
    if (mapping.object.get() == object) away.push_back(mapping);
  for (std::size_t i = first; i < away.size(); ++i) table.Erase(away[i].base);
}

void MachineImpl::Restore(ProcessId process) {
  if (Find(process) == nullptr) return;
  for (Mapping& mapping : std::exchange(withdrawn_[process], {}))
    sim_.ProcessOf(process).table.Insert(std::move(mapping));
}

void MachineImpl::SeparateHost(ProcessId process, Address address) {
  if (Find(process) == nullptr) return;
  const Mapping* mapping = sim_.ProcessOf(process).table.Find(address);
  if (mapping == nullptr || !mapping->object->HostVisible() || mapping->object->view != nullptr)
    return;
  Object& object = *mapping->object;
  void* own = mmap(nullptr, object.mapped, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(own != MAP_FAILED);
  std::memcpy(own, object.data, object.mapped);
  object.view = std::make_shared<HostView>(std::span(object.data, object.mapped));
  object.data = static_cast<std::byte*>(own);
  separated_ = true;
}

void MachineImpl::ShowHost(ProcessId process) {
  if (Find(process) == nullptr) return;
  for (const auto& [base, memory] : sim_.ProcessOf(process).table.host_visible()) {
    Object& object = *memory;
    if (object.view == nullptr) continue;
    std::vector<std::byte> arrived(object.data, object.data + object.size);
    HideLate(object, 0, arrived);
    object.view->Show(arrived);
  }
}

void MachineImpl::TakeHost(ProcessId process) {
  if (!separated_) return;
  for (const auto& [base, memory] : sim_.ProcessOf(process).table.host_visible()) {
    Object& object = *memory;
    if (object.view == nullptr) continue;
    object.view->Take([&](std::size_t offset, std::span<const std::byte> bytes) {
      if (offset >= object.size) return;
      std::memcpy(object.data + offset, bytes.data(),
                  std::min<std::size_t>(bytes.size(), object.size - offset));
    });
  }
}

void MachineImpl::OwnPinned() {
  for (const auto& process : sim_.processes) {
    if (process == nullptr) continue;
    for (const auto& [base, mapping] : process->table.all()) {
      const Object& object = *mapping.object;
      if (!object.HostVisible() || object.fd < 0 || object.view != nullptr) continue;
      void* at = mmap(object.data, object.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
                      object.fd, 0);
      CHECK(at == object.data);
    }
  }
}

}  // namespace allranks::node
