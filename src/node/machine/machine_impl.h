// The Machine's state beside the Simulator: modules, pools, operations with their streams
// (operation.h), and what hosts wait for. Split over machine.cpp (time), machine_processes.cpp,
// machine_memory.cpp, machine_modules.cpp, machine_streams.cpp, machine_work.cpp (operations,
// kernels), machine_runtime.cpp (printf, malloc), machine_copy.cpp, machine_signal.cpp,
// machine_graph.cpp, machine_waiters.cpp (host watches) and machine_direct.cpp (what the node does
// itself).
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "node/check/checker.h"
#include "node/check/errors.h"
#include "node/checking.h"
#include "node/decode/decode.h"
#include "node/exec/simulator.h"
#include "node/late_wakes.h"
#include "node/machine.h"
#include "node/machine/operation.h"
#include "node/machine/shared_handles.h"
#include "node/machine/virtual_memory_impl.h"
#include "node/state/device_heap.h"
#include "ptx/cubin.h"
#include "ptx/module.h"

namespace allranks::node {

// Launches and copies that are recorded one by one; what comes after them is summed up in one
// entry.
inline constexpr std::size_t kMaxRecords = 1 << 16;
// Operations a process may have queued. Hardware blocks the caller at about a thousand.
inline constexpr std::size_t kMaxQueued = 1 << 16;

// A PTX image after parsing; shared by every process and device that loads the same bytes.
struct ParsedImage {
  ptx::Module module;
  std::map<std::string, ptx::KernelResources> resources;
  bool trusted = false;       // ModuleImage::trusted
  bool bodies_later = false;  // the module's bodies are read when they are needed
  std::map<std::string, std::shared_ptr<const Code>> code;      // decoded kernels
  std::map<std::string, std::unique_ptr<GrowingCode>> growing;  // the same, of such a module
};

struct LoadedModule {
  ProcessId process = 0;
  int device = 0;  // machine-wide
  std::shared_ptr<ParsedImage> image;
  std::map<std::string, GlobalInfo> globals;
  std::map<std::string, KernelId> kernels;
};

struct Kernel {
  ModuleId module = 0;
  std::string name;
  std::shared_ptr<const Code> code;  // null until first needed
  std::uint32_t dynamic_shared_limit = 0;
};

// What processes share of a pool.
struct SharedPool final : Shared {
  PoolId pool = 0;  // in the process that made it
  int device = 0;   // machine-wide
};

// Memory that stays with the device after it was freed, for the next allocations of the pool.
struct Pool {
  ProcessId process = 0;
  int device = 0;  // machine-wide
  bool destroyed = false;
  std::uint64_t max_size = 0;
  std::uint64_t reuse[3] = {1, 1, 1};
  std::uint64_t threshold = 0;
  std::uint64_t used = 0, used_high = 0;
  std::uint64_t spare = 0;  // held but not used; counts as allocated
  std::uint64_t reserved_high = 0;
  DeviceSet access;
  std::shared_ptr<SharedPool> shared;  // null: cannot be
  bool imported = false;               // another process's: nothing is allocated from it
  std::uint64_t Reserved() const { return used + spare; }
};

class MachineImpl final : public Machine, public LateWakes, public Checking {
 public:
  MachineImpl(const Profile& profile, const MachineOptions& options, int devices);
  ~MachineImpl() override;

  Checking* checking() override { return options_.check ? this : nullptr; }
  LateWakes* late_wakes() override { return this; }

  // Schedules options.faults; fails on names that the machine has not (machine_faults.cpp).
  Result<void> PlanFaults();

  const Profile& profile() const override { return sim_.profile; }
  Time now() const override { return sim_.now; }

  ProcessId AddProcess(int rank, int host) override;
  void RemoveProcess(ProcessId process) override;
  Status SetVisible(ProcessId process, std::span<const std::int32_t> devices) override;
  int DeviceCount(ProcessId process) const override;
  std::uint64_t FreeMemory(ProcessId process, int device) const override;
  Status StickyError(ProcessId process, int device) const override;
  void ResetDevice(ProcessId process, int device) override;

