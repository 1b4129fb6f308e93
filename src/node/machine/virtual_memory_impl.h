// The state behind virtual_memory.h, in the Simulator: virtual_memory.cpp has handles, addresses
// and sharing, host_memory.cpp memory of the host, memory_ranges.cpp descriptors of ranges,
// multicast.cpp the multicast objects.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "node/exec/simulator.h"
#include "node/machine/shared_handles.h"
#include "node/virtual_memory.h"

namespace allranks::node {

// Physical memory of a device or of a host.
struct Allocation final : Shared {
  MemoryPlace place = MemoryPlace::kDevice;
  std::shared_ptr<Object> object;
  std::uint64_t* charged = nullptr;        // the device's count of what is allocated
  std::shared_ptr<std::uint32_t> counted;  // of host memory: how many its process has made
  ~Allocation() override;
};

// Bytes of memory, as a descriptor for other drivers stands for them.
struct SharedRange final : Shared {
  struct Part {
    std::shared_ptr<Object> object;
    std::uint64_t offset = 0, size = 0;
    std::shared_ptr<Shared> memory;  // kept, as what is charged; null: of cudaMalloc
  };
  std::vector<Part> parts;
};

// A multicast object: a team of devices, and what each has bound.
struct MulticastObject final : Shared {
  struct Binding {
    int device = 0;
    std::uint64_t offset = 0, size = 0;
    Replica replica;
    std::shared_ptr<Shared> memory;  // kept; null: memory of a pool, kept by the replica
  };
  std::uint64_t size = 0;
  std::uint32_t devices = 0;  // that the team is to have
  std::vector<Binding> bindings;
  std::shared_ptr<Object> object;   // stands for it in mappings
  std::shared_ptr<Multicast> view;  // what mappings see of the bindings

  bool Complete() const { return view->team.count() == devices; }
  void Rebuild();  // the view, after bindings have changed
};

class VirtualMemoryImpl final : public VirtualMemory {
 public:
  VirtualMemoryImpl(Simulator& sim, SharedHandles& shared) : sim_(sim), shared_(shared) {}

  Status Create(ProcessId process, int device, std::uint64_t size, std::uint32_t share,
                HandleId* handle) override;
  Status CreateHost(ProcessId process, MemoryPlace place, std::uint64_t size, std::uint32_t share,
                    HandleId* handle) override;
  Status Release(ProcessId process, HandleId handle) override;
  Status Retain(ProcessId process, Address address, HandleId* handle) override;
  Status Info(ProcessId process, HandleId handle, HandleInfo* info) override;
  Status Reserve(ProcessId process, std::uint64_t size, std::uint64_t alignment, Address hint,
                 Address* address) override;
  Status FreeReserved(ProcessId process, Address address, std::uint64_t size) override;
  Status Map(ProcessId process, Address address, std::uint64_t size, std::uint64_t offset,
             HandleId handle) override;
  Status Unmap(ProcessId process, Address address, std::uint64_t size) override;
  Status SetAccess(ProcessId process, Address address, std::uint64_t size, int device,
                   AccessRight right) override;
  Status GetAccess(ProcessId process, Address address, int device, AccessRight* right) override;
  int FileAt(ProcessId process, Address address) const override;
  Status SetHostAccess(ProcessId process, Address address, std::uint64_t size, MemoryPlace place,
                       AccessRight right) override;
  Status GetHostAccess(ProcessId process, Address address, AccessRight* right) override;
  bool InUse(ProcessId process, Address address, std::uint64_t size, int device) const override;
  Status ExportDescriptor(ProcessId process, HandleId handle, int* fd) override;
  Status ImportDescriptor(ProcessId process, int fd, HandleId* handle) override;
  Status ExportFabric(ProcessId process, HandleId handle, FabricHandle* fabric) override;
  Status ImportFabric(ProcessId process, const FabricHandle& fabric, HandleId* handle) override;
  Status ExportRange(ProcessId process, Address address, std::uint64_t size, int* fd) override;
  Status FindRange(ProcessId process, int fd, MemoryRange* range) const override;
  Status CreateMulticast(ProcessId process, std::uint32_t devices, std::uint64_t size,
                         std::uint32_t share, HandleId* handle) override;
  Status AddDevice(ProcessId process, HandleId multicast, int device) override;
  Status Bind(ProcessId process, HandleId multicast, std::uint64_t offset, HandleId memory,
              std::uint64_t memory_offset, std::uint64_t size) override;
  Status BindAddress(ProcessId process, HandleId multicast, std::uint64_t offset, Address address,
                     std::uint64_t size) override;
  Status Unbind(ProcessId process, HandleId multicast, int device, std::uint64_t offset,
                std::uint64_t size) override;

  // --- for the Machine
  void DropMapping(Process& process, Address base);
  void RemoveProcess(ProcessId process);
  // The reservation that holds an address; false if there is none.
  bool FindReservation(ProcessId process, Address address, Address* base,
                       std::uint64_t* size) const;
  std::uint32_t ShareOf(ProcessId process, HandleId handle) const;
  bool Used(ProcessId process) const;  // it has handles or addresses

 private:
  struct Handle {
    std::shared_ptr<Shared> what;
    int references = 0;  // the program's
    int mappings = 0;
  };
  struct Owned {
    std::map<HandleId, Handle> handles;
    std::map<Address, std::uint64_t> reservations;
    std::map<HandleId, std::weak_ptr<MulticastObject>> released;  // of which memory may be unbound
    std::shared_ptr<std::uint32_t> host_memories = std::make_shared<std::uint32_t>(0);  // alive
  };

  Process* Find(ProcessId process) const;
  // Machine-wide number of a visible device, -1: none such.
  int Number(const Process& process, int device) const;
  // What a live handle stands for, nullptr: no such handle.
  std::shared_ptr<Shared> Find(ProcessId process, HandleId handle) const;
  template <class T>
  std::shared_ptr<T> Find(ProcessId process, HandleId handle) const {
    return std::dynamic_pointer_cast<T>(Find(process, handle));
  }
  Status Add(ProcessId process, std::shared_ptr<Shared> what, HandleId* handle);
  Status Import(ProcessId process, std::shared_ptr<Shared> what, bool fabric, HandleId* handle);
  const Allocation* AllocationOf(ProcessId process, const Mapping& mapping) const;
  void Drop(Owned& owned, HandleId handle);
  // The mappings that a range consists of; empty if it is not whole mappings without a gap.
  std::vector<const Mapping*> MappingsOf(const Process& process, Address address,
                                         std::uint64_t size) const;
  Status Bind(MulticastObject& multicast, MulticastObject::Binding binding);
  void WakeMulticast(MulticastObject& multicast);

  Simulator& sim_;
  SharedHandles& shared_;
  std::map<ProcessId, Owned> owned_;
  HandleId next_ = 1;
  std::uint64_t names_ = 0;
};

}  // namespace allranks::node
