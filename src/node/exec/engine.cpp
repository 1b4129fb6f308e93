// The engine's loop and control flow; see engine.h.
#include "node/exec/engine.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "node/decode/flow.h"
#include "node/exec/cluster.h"
#include "node/exec/engine_bytes.h"
#include "node/exec/engine_global.h"
#include "node/exec/engine_matrix.h"
#include "node/exec/engine_memory.h"
#include "node/exec/engine_special.h"
#include "node/exec/wait.h"
#include "node/state/access.h"

namespace allranks::node {
namespace {

// Back edges after which lanes that wait at a join go on without this path: enough for a loop that
// computes to end, few enough that a wait which is not recognised as one costs little.
constexpr std::uint32_t kPatience = 1024;

}  // namespace

template <bool kChecked>
void EngineT<kChecked>::ChargeIssue() {
  if (issued_ == 0) return;
  Sm& sm = device_->sms[static_cast<std::size_t>(cta_->sm)];
  const Time served = sm.issue.Take(charged_, slots_);
  path_->clock = std::max(path_->clock, served);
  KernelRecord& record = sim_.stats.kernels[launch_->record];
  record.warp_instructions += issued_;
  record.thread_instructions += lanes_issued_;
  sim_.stats.warp_instructions += issued_;
  sim_.stats.thread_instructions += lanes_issued_;
  issued_ = slots_ = 0;
  lanes_issued_ = 0;
  charged_ = path_->clock;
}

template <bool kChecked>
void EngineT<kChecked>::Run(Path& path, Time turn) {
  path_ = &path;
  warp_ = path.warp;
  cta_ = warp_->cta;
  launch_ = cta_->launch;
  device_ = launch_->device;
  code_ = launch_->code.get();
  constants_ = launch_->constants.data();
  path.state = Path::State::kRunning;
  turn_ = turn;
  charged_ = path.clock;
  issued_ = slots_ = 0;
  lanes_issued_ = 0;
  stalled_ = false;
  if (path.clock >= path.quantum_end) path.quantum_end = path.clock + sim_.costs.quantum;
  const Op* const ops = code_->ops.data();
  if (warp_->registers == nullptr) sim_.residency.OpenRegisters(*warp_);
  EnterFrame();
  Lanes lanes{registers_, constants_, predicates_};
  ShareIssue();
  if (sim_.fuel != 0 && sim_.Work() - sim_.work_before > sim_.fuel) {
    sim_.Fault(path, Status::kLaunchTimeout, "instruction limit reached");
    return;
  }
  if (launch_->crowd != 0) {
    sim_.Fault(path, Status::kNotPermitted,
               fmt::format(
                   "{} blocks of the rank's kernels are resident at the same time; the limit is {}",
                   launch_->crowd, sim_.ProcessOf(launch_->process).max_resident));
    return;
  }
  std::uint32_t join_pc = JoinPc();
  for (;;) {
    if (path.pc == join_pc) {
      ChargeIssue();
      if (!sim_.ArriveAtJoin(path)) return;
      charged_ = path.clock;
      join_pc = JoinPc();
      ShareIssue();
      continue;
    }
    const Op& op = ops[path.pc];
    if (op.run != 0) {
      ExecuteRun(&op, lanes);
      continue;
    }
    std::uint32_t mask = path.mask;
    if (op.guard != kNoSlot) {
      mask &= op.guard_negated ? ~predicates_[op.guard] : predicates_[op.guard];
    }
    Count(op);
    path.clock += step_ * op.cycles;
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
          if (!path.spins.empty()) sim_.waiting.RecordTracked(path, op, mask);
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
        ShareIssue();
        break;
      }
      case OpKind::kBranchIndexed:
        if (BranchIndexed(op, mask) != Next::kGo) return;
        join_pc = JoinPc();
        ShareIssue();
        break;
      case OpKind::kCall: {
        if (mask == 0) {
          ++path.pc;
          break;
        }
        if (Call(op, mask) != Next::kGo) return;
        EnterFrame();
        lanes = {registers_, constants_, predicates_};
        join_pc = JoinPc();
        break;
      }
      case OpKind::kReturn:
        if (mask == 0) {
          ++path.pc;
          break;
        }
        if (sim_.Return(path, mask)) {
          EnterFrame();
          lanes = {registers_, constants_, predicates_};
        }
        join_pc = JoinPc();
        break;
      case OpKind::kGridWait:
        if (op.imm == 1) {
          if (mask != 0) sim_.TriggerGrid(*cta_, path.clock);
        } else if (mask != 0) {
          ChargeIssue();
          if (sim_.WaitForGrid(path)) return;
        }
        ++path.pc;
        break;
      case OpKind::kFence:
        if (mask != 0 && Fence(op, mask) != Next::kGo) return;
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
          if (!path.spins.empty()) sim_.waiting.RecordSleep(path, length);
          ChargeIssue();
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
        sim_.waiting.RecordChange(path);
        ChargeIssue();
        sim_.ArriveAtBarrier(path, code_->barriers[op.aux]);
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
        if (warp_op.kind == WarpOpKind::kActiveMask) {
          if (op.d != kNoSlot) {
            ForLanes(mask, [&](int l) {
              std::memcpy(registers_ + op.d * kSlotBytes + l * 4, &path.mask, 4);
            });
          }
          ++path.pc;
          join_pc = JoinPc();
          break;
        }
        if (!path.spins.empty()) sim_.waiting.RecordExchange(path);
        if (sim_.WarpOpAlone(path)) {
          join_pc = JoinPc();
          break;
        }
        if (warp_op.kind != WarpOpKind::kSync && !path.spins.empty())
          sim_.waiting.RecordChange(path);
        ChargeIssue();
        sim_.ArriveAtWarpSync(path);
        return;
      }
      case OpKind::kMatrix:
        if (mask == 0) {
          ++path.pc;
          break;
        }
        if (mask != path.mask) SkipLanes(path.mask & ~mask);
        if (Matrix(op) != Next::kGo) return;
        join_pc = JoinPc();
        break;
      case OpKind::kExit:
        if (mask == 0) {
          ++path.pc;
          break;
        }
        ChargeIssue();
        if (mask == path.mask) {
          sim_.ExitLanes(path, mask);
          return;
        }
        sim_.ExitLanes(path, mask);
        ++path.pc;
        join_pc = JoinPc();
        break;
      case OpKind::kTrap:
        if (mask == 0) {
          ++path.pc;
          break;
        }
        ChargeIssue();
        sim_.Fault(path, Status::kLaunchFailed, "trap");
        return;
      case OpKind::kNop:
        ++path.pc;
        break;
      case OpKind::kAsync:
        if (mask == 0) {
          ++path.pc;
          break;
        }
        if (Async(op, mask) != Next::kGo) return;
        join_pc = JoinPc();
        break;
      case OpKind::kUnsupported:
        if (mask == 0) {
          ++path.pc;
          break;
        }
        if (sim_.pass_over) {
          ++path.pc;
          break;
        }
        ChargeIssue();
        sim_.Fault(path, Status::kNotSupported, "unsupported instruction " + code_->forms[path.pc]);
        return;
    }
  }
}