  Result<ModuleId> LoadModule(ProcessId process, int device, const ModuleImage& image,
                              Status* status) override;
  Status UnloadModule(ProcessId process, ModuleId module) override;
  Status GetKernel(ModuleId module, const std::string& name, KernelInfo* info) override;
  Status ListKernels(ModuleId module, std::vector<std::string>* names) override;
  Status GetGlobal(ModuleId module, const std::string& name, GlobalInfo* info) override;
  Status SetMaxDynamicShared(KernelId kernel, std::uint32_t bytes) override;
  Status Occupancy(KernelId kernel, std::uint32_t threads, std::uint32_t dynamic_shared,
                   int* ctas_per_sm) override;
  Status ClusterOccupancy(KernelId kernel, std::uint32_t threads, std::uint32_t dynamic_shared,
                          std::uint32_t cluster, int* clusters) override;

  Status Allocate(ProcessId process, int device, std::uint64_t size, Address* address) override;
  Status Free(ProcessId process, Address address) override;
  PoolId DefaultPool(ProcessId process, int device) override;
  Status CreatePool(ProcessId process, int device, std::uint64_t max_size, std::uint32_t share,
                    PoolId* pool) override;
  Status ExportPool(ProcessId process, PoolId pool, int* fd) override;
  Status ExportPool(ProcessId process, PoolId pool, FabricHandle* fabric) override;
  Status ImportPool(ProcessId process, int fd, PoolId* pool, int* device) override;
  Status ImportPool(ProcessId process, const FabricHandle& fabric, PoolId* pool,
                    int* device) override;
  Status ExportPointer(ProcessId process, Address address, IpcHandle* data) override;
  Status ImportPointer(ProcessId process, PoolId pool, const IpcHandle& data,
                       Address* address) override;
  Status DestroyPool(ProcessId process, PoolId pool) override;
  Status GetPoolAttribute(ProcessId process, PoolId pool, PoolAttribute attribute,
                          std::uint64_t* value) override;
  Status SetPoolAttribute(ProcessId process, PoolId pool, PoolAttribute attribute,
                          std::uint64_t value) override;
  Status TrimPool(ProcessId process, PoolId pool, std::uint64_t keep) override;
  Status SetPoolAccess(ProcessId process, PoolId pool, int device, bool access) override;
  Status GetPoolAccess(ProcessId process, PoolId pool, int device, bool* access) override;
  Status AllocateAsync(ProcessId process, StreamId stream, PoolId pool, std::uint64_t size,
                       Address* address) override;
  Status FreeAsync(ProcessId process, StreamId stream, Address address, Time at, OpId* op) override;
  Status Prefetch(ProcessId process, StreamId stream, Address address, std::uint64_t size,
                  int device, Time at, OpId* op) override;
  Status AllocatePinned(ProcessId process, std::uint64_t size, bool managed,
                        PinnedMemory* memory) override;
  // Memory of the same part of a file, or nothing.
  Status FindRegistered(const HostFile& file, std::uint64_t size, std::shared_ptr<Object>* object);
  Status RegisterHost(ProcessId process, Address address, std::uint64_t size, const HostFile& file,
                      PinnedMemory* memory) override;
  Status FreePinned(ProcessId process, Address address) override;
  VirtualMemory& virtual_memory() override { return virtual_memory_; }
  PointerInfo Describe(ProcessId process, Address address) const override;
  Status IpcExport(ProcessId process, Address address, IpcHandle* handle) override;
  Status IpcOpen(ProcessId process, int device, const IpcHandle& handle, Address* address) override;
  Status IpcClose(ProcessId process, Address address) override;
  bool CanAccessPeer(ProcessId process, int device, int peer) const override;
  Status EnablePeer(ProcessId process, int device, int peer) override;
  Status DisablePeer(ProcessId process, int device, int peer) override;
  void HostWrote(ProcessId process, Time at) override;
  std::uint64_t WatchHost(ProcessId process, std::span<const HostWatch> watches, Time at,
                          std::function<void(Time)> changed) override;
  void Unwatch(std::uint64_t watch) override;

