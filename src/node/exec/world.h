// The machine room while it runs: the rules that act on its state (state/state.h) and the queues of
// what happens next.
// engine.h executes paths, wait.h parks and wakes them, machine_impl.h starts and ends work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "node/code/code.h"
#include "node/machine.h"
#include "node/state/state.h"
#include "node/time.h"

namespace allranks::node {

class DeviceHeap;  // device_heap.h

// What an access reaches: bytes in whole sectors, lines, and how many of the lines were not in the
// home's L2.
struct Reach {
  std::uint64_t bytes = 0;
  std::uint32_t lines = 0, missed = 0;
};

struct CopyTimes {
  Time sent = 0;     // its engine is free again
  Time arrived = 0;  // the last byte is there
};

// The rules that act on the state. Single-threaded. The order of everything that happens is by
// (time, ticket): see QueuedPath.
class World : public State {
 public:
  using State::State;
  ~World();

  // Something was put into a device's queue (nullptr: among the timed things).
  void Expect(const Device* device, Time time);

  // Nothing is in any L2 from here on.
  void CoolCaches();

  // Calls `run` at a virtual time, in order with everything else; set by the machine.
  std::function<void(Time, std::function<void()>)> schedule;
  // What kernels print (`error`: on stderr), and the heap of their device; set by the machine.
  std::function<void(const Launch&, bool error, std::string text)> on_text;
  std::function<DeviceHeap*(const Launch&, const Mapping**)> device_heap;  // nullptr: no memory

  // --- paths (divergence.cpp, warp_ops.cpp) ---
  Path* NewPath(Warp& warp, std::uint32_t mask, std::uint32_t pc, Time clock, std::int32_t join);
  void RemovePath(Path& path);
  void QueuePath(Path& path, Time time);
  // A branch that `taken` of the path's lanes take. The path goes on with one side (its pc, mask
  // and join are set); the other waits at the join or is queued.
  void Part(Path& path, std::uint32_t taken, const BranchOp& branch);
  // The other way round: `lanes` become a path of their own at the same pc, and meet the rest
  // again at `reconverge` (0xffffffff: at the path's present join).
  Path* Split(Path& path, std::uint32_t lanes, std::uint32_t reconverge);
  // The path has come to its join's pc. True: it goes on (perhaps with more lanes); false: it is
  // gone.
  bool ArriveAtJoin(Path& path);
  // A path has blocked: lanes that wait for it at a join go on without it.
  void ReleaseJoins(Warp& warp);
  void ExitLanes(Path& path, std::uint32_t lanes);
  // All lanes of the path enter a function (calls.cpp). False: it has faulted.
  bool Call(Path& path, const CallOp& call, std::uint32_t function);
  // `lanes` leave their function. True: these were all, and the path stands behind the call.
  bool Return(Path& path, std::uint32_t lanes);
  // A function of the node's own (builtins.cpp). False: it has faulted.
  bool CallBuiltin(Path& path, const CallOp& call, std::uint32_t lanes);
  // Executes the warp-wide operation if all its members have come. True: `path` may go on.
  void ArriveAtWarpSync(Path& path);
  // The same without any meeting, if all members are lanes of this path. False: they are not.
  bool WarpOpAlone(Path& path);
  void CheckWarpSync(Warp& warp);
  // An `.aligned` operation, which the whole warp executes at one place. True: all lanes have come
  // and `path` executes it for them (other paths of the warp stand behind it already); false: the
  // path waits.
  bool MeetAligned(Path& path);
  void ExecuteWarpOp(Warp& warp, std::span<Path* const> group);
  void ArriveAtBarrier(Path& path, const BarrierOp& op);
  void CheckBarriers(Cta& cta);
  void CheckBarrier(Cta& cta, NamedBarrier& barrier);

  // griddepcontrol (calls.cpp). True: the path has to wait.
  bool WaitForGrid(Path& path);
  void TriggerGrid(Cta& cta, Time time);
  void PrimaryOver(Launch& launch, Time at);
  std::function<void(Launch&, Time)> on_trigger;  // all CTAs have triggered or ended

