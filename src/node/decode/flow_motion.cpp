// What moves in a loop that could be a wait: which registers it carries, which compares follow time
// or the number of iterations linearly, and what does so in a way that cannot be foreseen. Like the
// search for the loops (flow_spin.cpp) this may give one up.
#include <algorithm>
#include <bit>
#include <string_view>

#include "node/decode/flow_internal.h"

namespace allranks::node::flow_internal {
namespace {

constexpr int kMaxPasses = 16;

// How a value differs from iteration to iteration, within the loop.
using Motion = std::uint8_t;
constexpr Motion kInvariant = 0, kCount = 1, kTime = 2, kNonlinear = 4;

// What a value consists of: the register it is a constant distance from as it was at the head (>=
// 0), or one of these. A carried register advances by the same step each time only if it is made of
// itself: x = 2 * x and x = x + y are linear operations and yet no linear motion.
using Root = std::int32_t;
constexpr Root kRootInvariant = -1, kRootTime = -2, kRootOther = -3;

Root Join(Root a, Root b) {
  if (a == b || b == kRootInvariant) return a;
  return a == kRootInvariant ? b : kRootOther;
}

Root Sum(Root a, Root b) {
  if (a == kRootTime && b == kRootTime) return kRootTime;
  if (a == kRootInvariant) return b;
  return b == kRootInvariant ? a : kRootOther;
}

Motion SpecialMotion(std::string_view name) {
  if (name == "%clock" || name == "%clock64" || name == "%globaltimer" ||
      name == "%globaltimer_lo") {
    return kTime;
  }
  if (name == "%clock_hi" || name == "%globaltimer_hi" || name.starts_with("%pm")) {
    return kTime | kNonlinear;
  }
  return kInvariant;
}

bool ReadsClock(const ptx::Instruction& instruction) {
  for (const ptx::Operand& operand : instruction.operands) {
    if (operand.kind == ptx::Operand::Kind::kSpecial && SpecialMotion(operand.name) != kInvariant) {
      return true;
    }
  }
  return false;
}

bool IsInteger(ptx::Type type) {
  using ptx::Type;
  switch (type) {
    case Type::kB8:
    case Type::kB16:
    case Type::kB32:
    case Type::kB64:
    case Type::kU8:
    case Type::kU16:
    case Type::kU32:
    case Type::kU64:
    case Type::kS8:
    case Type::kS16:
    case Type::kS32:
    case Type::kS64:
      return true;
    default:
      return false;
  }
}

// Finds out about one candidate after another; the arrays by register are shared between them.
class SpinAnalyser {
 public:
  SpinAnalyser(const ptx::Function& function, const Graph& graph, const DominatorTree& dominators,
               const Liveness& liveness)
      : function_(function),
        graph_(graph),
        dominators_(dominators),
        liveness_(liveness),
        live_at_heads_(liveness.live_at_heads),
        definitions_(function.registers.size(), 0),
        motion_(function.registers.size(), kInvariant),
        root_(function.registers.size(), kRootInvariant),
        walks_(function.registers.size(), false),
        is_carried_(function.registers.size(), false) {
    std::sort(live_at_heads_.begin(), live_at_heads_.end());
  }

  void Analyse(const SpinCandidate& candidate, std::vector<SpinLoop>& loops) {
    instructions_.clear();
    defined_.clear();
    bool waits = false;
    SpinLoop loop;
    for (std::uint32_t block : candidate.body) {
      for (std::uint32_t i = graph_.first[block]; i < graph_.first[block + 1]; ++i) {
        instructions_.push_back(i);
        const Effect effect = graph_.behaviour[i].effect;
        waits = waits || effect == Effect::kLoad || effect == Effect::kAtomic ||
                effect == Effect::kTryWait || effect == Effect::kSleep ||
                ReadsClock(function_.code[i]);
        loop.seldom = loop.seldom || effect == Effect::kStore || effect == Effect::kExchange;
        ForEachDefinition(i, [&](std::int32_t reg) {
          if (definitions_[Index(reg)]++ == 0) defined_.push_back(reg);
        });
      }
    }
    std::sort(defined_.begin(), defined_.end());
    loop.head = graph_.first[candidate.head];
    FindCarried(candidate.head, loop.carried);
    for (std::int32_t reg : loop.carried) {
      is_carried_[Index(reg)] = true;
      motion_[Index(reg)] = kCount;
      root_[Index(reg)] = reg;
    }
    if ((waits || loop.carried.empty()) && !WalksThroughMemory(candidate) && Settle()) {
      for (std::uint32_t i : instructions_) Classify(i, loop);
      for (std::uint32_t branch : candidate.branches) {
        loop.branch = branch;
        loops.push_back(loop);
      }
    }
    for (std::int32_t reg : defined_) {
      definitions_[Index(reg)] = 0;
      motion_[Index(reg)] = kInvariant;
      root_[Index(reg)] = kRootInvariant;
      walks_[Index(reg)] = false;
      is_carried_[Index(reg)] = false;
    }
  }