  StreamId DefaultStream(ProcessId process, int device) override;
  Status CreateStream(ProcessId process, int device, bool non_blocking, int priority,
                      StreamId* stream) override;
  Status DestroyStream(ProcessId process, StreamId stream) override;
  Status CreateEvent(ProcessId process, int device, bool timing, EventId* event) override;
  Status ExportEvent(ProcessId process, EventId event, IpcHandle* handle) override;
  Status OpenEvent(ProcessId process, const IpcHandle& handle, int* device,
                   EventId* event) override;
  Status DestroyEvent(ProcessId process, EventId event) override;

  Status Launch(ProcessId process, StreamId stream, const LaunchRequest& launch, Time at,
                OpId* op) override;
  Status Copy(ProcessId process, StreamId stream, std::shared_ptr<CopyRequest> copy, Time at,
              OpId* op) override;
  Status Memset(ProcessId process, StreamId stream, const MemsetRequest& request, Time at,
                OpId* op) override;
  Status RecordEvent(ProcessId process, StreamId stream, EventId event, Time at) override;
  Status WaitEvent(ProcessId process, StreamId stream, EventId event, Time at) override;
  Status RecordContext(ProcessId process, int device, EventId event, Time at) override;
  Status WaitContext(ProcessId process, int device, EventId event, Time at) override;
  Status CallHost(ProcessId process, StreamId stream, const HostFunction& function, Time at,
                  OpId* op) override;
  void SetHostCaller(std::function<void(const HostCall&, Time)> caller) override {
    host_caller_ = std::move(caller);
  }
  Time SendBetweenHosts(int from, int to, std::uint64_t bytes, Time at) override;
  void SetRankKiller(std::function<void(int rank, Time)> killer) override {
    rank_killer_ = std::move(killer);
  }
  Status FinishHostCall(ProcessId process, OpId op, Time at) override;
  Status Values(ProcessId process, StreamId stream, std::vector<ValueOp> values, Time at,
                OpId* op) override;
  Status PutGraph(ProcessId process, std::vector<GraphNode> nodes, GraphId* graph) override;
  Status UpdateGraph(ProcessId process, GraphId graph, std::uint32_t place,
                     GraphNode node) override;
  Status DropGraph(ProcessId process, GraphId graph) override;
  Status LaunchGraph(ProcessId process, StreamId stream, GraphId graph, Time at, OpId* op) override;
  Status Act(ProcessId process, StreamId stream, Time delay, std::function<void(Time)> action,
             Time at, OpId* op) override;
  bool Peek(ProcessId process, Address address, std::span<std::byte> bytes) const override;
  bool Poke(ProcessId process, Address address, std::span<const std::byte> bytes) override;
  bool PokeFile(ProcessId process, Address address, const FileBytes& bytes) override;
  bool KeepInFile(ProcessId process, Address address, const FileBytes& bytes) override;
  Time VisibleAt(ProcessId process, Address address, std::uint64_t size) const override;
  void HideFromDevices(ProcessId process, Address address) override;
  void Withdraw(ProcessId process, Address address) override;
  void Restore(ProcessId process) override;
  void SeparateHost(ProcessId process, Address address) override;
  void ShowHost(ProcessId process) override;
  void OwnPinned() override;
  Status StreamTail(ProcessId process, StreamId stream, std::vector<OpId>* ops) override;
  Status EventTail(ProcessId process, EventId event, std::vector<OpId>* ops) override;
  Status DeviceTail(ProcessId process, int device, std::vector<OpId>* ops) override;
  bool Done(std::span<const OpId> ops) const override;
  Status EventTime(ProcessId process, EventId event, Time* time) override;
  std::uint64_t WhenDone(std::vector<OpId> ops, std::function<void(Time)> done) override;
  void CancelWhenDone(std::uint64_t id) override;

