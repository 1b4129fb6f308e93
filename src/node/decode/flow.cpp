// The flow analysis as a whole (flow.h), and what each instruction does as far as it asks.
// The parts: flow_graph.cpp (blocks, dominators), flow_spin.cpp and
// flow_motion.cpp (waits), flow_registers.cpp
// (liveness, allocation).
#include "node/decode/flow.h"

#include <string_view>

#include "node/decode/flow_internal.h"

namespace allranks::node {

namespace flow_internal {
Behaviour Describe(const ptx::Instruction& instruction) {
  Behaviour behaviour = FindOpcode(instruction.opcode).behaviour;
  const std::string_view opcode = instruction.opcode;
  const auto& operands = instruction.operands;
  if (behaviour.effect == Effect::kChange && behaviour.destinations == 0) {
    if (opcode == "call") {
      using Kind = ptx::Operand::Kind;
      behaviour.destinations = !operands.empty() && operands[0].kind == Kind::kList ? 1 : 0;
    } else if (opcode == "bar" || opcode == "barrier") {
      behaviour.destinations = instruction.Has("red") ? 1 : 0;
      if (instruction.Has("warp")) behaviour.effect = Effect::kNeutral;
    } else if (opcode == "mbarrier") {
      const bool waits = instruction.Has("test_wait") || instruction.Has("try_wait");
      if (waits) behaviour.effect = Effect::kTryWait;
      if (instruction.Has("pending_count")) behaviour.effect = Effect::kPlain;
      behaviour.destinations = waits || instruction.Has("arrive") ||
                                       instruction.Has("arrive_drop") ||
                                       instruction.Has("pending_count")
                                   ? 1
                                   : 0;
    } else if (opcode == "multimem") {
      if (instruction.Has("ld_reduce")) {
        behaviour.destinations = 1;
        behaviour.effect = Effect::kLoad;
      }
    } else if (opcode == "wmma") {
      behaviour.destinations = instruction.Has("load") || instruction.Has("mma") ? 1 : 0;
    } else if (opcode == "wgmma") {
      if (instruction.Has("mma_async")) {
        behaviour.destinations = 1;
        behaviour.reads_destination = true;
      }
    } else if (opcode == "tcgen05") {
      behaviour.destinations = instruction.Has("ld") ? 1 : 0;
    } else if (opcode == "clusterlaunchcontrol") {
      behaviour.destinations = instruction.Has("query_cancel") ? 1 : 0;
    }
    behaviour.early_write = behaviour.destinations != 0;
  }
  if (opcode == "st" && (instruction.Has("async") || instruction.Has("bulk"))) {
    behaviour.effect = Effect::kChange;
  }
  // `mbarrier.arrive [a]` and the like: no operand is there to be written.
  if (behaviour.destinations > operands.size()) behaviour.destinations = 0;
  return behaviour;
}

}  // namespace flow_internal

int DestinationCount(const ptx::Instruction& instruction) {
  return flow_internal::Describe(instruction).destinations;
}

Flow Analyse(const ptx::Function& function, const std::vector<bool>& constant) {
  using flow_internal::DominatorTree;
  using flow_internal::Graph;
  using flow_internal::kNone;
  using flow_internal::Liveness;
  using flow_internal::SpinCandidate;
  Flow flow;
  flow.reconverge.assign(function.code.size(), kNoPc);
  flow.place.assign(function.registers.size(), kNoSlot);
  if (function.code.empty()) return flow;

  const Graph graph = flow_internal::BuildGraph(function);
  if (!graph.error.empty()) {
    flow.ok = false;
    flow.error = graph.error;
    return flow;
  }
  const std::vector<std::uint32_t> meeting = MeetingBlocks(graph);
  for (std::uint32_t block = 0; block < graph.blocks; ++block) {
    const std::uint32_t last = graph.Last(block);
    const Effect effect = graph.behaviour[last].effect;
    const bool may_diverge = effect == Effect::kBranchIndexed ||
                             (effect == Effect::kBranch && function.code[last].guard >= 0);
    if (may_diverge && meeting[block] != kNone) flow.reconverge[last] = graph.first[meeting[block]];
  }

  const DominatorTree dominators = Dominators(0, graph.successors, graph.predecessors);
  const std::vector<SpinCandidate> candidates = FindSpinCandidates(function, graph, dominators);
  std::vector<bool> heads(graph.blocks, false);
  for (const SpinCandidate& candidate : candidates) heads[candidate.head] = true;
  const Liveness liveness = ComputeLiveness(function, graph, heads);
  AllocateRegisters(function, liveness, constant, flow);
  flow.reads_unset = liveness.reads_unset;
  if (flow.ok) DescribeSpinLoops(function, graph, dominators, liveness, candidates, flow);
  return flow;
}

}  // namespace allranks::node