 private:
  static std::size_t Index(std::int32_t reg) { return static_cast<std::size_t>(reg); }

  template <class Fn>
  void ForEachDefinition(std::uint32_t i, Fn&& fn) const {
    ForEachRegister(function_.code[i], graph_.behaviour[i], [&](std::int32_t reg, bool definition) {
      if (definition) fn(reg);
    });
  }

  void FindCarried(std::uint32_t head, std::vector<std::int32_t>& carried) const {
    auto it = std::lower_bound(live_at_heads_.begin(), live_at_heads_.end(),
                               std::pair<std::uint32_t, std::int32_t>{head, -1});
    for (; it != live_at_heads_.end() && it->first == head; ++it) {
      if (definitions_[Index(it->second)] != 0) carried.push_back(it->second);
    }
    const std::uint32_t entry = 2 * graph_.first[head];
    for (std::int32_t reg : defined_) {
      if (reg >= liveness_.approximate_from && liveness_.low[Index(reg)] <= entry &&
          entry <= liveness_.high[Index(reg)]) {
        carried.push_back(reg);
      }
    }
    std::sort(carried.begin(), carried.end());
    carried.erase(std::unique(carried.begin(), carried.end()), carried.end());
  }

  Motion MotionOf(const ptx::Operand& operand) const {
    if (operand.kind == ptx::Operand::Kind::kReg) return motion_[Index(operand.reg)];
    if (operand.kind == ptx::Operand::Kind::kSpecial) return SpecialMotion(operand.name);
    Motion motion = kInvariant;
    for (const ptx::Operand& element : operand.elements) motion |= MotionOf(element);
    return motion;
  }

  Motion SourceMotion(std::uint32_t i) const {
    const ptx::Instruction& instruction = function_.code[i];
    Motion motion = kInvariant;
    for (std::size_t o = 0; o < instruction.operands.size(); ++o) {
      const ptx::Operand& operand = instruction.operands[o];
      if (o < graph_.behaviour[i].destinations && !graph_.behaviour[i].reads_destination &&
          operand.kind != ptx::Operand::Kind::kAddress) {
        continue;
      }
      motion |= MotionOf(operand);
    }
    return motion;
  }

  Motion OperandMotion(const ptx::Instruction& instruction, std::size_t operand) const {
    return operand < instruction.operands.size() ? MotionOf(instruction.operands[operand])
                                                 : kInvariant;
  }

  // Whether the result moves linearly, modulo its width, when the sources do.
  bool IsLinear(const ptx::Instruction& instruction) const {
    const std::string_view opcode = instruction.opcode;
    if (instruction.Has("sat") || instruction.Has("cc")) return false;
    for (const ptx::Operand& operand : instruction.operands) {
      if (!operand.elements.empty() || operand.negated) return false;
    }
    const ptx::Type type = instruction.TypeFromEnd(0);
    if (opcode == "mov" || opcode == "cvta") return IsInteger(type);
    if (opcode == "add" || opcode == "sub" || opcode == "neg" || opcode == "not") {
      return IsInteger(type);
    }
    if (opcode == "cvt") return IsInteger(type) && IsInteger(instruction.TypeFromEnd(1));
    if (opcode == "shl") return OperandMotion(instruction, 2) == kInvariant;
    if (opcode == "and" && instruction.operands.size() == 3) {
      const ptx::Operand& mask = instruction.operands[2];
      return IsInteger(type) && mask.kind == ptx::Operand::Kind::kInt && mask.imm != 0 &&
             (mask.imm & (mask.imm + 1)) == 0;
    }
    if ((opcode == "mul" || opcode == "mad") && instruction.Has("lo")) {
      return IsInteger(type) && (OperandMotion(instruction, 1) == kInvariant ||
                                 OperandMotion(instruction, 2) == kInvariant);
    }
    return false;
  }