  bool RunUntil(Time limit) override;
  void Stop() override { stop_ = true; }
  void SetInterrupt(const std::atomic<bool>* flag) override { interrupt_ = flag; }
  std::optional<Time> NextEvent() const override;
  bool Busy() const override { return !operations_.empty(); }
  bool Busy(ProcessId process) const override;
  void CoolCaches() override { sim_.timing.CoolCaches(); }
  void SetMaxResident(ProcessId process, std::uint32_t ctas) override {
    if (Find(process) != nullptr) sim_.ProcessOf(process).max_resident = ctas;
  }
  void SetPassOver(bool on) override { sim_.pass_over = on; }
  void SetFuel(std::uint64_t fuel) override {
    sim_.fuel = fuel;
    sim_.work_before = sim_.Work();
  }
  void SetLateWakes(std::uint64_t seed, Time from) override {
    late_wakes_ = seed;
    late_wakes_drawn_ = 0;
    sim_.perturbed_from = from;
    sim_.stalls.SetSeed(scheduled_ ? seed : 0, brief_);
  }
  void SetChecking(bool on) override;
  template <class F>
  void ForHostBytes(ProcessId process, Address address, std::uint64_t size, bool write, F f);
  void SetSchedule(const Schedule& schedule) override;
  PlaceCounts Places() const override { return sim_.delays.counts(); }
  std::vector<Finding> TakeFindings() override;
  void SetHostsSpeak(bool on) override;
  void HostTouches(ProcessId process, Address address, std::uint64_t size, bool write,
                   SiteId site) override;
  bool HostBehind(ProcessId process) const override;
  void SetSites(HostSites* sites) override;
  void SetSeveral() override { sim_.several = true; }
  void SetCaller(SiteId site) override;
  void SetNodeSite(GraphId graph, std::uint32_t place, SiteId site) override;
  void HostAccess(ProcessId process, Address address, std::uint64_t size, bool write,
                  HostOrder order) override;
  void HostMeets(ProcessId process) override;
  void HostsMeet() override;
  bool Stuck() const override;
  bool Livelocked() const override { return !Quiet() && Stuck(); }
  std::vector<Waiter> Waiters() const override;
  std::vector<QueuedWork> Queued() const override;
  std::vector<struct Fault> TakeFaults() override;
  DeviceText TakeText(ProcessId process, std::size_t limit) override;
  Status SetLimit(ProcessId process, int device, DeviceLimit limit, std::uint64_t value) override;
  const Stats& stats() const override;

 private:
  // What is on its way to `bytes`, a copy of the object's from `offset` on, is taken back.
  void HideLate(const Object& object, std::uint64_t offset, std::span<std::byte> bytes) const;
  bool FindForPoke(ProcessId process, Address address, std::uint64_t size, Place* place);
  void Poked(Object& object, std::uint64_t offset, std::uint64_t size);
  // What the host has written to its views since the last time.
  void TakeHost(ProcessId process);

  struct Timed {
    Time time;
    std::uint64_t order;
    std::function<void()> run;
    std::optional<std::uint64_t> unit;  // Livelock::UnitScheduled(); none: a milestone
    bool operator<(const Timed& other) const {
      return time != other.time ? time > other.time : order > other.order;
    }
  };
  struct Heads {
    Time first = kTimeNever, second = kTimeNever;
    std::size_t device = 0;  // of the first
  };
  Time Head(Device& device) const;
  bool Quiet() const;  // nothing is queued, or nothing but timers
  bool PutOff(Time limit);
  Time LateBy();
  Heads FirstHeads() const;

  struct Waiting {
    std::size_t missing = 0;
    Time latest = 0;
    std::function<void(Time)> done;
  };
  struct HostWatching {
    struct Seen {
      std::uint64_t offset = 0, value = 0;
      std::uint32_t size = 0;
    };
    std::vector<std::shared_ptr<Object>> objects;
    ProcessId process = 0;   // whose host waits; 0: none's
    std::vector<Seen> seen;  // of it, in each of the objects
    std::function<void(Time)> changed;
    bool fired = false;
  };

  void BreakLinks(const std::vector<int>& links, double rate);
  void At(Time time, std::function<void()> run);
  const Process* Find(ProcessId process) const;
  void NumberDevices(Process& process);
  // The machine-wide device that `device` means for the process; nullptr if it has none such.
  Device* DeviceOf(const Process& process, int device);
  Stream* FindStream(ProcessId process, StreamId stream);
  Event* FindEvent(ProcessId process, EventId event);
  Status& Sticky(ProcessId process, int device);