// Nothing in a run can block, branch or be noticed by others.
template <bool kChecked>
void EngineT<kChecked>::ExecuteRun(const Op* op, const Lanes& lanes) {
  Path& path = *path_;
  const Op* const end = op + op->run;
  const std::uint32_t mask = path.mask;
  const Time step = step_;
  const auto width = static_cast<std::uint64_t>(std::popcount(mask));
  path.pc += op->run;
  if (warp_->pending_until > path.clock) {
    for (; op != end; ++op) {
      issued_ += op->count;
      slots_ += op->cycles;
      lanes_issued_ += width * op->count;
      path.clock += step * op->cycles;
      WaitFor(op->s[0]);
      WaitFor(op->s[1]);
      WaitFor(op->s[2]);
      op->alu(lanes, *op, mask);
    }
    return;
  }
  std::uint32_t count = 0, cycles = 0;
  for (; op != end; ++op) {
    count += op->count;
    cycles += op->cycles;
    op->alu(lanes, *op, mask);
  }
  path.clock += step * cycles;
  issued_ += count;
  slots_ += cycles;
  lanes_issued_ += width * count;
}

template <bool kChecked>
typename EngineT<kChecked>::Next EngineT<kChecked>::Branch(const Op& op, std::uint32_t taken) {
  const BranchOp& branch = code_->branches[op.aux];
  Path& path = *path_;
  if (!path.spins.empty()) sim_.waiting.RecordBranch(path, taken != 0);
  if (taken == 0) {
    ++path.pc;
    return Next::kGo;
  }
  if (taken != path.mask) {
    sim_.Diverge(path, taken, branch);
    if (branch.spin < 0 || path.pc != branch.target) return Next::kGo;
  } else {
    path.pc = branch.target;
  }
  if (!branch.back_edge) return Next::kGo;
  if (sim_.livelock.watching()) path.clock += sim_.livelock.OnBackEdge(path);
  if (++path.back_edges >= kPatience) {
    path.back_edges = 0;
    if (!warp_->joins.empty()) {
      path.overdue = true;
      sim_.ReleaseJoins(*warp_);
      path.overdue = false;
    }
  }
  const SpinCode* const spin =
      branch.spin < 0 ? nullptr : &code_->spins[static_cast<std::size_t>(branch.spin)];
  if (spin != nullptr && (!spin->seldom || Waiting::WatchesNow(*warp_))) {
    // Watching now and then must not be noticed: such a loop is charged when it parks.
    if (!spin->seldom) ChargeIssue();
    if (SpinState* waits = sim_.waiting.SpinBackEdge(path, *spin)) {
      ChargeIssue();
      sim_.waiting.Park(path, *waits);
      return Next::kYield;
    }
  } else if (!path.spins.empty()) {
    sim_.waiting.RecordChange(path);  // an outer loop goes round: that is no waiting
  }
  if (path.clock >= path.quantum_end) return Yield();
  return Next::kGo;
}

