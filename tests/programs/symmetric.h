// Memory of all ranks by the virtual memory API: physical memory per rank, shown to the others as
// file descriptors over the world's sockets or, where ranks may be on several hosts, as fabric
// handles; and on request a multicast object over all of it. The same in threads and processes.
#pragma once

#include "descriptors.h"
#include "driver.h"
#include "world.h"

// How this world's memory is shown to other ranks.
inline CUmemAllocationHandleType HandleTypeOf(const World& world) {
  return world.launched() ? CU_MEM_HANDLE_TYPE_FABRIC : CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
}

// Memory on this rank's device.
inline CUmemAllocationProp MemoryOf(const World& world) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = HandleTypeOf(world);
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = world.device();
  return properties;
}

// `handle` at a new address, which `device` may read and write.
inline CUdeviceptr MapFor(int device, CUmemGenericAllocationHandle handle, size_t size) {
  CUdeviceptr address = 0;
  DRIVER_CHECK(DRIVER(cuMemAddressReserve)(&address, size, 0, 0, 0));
  DRIVER_CHECK(DRIVER(cuMemMap)(address, size, 0, handle, 0));
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  DRIVER_CHECK(DRIVER(cuMemSetAccess)(address, size, &access, 1));
  return address;
}

inline void Unmap(CUdeviceptr address, size_t size) {
  DRIVER_CHECK(DRIVER(cuMemUnmap)(address, size));
  DRIVER_CHECK(DRIVER(cuMemAddressFree)(address, size));
}

inline void SendHandle(const World& world, int peer, CUmemGenericAllocationHandle handle) {
  const auto export_to = DRIVER(cuMemExportToShareableHandle);
  if (world.launched()) {
    CUmemFabricHandle bytes;
    DRIVER_CHECK(export_to(&bytes, handle, CU_MEM_HANDLE_TYPE_FABRIC, 0));
    launched::Send(world.link(peer), bytes);
    return;
  }
  int fd = -1;
  DRIVER_CHECK(export_to(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  SendDescriptor(world.link(peer), fd);
  close(fd);
}

inline CUmemGenericAllocationHandle ReceiveHandle(const World& world, int peer) {
  const auto import_from = DRIVER(cuMemImportFromShareableHandle);
  CUmemGenericAllocationHandle handle = 0;
  if (world.launched()) {
    auto bytes = launched::Receive<CUmemFabricHandle>(world.link(peer));
    DRIVER_CHECK(import_from(&handle, &bytes, CU_MEM_HANDLE_TYPE_FABRIC));
    return handle;
  }
  const int fd = ReceiveDescriptor(world.link(peer));
  DRIVER_CHECK(import_from(&handle, reinterpret_cast<void*>(static_cast<intptr_t>(fd)),
                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  close(fd);  // the handle keeps the memory
  return handle;
}

inline size_t RoundUp(size_t size, size_t to) { return (size + to - 1) / to * to; }

// Zeroed memory of at least `size` bytes on every rank.
class Symmetric {
 public:
  Symmetric(World& world, size_t size, bool multicast) : world_(world) {
    const int rank = world.rank(), ranks = world.ranks();
    const CUmemAllocationProp properties = MemoryOf(world);
    size_t granularity = 0;
    DRIVER_CHECK(DRIVER(cuMemGetAllocationGranularity)(&granularity, &properties,
                                                       CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CUmulticastObjectProp group{};
    group.numDevices = ranks;
    group.handleTypes = HandleTypeOf(world);
    group.size = RoundUp(size, granularity);
    if (multicast) {
      size_t wanted = 0;
      DRIVER_CHECK(
          DRIVER(cuMulticastGetGranularity)(&wanted, &group, CU_MULTICAST_GRANULARITY_RECOMMENDED));
      group.size = RoundUp(group.size, std::max(wanted, granularity));
    }
    size_ = group.size;

    DRIVER_CHECK(DRIVER(cuMemCreate)(&memory_, size_, &properties, 0));
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer != rank) SendHandle(world, peer, memory_);
    }
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer == rank) {
        addresses_.push_back(MapFor(world.device(), memory_, size_));
        continue;
      }
      const CUmemGenericAllocationHandle theirs = ReceiveHandle(world, peer);
      addresses_.push_back(MapFor(world.device(), theirs, size_));
      DRIVER_CHECK(DRIVER(cuMemRelease)(theirs));  // the mapping keeps the memory
    }
    CUDA_CHECK(cudaMemset(reinterpret_cast<void*>(addresses_[rank]), 0, size_));
    CUDA_CHECK(cudaDeviceSynchronize());
    if (multicast) JoinGroup(group);
    world.Barrier();
  }

  Symmetric(const Symmetric&) = delete;
  Symmetric& operator=(const Symmetric&) = delete;

  ~Symmetric() {
    CUDA_CHECK(cudaStreamSynchronize(world_.stream()));
    world_.Barrier();
    if (group_ != 0) {
      Unmap(multicast_, size_);
      DRIVER_CHECK(DRIVER(cuMulticastUnbind)(group_, world_.device(), 0, size_));
      DRIVER_CHECK(DRIVER(cuMemRelease)(group_));
    }
    for (CUdeviceptr address : addresses_) Unmap(address, size_);
    DRIVER_CHECK(DRIVER(cuMemRelease)(memory_));
  }

  template <class T>
  Peers<T> peers() const {
    REQUIRE(sizeof(T) <= size_, "the window is too small");
    Peers<T> all{};
    for (size_t i = 0; i < addresses_.size(); ++i) all.of[i] = reinterpret_cast<T*>(addresses_[i]);
    return all;
  }
  template <class T>
  T* multicast() const {
    return reinterpret_cast<T*>(multicast_);
  }

 private:
  // Memory may be bound only after all devices have been added.
  void JoinGroup(const CUmulticastObjectProp& group) {
    if (world_.rank() == 0) {
      DRIVER_CHECK(DRIVER(cuMulticastCreate)(&group_, &group));
      for (int peer = 1; peer < world_.ranks(); ++peer) SendHandle(world_, peer, group_);
    } else {
      group_ = ReceiveHandle(world_, 0);
    }
    DRIVER_CHECK(DRIVER(cuMulticastAddDevice)(group_, world_.device()));
    world_.Barrier();
    DRIVER_CHECK(DRIVER(cuMulticastBindMem)(group_, 0, memory_, 0, size_, 0));
    world_.Barrier();
    multicast_ = MapFor(world_.device(), group_, size_);
  }

  World& world_;
  size_t size_ = 0;
  CUmemGenericAllocationHandle memory_ = 0, group_ = 0;
  std::vector<CUdeviceptr> addresses_;
  CUdeviceptr multicast_ = 0;
};