  // Work.
  ContextOrder& ContextOf(ProcessId process, int device);
  // What the first operation of a new stream has to wait for.
  std::vector<OpId> ContextWaits(ProcessId process, int device) const;
  Operation& NewOperation(Operation::Kind kind, ProcessId process, int device);
  void Enqueue(Stream& stream, Operation& op, Time at);
  void Depend(Operation& op, OpId on);
  // In stream order: a programmatic launch only waits for the trigger of the kernel before it.
  void Follow(Operation& op, OpId before);
  void Release(const std::vector<OpId>& ops, Time at, bool early);
  void RecordTrigger(Operation& op, const LaunchRequest& launch);
  void Ready(Operation& op);
  void Start(OpId id);
  void StartKernel(Operation& op);
  void StepCopy(OpId id);
  static int FreeEngine(const Device& device);
  void StartHost(Operation& op);
  void StepValues(OpId id);
  // Looks at the value that the operation waits for; puts a watch on it if it is not there yet.
  bool HasValue(Operation& op);
  // After native stores to pinned memory: what streams wait for, and hosts of other processes.
  void RecheckValues(Time at);
  void RecheckHosts(ProcessId writer, Time at);
  void Complete(OpId id, Time at);
  void TellBegin(const Operation& op);  // the listener
  void ApplyCopy(Operation& op, std::uint64_t piece);
  // What an operation on `device` (machine-wide) may read or write.
  bool Resolve(ProcessId process, int device, Address address, std::uint64_t size, bool write,
               Place* place) const;
  void OnFault(struct Launch& launch, Status status, std::string message);
  // The context is broken from now on.
  void FailDevice(ProcessId process, int device, Status status, std::string message);
  void EndContext(ProcessId process, int device);  // kills and drops its work
  void FinishLaunch(struct Launch& launch, Time at);

  Status CheckNode(ProcessId process, const GraphNode& node, std::uint32_t place);
  // `checked`: validated when the graph was instantiated; later changes of the kernel's attributes
  // do not apply.
  Status Launch(ProcessId process, StreamId stream, const LaunchRequest& launch, bool checked,
                Time at, OpId* id);
  Status EnqueueNode(ProcessId process, StreamId lane, const GraphNode& node, Time at);

  // Modules.
  Result<std::shared_ptr<ParsedImage>> ParseImage(const ModuleImage& image, Status* status);
  Status PlaceGlobals(LoadedModule& module);
  void UnmapGlobals(Process& process, const LoadedModule& module);
  bool IsManagedGlobal(ProcessId process, Address address) const;
  Status DecodeKernel(Kernel& kernel);
  // Bytes of shared memory that the kernel has whatever its launch says.
  Status StaticShared(Kernel& kernel, std::uint32_t* bytes);
  Result<void> GrowCode(struct Launch& launch, std::size_t function);
  void ExtendConstants(struct Launch& launch) const;
  Bank BuildConstants(const Code& code, const LoadedModule& module,
                      const std::vector<std::byte>& params) const;

  // Memory.
  Status MapNew(Process& process, int visible_device, Object::Kind kind, std::uint64_t size,
                const std::string& name, Mapping* out);
  void Unmap(Process& process, Address base);
  bool TooManyPinned(const Process& process) const;
  void TellLeft(const Process& process) const;  // the checker
  void StartMove(Operation& op);
  // The device runtime (machine_runtime.cpp).
  void OnText(const struct Launch& launch, bool error, std::string text);
  DeviceHeap* HeapOf(const struct Launch& launch, const Mapping** mapping);
  void DropHeap(ProcessId process, int device_number);
  // Pools.
  using BlockKey = std::pair<ProcessId, Address>;
  Pool* FindPool(ProcessId process, PoolId pool);
  void GrantPool(Process& process, Address base, const Pool& pool);
  void SetSpare(Pool& pool, std::uint64_t bytes);
  const Mapping* FindDeviceMemory(Process& process, Address address) const;
  void ReleaseDeviceMemory(Process& process, Address address);
  void FinishFree(const Operation& op);
  Status NewPool(ProcessId process, PoolId* pool);
  Status ImportPool(ProcessId process, const std::shared_ptr<Shared>& what, bool fabric,
                    PoolId* pool, int* device);
  void DropPools(ProcessId process, int device);  // device < 0: all

