// The virtual machine room: every host, device and link of one profile, and one virtual clock.
//
// Theory of operation. `Machine` is single-threaded and knows nothing of sockets or
// operating-system processes. Its users (server/, tests, bench/) call driver-level operations,
// which take effect at the virtual time `at` given with them, and then let time pass with
// RunUntil(). All work that streams order (kernels, copies, memsets, event records) is a graph of
// *operations*: an operation starts when those it depends on have completed. Stream order, event
// waits and the legacy default stream are nothing but dependences. Waiting for something always
// means: waiting for a set of operations.
//
// Determinism: the result depends only on the sequence of calls and their `at` times. Nobody may
// pass an `at` smaller than now() except by mistake (it is clamped to now()).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/faults.h"
#include "node/ids.h"
#include "node/judging_api.h"
#include "node/memory_api.h"
#include "node/module_image.h"
#include "node/records.h"
#include "node/requests.h"
#include "node/sharing_api.h"
#include "node/status.h"
#include "node/time.h"
#include "node/work_api.h"

namespace allranks::node {

class Checking;   // checking.h
class Listener;   // listener.h
class LateWakes;  // late_wakes.h
struct Profile;

struct MachineOptions {
  int devices = 0;                 // use only the first N of each host; 0 = all
  std::uint64_t memory_limit = 0;  // bytes of real memory the node may back; 0 = 16 GiB
  bool check = false;              // races, memory errors (checking.h)
  std::uint64_t seed = 0;          // of the checker's first schedule; 0: none
  // Work of all kernels together (Machine::SetFuel) before the next one is ended; 0 = no limit.
  std::uint64_t fuel = 0;
  // The key from which handles that travel between processes are made; empty: a random one.
  std::string secret;
  // Where indices of large libraries are kept (machine/module_index.h); empty: nowhere.
  std::string index_folder;
  // Tests of what must not depend on order: not 0, warps start up to some hundred cycles late and
  // take turns at equal times in an order drawn from it.
  std::uint64_t order_seed = 0;
  std::vector<PlannedFault> faults;
  Listener* listener = nullptr;  // is told what happens (listener.h); outlives the machine
};

struct KernelInfo {
  KernelId id = 0;
  std::string name;
  std::vector<std::uint32_t> param_offsets, param_sizes;
  std::uint32_t param_bytes = 0;
  std::uint32_t registers = 0, static_shared = 0, local = 0, max_threads = 1024, const_bytes = 0;
  std::uint32_t ptx_version = 0, binary_version = 0;
};

struct GlobalInfo {
  Address address = 0;
  std::uint64_t size = 0;
  // A managed variable is host memory, one for all devices of the process.
  bool managed = false;
  std::uint64_t mapped = 0;  // bytes of its sealed memfd
  int fd = -1;               // valid until the process is removed
};

class Machine : public MemoryApi, public SharingApi, public WorkApi, public JudgingApi {
 public:
  static Result<std::unique_ptr<Machine>> Create(const Profile& profile,
                                                 const MachineOptions& options);
  ~Machine() override = default;

  // Null unless it was made to check (MachineOptions::check).
  virtual Checking* checking() = 0;
  // Null unless it can make waits end late.
  virtual LateWakes* late_wakes() = 0;

  virtual const Profile& profile() const = 0;
  virtual Time now() const = 0;

  // Processes. `rank` fixes the address arenas; it must be the same in every repetition.
  // `host` is the simulated host; only its devices are visible to the process, numbered from 0.
  virtual ProcessId AddProcess(int rank, int host) = 0;
  // Ends its kernels, drops its operations, returns its memory (objects shared by IPC live on
  // while another process has them open).
  virtual void RemoveProcess(ProcessId process) = 0;
  // From now on the process sees only these of its devices, in this order. Only before it has made
  // anything on them.
  virtual Status SetVisible(ProcessId process, std::span<const std::int32_t> devices) = 0;
  virtual int DeviceCount(ProcessId process) const = 0;
  // First error of the process's context on that device (sticky), or kSuccess.
  virtual Status StickyError(ProcessId process, int device) const = 0;
  virtual void ResetDevice(ProcessId process, int device) = 0;