template <bool kChecked>
typename EngineT<kChecked>::Next EngineT<kChecked>::BranchIndexed(const Op& op,
                                                                  std::uint32_t taken) {
  const BranchTable& table = code_->tables[op.aux];
  Path& path = *path_;
  if (!path.spins.empty()) sim_.waiting.RecordChange(path);
  WaitFor(table.index);
  const auto* index = reinterpret_cast<const std::uint32_t*>(Source(table.index));
  bool within = true;
  ForLanes(taken, [&](int l) { within &= index[l] < table.targets.size(); });
  if (!within) {
    ChargeIssue();
    sim_.Fault(path, Status::kLaunchFailed, "brx.idx beyond its list of targets");
    return Next::kGone;
  }
  const std::uint32_t pc = path.pc;
  const auto target = [&](int l) {
    return (taken >> l & 1) != 0 ? table.targets[index[l]] : pc + 1;  // the guarded go on behind it
  };
  // Each way but one is split off.
  const std::uint32_t own = target(std::countr_zero(path.mask));
  std::uint32_t others = 0;
  ForLanes(path.mask, [&](int l) { others |= target(l) != own ? 1u << l : 0; });
  bool first = true;
  while (others != 0) {
    const std::uint32_t to = target(std::countr_zero(others));
    std::uint32_t lanes = 0;
    ForLanes(others, [&](int l) { lanes |= target(l) == to ? 1u << l : 0; });
    Path* other = sim_.Split(path, lanes, first ? table.reconverge : kNoPc);
    other->pc = to;
    first = false;
    others &= ~lanes;
  }
  const bool backwards = own <= pc;
  path.pc = own;
  if (backwards && sim_.livelock.watching()) path.clock += sim_.livelock.OnBackEdge(path);
  if (backwards && path.clock >= path.quantum_end) return Yield();
  return Next::kGo;
}