  mutable Simulator sim_;
  SharedHandles shared_handles_;
  VirtualMemoryImpl virtual_memory_;
  std::vector<std::byte> copy_buffer_;
  std::unique_ptr<check::Errors> errors_;          // and sim_.errors
  std::unique_ptr<check::Checker> checker_;        // sim_.checker while something is checked
  const check::OpClocks* acting_ = nullptr;        // of the action under way
  std::unique_ptr<Engine> engine_, other_engine_;  // the one in use; the other, if both were used
  MachineOptions options_;
  std::priority_queue<Timed> timed_;
  std::size_t milestones_ = 0;  // of those that are no work of asynchronous units
  std::uint64_t order_ = 0;
  std::uint64_t next_id_ = 1;
  bool stop_ = false;
  bool separated_ = false;  // SeparateHost has been called
  std::map<ProcessId, std::vector<Mapping>> withdrawn_;
  bool brief_ = false;      // Schedule
  bool scheduled_ = false;  // by another seed than 0
  std::uint64_t late_wakes_ = 0,
                late_wakes_drawn_ = 0;  // the seed, and the waits that have ended since
  const std::atomic<bool>* interrupt_ = nullptr;
  std::map<OpId, Operation> operations_;  // not complete
  std::map<StreamId, Stream> streams_;
  std::map<std::pair<ProcessId, int>, StreamId> default_streams_;
  std::map<std::pair<ProcessId, int>, ContextOrder> contexts_;  // by device; made on first use
  std::map<EventId, Event> events_;
  std::map<GraphId, ExecutableGraph> graphs_;
  std::map<std::uint64_t, std::pair<int, std::weak_ptr<EventState>>> shared_events_;  // by number
  std::map<ModuleId, LoadedModule> modules_;
  std::map<KernelId, Kernel> kernels_;
  std::unordered_map<std::string, std::weak_ptr<ParsedImage>> images_;  // by key
  std::map<std::uint64_t, Waiting> waiting_;
  std::map<std::uint64_t, HostWatching> host_watches_;
  std::function<void(const HostCall&, Time)> host_caller_;
  std::function<void(int rank, Time)> rank_killer_;
  std::set<OpId> value_waits_;  // operations that wait for a value in memory
  std::map<std::uint32_t, std::weak_ptr<Object>> exported_;
  std::map<HostFile, std::weak_ptr<Object>> registered_files_;
  std::list<struct Launch> ended_;  // kept until no engine frame refers to them
  struct Runtime {                  // of one device, for one process
    std::uint64_t fifo_limit = std::uint64_t{1} << 20, heap_limit = DeviceHeap::kDefaultSize;
    Address heap_base = 0;  // 0: not made yet
    DeviceHeap heap;
  };
  struct Text {
    std::deque<std::string> out;  // one per printf
    std::uint64_t bytes = 0;
    std::string err;
  };
  std::map<std::pair<ProcessId, int>, Runtime> runtimes_;
  std::map<ProcessId, Text> texts_;
  std::vector<struct Fault> faults_;
  std::map<std::pair<ProcessId, Address>, int> ipc_opens_;  // how often each handle is open
  std::map<PoolId, Pool> pools_;
  // Managed variables live as long as their process: the program keeps pointers to them.
  struct ManagedGlobals {
    std::shared_ptr<ParsedImage> image;  // keeps the key unique
    std::map<std::string, GlobalInfo> globals;
  };
  std::map<std::pair<ProcessId, const ParsedImage*>, ManagedGlobals> managed_globals_;
  std::map<std::pair<ProcessId, int>, PoolId> default_pools_;
  std::map<BlockKey, PoolId> pool_blocks_;  // memory that came from a pool
  struct Freeing {
    StreamId stream = 0;
    OpId op = 0;
  };
  std::map<BlockKey, Freeing> freeing_;             // freed, but the stream has not got there yet
  std::map<ProcessId, std::size_t> queued_;         // operations of a process
  std::map<std::pair<ProcessId, int>, int> names_;  // allocations so far, for their names
};

}  // namespace allranks::node