  // --- mbarriers, asynchronous copies, clusters (async.cpp) ---
  enum class AsyncNext : std::uint8_t { kGo, kBlocked, kGone };
  // When all that a wait of these lanes is for has happened; 0 for other operations.
  Time AsyncGoal(const Path& path, const AsyncOp& op, std::uint32_t lanes) const;
  // Executes the operation for `lanes`. kGo: the path may go on behind it.
  AsyncNext Async(Path& path, const Op& op, std::uint32_t lanes);

  // --- waiting (spin.cpp, wait.cpp) ---
  // A spin loop's back edge was taken by the whole path, which stands at the loop's head. Not null:
  // it can be parked in that state, until `skip` iterations later.
  SpinState* SpinBackEdge(Path& path, const SpinCode& spin);
  void Park(Path& path, SpinState& spin);
  // Whether a loop that is watched only now and then is watched at this back edge of the warp.
  static bool WatchesNow(Warp& warp);
  static void EndWatch(Warp& warp);  // until the next time
  // What an iteration of a watched loop did; called only while path.spins is not empty.
  void RecordBranch(Path& path, bool taken);
  void RecordRead(Path& path, Object& object, std::uint64_t offset, std::uint32_t size,
                  const std::byte* value, Time time, Time delay, Time span = 0);
  void RecordTracked(Path& path, const Op& op, std::uint32_t mask);
  void RecordSleep(Path& path, std::uint64_t length);
  void RecordExchange(Path& path);  // between lanes of this path alone
  void RecordClock(Path& path);
  // Memory was changed, or state that is not recorded: the iteration was no mere waiting.
  void RecordChange(Path& path);
  // Bytes of an object have changed at `time`; others can see it from `visible` on.
  void NotifyWrite(Object& object, std::uint64_t offset, std::uint64_t size, Time time,
                   Time visible);
  void Unpark(Path& path);
  // Something about the memory that a parked path polls has changed beside its bytes.
  void Disturb(Path& path);
  void Tell(const Path& path, bool parked, Time at) const;  // the listener
  // Its time has come: sets clock and counters as if it had polled all the while.
  void Wake(Path& path);
  void WakeAll(Object& object);       // the object is about to go
  void Forget(const Object& object);  // nobody's notes of an iteration may name it any more
  std::function<void(std::uint64_t host, Time visible)> on_host_watch;

  // --- residency (residency.cpp) ---
  Status CheckLaunch(const Code& code, const LaunchRequest& request,
                     std::uint32_t dynamic_shared_limit) const;
  int CtasPerSm(const Code& code, std::uint32_t threads, std::uint32_t dynamic_shared) const;
  // Clusters that fit on an empty device at the same time, each within one GPC.
  int MaxActiveClusters(const Code& code, std::uint32_t threads, std::uint32_t dynamic_shared,
                        const Dim3& cluster) const;
  // The cluster of a launch: as asked for, or as compiled; 0 if these differ.
  Dim3 ClusterSize(const Code& code, const Dim3& asked) const;
  void Dispatch(Device& device, Time at);
  void OpenRegisters(Warp& warp);
  void CloseRegisters(Warp& warp);
  void CtaDone(Cta& cta);
  // CTAs of a launch come to an SM, or go (negative).
  void Reside(Launch& launch, int sm_index, int ctas);
  std::function<void(Launch&, Time)> on_launch_done;
  std::function<void(Launch&, Time)> on_started;  // its last CTA has begun
  // Ends a launch at once: its CTAs are gone, nothing it queued will happen.
  void Kill(Launch& launch);
  std::function<void(Launch&, Status, std::string)> on_fault;
  void Fault(const Path& path, Status status, const std::string& what, const FaultAt& at = {});

