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
#include "node/status.h"
#include "node/time.h"
#include "node/traffic.h"
#include "node/virtual_memory.h"

namespace allranks::node {

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
  std::uint64_t Count() const { return std::uint64_t{x} * y * z; }
};

class Listener;
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
  // Tests of what must not depend on order: not 0, warps start up to some hundred cycles late and
  // take turns at equal times in an order drawn from it.
  std::uint64_t order_seed = 0;
  std::vector<PlannedFault> faults;
  Listener* listener = nullptr;  // is told what happens (listener.h); outlives the machine
};

// --- answers -----------------------------------------------------------------------------------
struct PinnedMemory {
  Address address = 0;     // the same in the process and on the devices
  std::uint64_t size = 0;  // whole pages
  int fd = -1;             // sealed memfd; owned by the machine, valid until freed
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

struct PointerInfo {
  enum class Kind : std::uint8_t { kUnknown, kDevice, kPinned, kManaged, kReserved };
  Kind kind = Kind::kUnknown;
  int device = -1;  // ordinal as the process sees it
  Address base = 0;
  std::uint64_t size = 0;
  std::uint64_t object = 0;    // the same number is the same memory
  bool mapped_handle = false;  // by VirtualMemory::Map
  Address range = 0;           // the reservation, or the allocation
  std::uint64_t range_size = 0;
  std::uint32_t share = 0;  // how it can be shared
  PoolId pool = 0;          // that it came from
};

// Numbers as CUmemPool_attribute has them.
enum class PoolAttribute : std::uint8_t {
  kReuseFollowEvents = 1,
  kReuseOpportunistic,
  kReuseInternal,
  kReleaseThreshold,
  kReservedCurrent,
  kReservedHigh,
  kUsedCurrent,
  kUsedHigh,
};

struct IpcHandle {
  std::uint8_t bytes[64];
};

// --- one launch --------------------------------------------------------------------------------
struct LaunchRequest {
  KernelId kernel = 0;
  Dim3 grid, block, cluster;
  std::uint32_t dynamic_shared = 0;
  bool cooperative = false;
  std::optional<int> priority;    // else its stream's; lower numbers first
  bool programmatic = false;      // may begin when the kernel before it has triggered
  EventId trigger_event = 0;      // recorded when all CTAs have triggered or ended ...
  bool trigger_at_start = false;  // ... or when all have begun
  std::vector<std::byte> params;  // packed as KernelInfo says
};

// How a region lies in memory: `depth` planes of `height` rows. Rows must not overlap: a pitch is
// at least a row, a slice at least a plane (neither is looked at where there is only one).
struct Rows {
  std::uint64_t height = 1, depth = 1;
  std::uint64_t dst_pitch = 0, dst_slice = 0;  // bytes from row to row, from plane to plane
  std::uint64_t src_pitch = 0, src_slice = 0;
};

// Each end of a copy is device or pinned memory by address, or bytes held by the caller; those are
// packed, whatever `rows` says.
struct CopyRequest {
  Address dst = 0, src = 0;      // 0: the bytes below
  std::vector<std::byte> bytes;  // source when src == 0; filled when dst == 0
  std::uint64_t size = 0;        // of one row
  Rows rows;
};

struct MemsetRequest {
  Address dst = 0;
  std::uint32_t value = 0;
  int width = 1;            // bytes per element: 1, 2 or 4
  std::uint64_t count = 0;  // elements of one row
  Rows rows;                // its destination's part
};

// --- what a stream does beside kernels and copies ------------------------------------------------
// A function of the process. What the numbers mean is known only where it is called.
struct HostFunction {
  std::uint64_t function = 0, argument = 0;
  bool after_error = false;  // called even if its context has failed
};

// It is that function's turn; FinishHostCall says that it has returned.
struct HostCall {
  ProcessId process = 0;
  OpId op = 0;
  HostFunction function;
  Status status = Status::kSuccess;  // of the context
};

// One step of a batch of stream memory operations.
struct ValueOp {
  enum class Kind : std::uint8_t { kWrite, kWait, kBarrier, kUnorderedWrite };
  enum class Compare : std::uint8_t { kGreaterOrEqual, kEqual, kAnd, kNor };
  Kind kind = Kind::kBarrier;
  Compare compare = Compare::kEqual;
  int width = 4;  // bytes: 4 or 8
  Address address = 0;
  std::uint64_t value = 0;
};

// One operation of an executable graph. Only what belongs to its kind is looked at.
struct GraphNode {
  enum class Kind : std::uint8_t {
    kEmpty,
    kKernel,
    kCopy,
    kMemset,
    kHost,
    kRecord,
    kWait,
    kValues,
  };
  Kind kind = Kind::kEmpty;
  int device = 0;                    // ordinal as the process sees it
  std::vector<std::uint32_t> after;  // nodes before this one in the list
  LaunchRequest launch;
  CopyRequest copy;
  MemsetRequest memset;
  HostFunction host;
  EventId event = 0;
  std::vector<ValueOp> values;
};

// --- what went on (listeners print; the machine never does) --------------------------------------
struct KernelRecord {
  std::string name;
  int device = 0;  // machine-wide number
  ProcessId process = 0;
  Dim3 grid, block;
  Time start = 0, end = 0;  // end < 0: did not end
  std::uint64_t warp_instructions = 0, thread_instructions = 0;
  std::uint64_t bytes_read = 0, bytes_written = 0;  // global memory, as requested by lanes
  std::uint64_t remote_bytes = 0;                   // of these: other devices' memory
};

struct CopyRecord {
  int src_device, dst_device;
  std::uint64_t bytes;
  Time start, end;
};

struct Stats {
  std::uint64_t warp_instructions = 0, thread_instructions = 0;
  std::vector<KernelRecord> kernels;
  std::vector<CopyRecord> copies;
  std::uint64_t checked_accesses = 0, checked_bytes = 0;  // of warps, by the checker
  std::uint64_t chosen_loads = 0;        // strong loads that a schedule gave an older value
  std::uint64_t skipped_iterations = 0;  // of spin loops that were parked
  std::vector<LinkRecord> links;         // that carried something
  std::array<MoverRecord, kMovers> movers{};
};

// Who waits where: one line of a deadlock report. Also used for kernels that cannot become
// resident.
struct Waiter {
  int device = 0;
  ProcessId process = 0;
  std::string kernel;  // empty: no kernel but a stream waits
  Dim3 block_index;
  bool resident = true;
  std::uint32_t warp = 0, lanes = 0;  // lanes: mask
  std::string file;                   // source position of the wait, if known
  int line = 0;
  std::string inlined_at;  // calls it was inlined through: "a.cu:12, b.cu:40"
  std::string what;        // "ld.acquire.sys.u32", "bar.sync", "not resident", ...
  std::string object;      // "pinned#3", "device 1 allocation#7"
  std::uint64_t offset = 0;
  std::uint64_t seen = 0;  // value seen there
  bool has_object = false;
  std::string writer;  // last kernel known to have written there: "Send on device 1, a.cu:12, ..."
  int others = 0;      // further equal waiters folded into this one
};

// A kernel or copy that failed. The owning context is poisoned, as on hardware.
struct Fault {
  ProcessId process = 0;
  int device = 0;
  Status status = Status::kSuccess;
  std::string message;  // what, kernel, block, thread, file:line
};

// What kernels of a process have printed and nobody has taken yet.
struct DeviceText {
  std::string out, err;
};

// What cuCtxSetLimit sets of a device; the numbers are those of CUlimit.
enum class DeviceLimit : int { kPrintfFifo = 1, kMallocHeap = 2 };

class Machine {
 public:
  static Result<std::unique_ptr<Machine>> Create(const Profile& profile,
                                                 const MachineOptions& options);
  virtual ~Machine() = default;

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
  virtual std::uint64_t FreeMemory(ProcessId process, int device) const = 0;
  // First error of the process's context on that device (sticky), or kSuccess.
  virtual Status StickyError(ProcessId process, int device) const = 0;
  virtual void ResetDevice(ProcessId process, int device) = 0;

