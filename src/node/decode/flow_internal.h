// What the parts of the flow analysis share: how each instruction behaves, the graph of blocks and
// its (post-)dominators. Used by flow*.cpp and their tests only.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "node/decode/flow.h"
#include "node/decode/opcodes.h"
#include "ptx/module.h"

namespace allranks::node::flow_internal {

inline constexpr std::uint32_t kNone = 0xffffffffu;

Behaviour Describe(const ptx::Instruction& instruction);

// Calls fn(register, is_definition) for every register of the instruction: all uses first.
template <class Fn>
void ForEachRegister(const ptx::Instruction& instruction, const Behaviour& behaviour, Fn&& fn);

// Lists of node numbers by node, packed.
struct Adjacency {
  std::vector<std::uint32_t> start, item;
  std::span<const std::uint32_t> operator[](std::uint32_t node) const {
    return {item.data() + start[node], item.data() + start[node + 1]};
  }
};

using Edge = std::pair<std::uint32_t, std::uint32_t>;
Adjacency FromEdges(std::uint32_t nodes, const std::vector<Edge>& edges, bool reversed);

// Nodes: the blocks in code order, then one empty node for each target list that a brx.idx uses
// (many branches may share a long list; edges stay linear in the text), then the exit.
struct Graph {
  std::uint32_t blocks = 0, nodes = 0, exit = 0;
  std::vector<std::uint32_t> first;  // first instruction of each block; first[blocks] = code size
  std::vector<std::uint32_t> block_of;  // per instruction
  std::vector<Behaviour> behaviour;     // per instruction
  std::vector<Edge> edges;
  Adjacency successors, predecessors;
  std::string error;  // a branch to nowhere

  std::uint32_t Last(std::uint32_t block) const { return first[block + 1] - 1; }
};

// A guarded ret, exit or trap is no edge: lanes that end are not waited for anywhere, so only those
// that go on decide where paths meet. For the same reason a trap has no edge to the exit.
Graph BuildGraph(const ptx::Function& function);

// Edges to the exit for loops without one: from the last block, in code order, of every cycle that
// leads nowhere but into itself or a trap.
std::vector<Edge> ExitsOfEndlessLoops(const Graph& graph);

struct DominatorTree {
  std::vector<std::uint32_t> parent;    // immediate dominator; kNone: unreachable or the root
  std::vector<std::uint32_t> in, size;  // preorder number and subtree size; size 0: unreachable
  bool Dominates(std::uint32_t a, std::uint32_t b) const {
    return size[a] != 0 && size[b] != 0 && in[b] - in[a] < size[a];
  }
};

// Lengauer and Tarjan's algorithm: O(edges * log nodes) for any graph, without recursion.
DominatorTree Dominators(std::uint32_t root, const Adjacency& successors,
                         const Adjacency& predecessors);

// Where the ways out of each block meet again: a block, or kNone if only at the exit.
std::vector<std::uint32_t> MeetingBlocks(const Graph& graph);

// A candidate wait: its back edge and the blocks of its body. Loops with the same head have one
// body, the union of theirs, so that arrivals at the head can be compared whichever branch they
// took.
struct SpinCandidate {
  std::uint32_t head = 0;               // block
  std::vector<std::uint32_t> branches;  // instructions, ascending
  std::vector<std::uint32_t> body;      // blocks, ascending
};
std::vector<SpinCandidate> FindSpinCandidates(const ptx::Function& function, const Graph& graph,
                                              const DominatorTree& dominators);

// Live ranges as hulls in code order. Position 2i is where instruction i reads, 2i+1 where it
// writes.
struct Liveness {
  std::vector<std::uint32_t> low, high;  // inclusive; low > high: never used
  bool reads_unset = false;              // a register is live on entry to the function
  // Registers live on entry to a block marked in `heads`: (block, register).
  std::vector<std::pair<std::uint32_t, std::int32_t>> live_at_heads;
  // Registers from this number on have approximate ranges and no entries in live_at_heads unless
  // they stay inside one block: the function was too entangled for the budget.
  std::int32_t approximate_from = 0;
};
Liveness ComputeLiveness(const ptx::Function& function, const Graph& graph,
                         const std::vector<bool>& heads);

// Fills place, slots and predicates.
void AllocateRegisters(const ptx::Function& function, const Liveness& liveness,
                       const std::vector<bool>& constant, Flow& flow);

// Fills spin_loops.
void DescribeSpinLoops(const ptx::Function& function, const Graph& graph,
                       const DominatorTree& dominators, const Liveness& liveness,
                       const std::vector<SpinCandidate>& candidates, Flow& flow);

// ------------------------------------------------------------------------------------------------

template <class Fn>
void ForEachRegisterIn(const ptx::Operand& operand, bool definition, bool want_definition, Fn& fn) {
  using Kind = ptx::Operand::Kind;
  if (operand.kind == Kind::kReg) {
    if (definition == want_definition) fn(operand.reg, want_definition);
    return;
  }
  // What stands in brackets is read, also where the operand's place is that of a destination.
  if (operand.kind == Kind::kAddress) definition = false;
  for (const ptx::Operand& element : operand.elements) {
    ForEachRegisterIn(element, definition, want_definition, fn);
  }
}

template <class Fn>
void ForEachRegister(const ptx::Instruction& instruction, const Behaviour& behaviour, Fn&& fn) {
  if (instruction.guard >= 0) fn(instruction.guard, false);
  for (const bool want_definition : {false, true}) {
    for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
      const bool destination = i < behaviour.destinations;
      if (destination && behaviour.reads_destination && !want_definition) {
        ForEachRegisterIn(instruction.operands[i], false, false, fn);
        continue;
      }
      ForEachRegisterIn(instruction.operands[i], destination, want_definition, fn);
    }
  }
}

}  // namespace allranks::node::flow_internal