  // --- time (timing.cpp) ---
  // The L2 is kept as a stamp per line: how much the L2 of its home had been filled when the line
  // was last used. A line is there as long as less than the L2's size has come in since.
  Reach Touch(const Object& object, std::uint64_t offset, std::uint64_t size);
  bool InL2(const Object& object, std::uint64_t line) {  // and it is now
    return MissedLines(object, line, line) == 0;
  }
  // Charges an access of a CTA. Returns when a load's value is there, or when a store has reached
  // its home.
  Time ChargeLoad(const Cta& cta, Mover mover, const Object& object, const Reach& reach, Time at);
  Time ChargeStore(const Cta& cta, Mover mover, const Object& object, const Reach& reach, Time at);
  // The same for all replicas of a multicast object at once; a load reduces.
  Time ChargeMulticastStore(const Cta& cta, std::span<const Replica> replicas, const Reach& reach,
                            Time at);
  Time ChargeMulticastLoad(const Cta& cta, std::span<const Replica> replicas, const Reach& reach,
                           Time at);
  // Atomics on one sector leave the L2 one after the other: when the last of these does.
  Time AtomicTurn(const Object& object, std::uint64_t offset, std::uint32_t operations,
                  Time arrival);
  // From issue at `device` to being performed at the object's home.
  Time DelayTo(const Device& device, const Object& object);
  // From there back: a release waits until its stores are known to have arrived.
  Time AckDelay(const Device& device, const Object& object);
  const Route& WayTo(const Device& device, const Object& object);
  const Route& WayFrom(const Device& device, const Object& object);
  // False: a link on the way, or to a replica, is dead. Only asked while faulty_links is set.
  bool Reachable(const Device& device, const Mapping& mapping);
  bool CanCopy(int from, int to);  // the same between memories (-1: host)
  bool faulty_links = false;
  // Bytes from one memory to another (device number, or -1: host) by an engine of `runner`.
  CopyTimes ChargeCopy(Device& runner, int engine, int from, int to, std::uint64_t bytes, Time at);

  static constexpr std::size_t kAtomicLines = 4096;

 private:
  // How many of these lines are not in the L2; all are now.
  std::uint32_t MissedLines(const Object& object, std::uint64_t first, std::uint64_t last);
  Time AtHome(const Object& object, const Reach& reach, Time at);
  Time LeaveSm(const Cta& cta, std::uint64_t bytes, Time at);
  std::int32_t NewJoin(Path& path, std::uint32_t pc, std::uint32_t expected);
  bool GrowStacks(Warp& warp, const Frame& frame, const FunctionCode& function);
  std::uint64_t StableSpin(const Path& path, SpinState& spin) const;
  // Polls of a parked path load the links: from now on, or (sign -1) no longer.
  void LoadLinks(const SpinState& spin, int sign);
  void Schedule(Path& path, std::uint64_t skip, bool by_timer);
  void Push(Path& path, Time time);
  // Never 0 and never the same twice: order_seed only permutes them.
  std::uint64_t NextTicket() {
    const std::uint64_t ticket = ++tickets_;
    return order_seed == 0 ? ticket : Permuted(ticket);
  }
  std::uint64_t Permuted(std::uint64_t ticket) const;
  void ReleaseCta(Cta& cta);
  Cta* NewCta(Launch& launch, std::uint64_t number, int sm, Time at);
  bool FindCluster(const Device& device, const Launch& launch, std::vector<int>* sms) const;
  bool StartCluster(Device& device, Launch& launch, Time at);
  bool FindSm(const Device& device, const Launch& launch, int* sm) const;

  std::deque<Path> path_pool_;
  std::vector<Path*> free_paths_;
  std::deque<Cta> cta_pool_;
  std::map<std::size_t, RegisterPool> register_pools_;  // by size
  std::vector<Cta*> free_ctas_;
  std::uint64_t tickets_ = 0;
  std::uint64_t cta_numbers_ = 0;
  std::uint64_t stack_bytes_ = 0;  // of all warps' outgrown stacks
};

// Executes paths. Implemented twice: with the checker and without (engine.cpp).
class Engine {
 public:
  virtual ~Engine() = default;
  // Runs a path that has come to its turn until it yields, blocks or ends.
  // `turn` is the time of its event: strong operations at that time may be performed.
  virtual void Run(Path& path, Time turn) = 0;
};

std::unique_ptr<Engine> MakeEngine(World& world, bool checked);

}  // namespace allranks::node