template <bool kChecked>
typename EngineT<kChecked>::Next EngineT<kChecked>::Call(const Op& op, std::uint32_t mask) {
  const CallOp& call = code_->calls[op.aux];
  Path& path = *path_;
  if (!path.spins.empty()) sim_.waiting.RecordChange(path);
  if (call.builtin != CallOp::Builtin::kNone) {
    ChargeIssue();
    sim_.livelock.End();
    if (!sim_.CallBuiltin(path, call, mask)) return Next::kGone;
    ++path.pc;
    return Next::kGo;
  }
  std::int32_t function = call.function;
  if (mask != path.mask) SkipLanes(path.mask & ~mask);
  if (call.target != kNoSlot) {
    WaitFor(call.target);
    const auto* target = reinterpret_cast<const std::uint64_t*>(Source(call.target));
    const std::uint64_t own = target[std::countr_zero(path.mask)];
    std::uint32_t others = 0;
    ForLanes(path.mask, [&](int l) { others |= target[l] != own ? 1u << l : 0; });
    if (others != 0) sim_.Split(path, others, path.pc + 1);  // they call their own
    const std::uint64_t number = (own - kFunctionWindow) / 16 - 1;
    const bool known = own > kFunctionWindow && own % 16 == 0 && number < code_->function_of.size();
    function = known ? code_->function_of[number] : -1;
    std::string why = "which is not a function of this module";
    if (known && function < 0 && code_->growing != nullptr) {
      if (auto grown = sim_.grow_code(*launch_, number)) {
        function = code_->function_of[number];
        constants_ = launch_->constants.data();
      } else {
        why = grown.error().message;
      }
    }
    if (function < 0) {
      ChargeIssue();
      sim_.Fault(path, Status::kIllegalInstruction, fmt::format("call of 0x{:x}, {}", own, why));
      return Next::kGone;
    }
  }
  ChargeIssue();
  if (!sim_.Call(path, call, static_cast<std::uint32_t>(function))) return Next::kGone;
  charged_ = path.clock;
  if (path.clock >= path.quantum_end) return Yield();
  return Next::kGo;
}

template <bool kChecked>
typename EngineT<kChecked>::Next EngineT<kChecked>::Fence(const Op& op, std::uint32_t mask) {
  const MemoryOp& m = code_->memory[op.aux];
  if constexpr (kChecked) {
    const bool place = sim_.delays.on() && m.order == Order::kSc && m.scope >= Scope::kGpu;
    const Time began = place ? sim_.stats.kernels[launch_->record].start : 0;
    const auto delay = [&] {
      return sim_.delays.At(PlaceHere(Delays::Kind::kFence), path_->clock, began);
    };
    if (place && !sim_.delays.directed()) delay();  // counts it, and takes no time
    if (place && sim_.delays.directed()) {
      // Here most loads get what has arrived, and few what the order of fences permits: the two
      // agree if a fence takes its place in that order when the stores before it have arrived and
      // the loads before it have their values.
      AwaitStores(0);
      path_->clock = std::max(path_->clock, warp_->pending_until);
      if (!Turn()) return Again(op);
      if (const Time late = delay(); late != 0) {
        sim_.waiting.RecordChange(*path_);
        path_->clock += late;
        sim_.delays.SetStanding(path_->clock);
        return Again(op);
      }
      path_->release_goal = 0;
    }
    sim_.checker->Fence(*path_, m, mask);
  }
  (void)mask;
  // Between proxies nothing leaves the SM's sight; an acquire has nothing of its own to wait for.
  if (m.proxy || m.scope == Scope::kCta ||
      (m.scope == Scope::kCluster && m.order == Order::kAcquire)) {
    path_->clock += sim_.costs.fence_cta;
    return Next::kGo;
  }
  if (m.order != Order::kAcquire) path_->clock = std::max(path_->clock, cta_->store_arrival);
  path_->clock += FenceCost(m.scope);
  return Next::kGo;
}

std::unique_ptr<Engine> MakeEngine(Simulator& sim, bool checked) {
  if (checked) return std::make_unique<EngineT<true>>(sim);
  return std::make_unique<EngineT<false>>(sim);
}

}  // namespace allranks::node
