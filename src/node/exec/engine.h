// The engine's state: executes one path at a time. A template, so that an absent checker costs
// nothing. engine.cpp has the loop and control flow, engine_memory.h and engine_bytes.h the
// accesses, engine_global.h what is special of global memory, engine_matrix.h the matrix
// instructions.
//
// Order. A path runs ahead of the queue for at most a quantum, but only with what race-free
// programs cannot notice: registers and weak accesses. A strong access, an atomic or a sleep first
// waits for its turn (Turn()): it is performed only when nothing earlier is left in any queue.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "node/alu/matrix.h"
#include "node/code/code.h"
#include "node/code/lanes.h"
#include "node/exec/simulator.h"
#include "node/state/access.h"
#include "node/state/memory.h"

namespace allranks::node {

inline constexpr std::uint32_t kNoJoin = 0xfffffffeu;
// CUDA C++ Programming Guide, throughput of native instructions: 32 lanes of a shuffle per cycle
// and SM, where f32 has 128.
inline constexpr std::uint32_t kShuffleSlots = 4;

template <bool kChecked>
class EngineT final : public Engine {
 public:
  explicit EngineT(Simulator& sim) : sim_(sim) {}

  void Run(Path& path, Time turn) override;

 private:
  // What to do after an instruction.
  enum class Next : std::uint8_t { kGo, kYield, kGone };

  const std::byte* Source(Slot slot) const { return SlotAt(registers_, constants_, slot); }
  void WaitFor(Slot slot) {
    if ((slot & kConstant) != 0 || slot == kNoSlot) return;
    if (ready_[slot] > path_->clock) Stall(ready_[slot]);
  }
  void Stall(Time until) {
    ChargeIssue();  // what was issued before is charged to the time before
    if (until <= path_->clock) return;
    // The first stall of a turn is no reason to give way: the path goes on with warm registers.
    // Its time is right all the same, since capacity is taken by time (servers.h).
    if (!stalled_) path_->quantum_end += until - path_->clock;
    stalled_ = true;
    path_->clock = charged_ = until;
  }
  // The path has entered or left a function.
  void EnterFrame() {
    registers_ = RegistersOf(*path_);
    predicates_ = PredicatesOf(*path_);
    ready_ = ReadyOf(*path_);
  }
  // True if an operation that others can notice may be performed now.
  bool Turn() const { return path_->clock <= turn_ || path_->clock < sim_.order_limit; }
  Next Yield() {
    ChargeIssue();
    sim_.QueuePath(*path_, path_->clock);
    return Next::kYield;
  }
  // It is not an instruction's turn yet: it is issued again when it is, and counted once.
  Next Again(const Op& op) {
    const auto lanes = static_cast<std::uint64_t>(std::popcount(path_->mask)) * op.count;
    if (issued_ >= op.count) {
      issued_ -= op.count;
      slots_ -= std::min<std::uint32_t>(slots_, op.count);  // never of arithmetic
      lanes_issued_ -= lanes;
    } else {
      // A stall of its operands has charged it already.
      KernelRecord& record = sim_.stats.kernels[launch_->record];
      record.warp_instructions -= op.count;
      record.thread_instructions -= lanes;
      sim_.stats.warp_instructions -= op.count;
      sim_.stats.thread_instructions -= lanes;
    }
    ChargeIssue();
    sim_.QueuePath(*path_, path_->clock);
    path_->ordered = true;
    path_->clock -= step_ * op.cycles;
    return Next::kYield;
  }
  std::uint32_t JoinPc() const {
    if (path_->join < 0) return kNoJoin;
    const Join& join = warp_->joins[static_cast<std::size_t>(path_->join)];
    return join.frame.depth == path_->frame.depth ? join.pc
                                                  : kNoJoin;  // recursion: same pc, deeper
  }
  // Paths of one warp take turns at its issue: each is slowed by those that could issue now.
  void ShareIssue() {
    step_ = sim_.costs.step;
    if (warp_->paths.size() == 1) return;
    for (const Path* other : warp_->paths) {
      if (other != path_ && other->state == Path::State::kQueued &&
          other->clock < path_->clock + 2 * sim_.costs.quantum) {
        step_ += sim_.costs.step;
      }
    }
  }
  // Charges the instructions issued since the last settling to the SM.
  void ChargeIssue();