  Motion ResultMotion(std::uint32_t i) const {
    const ptx::Instruction& instruction = function_.code[i];
    const Motion source = SourceMotion(i);
    if (source == kInvariant) return kInvariant;
    // A compare's result is invariant until it flips: that is watched where the compare stands.
    if (instruction.opcode == "setp") return kInvariant;
    if (instruction.opcode == "selp" && OperandMotion(instruction, 3) == kInvariant) return source;
    if (graph_.behaviour[i].effect == Effect::kPlain && IsLinear(instruction)) return source;
    return source | kNonlinear;
  }

  Root RootOf(const ptx::Operand& operand) const {
    if (operand.kind == ptx::Operand::Kind::kReg) return root_[Index(operand.reg)];
    if (operand.kind == ptx::Operand::Kind::kSpecial) {
      return SpecialMotion(operand.name) == kInvariant ? kRootInvariant : kRootTime;
    }
    Root root = kRootInvariant;
    for (const ptx::Operand& element : operand.elements) root = Join(root, RootOf(element));
    return root;
  }

  Root ResultRoot(std::uint32_t i) const {
    const ptx::Instruction& instruction = function_.code[i];
    const std::string_view opcode = instruction.opcode;
    if (opcode == "setp") return kRootInvariant;
    const auto& operands = instruction.operands;
    Root all = kRootInvariant;
    for (std::size_t o = 1; o < operands.size(); ++o) all = Join(all, RootOf(operands[o]));
    if (all == kRootInvariant) return kRootInvariant;
    if (graph_.behaviour[i].effect != Effect::kPlain || operands.size() < 2) return kRootOther;
    if (opcode == "selp" && operands.size() == 4) {
      if (RootOf(operands[3]) != kRootInvariant) return kRootOther;
      return Join(RootOf(operands[1]), RootOf(operands[2]));
    }
    if (!IsLinear(instruction)) return kRootOther;
    if (opcode == "mov" || opcode == "cvta" || opcode == "cvt") return RootOf(operands[1]);
    if (opcode == "add" && operands.size() == 3) {
      return Sum(RootOf(operands[1]), RootOf(operands[2]));
    }
    if (opcode == "sub" && operands.size() == 3) {
      const Root taken = RootOf(operands[2]);
      return taken >= 0 ? kRootOther : Sum(RootOf(operands[1]), taken);
    }
    return all == kRootTime ? kRootTime : kRootOther;
  }

  bool AdvancesUnevenly(std::int32_t carried, Root root) const {
    return root == kRootOther || (root >= 0 && root != carried);
  }

  // Spreads what moves from carried registers and clocks until nothing changes.
  bool Settle() {
    return Repeat([this](std::uint32_t i) {
             const Root result = ResultRoot(i);
             bool changed = false;
             if (result == kRootInvariant) return changed;
             ForEachDefinition(i, [&](std::int32_t reg) {
               Root& root = root_[Index(reg)];
               const Root joined = Join(root, result);
               changed = changed || joined != root;
               root = joined;
             });
             return changed;
           }) &&
           Repeat([this](std::uint32_t i) {
             const Motion result = ResultMotion(i);
             bool changed = false;
             if (result == kInvariant) return changed;
             ForEachDefinition(i, [&](std::int32_t reg) {
               Motion& motion = motion_[Index(reg)];
               Motion joined = motion | result;
               if (is_carried_[Index(reg)] && AdvancesUnevenly(reg, ResultRoot(i))) {
                 joined |= kNonlinear;
               }
               changed = changed || joined != motion;
               motion = joined;
             });
             return changed;
           });
  }

  template <class Step>
  bool Repeat(Step step) {
    for (int pass = 0; pass < kMaxPasses; ++pass) {
      bool changed = false;
      for (std::uint32_t i : instructions_) changed = step(i) || changed;
      if (!changed) return true;
    }
    return false;
  }

