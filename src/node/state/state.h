// The state of the machine room while it runs: devices (device.h), launches and CTAs (launch.h),
// warps and their paths (warp.h), processes and what they have mapped (memory.h), time, and what
// is watched or disturbed. Questions that need nothing else are answered here; the rules that
// change it are in exec.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "node/hardware/fabric.h"
#include "node/hardware/profile.h"
#include "node/machine.h"
#include "node/state/delays.h"
#include "node/state/device.h"
#include "node/state/last_writes.h"
#include "node/state/launch.h"
#include "node/state/livelock.h"
#include "node/state/memory.h"
#include "node/state/stalls.h"
#include "node/state/warp.h"
#include "node/time.h"

namespace allranks::node {

// Of the checker (node/check): null unless something is checked.
namespace check {
class Checker;
class Errors;
}  // namespace check

// What nobody has written. Never zero: reading it should not look like a plausible value.
inline constexpr int kPoison = 0xCB;

// What a fault is about, for the checker's report.
struct FaultAt {
  enum class Cause : std::uint8_t {
    kOther,
    kUnmapped,  // nothing is at `address`
    kNoAccess,  // `object` may not be used from here
    kBeyond,    // the access ends behind `object`
  };
  Cause cause = Cause::kOther;
  int lane = -1;  // -1: not known
  Address address = 0;
  const Object* object = nullptr;
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0;  // 0: those of the instruction
};

// Times of the profile in the unit of the clocks.
struct Costs {
  Time cycle, step;  // one cycle; one instruction of one warp
  Time shared, l1, l2, hbm, atomic, barrier, fence_cta, fence_gpu, fence_sys;
  Time cluster;  // to another SM of the GPC
  Time host;     // from a host's memory to its devices
  Time quantum;
};

struct State {
  State(const Profile& profile, int devices, std::uint64_t memory_limit);

  const Profile profile;
  Costs costs;
  Fabric fabric;
  std::uint32_t l2_stamps = 0;  // what the L2 holds, in steps of Object::stamps
  Backing backing;
  std::vector<Device> devices;
  std::vector<std::unique_ptr<Process>> processes;  // index = ProcessId - 1
  bool several = false;  // there are other processes, which may not have come yet
  Stats stats;
  Time now = 0;
  Time last_change = 0;           // of memory, or of what runs; see Stuck
  std::uint64_t timer_wakes = 0;  // since then
  std::uint64_t audit_at = 0;     // warp instructions at which an audit begins
  Livelock livelock;
  LastWrites last_writes;
  bool pass_over = false;                   // Machine::SetPassOver
  std::uint64_t fuel = 0, work_before = 0;  // MachineOptions; Work() when it was set
  std::uint64_t order_seed = 0;             // MachineOptions
  Listener* listener = nullptr;             // MachineOptions
  // What is checked; null: nothing is.
  check::Checker* checker = nullptr;
  check::Errors* errors = nullptr;
  Stalls stalls;
  Delays delays;
  Time perturbed_from = 0;  // late wakes, stalls and choices of a schedule begin then

  // A strong operation at time t may be performed at once if t < order_limit: nothing else
  // that is known of happens before it.
  Time order_limit = 0;
  Time other_limit = 0;  // the part of it that comes from other devices and from timed things

  // By device: when the first path of its queue is to run, or earlier if that one has become void.
  // Side by side, because they are looked through for every turn of a device.
  std::vector<Time> heads;
  const Device* running = nullptr;
  // What executing kernels has taken so far, in thread instructions: those of warps with few lanes
  // cost more than their lanes, so each warp instruction counts as eight on top.
  std::uint64_t Work() const { return stats.thread_instructions + 8 * stats.warp_instructions; }
  Process& ProcessOf(ProcessId id) { return *processes[id - 1]; }
  // The program is one process: its rank tells nobody anything.
  bool Alone() const { return processes.size() == 1 && !several; }
  // The machine-wide number of what the process calls `device`, and the way back (-1: it does not
  // see that device).
  int NumberOf(const Process& process, int device) const {
    return process.visible[static_cast<std::size_t>(device)];
  }
  int OrdinalOf(const Process& process, int number) const {
    return process.ordinals[static_cast<std::size_t>(number)];
  }
  // Whether kernels of the process on `device` (machine-wide) may use what is mapped there.
  bool MayAccess(const Process& process, const Mapping& mapping, int device, bool write) const {
    if (mapping.rights != Mapping::Rights::kPeers) {
      return (write ? mapping.writers : mapping.readers)[static_cast<std::size_t>(device)];
    }
    const int home = mapping.object->device;
    if (home < 0 || home == device || mapping.ipc) return true;
    if (mapping.object->kind == Object::Kind::kManaged) return true;
    const int own = OrdinalOf(process, device), peer = OrdinalOf(process, home);
    return peer >= 0 &&
           process.peers[static_cast<std::size_t>(own)][static_cast<std::size_t>(peer)];
  }

  // What links connect, in one place. Hosts share a fabric if their devices reach each other's
  // memory without a network card; a device reaches another's memory by its host's links or by
  // those of the fabric.
  bool SameFabric(int host, int other) const;
  bool CanReach(int device, int other) const {
    return SameFabric(devices[static_cast<std::size_t>(device)].host,
                      devices[static_cast<std::size_t>(other)].host);
  }
  // For reports: what is wrong if it may not.
  std::string NoAccess(const Process& process, const Mapping& mapping, int device) const;
};

}  // namespace allranks::node