  // Modules. `image` is a fat binary, a cubin is refused with kNoBinaryForGpu, PTX text is
  // accepted. Loading is lazy: a kernel is decoded at its first launch, but is known (KernelInfo)
  // at once.
  virtual Result<ModuleId> LoadModule(ProcessId process, int device, const ModuleImage& image,
                                      Status* status) = 0;
  virtual Status UnloadModule(ProcessId process, ModuleId module) = 0;
  virtual Status GetKernel(ModuleId module, const std::string& name, KernelInfo* info) = 0;
  virtual Status ListKernels(ModuleId module, std::vector<std::string>* names) = 0;
  virtual Status GetGlobal(ModuleId module, const std::string& name, GlobalInfo* info) = 0;
  virtual Status SetMaxDynamicShared(KernelId kernel, std::uint32_t bytes) = 0;
  virtual Status Occupancy(KernelId kernel, std::uint32_t threads, std::uint32_t dynamic_shared,
                           int* ctas_per_sm) = 0;
  // How many clusters of that many CTAs the device can hold; a cluster lies within a GPC.
  virtual Status ClusterOccupancy(KernelId kernel, std::uint32_t threads,
                                  std::uint32_t dynamic_shared, std::uint32_t cluster,
                                  int* clusters) = 0;

  // Bytes that host code of one simulated host sends to another's, as by TCP: when the last of them
  // is there; never, if a link of the way is dead. They take the fabric's way between the first
  // CPUs of both, and no time where there is none.
  virtual Time SendBetweenHosts(int from, int to, std::uint64_t bytes, Time at) = 0;

  // Called when a rank is to die by a planned fault; whoever owns processes ends it then.
  virtual void SetRankKiller(std::function<void(int rank, Time)> killer) = 0;

  // Lets virtual time pass: executes everything that happens at or before `limit`, in order.
  // Returns early when a callback has called Stop(). Afterwards now() == limit, or the time at
  // which it stopped. Returns false if nothing at all is left to happen (now() stays at the last
  // event).
  virtual bool RunUntil(Time limit) = 0;
  virtual void Stop() = 0;
  // Whoever sets *flag (a timer, another thread) makes RunUntil return early, with true, within a
  // few thousand events. That is only a pause: the next RunUntil goes on as if there had been none.
  virtual void SetInterrupt(const std::atomic<bool>* flag) = 0;
  // Time of the next thing that will happen by itself, or nullopt.
  virtual std::optional<Time> NextEvent() const = 0;
  // True if device work is unfinished (kernels or copies running or queued).
  virtual bool Busy() const = 0;
  virtual bool Busy(ProcessId process) const = 0;
  // True if everything unfinished waits: all paths parked, and only timer wake-ups that change no
  // memory have happened over the profile's span. With no host thread able to act, that is a
  // deadlock.
  virtual bool Stuck() const = 0;
  // Stuck() because all kernels that run go round in circles (livelock.h).
  virtual bool Livelocked() const { return false; }
  virtual std::vector<Waiter> Waiters() const = 0;
  // By process, device and stream.
  virtual std::vector<QueuedWork> Queued() const { return {}; }

  virtual std::vector<Fault> TakeFaults() = 0;
  // At most `limit` bytes, and whole printfs; the rest is for the next time.
  virtual DeviceText TakeText(ProcessId process, std::size_t limit) = 0;
  // The heap's size cannot change once a kernel has used it (kInvalidValue).
  virtual Status SetLimit(ProcessId process, int device, DeviceLimit limit,
                          std::uint64_t value) = 0;
  virtual const Stats& stats() const = 0;
};

}  // namespace allranks::node