  // Modules. `image` is a fat binary, a cubin is refused with kNoBinaryForGpu, PTX text is
  // accepted. Loading is lazy: a kernel is decoded at its first launch, but is known (KernelInfo)
  // at once.
  virtual Result<ModuleId> LoadModule(ProcessId process, int device,
                                      std::span<const std::byte> image, Status* status) = 0;
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

  // Memory.
  virtual Status Allocate(ProcessId process, int device, std::uint64_t size, Address* address) = 0;
  virtual Status Free(ProcessId process, Address address) = 0;  // device memory
  // Pools of stream-ordered memory. Each (process, device) has a default one, which cannot be
  // destroyed; memory of a destroyed pool lives until it is freed. `max_size` 0: no limit.
  virtual PoolId DefaultPool(ProcessId process, int device) = 0;
  virtual Status CreatePool(ProcessId process, int device, std::uint64_t max_size,
                            std::uint32_t share, PoolId* pool) = 0;
  virtual Status DestroyPool(ProcessId process, PoolId pool) = 0;
  virtual Status GetPoolAttribute(ProcessId process, PoolId pool, PoolAttribute attribute,
                                  std::uint64_t* value) = 0;
  virtual Status SetPoolAttribute(ProcessId process, PoolId pool, PoolAttribute attribute,
                                  std::uint64_t value) = 0;
  virtual Status TrimPool(ProcessId process, PoolId pool, std::uint64_t keep) = 0;
  // Which devices' kernels may use a pool's memory; peer access has no say in it.
  virtual Status SetPoolAccess(ProcessId process, PoolId pool, int device, bool access) = 0;
  virtual Status GetPoolAccess(ProcessId process, PoolId pool, int device, bool* access) = 0;
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
  // The memory is there at once; that it is used only by work behind this call in stream order is
  // the program's promise.
  virtual Status AllocateAsync(ProcessId process, StreamId stream, PoolId pool, std::uint64_t size,
                               Address* address) = 0;
  // Memory of a pool or of Allocate; it goes when the stream gets there.
  virtual Status FreeAsync(ProcessId process, StreamId stream, Address address, Time at,
                           OpId* op) = 0;
  // Moves managed memory to a device, or to the host (`device` < 0). Where memory lives is kept per
  // allocation: only a prefetch of all of it changes that, others cost their time.
  virtual Status Prefetch(ProcessId process, StreamId stream, Address address, std::uint64_t size,
                          int device, Time at, OpId* op) = 0;
  // Managed memory is pinned memory that can move to a device by Prefetch.
  virtual Status AllocatePinned(ProcessId process, std::uint64_t size, bool managed,
                                PinnedMemory* memory) = 0;
  // Whole pages at an address of the process's own, for FreePinned to forget.
  virtual Status RegisterHost(ProcessId process, Address address, std::uint64_t size,
                              PinnedMemory* memory) = 0;
  virtual Status FreePinned(ProcessId process, Address address) = 0;
  // Memory by handles, and what is mapped of it.
  virtual VirtualMemory& virtual_memory() = 0;
  virtual PointerInfo Describe(ProcessId process, Address address) const = 0;
  virtual Status IpcExport(ProcessId process, Address address, IpcHandle* handle) = 0;
  virtual Status IpcOpen(ProcessId process, int device, const IpcHandle& handle,
                         Address* address) = 0;
  virtual Status IpcClose(ProcessId process, Address address) = 0;
  virtual bool CanAccessPeer(ProcessId process, int device, int peer) const = 0;
  virtual Status EnablePeer(ProcessId process, int device, int peer) = 0;
  virtual Status DisablePeer(ProcessId process, int device, int peer) = 0;
  // Host code ran natively and may have written pinned memory: re-examine what parked warps wait
  // for.
  virtual void HostWrote(ProcessId process, Time at) = 0;
  // A host thread polls these bytes of pinned memory; the callback fires (once) at the first
  // virtual time at or after `at` at which one of them differs from `seen`. Cancel with Unwatch.
  struct HostWatch {
    Address address;
    std::uint32_t size;
    std::uint64_t seen;
  };
  virtual std::uint64_t WatchHost(ProcessId process, std::span<const HostWatch> watches, Time at,
                                  std::function<void(Time)> changed) = 0;
  virtual void Unwatch(std::uint64_t watch) = 0;