  // Fills in what a linear operation ignores of its source.
  bool MayWrap(SpinLoop::Wrap& wrap) const {
    const ptx::Instruction& instruction = function_.code[wrap.instruction];
    if (instruction.opcode == "cvt") {
      const ptx::Type from = instruction.TypeFromEnd(0), to = instruction.TypeFromEnd(1);
      wrap.bits = static_cast<std::uint8_t>(8 * ptx::SizeOf(from));
      wrap.is_signed = from == ptx::Type::kS8 || from == ptx::Type::kS16 ||
                       from == ptx::Type::kS32 || from == ptx::Type::kS64;
      return ptx::SizeOf(to) > ptx::SizeOf(from);
    }
    if (instruction.opcode != "and") return false;
    const int width = 8 * ptx::SizeOf(instruction.TypeFromEnd(0));
    const int mask = static_cast<int>(std::bit_width(instruction.operands[2].imm));
    wrap.bits = static_cast<std::uint8_t>(std::min(mask, width));
    return true;
  }

  void Classify(std::uint32_t i, SpinLoop& loop) const {
    const ptx::Instruction& instruction = function_.code[i];
    const Motion source = SourceMotion(i);
    bool nonlinear = instruction.guard >= 0 && motion_[Index(instruction.guard)] != kInvariant;
    if (graph_.behaviour[i].effect != Effect::kPlain) {
      nonlinear = nonlinear || source != kInvariant;
    } else if (instruction.opcode == "setp") {
      const bool linear = IsInteger(instruction.TypeFromEnd(0)) && (source & kNonlinear) == 0 &&
                          OperandMotion(instruction, 3) == kInvariant;
      if (source != kInvariant && linear) loop.linear_compares.push_back(i);
      nonlinear = nonlinear || (source != kInvariant && !linear);
    } else if (source != kInvariant) {
      if (instruction.opcode == "selp") nonlinear = nonlinear || OperandMotion(instruction, 3) != 0;
      if (instruction.opcode == "slct" || instruction.opcode == "set") nonlinear = true;
      const Motion result = ResultMotion(i);
      ForEachDefinition(i, [&](std::int32_t reg) {
        if (!is_carried_[Index(reg)]) return;
        if ((result & kNonlinear) != 0 || AdvancesUnevenly(reg, ResultRoot(i))) nonlinear = true;
      });
      if (SpinLoop::Wrap wrap{i}; !nonlinear && (result & kNonlinear) == 0 && MayWrap(wrap)) {
        loop.wraps.push_back(wrap);
        nonlinear = true;
      }
    }
    if (nonlinear) loop.nonlinear_uses.push_back(i);
  }

  // True for loops that cannot repeat a state because each iteration uses another address of memory
  // than the one before: the loops that compute. Leaving them out keeps back edges cheap.
  bool WalksThroughMemory(const SpinCandidate& candidate) {
    const auto every_iteration = [&](std::uint32_t i) {
      if (function_.code[i].guard >= 0) return false;
      for (std::uint32_t branch : candidate.branches) {
        if (!dominators_.Dominates(graph_.block_of[i], graph_.block_of[branch])) return false;
      }
      return true;
    };
    for (int pass = 0; pass < 3; ++pass) {
      for (std::uint32_t i : instructions_) {
        const ptx::Instruction& instruction = function_.code[i];
        const Effect effect = graph_.behaviour[i].effect;
        if (effect != Effect::kLoad && effect != Effect::kStore && effect != Effect::kPlain) {
          continue;
        }
        const bool moved = effect == Effect::kPlain
                               ? ResultWalks(i)
                               : AddressWalks(instruction, effect == Effect::kLoad ? 1 : 0);
        if (!moved || !every_iteration(i)) continue;
        if (effect != Effect::kPlain) return true;
        walks_[Index(instruction.operands[0].reg)] = true;
      }
    }
    return false;
  }

  bool AddressWalks(const ptx::Instruction& instruction, std::size_t operand) const {
    using Kind = ptx::Operand::Kind;
    if (instruction.operands.size() < 2) return false;
    const ptx::Operand& address = instruction.operands[operand];
    return address.kind == Kind::kAddress && !address.elements.empty() &&
           address.elements[0].kind == Kind::kReg && walks_[Index(address.elements[0].reg)];
  }

