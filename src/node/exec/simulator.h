// The machine room while it runs: the rules for paths and their queues, on top of the state
// (state/state.h). Classes of their own have the rest: timing.h what accesses cost, residency.h
// CTAs on SMs, wait.h paths that spin. engine.h executes paths, machine_impl.h starts and ends
// work.
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
#include "node/exec/residency.h"
#include "node/exec/timing.h"
#include "node/exec/wait.h"
#include "node/machine.h"
#include "node/state/state.h"
#include "node/time.h"

namespace allranks::node {

class DeviceHeap;  // device_heap.h

// The rules that act on the state. Single-threaded. The order of everything that happens is by
// (time, ticket): see QueuedPath.
class Simulator : public State {
 public:
  using State::State;
  ~Simulator();

  Timing timing{*this};        // what accesses and copies cost
  Residency residency{*this};  // which CTAs are on which SM
  Waiting waiting{*this};      // paths that spin

  // Something was put into a device's queue (nullptr: among the timed things).
  void Expect(const Device* device, Time time);

  // Calls `run` at a virtual time, in order with everything else; set by the machine.
  std::function<void(Time, std::function<void()>)> schedule;
  // What kernels print (`error`: on stderr), and the heap of their device; set by the machine.
  std::function<void(const Launch&, bool error, std::string text)> on_text;
  std::function<DeviceHeap*(const Launch&, const Mapping**)> device_heap;  // nullptr: no memory

  // --- paths (divergence.cpp, warp_ops.cpp) ---
  Path* NewPath(Warp& warp, std::uint32_t mask, std::uint32_t pc, Time clock, std::int32_t join);
  void RemovePath(Path& path);
  void QueuePath(Path& path, Time time);
  // The same of a parked path, whose state stays as it is.
  void QueueParked(Path& path, Time time) {
    path.ticket = NextTicket();
    Push(path, time);
  }
  // One-to-one, with 0 as the only number that becomes 0; drawn from order_seed.
  std::uint64_t Permuted(std::uint64_t ticket) const;
  std::uint64_t stack_bytes = 0;  // of all warps' outgrown stacks
  // A branch that `taken` of the path's lanes take. The path goes on with one side (its pc, mask
  // and join are set); the other waits at the join or is queued.
  void Diverge(Path& path, std::uint32_t taken, const BranchOp& branch);
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
  // Adds a function of the module to code that grows.
  std::function<Result<void>(Launch&, std::size_t function)> grow_code;

  // --- mbarriers, asynchronous copies, clusters (async.cpp) ---
  enum class AsyncNext : std::uint8_t { kGo, kBlocked, kGone };
  // When all that a wait of these lanes is for has happened; 0 for other operations.
  Time AsyncGoal(const Path& path, const AsyncOp& op, std::uint32_t lanes) const;
  // Executes the operation for `lanes`. kGo: the path may go on behind it.
  AsyncNext Async(Path& path, const Op& op, std::uint32_t lanes);

  std::function<void(Launch&, Status, std::string)> on_fault;
  void Fault(const Path& path, Status status, const std::string& what, const FaultAt& at = {});

 private:
  std::int32_t NewJoin(Path& path, std::uint32_t pc, std::uint32_t expected);
  bool GrowStacks(Warp& warp, const Frame& frame, const FunctionCode& function);
  void Push(Path& path, Time time);
  // Never 0 and never the same twice: order_seed only permutes them.
  std::uint64_t NextTicket() {
    const std::uint64_t ticket = ++tickets_;
    return order_seed == 0 ? ticket : Permuted(ticket);
  }

  std::deque<Path> path_pool_;
  std::vector<Path*> free_paths_;
  std::uint64_t tickets_ = 0;
};

// Executes paths. Implemented twice: with the checker and without (engine.cpp).
class Engine {
 public:
  virtual ~Engine() = default;
  // Runs a path that has come to its turn until it yields, blocks or ends.
  // `turn` is the time of its event: strong operations at that time may be performed.
  virtual void Run(Path& path, Time turn) = 0;
};

std::unique_ptr<Engine> MakeEngine(Simulator& sim, bool checked);

}  // namespace allranks::node
