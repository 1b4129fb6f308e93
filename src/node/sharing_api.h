// What processes share: peer access, and handles of memory, pools and events.
#pragma once

#include <cstdint>

#include "node/ids.h"
#include "node/status.h"
#include "node/virtual_memory.h"

namespace allranks::node {

struct IpcHandle {
  std::uint8_t bytes[64];
};

class SharingApi {
 public:
  virtual ~SharingApi() = default;

  // Pools that were made to be shared. An imported pool gives no new memory, only what
  // ImportPointer finds; `device` is its home as the process sees it. The descriptor is the
  // caller's.
  virtual Status ExportPool(ProcessId process, PoolId pool, int* fd) = 0;
  virtual Status ExportPool(ProcessId process, PoolId pool, FabricHandle* fabric) = 0;
  virtual Status ImportPool(ProcessId process, int fd, PoolId* pool, int* device) = 0;
  virtual Status ImportPool(ProcessId process, const FabricHandle& fabric, PoolId* pool,
                            int* device) = 0;
  virtual Status ExportPointer(ProcessId process, Address address, IpcHandle* data) = 0;
  virtual Status ImportPointer(ProcessId process, PoolId pool, const IpcHandle& data,
                               Address* address) = 0;
  virtual Status IpcExport(ProcessId process, Address address, IpcHandle* handle) = 0;
  virtual Status IpcOpen(ProcessId process, int device, const IpcHandle& handle,
                         Address* address) = 0;
  virtual Status IpcClose(ProcessId process, Address address) = 0;
  virtual bool CanAccessPeer(ProcessId process, int device, int peer) const = 0;
  virtual Status EnablePeer(ProcessId process, int device, int peer) = 0;
  virtual Status DisablePeer(ProcessId process, int device, int peer) = 0;
  // Makes an event known to other processes; the one they open is the same event.
  virtual Status ExportEvent(ProcessId process, EventId event, IpcHandle* handle) = 0;
  // *device: where it is, as the process sees it (the first, if it does not).
  virtual Status OpenEvent(ProcessId process, const IpcHandle& handle, int* device,
                           EventId* event) = 0;
};

}  // namespace allranks::node