  // Streams and events.
  virtual StreamId DefaultStream(ProcessId process, int device) = 0;
  virtual Status CreateStream(ProcessId process, int device, bool non_blocking, int priority,
                              StreamId* stream) = 0;
  virtual Status DestroyStream(ProcessId process, StreamId stream) = 0;
  virtual Status CreateEvent(ProcessId process, int device, bool timing, EventId* event) = 0;
  // Makes an event known to other processes; the one they open is the same event.
  virtual Status ExportEvent(ProcessId process, EventId event, IpcHandle* handle) = 0;
  // *device: where it is, as the process sees it (the first, if it does not).
  virtual Status OpenEvent(ProcessId process, const IpcHandle& handle, int* device,
                           EventId* event) = 0;
  virtual Status DestroyEvent(ProcessId process, EventId event) = 0;

  // Work. Each takes effect in stream order, not before `at`; `op` is what to wait for.
  virtual Status Launch(ProcessId process, StreamId stream, const LaunchRequest& launch, Time at,
                        OpId* op) = 0;
  // Copies between device and pinned memory of any devices; `copy` is kept alive by the machine
  // until done.
  virtual Status Copy(ProcessId process, StreamId stream, std::shared_ptr<CopyRequest> copy,
                      Time at, OpId* op) = 0;
  virtual Status Memset(ProcessId process, StreamId stream, const MemsetRequest& request, Time at,
                        OpId* op) = 0;
  virtual Status RecordEvent(ProcessId process, StreamId stream, EventId event, Time at) = 0;
  virtual Status WaitEvent(ProcessId process, StreamId stream, EventId event, Time at) = 0;
  // Calls a function of the process by way of the host caller.
  virtual Status CallHost(ProcessId process, StreamId stream, const HostFunction& function, Time at,
                          OpId* op) = 0;
  // Called when a rank is to die by a planned fault; whoever owns processes ends it then.
  virtual void SetRankKiller(std::function<void(int rank, Time)> killer) = 0;
  // Whoever brings a call to its process; fires inside RunUntil.
  virtual void SetHostCaller(std::function<void(const HostCall&, Time)> caller) = 0;
  virtual Status FinishHostCall(ProcessId process, OpId op, Time at) = 0;
  // Writes to memory and waits for values there, one after the other.
  virtual Status Values(ProcessId process, StreamId stream, std::vector<ValueOp> values, Time at,
                        OpId* op) = 0;
  // Graphs that can be launched: a list of operations in which each comes after those it waits for.
  virtual Status PutGraph(ProcessId process, std::vector<GraphNode> nodes, GraphId* graph) = 0;
  // Launches from now on use `node` in that place; those under way are not changed.
  virtual Status UpdateGraph(ProcessId process, GraphId graph, std::uint32_t place,
                             GraphNode node) = 0;
  virtual Status DropGraph(ProcessId process, GraphId graph) = 0;
  // One launch of a graph begins when the one before it has ended.
  virtual Status LaunchGraph(ProcessId process, StreamId stream, GraphId graph, Time at,
                             OpId* op) = 0;
  // What the node itself does in stream order: `action` is called `delay` after its turn has come
  // and takes no time. It may give streams more to do.
  virtual Status Act(ProcessId process, StreamId stream, Time delay,
                     std::function<void(Time)> action, Time at, OpId* op) = 0;
  // The bytes that a host would find there now, and other bytes in their place: outside of time,
  // without caches or links. False: not all of it is memory of the process.
  virtual bool Peek(ProcessId process, Address address, std::span<std::byte> bytes) const = 0;
  virtual bool Poke(ProcessId process, Address address, std::span<const std::byte> bytes) = 0;
  // From when on a host may see all that is there now (not before now()).
  virtual Time Settled(ProcessId process, Address address, std::uint64_t size) const = 0;
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
  // Last operation of a stream / the one an event marks / all of a device. What synchronise waits
  // for.
  virtual Status StreamTail(ProcessId process, StreamId stream, std::vector<OpId>* ops) = 0;
  virtual Status EventTail(ProcessId process, EventId event, std::vector<OpId>* ops) = 0;
  virtual Status DeviceTail(ProcessId process, int device, std::vector<OpId>* ops) = 0;
  virtual bool Done(std::span<const OpId> ops) const = 0;
  virtual Status EventTime(ProcessId process, EventId event,
                           Time* time) = 0;  // kNotReady, kInvalidHandle

  // Calls `done(t)` when all are complete (at once if they are). Fires inside RunUntil, in time
  // order.
  virtual std::uint64_t WhenDone(std::vector<OpId> ops, std::function<void(Time)> done) = 0;
  virtual void CancelWhenDone(std::uint64_t id) = 0;

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
  // True if everything unfinished waits: all paths parked, and only timer wake-ups that change no
  // memory have happened over the profile's span. With no host thread able to act, that is a
  // deadlock.
  virtual bool Stuck() const = 0;
  // Stuck() because all kernels that run go round in circles (livelock.h).
  virtual bool Livelocked() const { return false; }
  virtual std::vector<Waiter> Waiters() const = 0;

  virtual std::vector<Fault> TakeFaults() = 0;
  // At most `limit` bytes, and whole printfs; the rest is for the next time.
  virtual DeviceText TakeText(ProcessId process, std::size_t limit) = 0;
  // The heap's size cannot change once a kernel has used it (kInvalidValue).
  virtual Status SetLimit(ProcessId process, int device, DeviceLimit limit,
                          std::uint64_t value) = 0;
  virtual const Stats& stats() const = 0;
};

}  // namespace allranks::node