  // Whether a plain instruction makes a value that differs from that of the iteration before.
  bool ResultWalks(std::uint32_t i) const {
    using Kind = ptx::Operand::Kind;
    const ptx::Instruction& instruction = function_.code[i];
    const auto& operands = instruction.operands;
    if (operands.size() < 2 || operands[0].kind != Kind::kReg) return false;
    const std::int32_t reg = operands[0].reg;
    if (definitions_[Index(reg)] != 1) return false;
    const std::string_view opcode = instruction.opcode;
    if ((opcode == "add" || opcode == "sub") && operands.size() == 3 && is_carried_[Index(reg)] &&
        operands[1].kind == Kind::kReg && operands[1].reg == reg) {
      // A step that is zero at run time would only make a wait out of what was taken for work.
      const ptx::Operand& step = operands[2];
      const bool steps = (step.kind == Kind::kInt && step.imm != 0) ||
                         (step.kind == Kind::kReg && definitions_[Index(step.reg)] == 0);
      return steps && IsInteger(instruction.TypeFromEnd(0));
    }
    if (opcode != "mov" && opcode != "add" && opcode != "sub" && opcode != "cvta" &&
        opcode != "cvt" && opcode != "mul" && opcode != "mad" && opcode != "shl") {
      return false;
    }
    bool walks = false;
    for (std::size_t o = 1; o < operands.size(); ++o) {
      if (operands[o].kind == Kind::kInt) continue;
      if (operands[o].kind != Kind::kReg) return false;
      const std::int32_t source = operands[o].reg;
      if (walks_[Index(source)] && !walks) {
        walks = true;
      } else if (definitions_[Index(source)] != 0) {
        return false;
      }
    }
    return walks;
  }

  const ptx::Function& function_;
  const Graph& graph_;
  const DominatorTree& dominators_;
  const Liveness& liveness_;
  std::vector<std::pair<std::uint32_t, std::int32_t>> live_at_heads_;
  std::vector<std::uint32_t> definitions_;  // by register: how many in the body
  std::vector<Motion> motion_;
  std::vector<Root> root_;
  std::vector<bool> walks_, is_carried_;
  std::vector<std::uint32_t> instructions_;
  std::vector<std::int32_t> defined_;
};

}  // namespace

void DescribeSpinLoops(const ptx::Function& function, const Graph& graph,
                       const DominatorTree& dominators, const Liveness& liveness,
                       const std::vector<SpinCandidate>& candidates, Flow& flow) {
  if (candidates.empty()) return;
  SpinAnalyser analyser(function, graph, dominators, liveness);
  struct Origin {
    std::uint32_t branch, candidate;
  };
  std::vector<Origin> origins;
  for (std::uint32_t c = 0; c < candidates.size(); ++c) {
    const std::size_t before = flow.spin_loops.size();
    analyser.Analyse(candidates[c], flow.spin_loops);
    for (std::size_t i = before; i < flow.spin_loops.size(); ++i) {
      origins.push_back({flow.spin_loops[i].branch, c});
    }
  }
  std::sort(flow.spin_loops.begin(), flow.spin_loops.end(),
            [](const SpinLoop& a, const SpinLoop& b) { return a.branch < b.branch; });
  std::sort(origins.begin(), origins.end(),
            [](const Origin& a, const Origin& b) { return a.branch < b.branch; });

  // Which loop lies in which: the smallest body that holds the branch and is larger than its own.
  std::vector<std::uint32_t> loop_of_block(graph.blocks, kNone);
  for (std::uint32_t i = 0; i < origins.size(); ++i) {
    loop_of_block[graph.block_of[origins[i].branch]] = i;
  }
  for (std::uint32_t outer = 0; outer < origins.size(); ++outer) {
    const auto& body = candidates[origins[outer].candidate].body;
    for (std::uint32_t block : body) {
      const std::uint32_t inner = loop_of_block[block];
      if (inner == kNone || origins[inner].candidate == origins[outer].candidate) continue;
      if (candidates[origins[inner].candidate].body.size() >= body.size()) continue;
      if (flow.spin_loops[inner].head == flow.spin_loops[outer].head) continue;
      std::int32_t& best = flow.spin_loops[inner].outer;
      if (best < 0 ||
          candidates[origins[static_cast<std::size_t>(best)].candidate].body.size() > body.size()) {
        best = static_cast<std::int32_t>(outer);
      }
    }
  }
}

}  // namespace allranks::node::flow_internal
