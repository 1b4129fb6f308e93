// What only a judge does: looks at memory outside of time, takes it away from a process, bounds
// what kernels may do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "node/ids.h"
#include "node/status.h"
#include "node/time.h"

namespace allranks::node {

// Bytes of a file that nobody can make smaller. Of the descriptor -1: zeros.
struct FileBytes {
  int fd = -1;
  std::uint64_t offset = 0, size = 0;
};

class JudgingApi {
 public:
  virtual ~JudgingApi() = default;

  // What the node itself does in stream order: `action` is called `delay` after its turn has come
  // and takes no time. It may give streams more to do.
  virtual Status Act(ProcessId process, StreamId stream, Time delay,
                     std::function<void(Time)> action, Time at, OpId* op) = 0;
  // The bytes that a host would find there now, and other bytes in their place: outside of time,
  // without caches or links. False: not all of it is memory of the process.
  virtual bool Peek(ProcessId process, Address address, std::span<std::byte> bytes) const = 0;
  virtual bool Poke(ProcessId process, Address address, std::span<const std::byte> bytes) = 0;
  // Like Poke, by mapping: memory of a device shows these bytes of the file until it is written to,
  // and takes no room of its own before. Everything begins and ends at a page; false: it does not,
  // or the memory is of another kind.
  virtual bool PokeFile(ProcessId process, Address address, const FileBytes& bytes) = 0;
  // The same for bytes that Peek has just put there: nothing changes but where they are kept.
  // Without a file (-1) they are dropped: zeros are there instead. False, too: some are still on
  // their way.
  virtual bool KeepInFile(ProcessId process, Address address, const FileBytes& bytes) = 0;
  // From when on a host may see all that is there now (not before now()).
  virtual Time VisibleAt(ProcessId process, Address address, std::uint64_t size) const = 0;
  // Pinned memory that no device may use from here on.
  virtual void HideFromDevices(ProcessId process, Address address) = 0;
  // The process loses what is mapped at `address`, under all its addresses, until Restore gives
  // back all that was taken. Only while none of its work is unfinished.
  virtual void Withdraw(ProcessId process, Address address) = 0;
  virtual void Restore(ProcessId process) = 0;
  // From here on the host sees pinned memory through a view (host_view.h): bytes of devices appear
  // at the first ShowHost after their arrival, those of the host count from HostWrote on.
  virtual void SeparateHost(ProcessId process, Address address) = 0;
  virtual void ShowHost(ProcessId process) = 0;
  // Pinned memory becomes this process's own: after a fork nobody else sees what is written to it.
  virtual void OwnPinned() = 0;
  // Caches hold nothing from here on.
  virtual void CoolCaches() = 0;
  // All kernels together may do so much work from here on: thread instructions, and eight more for
  // each warp instruction. Whoever then goes on fails with kLaunchTimeout. 0: no limit.
  virtual void SetFuel(std::uint64_t fuel) = 0;
  // So many CTAs of a process, of all its kernels together, may be resident at once; a kernel with
  // one more fails with kNotPermitted. 0: any number.
  virtual void SetMaxResident(ProcessId process, std::uint32_t ctas) = 0;
  // Instructions that the node lacks are passed over, instead of failing with kNotSupported: for
  // finding out what else is wrong.
  virtual void SetPassOver(bool on) = 0;
};

}  // namespace allranks::node
