// The engine: runs a path instruction by instruction until it yields. Template over the observer,
// so that an absent one costs nothing.
//
// Order. A path runs ahead of the queue for at most a quantum, but only with what race-free
// programs cannot notice: registers and weak accesses. A strong access, an atomic or a sleep first
// waits for its turn (Turn()): it is performed only when nothing earlier is left in any queue.
#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "node/lanes.h"
#include "node/memory_ops.h"
#include "node/observer.h"
#include "node/wait.h"
#include "node/world.h"

namespace allranks::node {
namespace {

using ptx::Space;

constexpr std::uint32_t kNoJoin = 0xfffffffeu;
// Back edges after which lanes that wait at a join go on without this path: enough for a loop that
// computes to end, few enough that a wait which is not recognised as one costs little.
constexpr std::uint32_t kPatience = 1024;
constexpr std::uint32_t kMaxKept = 32;  // bytes of the widest vector access

template <class Observer>
class EngineT final : public Engine {
 public:
  explicit EngineT(World& world) : world_(world) {}

  void Run(Path& path, Time turn) override;
  void OnKernel(const Launch& launch, bool begins) override {
    if constexpr (Observer::kActive) observer_.OnKernel(launch, begins);
  }
  void Report(Stats* stats) const override {
    if constexpr (Observer::kActive) {
      stats->observed_accesses = observer_.accesses;
      stats->observed_bytes = observer_.bytes;
    }
    if constexpr (Observer::kChooses) stats->chosen_loads = observer_.chosen;
  }

 private:
  // What to do after an instruction.
  enum class Next : std::uint8_t { kGo, kYield, kGone };

  const std::byte* Source(Slot slot) const { return SlotAt(warp_->registers, constants_, slot); }
  void WaitFor(Slot slot) {
    if ((slot & kConstant) == 0 && slot != kNoSlot)
      path_->clock = std::max(path_->clock, warp_->ready[slot]);
  }
  // True if an operation that others can notice may be performed now.
  bool Turn() const { return path_->clock <= turn_ || path_->clock < world_.order_limit; }
  Next Yield() {
    Settle();
    world_.QueuePath(*path_, path_->clock);
    return Next::kYield;
  }
  std::uint32_t JoinPc() const {
    return path_->join >= 0 ? warp_->joins[static_cast<std::size_t>(path_->join)].pc : kNoJoin;
  }
  // Charges the instructions issued since the last settling to the SM.
  void Settle();

  // A guard keeps `lanes` out of a collective instruction: they wait behind it, or go on alone if
  // the others block in it.
  void SkipLanes(std::uint32_t lanes) {
    const std::uint32_t pc = path_->pc;
    BranchOp around;
    around.target = around.reconverge = pc + 1;
    world_.Part(*path_, lanes, around);
    path_->pc = pc;
  }
  void WriteSpecial(const Op& op, std::uint32_t mask);
  Next Branch(const Op& op, std::uint32_t taken);
  Next Memory(const Op& op, std::uint32_t mask);
  bool MemoryGroup(const MemoryOp& m, std::uint32_t lanes, Object* object, std::byte* base,
                   std::uint64_t size, const std::uint64_t* offset);
  bool GlobalLanes(const MemoryOp& m, std::uint32_t lanes, const std::uint64_t* address);
  bool Misaligned(const MemoryOp& m, std::uint32_t lanes, const std::uint64_t* offset);
  void OutOfBounds(const MemoryOp& m, int lane, std::uint64_t address, const char* space);
  Next Fence(const Op& op);