  // A guard keeps `lanes` out of a collective instruction: they wait behind it, or go on alone if
  // the others block in it.
  void SkipLanes(std::uint32_t lanes) {
    const std::uint32_t pc = path_->pc;
    BranchOp around;
    around.target = around.reconverge = pc + 1;
    sim_.Diverge(*path_, lanes, around);
    path_->pc = pc;
  }
  void Count(const Op& op) {
    issued_ += op.count;
    slots_ += op.kind == OpKind::kAlu || op.kind == OpKind::kTracked ? op.cycles
              : op.kind == OpKind::kWarpSync                         ? kShuffleSlots
                                                                     : op.count;
    lanes_issued_ += static_cast<std::uint64_t>(std::popcount(path_->mask)) * op.count;
  }
  void ExecuteRun(const Op* op, const Lanes& lanes);
  void WriteSpecial(const Op& op, std::uint32_t mask);
  Next Branch(const Op& op, std::uint32_t taken);
  Next BranchIndexed(const Op& op, std::uint32_t taken);
  Next Call(const Op& op, std::uint32_t mask);
  Next Memory(const Op& op, std::uint32_t mask);
  void AwaitStores(Time cost);
  Delays::Place PlaceHere(Delays::Kind kind) const;
  Time DelayHere(const MemoryOp& m, std::uint32_t mask);
  bool SwapWouldSucceed(const MemoryOp& m, std::uint32_t mask);
  // PTX has a level of its own for clusters, SASS has not: ptxas 13.0 makes the same MEMBAR of
  // both, whatever memory a release is on.
  Time FenceCost(Scope scope) const {
    const Costs& costs = sim_.costs;
    return scope == Scope::kSys   ? costs.fence_sys
           : scope == Scope::kCta ? costs.fence_cta
                                  : costs.fence_gpu;
  }
  // A weak load or store of global memory by all lanes, one behind the other. False: it is not one,
  // or not a plain one (bounds, rights, alignment, waiting): nothing has been done.
  bool DenseAccess(const MemoryOp& m);
  const Mapping* FindMapping(std::uint64_t address);
  void Addresses(const MemoryOp& m, std::uint64_t* address) const;
  bool ClusterLanes(const MemoryOp& m, std::uint32_t lanes, std::uint64_t* address);
  bool Spaces(const MemoryOp& m, std::uint32_t mask, std::uint64_t* address);
  bool ScratchAccess(const MemoryOp& m, std::uint32_t mask, std::uint64_t* address,
                     std::byte* scratch);
  Next Matrix(const Op& op);
  bool MatrixRows(const MatrixOp& x, std::uint32_t mask);
  bool MatrixFragment(const MatrixOp& x, std::uint32_t mask);
  bool MatrixTile(std::uint64_t bits, bool transposed, int first, int rows, matrix::Rows* out);
  bool MatrixGroup(const MatrixOp& x, std::uint32_t mask);
  void CheckedLoad(const MemoryOp& m, const Access& access, const std::byte* base, Time sampled);
  void FindBytes(const Object& object, std::uint32_t lanes, const std::uint64_t* offset,
                 std::uint32_t bytes, const std::byte* base, Time sampled,
                 std::byte (*values)[kMaxKept]);
  template <class F>
  void RecordReads(Object& object, std::uint32_t lanes, const std::uint64_t* offset,
                   std::uint32_t bytes, Time delay, F value_of);
  void HideLate(const Object& object, std::uint64_t offset, std::uint32_t bytes, std::byte* value,
                Time sampled);
  std::uint32_t EarlyAtomics(const MemoryOp& m, std::uint32_t lanes, const Object& object,
                             const std::byte* base, const std::uint64_t* offset, Time sampled,
                             std::byte (*seen)[kMaxKept]);
  bool MemoryGroup(const MemoryOp& m, std::uint32_t lanes, Object* object, std::byte* base,
                   std::uint64_t size, const std::uint64_t* offset);
  bool GlobalLanes(const MemoryOp& m, std::uint32_t lanes, const std::uint64_t* address);
  bool ObjectLanes(const MemoryOp& m, std::uint32_t lanes, Object& object,
                   const std::uint64_t* offset);
  bool MulticastLanes(const MemoryOp& m, std::uint32_t lanes, const Mapping& mapping,
                      const std::uint64_t* offset);
  bool ReplicaLanes(const MemoryOp& m, std::uint32_t lanes, const std::vector<Replica>& replicas,
                    const std::uint64_t* offset);
  // When an access to the shared memory of a CTA has been served by its banks.
  Time ChargeBanks(const MemoryOp& m, std::uint32_t lanes, const Cta& owner,
                   const std::uint64_t* offset);
  Reach ReachOf(const MemoryOp& m, std::uint32_t here, const Object& object,
                const std::uint64_t* offset);
  Time ChargeReplicas(const MemoryOp& m, std::uint32_t here, const std::vector<Replica>& replicas,
                      const std::uint64_t* offset);
  void TellWritten(const MemoryOp& m, std::uint32_t here, Object& object,
                   const std::uint64_t* offset, Time visible);
  bool Misaligned(const MemoryOp& m, std::uint32_t lanes, const Object* object,
                  const std::uint64_t* offset);
  void OutOfBounds(const MemoryOp& m, int lane, std::uint64_t address, const char* space);
  Next Fence(const Op& op, std::uint32_t mask);
  Next Async(const Op& op, std::uint32_t mask);

  Simulator& sim_;
  // The path being run.
  Path* path_ = nullptr;
  Warp* warp_ = nullptr;
  Cta* cta_ = nullptr;
  Launch* launch_ = nullptr;
  Device* device_ = nullptr;
  const Code* code_ = nullptr;
  const std::byte* constants_ = nullptr;
  std::byte* registers_ = nullptr;  // of the path's function
  std::uint32_t* predicates_ = nullptr;
  Time* ready_ = nullptr;
  Time turn_ = 0;             // strong operations at this time are allowed
  Time charged_ = 0;          // clock when issue slots were last charged
  std::uint32_t issued_ = 0;  // warp instructions since then
  std::uint32_t slots_ = 0;   // issue slots that they take: more than one in a narrow pipe
  Time step_ = 0;             // of one instruction of this path
  std::uint64_t lanes_issued_ = 0;
  Time value_ready_ = 0;  // result of a memory access: when its value is there
  bool stalled_ = false;  // this turn has waited for a value already
  // Of MemoryGroup: how much later than at its time the access was performed, and when others that
  // an atomic or reduction came after are there; 0: it was on time, there were none.
  Time late_by_ = 0, not_before_ = 0;
  bool changed_ = false;    // an access changed memory
  bool dense_ = false;      // it was by all lanes, one behind the other
  bool by_tensor_ = false;  // wgmma's own reads, which its rate includes
  // Mappings of the last global accesses.
  struct Cached {
    ProcessId process = 0;
    std::uint64_t version = 0;
    const Mapping* mapping = nullptr;
    const Device* device = nullptr;
  };
  std::array<Cached, 4> cache_;
  std::size_t cache_next_ = 0;
  // Those of the last access to each large page, of protocols that go round many buffers.
  std::array<Cached, 256> pages_;
};

}  // namespace allranks::node