  World& world_;
  Observer observer_;
  // The path being run.
  Path* path_ = nullptr;
  Warp* warp_ = nullptr;
  Cta* cta_ = nullptr;
  Launch* launch_ = nullptr;
  Device* device_ = nullptr;
  const Code* code_ = nullptr;
  const std::byte* constants_ = nullptr;
  Time turn_ = 0;             // strong operations at this time are allowed
  Time settled_ = 0;          // clock at the last settling
  std::uint32_t issued_ = 0;  // warp instructions since then
  std::uint64_t lanes_issued_ = 0;
  Time value_ready_ = 0;  // result of a memory access: when its value is there
  bool changed_ = false;  // an access changed memory
  bool dense_ = false;    // it was by all lanes, one behind the other
  bool chosen_ = false;   // the observer has replaced a value of it
  // The mapping of the last global access.
  struct {
    ProcessId process = 0;
    std::uint64_t version = 0;
    const Mapping* mapping = nullptr;
    const Device* device = nullptr;
  } cache_;
};

template <class Observer>
void EngineT<Observer>::Settle() {
  if (issued_ == 0) return;
  Sm& sm = device_->sms[static_cast<std::size_t>(cta_->sm)];
  const Time served = sm.issue.Take(settled_, issued_);
  path_->clock = std::max(path_->clock, served);
  KernelRecord& record = world_.stats.kernels[launch_->record];
  record.warp_instructions += issued_;
  record.thread_instructions += lanes_issued_;
  world_.stats.warp_instructions += issued_;
  world_.stats.thread_instructions += lanes_issued_;
  launch_->instructions += lanes_issued_;
  issued_ = 0;
  lanes_issued_ = 0;
  settled_ = path_->clock;
}

template <class Observer>
void EngineT<Observer>::Run(Path& path, Time turn) {
  path_ = &path;
  warp_ = path.warp;
  cta_ = warp_->cta;
  launch_ = cta_->launch;
  device_ = launch_->device;
  code_ = launch_->code.get();
  constants_ = launch_->constants.data();
  path.state = Path::State::kRunning;
  turn_ = turn;
  settled_ = path.clock;
  issued_ = 0;
  lanes_issued_ = 0;
  if (path.clock >= path.quantum_end) path.quantum_end = path.clock + world_.costs.quantum;
  const Op* const ops = code_->ops.data();
  const Lanes lanes{warp_->registers, constants_, warp_->predicates};
  const Time step = world_.costs.step;
  if (world_.fuel != 0 && launch_->instructions > world_.fuel) {
    world_.Fault(path, Status::kLaunchTimeout, "instruction fuel is used up");
    return;
  }
  std::uint32_t join_pc = JoinPc();
  for (;;) {
    if (path.pc == join_pc) {
      Settle();
      if (!world_.ArriveAtJoin(path)) return;
      settled_ = path.clock;
      join_pc = JoinPc();
      continue;
    }
    const Op& op = ops[path.pc];
    std::uint32_t mask = path.mask;
    if (op.guard != kNoSlot) {
      mask &= op.guard_negated ? ~warp_->predicates[op.guard] : warp_->predicates[op.guard];
    }
    ++issued_;
    lanes_issued_ += static_cast<std::uint64_t>(std::popcount(path.mask));
    path.clock += step * op.cycles;
    switch (op.kind) {
      case OpKind::kAlu:
        if (warp_->pending_until > path.clock) {
          WaitFor(op.s[0]);
          WaitFor(op.s[1]);
          WaitFor(op.s[2]);
        }
        if (mask != 0) op.alu(lanes, op, mask);
        ++path.pc;
        break;
      case OpKind::kTracked:
        if (warp_->pending_until > path.clock) {
          WaitFor(op.s[0]);
          WaitFor(op.s[1]);
        }
        if (mask != 0) {
          if (!path.spins.empty()) world_.RecordTracked(path, op, mask);
          op.alu(lanes, op, mask);
        }
        ++path.pc;
        break;
      case OpKind::kSpecial:
        if (mask != 0) WriteSpecial(op, mask);
        ++path.pc;
        break;
      case OpKind::kMemory:
        if (mask == 0) {
          ++path.pc;
          break;
        }
        if (Memory(op, mask) != Next::kGo) return;
        break;
      case OpKind::kBranch: {
        const Next next = Branch(op, mask);
        if (next != Next::kGo) return;
        join_pc = JoinPc();
        break;
      }
      case OpKind::kFence:
        Fence(op);
        ++path.pc;
        break;
      case OpKind::kSleep:
        if (mask != 0) {
          // PTX ISA: the duration is in [0, 2t]; here it is t.
          std::uint32_t length = 0;
          ForLanes(mask, [&](int l) {
            std::uint32_t value = 0;
            std::memcpy(&value, Source(op.s[0]) + l * 4, 4);
            length = std::max(length, value);
          });
          length = std::min<std::uint32_t>(length, 1'000'000);
          if (!path.spins.empty()) world_.RecordSleep(path, length);
          Settle();
          path.clock += Ns(length);
          ++path.pc;
          Yield();
          return;
        }
        ++path.pc;
        break;
      case OpKind::kBarrier:
        if (mask == 0) {
          ++path.pc;
          break;
        }
        if (mask != path.mask) SkipLanes(path.mask & ~mask);
        world_.RecordChange(path);
        if constexpr (Observer::kActive) observer_.OnBarrier(path);
        Settle();
        world_.ArriveAtBarrier(path, code_->barriers[op.aux]);
        return;
      case OpKind::kWarpSync: {
        const WarpOp& warp_op = code_->warp_ops[op.aux];
        if (warp_->pending_until > path.clock) {
          WaitFor(warp_op.source);
          WaitFor(warp_op.b);
          WaitFor(warp_op.mask);
        }
        if (mask == 0) {
          ++path.pc;
          break;
        }
        if (mask != path.mask) SkipLanes(path.mask & ~mask);
        if (warp_op.what == WarpOp::What::kActiveMask) {
          if (op.d != kNoSlot) {
            ForLanes(mask, [&](int l) {
              std::memcpy(warp_->registers + op.d * kSlotBytes + l * 4, &path.mask, 4);
            });
          }
          ++path.pc;
          join_pc = JoinPc();
          break;
        }
        Settle();
        world_.ArriveAtWarpSync(path);
        return;
      }
      case OpKind::kExit:
        if (mask == 0) {
          ++path.pc;
          break;
        }
        Settle();
        if (mask == path.mask) {
          world_.ExitLanes(path, mask);
          return;
        }
        world_.ExitLanes(path, mask);
        ++path.pc;
        join_pc = JoinPc();
        break;
      case OpKind::kTrap:
        if (mask == 0) {
          ++path.pc;
          break;
        }
        Settle();
        world_.Fault(path, Status::kLaunchFailed, "trap");
        return;
      case OpKind::kNop:
        ++path.pc;
        break;
      case OpKind::kUnsupported:
        if (mask == 0) {
          ++path.pc;
          break;
        }
        Settle();
        world_.Fault(path, Status::kNotSupported,
                     "unsupported instruction " + code_->forms[path.pc]);
        return;
    }
  }
}

template <class Observer>
void EngineT<Observer>::WriteSpecial(const Op& op, std::uint32_t mask) {
  const auto what = static_cast<Special>(op.aux);
  const Dim3& block = launch_->request.block;
  const Dim3& grid = launch_->request.grid;
  std::uint64_t uniform = 0;
  bool per_lane = false;
  std::uint64_t lane_value[kLanes];
  const std::uint32_t first = warp_->id * kLanes;
  const auto cycles = [&] { return static_cast<std::uint64_t>(path_->clock / world_.costs.cycle); };
  const auto timer = [&] {
    const Time resolution = world_.profile.time.globaltimer_resolution;
    const Time at = path_->clock + world_.profile.SkewOf(device_->number) + Us(1000);
    return static_cast<std::uint64_t>(ToNs(at / resolution * resolution));
  };
  switch (what) {
    case Special::kTidX:
    case Special::kTidY:
    case Special::kTidZ:
      per_lane = true;
      for (std::uint32_t l = 0; l < kLanes; ++l) {
        const std::uint32_t t = first + l;
        lane_value[l] = what == Special::kTidX   ? t % block.x
                        : what == Special::kTidY ? t / block.x % block.y
                                                 : t / block.x / block.y;
      }
      break;
    case Special::kLaneid:
    case Special::kLanemaskEq:
    case Special::kLanemaskLt:
    case Special::kLanemaskLe:
    case Special::kLanemaskGt:
    case Special::kLanemaskGe:
      per_lane = true;
      for (std::uint32_t l = 0; l < kLanes; ++l) {
        const std::uint32_t eq = 1u << l;
        const std::uint32_t lt = eq - 1;
        lane_value[l] = what == Special::kLaneid       ? l
                        : what == Special::kLanemaskEq ? eq
                        : what == Special::kLanemaskLt ? lt
                        : what == Special::kLanemaskLe ? (lt | eq)
                        : what == Special::kLanemaskGt ? ~(lt | eq)
                                                       : ~lt;
      }
      break;
    case Special::kNtidX:
      uniform = block.x;
      break;
    case Special::kNtidY:
      uniform = block.y;
      break;
    case Special::kNtidZ:
      uniform = block.z;
      break;
    case Special::kCtaidX:
      uniform = cta_->index.x;
      break;
    case Special::kCtaidY:
      uniform = cta_->index.y;
      break;
    case Special::kCtaidZ:
      uniform = cta_->index.z;
      break;
    case Special::kNctaidX:
      uniform = grid.x;
      break;
    case Special::kNctaidY:
      uniform = grid.y;
      break;
    case Special::kNctaidZ:
      uniform = grid.z;
      break;
    case Special::kWarpid:
      uniform = warp_->id;
      break;
    case Special::kNwarpid:
      uniform = static_cast<std::uint64_t>(world_.profile.sm.max_warps);
      break;
    case Special::kSmid:
      uniform = static_cast<std::uint64_t>(cta_->sm);
      break;
    case Special::kNsmid:
      uniform = device_->sms.size();
      break;
    case Special::kGridid:
      uniform = launch_->number;
      break;
    case Special::kClock:
      uniform = cycles() & 0xffffffffu;
      break;
    case Special::kClockHi:
      uniform = cycles() >> 32;
      break;
    case Special::kClock64:
      uniform = cycles();
      break;
    case Special::kGlobaltimer:
      uniform = timer();
      break;
    case Special::kGlobaltimerLo:
      uniform = timer() & 0xffffffffu;
      break;
    case Special::kGlobaltimerHi:
      uniform = timer() >> 32;
      break;
    case Special::kEnvreg1:
      uniform = launch_->workspace >> 32;
      break;
    case Special::kEnvreg2:
      uniform = launch_->workspace & 0xffffffffu;
      break;
    case Special::kDynamicSmem:
      uniform = launch_->request.dynamic_shared;
      break;
    case Special::kTotalSmem:
      uniform = cta_->shared.size();
      break;
    case Special::kZero:
      uniform = 0;
      break;
    case Special::kOne:
      uniform = 1;
      break;
  }
  if (what >= Special::kClock && what <= Special::kGlobaltimerHi && !path_->spins.empty()) {
    world_.RecordClock(*path_);
  }
  std::byte* d = warp_->registers + op.d * kSlotBytes;
  ForLanes(mask, [&](int l) {
    const std::uint64_t value = per_lane ? lane_value[l] : uniform;
    if (op.imm == 8) {
      std::memcpy(d + l * 8, &value, 8);
    } else {
      const auto narrow = static_cast<std::uint32_t>(value);
      std::memcpy(d + l * 4, &narrow, 4);
    }
  });
}

template <class Observer>
typename EngineT<Observer>::Next EngineT<Observer>::Branch(const Op& op, std::uint32_t taken) {
  const BranchOp& branch = code_->branches[op.aux];
  Path& path = *path_;
  if (!path.spins.empty()) world_.RecordBranch(path, taken != 0);
  if (taken == 0) {
    ++path.pc;
    return Next::kGo;
  }
  if (taken != path.mask) {
    world_.Part(path, taken, branch);
    if (branch.spin < 0 || path.pc != branch.target) return Next::kGo;
  } else {
    path.pc = branch.target;
  }
  if (!branch.back_edge) return Next::kGo;
  if (++path.back_edges >= kPatience) {
    path.back_edges = 0;
    if (!warp_->joins.empty()) {
      path.overdue = true;
      world_.ReleaseJoins(*warp_);
      path.overdue = false;
    }
  }
  if (branch.spin >= 0) {
    Settle();
    if (world_.SpinBackEdge(path, code_->spins[static_cast<std::size_t>(branch.spin)]))
      return Next::kYield;
  } else if (!path.spins.empty()) {
    world_.RecordChange(path);  // an outer loop goes round: that is no waiting
  }
  if (path.clock >= path.quantum_end) return Yield();
  return Next::kGo;
}

template <class Observer>
typename EngineT<Observer>::Next EngineT<Observer>::Fence(const Op& op) {
  const MemoryOp& m = code_->memory[op.aux];
  if constexpr (Observer::kActive) observer_.OnFence(*path_, m);
  const Costs& costs = world_.costs;
  if (m.scope <= Scope::kCluster) {
    path_->clock += costs.fence_cta;
    return Next::kGo;
  }
  path_->clock = std::max(path_->clock, cta_->store_arrival);
  path_->clock += m.scope == Scope::kSys ? costs.fence_sys : costs.fence_gpu;
  return Next::kGo;
}

template <class Observer>
void EngineT<Observer>::OutOfBounds(const MemoryOp& m, int lane, std::uint64_t address,
                                    const char* space) {
  (void)m;
  std::string what = fmt::format("{} accesses address 0x{:x} of {}, which is not mapped",
                                 code_->forms[path_->pc], address, space);
  if (const Mapping* near = world_.ProcessOf(launch_->process).table.Nearest(address)) {
    const std::uint64_t end = near->base + near->size;
    what += address >= end
                ? fmt::format(" ({} bytes after {} of {} bytes)", address - end, near->object->name,
                              near->size)
                : fmt::format(" ({} bytes before {})", near->base - address, near->object->name);
  }
  const std::uint32_t thread = warp_->id * kLanes + static_cast<std::uint32_t>(lane);
  world_.Fault(*path_, Status::kIllegalAddress, fmt::format("{}, thread {}", what, thread));
}

template <class Observer>
bool EngineT<Observer>::Misaligned(const MemoryOp& m, std::uint32_t lanes,
                                   const std::uint64_t* offset) {
  const std::uint64_t low = std::uint64_t{m.bytes} * m.count - 1;
  if (low == 0) return false;
  std::uint64_t bits = 0;
  if (lanes == kAllLanes) {
    for (int l = 0; l < kLanes; ++l) bits |= offset[l];
  } else {
    ForLanes(lanes, [&](int l) { bits |= offset[l]; });
  }
  if ((bits & low) == 0) return false;
  world_.Fault(*path_, Status::kMisalignedAddress,
               fmt::format("{} at an address that is not a multiple of {}", code_->forms[path_->pc],
                           low + 1));
  return true;
}

template <class Observer>
typename EngineT<Observer>::Next EngineT<Observer>::Memory(const Op& op, std::uint32_t mask) {
  const MemoryOp& m = code_->memory[op.aux];
  Path& path = *path_;
  const bool is_load = m.what == MemoryOp::What::kLoad;
  if (warp_->pending_until > path.clock) {
    if (m.address != kNoSlot) WaitFor(m.address);
    if (!is_load) {
      if (m.what == MemoryOp::What::kStore) {
        for (int e = 0; e < m.count; ++e) WaitFor(m.data[e]);
      } else {
        WaitFor(m.operand);
        if (m.compare != kNoSlot) WaitFor(m.compare);
      }
    }
  }
  const bool ordered = m.Strong() && m.space != Space::kLocal && m.space != Space::kParam;
  if (ordered) {
    // Release: what this CTA has stored is there before.
    if ((m.order == Order::kRelease || m.order == Order::kAcqRel || m.order == Order::kSc) &&
        m.scope >= Scope::kGpu) {
      // The goal is set once: what other warps store meanwhile is not this one's to wait for.
      if (path.release_goal == 0) path.release_goal = std::max<Time>(1, cta_->store_arrival);
      path.clock = std::max(path.clock, path.release_goal);
    }
    if (!Turn()) {
      // The instruction is issued again when its turn has come; it is counted once.
      --issued_;
      lanes_issued_ -= static_cast<std::uint64_t>(std::popcount(path.mask));
      Settle();
      world_.QueuePath(path, path.clock);
      path.clock -= world_.costs.step * op.cycles;
      return Next::kYield;
    }
  }

  std::uint64_t address[kLanes];
  if (m.address == kNoSlot) {
    for (auto& a : address) a = static_cast<std::uint64_t>(m.offset);
  } else if (m.address32) {
    const auto* base = reinterpret_cast<const std::uint32_t*>(Source(m.address));
    for (int l = 0; l < kLanes; ++l) {
      address[l] = static_cast<std::uint32_t>(base[l] + static_cast<std::uint32_t>(m.offset));
    }
  } else {
    const auto* base = reinterpret_cast<const std::uint64_t*>(Source(m.address));
    for (int l = 0; l < kLanes; ++l) address[l] = base[l] + static_cast<std::uint64_t>(m.offset);
  }

  path.release_goal = 0;
  value_ready_ = path.clock;
  changed_ = false;
  chosen_ = false;
  bool ok = true;
  std::uint32_t left = mask;
  while (ok && left != 0) {
    // Lanes of one kind of memory at a time; nearly always that is all of them.
    std::uint32_t same = left;
    Space space = m.space;
    if (space == Space::kNone) {
      const auto window = [](std::uint64_t a) {
        return a - kSharedWindow < 3 * kWindowSize ? (a - kSharedWindow) / kWindowSize + 1 : 0;
      };
      const std::uint64_t first = window(address[std::countr_zero(left)]);
      same = 0;
      ForLanes(left, [&](int l) { same |= window(address[l]) == first ? 1u << l : 0; });
      space = first == 0   ? Space::kGlobal
              : first == 1 ? Space::kShared
              : first == 2 ? Space::kLocal
                           : Space::kParam;
      if (first != 0) {
        const std::uint64_t base = kSharedWindow + (first - 1) * kWindowSize;
        ForLanes(same, [&](int l) { address[l] -= base; });
      }
    }
    left &= ~same;
    switch (space) {
      case Space::kShared:
        ok = MemoryGroup(m, same, &cta_->shared_object, cta_->shared.data(), cta_->shared.size(),
                         address);
        value_ready_ = std::max(value_ready_, path.clock + world_.costs.shared);
        break;
      case Space::kLocal: {
        const std::uint64_t bytes = code_->local_bytes;
        std::uint64_t place[kLanes];
        ForLanes(same, [&](int l) {
          place[l] = address[l] <= bytes ? address[l] + static_cast<std::uint64_t>(l) * bytes
                                         : ~std::uint64_t{0};
          if (address[l] + std::uint64_t{m.bytes} * m.count > bytes)
            place[l] = ~std::uint64_t{0} - 64;
        });
        ok = MemoryGroup(m, same, nullptr, warp_->local.data(), warp_->local.size(), place);
        value_ready_ = std::max(value_ready_, path.clock + world_.costs.l1);
        break;
      }
      case Space::kParam:
        if (!is_load) {
          world_.Fault(path, Status::kIllegalAddress, "store to kernel parameters");
          return Next::kGone;
        }
        ok = MemoryGroup(m, same, nullptr, launch_->params.data(), launch_->params.size(), address);
        value_ready_ = std::max(value_ready_, path.clock + world_.costs.l1);
        break;
      default:
        ok = GlobalLanes(m, same, address);
        break;
    }
  }
  if (!ok) return Next::kGone;

  if (is_load || m.what == MemoryOp::What::kAtomic) {
    for (int e = 0; e < m.count; ++e) {
      const Slot d = m.data[e];
      if (d == kNoSlot) continue;
      warp_->ready[d] = value_ready_;
    }
    warp_->pending_until = std::max(warp_->pending_until, value_ready_);
    // What follows an acquire must not start before it: the value is waited for.
    if (m.order == Order::kAcquire || m.order == Order::kAcqRel || m.order == Order::kSc) {
      path.clock = std::max(path.clock, value_ready_);
      if constexpr (Observer::kChooses) {
        if (!chosen_) observer_.OnAcquire(cta_->number);
      }
    }
  }
  if (changed_ && !path.spins.empty()) world_.RecordChange(path);
  ++path.pc;
  if (path.clock >= path.quantum_end) return Yield();
  return Next::kGo;
}

template <class Observer>
bool EngineT<Observer>::GlobalLanes(const MemoryOp& m, std::uint32_t lanes,
                                    const std::uint64_t* address) {
  Process& process = world_.ProcessOf(launch_->process);
  const std::uint64_t bytes = std::uint64_t{m.bytes} * m.count;
  while (lanes != 0) {
    const int first = std::countr_zero(lanes);
    if (cache_.process != launch_->process || cache_.device != device_ ||
        cache_.version != process.table.version() ||
        address[first] - cache_.mapping->base >= cache_.mapping->size) {
      const Mapping* mapping = process.table.Find(address[first]);
      if (mapping == nullptr) {
        OutOfBounds(m, first, address[first], "global memory");
        return false;
      }
      const Object& object = *mapping->object;
      if (object.device >= 0 && object.device != device_->number && !mapping->ipc) {
        const int own = device_->number - world_.FirstDevice(process);
        const int peer = object.device - world_.FirstDevice(process);
        if ((process.peers[static_cast<std::size_t>(own)] >> peer & 1) == 0) {
          world_.Fault(*path_, Status::kIllegalAddress,
                       fmt::format("{} accesses {} of device {} without peer access from device {}",
                                   code_->forms[path_->pc], object.name, peer, own));
          return false;
        }
      }
      cache_ = {launch_->process, process.table.version(), mapping, device_};
    }
    const Mapping& mapping = *cache_.mapping;
    if (mapping.read_only && m.what != MemoryOp::What::kLoad) {
      world_.Fault(*path_, Status::kIllegalAddress, "store to constant memory");
      return false;
    }
    std::uint32_t here = 0;
    std::uint64_t offset[kLanes];
    if (lanes == kAllLanes) {
      bool all = true;
      for (int l = 0; l < kLanes; ++l) {
        offset[l] = address[l] - mapping.base;
        all &= offset[l] < mapping.size;
      }
      here = all ? kAllLanes : 0;
    }
    if (here == 0) {
      ForLanes(lanes, [&](int l) {
        offset[l] = address[l] - mapping.base;
        here |= offset[l] < mapping.size ? 1u << l : 0;
      });
    }
    lanes &= ~here;
    Object& object = *mapping.object;
    if (!MemoryGroup(m, here, &object, object.data, object.size, offset)) return false;

    // What it costs: whole sectors, and packets where it leaves the device.
    std::uint64_t sectors = 0;
    std::uint32_t packets = 0;
    std::uint64_t last_sector = ~std::uint64_t{0}, last_line = ~std::uint64_t{0};
    if (dense_) {
      sectors = (offset[31] + bytes - 1) / 32 - offset[0] / 32 + 1;
      packets = static_cast<std::uint32_t>((offset[31] + bytes - 1) / 128 - offset[0] / 128 + 1);
    } else {
      ForLanes(here, [&](int l) {
        for (std::uint64_t s = offset[l] / 32; s <= (offset[l] + bytes - 1) / 32; ++s) {
          if (s == last_sector) continue;
          last_sector = s;
          ++sectors;
          if (s / 4 != last_line) {
            last_line = s / 4;
            ++packets;
          }
        }
      });
    }
    const auto requested = static_cast<std::uint64_t>(std::popcount(here)) * bytes;
    KernelRecord& record = world_.stats.kernels[launch_->record];
    if (object.device != device_->number) record.remote_bytes += requested;
    Time visible = path_->clock;
    switch (m.what) {
      case MemoryOp::What::kLoad:
        record.bytes_read += requested;
        value_ready_ = std::max(value_ready_, world_.ChargeLoad(*device_, object, sectors * 32,
                                                                packets, path_->clock, m.Strong()));
        continue;
      case MemoryOp::What::kStore:
      case MemoryOp::What::kReduce:
        record.bytes_written += requested;
        visible = world_.ChargeStore(*device_, object, sectors * 32, packets, path_->clock);
        break;
      default: {
        record.bytes_read += requested;
        record.bytes_written += requested;
        value_ready_ = std::max(value_ready_, world_.ChargeLoad(*device_, object, sectors * 32,
                                                                packets, path_->clock, true));
        // Same-address atomics leave one after the other.
        value_ready_ += static_cast<Time>(std::popcount(here) - 1) * world_.costs.atomic;
        visible = path_->clock + world_.DelayTo(*device_, object);
        break;
      }
    }
    cta_->store_arrival = std::max(cta_->store_arrival, visible);
    if (changed_) {
      world_.last_change = std::max(world_.last_change, path_->clock);
      world_.timer_wakes = 0;
    }
    if (m.Strong()) {
      // MemoryGroup has left the old bytes in object.late with an open time.
      for (auto it = object.late.rbegin(); it != object.late.rend() && it->visible == kTimeNever;
           ++it) {
        it->visible = visible;
      }
    }
    if (changed_ && !object.watches.empty()) {
      if (dense_) {
        world_.NotifyWrite(object, offset[0], 32 * bytes, path_->clock, visible);
      } else {
        ForLanes(here, [&](int l) {
          world_.NotifyWrite(object, offset[l], bytes, path_->clock, visible);
        });
      }
    }
  }
  return true;
}

// The access itself, for lanes whose bytes are all in one piece of memory of `size` bytes.
template <class Observer>
bool EngineT<Observer>::MemoryGroup(const MemoryOp& m, std::uint32_t lanes, Object* object,
                                    std::byte* base, std::uint64_t size,
                                    const std::uint64_t* offset) {
  const std::uint32_t bytes = std::uint32_t{m.bytes} * m.count;
  std::uint64_t highest = 0;
  dense_ = false;
  if (lanes == kAllLanes) {
    std::uint64_t off = 0;
    for (std::uint64_t l = 0; l < kLanes; ++l) {
      highest = std::max(highest, offset[l]);
      off |= offset[l] - offset[0] - l * bytes;
    }
    dense_ = off == 0;
  } else {
    ForLanes(lanes, [&](int l) { highest = std::max(highest, offset[l]); });
  }
  if (size < bytes || highest > size - bytes) {
    int culprit = std::countr_zero(lanes);
    ForLanes(lanes, [&](int l) {
      if (size < bytes || offset[l] > size - bytes) culprit = l;
    });
    const std::uint32_t thread = warp_->id * kLanes + static_cast<std::uint32_t>(culprit);
    world_.Fault(
        *path_, Status::kIllegalAddress,
        fmt::format("{} accesses {} bytes at offset {} of {} ({} bytes), thread {}",
                    code_->forms[path_->pc], bytes, offset[culprit],
                    object != nullptr ? object->name : "local or parameter memory", size, thread));
    return false;
  }
  if (Misaligned(m, lanes, offset)) return false;
  if constexpr (Observer::kActive) {
    Access access{path_, &m, object, lanes, offset, bytes, path_->clock};
    observer_.OnAccess(access);
  }
  const bool global = object != nullptr && object != &cta_->shared_object;

  if (m.what == MemoryOp::What::kLoad) {
    const bool choose = m.Strong() && global && (Observer::kChooses || !object->late.empty());
    if (choose) {
      const Time sampled = path_->clock + world_.DelayTo(*device_, *object);
      ForLanes(lanes, [&](int l) {
        std::byte value[64];
        std::memcpy(value, base + offset[l], bytes);
        HideLateWrites(*object, offset[l], bytes, value, sampled, cta_->number);
        if constexpr (Observer::kChooses) {
          // A value that will become another one by itself is nothing to park on.
          if (observer_.Choose(*object, offset[l], bytes, value, cta_->number)) {
            chosen_ = true;
            world_.RecordChange(*path_);
          }
        }
        LoadLane(m, warp_->registers, l, value);
        if (!path_->spins.empty()) {
          world_.RecordRead(*path_, *object, offset[l], bytes, value, path_->clock,
                            sampled - path_->clock);
        }
      });
      return true;
    }
    LoadLanes(m, warp_->registers, lanes, base, offset, dense_);
    if (!path_->spins.empty() && object != nullptr) {
      const Time delay = global ? world_.DelayTo(*device_, *object) : 0;
      ForLanes(lanes, [&](int l) {
        world_.RecordRead(*path_, *object, offset[l], bytes, base + offset[l], path_->clock, delay);
      });
    }
    return true;
  }

  // Old bytes of strong writes: others may see them for a while.
  const bool keeps = m.Strong() && global && bytes <= kMaxKept;
  std::byte old[kLanes][kMaxKept];
  if (keeps) ForLanes(lanes, [&](int l) { std::memcpy(old[l], base + offset[l], bytes); });
  if (m.what == MemoryOp::What::kStore) {
    const bool watched = (object != nullptr && !object->watches.empty()) || !path_->spins.empty();
    changed_ |= StoreLanes(m, warp_->registers, constants_, lanes, base, offset, dense_, watched);
  } else {
    // An atomic has seen the newest value: nothing older may be seen by it again.
    if (global) {
      ForLanes(lanes, [&](int l) { RevealLateWrites(*object, offset[l], bytes, path_->clock); });
    }
    changed_ |= AtomicLanes(m, warp_->registers, constants_, lanes, base, offset, global);
    if (!changed_ && !path_->spins.empty() && object != nullptr) {
      // A failed compare-and-swap and its like only read.
      ForLanes(lanes, [&](int l) {
        world_.RecordRead(*path_, *object, offset[l], bytes, base + offset[l], path_->clock,
                          global ? world_.DelayTo(*device_, *object) : 0);
      });
    }
  }
  if (keeps) {
    PruneLateWrites(*object, world_.now);
    ForLanes(lanes, [&](int l) {
      if (std::memcmp(old[l], base + offset[l], bytes) == 0) return;
      for (std::uint32_t at = 0; at < bytes; at += 16) {
        AddLateWrite(*object, offset[l] + at, std::min<std::uint32_t>(16, bytes - at), old[l] + at,
                     cta_->number);
      }
      if constexpr (Observer::kChooses) {
        if (bytes <= 16) observer_.OnStrongWrite(*object, offset[l], bytes, old[l], cta_->number);
      }
    });
  }
  if (!global && object != nullptr) {
    world_.last_change = std::max(world_.last_change, path_->clock);
    world_.timer_wakes = 0;
    if (changed_ && !object->watches.empty()) {
      ForLanes(lanes, [&](int l) {
        world_.NotifyWrite(*object, offset[l], bytes, path_->clock, path_->clock);
      });
    }
  }
  return true;
}

}  // namespace

std::unique_ptr<Engine> MakeEngine(World& world, const std::string& observer) {
  if (observer == "count") return std::make_unique<EngineT<CountingObserver>>(world);
  if (observer == "stale") return std::make_unique<EngineT<StaleObserver>>(world);
  if (observer == "none" || observer.empty()) return std::make_unique<EngineT<NoObserver>>(world);
  return nullptr;
}

}  // namespace allranks::node
