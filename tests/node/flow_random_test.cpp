// The flow analysis against naive versions of the same, on random functions and graphs.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <string_view>
#include <vector>

#include "flow_builder.h"
#include "node/decode/flow.h"
#include "node/decode/flow_internal.h"

namespace allranks::node {
namespace {

using flow_internal::Edge;
using flow_internal::FromEdges;

constexpr std::size_t kMost = 96;
using Set = std::bitset<kMost>;

void MakeRandomFunction(FlowBuilder& builder) {
  using ptx::Type;
  const int registers = *rc::gen::inRange(1, 24);
  const int size = *rc::gen::inRange(1, 60);
  ptx::Function& function = builder.function();
  std::vector<std::int32_t> predicates;
  for (int i = 0; i < registers; ++i) {
    const Type type = *rc::gen::element(Type::kB32, Type::kB32, Type::kB64, Type::kB64, Type::kB128,
                                        Type::kPred, Type::kB16);
    function.registers.push_back({"%x", i, type});
    if (type == Type::kPred) predicates.push_back(i);
  }
  const auto reg = [&] { return FlowBuilder::Reg(*rc::gen::inRange(0, registers)); };
  const auto label = [&] {
    return builder.Label(static_cast<std::uint32_t>(*rc::gen::inRange(0, size + 1)));
  };
  const auto list = builder.Text("LIST");
  auto& targets = function.target_lists[list];
  for (int i = 0; i < 3; ++i) targets.push_back(label());
  for (int i = 0; i < size; ++i) {
    switch (*rc::gen::inRange(0, 14)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
        builder.Add("add", {reg(), reg(), reg()});
        break;
      case 5:
        builder.Add("mov", {reg(), {}});
        break;
      case 6: {
        ptx::Operand pair;
        pair.kind = ptx::Operand::Kind::kPair;
        pair.elements = {reg(), reg()};
        builder.Add("shfl", {pair, reg(), reg()});
        break;
      }
      case 7:
        builder.Add("st", {reg(), reg()});
        break;
      case 8:
      case 9:
      case 10:
        builder.Add("bra", {FlowBuilder::Symbol(label())});
        break;
      case 11:
        builder.Add(*rc::gen::element("ret", "exit", "trap"));
        break;
      case 12:
        builder.Add("brx", {reg(), FlowBuilder::Symbol(list)});
        break;
      default:
        builder.Add("mov", {reg(), reg()});
    }
    if (!predicates.empty() && *rc::gen::inRange(0, 3) == 0) {
      function.code.back().guard = *rc::gen::elementOf(predicates);
    }
  }
}

// Successors of every instruction by the meaning of PTX; the end is node code.size(). `ends`: with
// the ways of lanes that end (a guarded ret), which count for nothing here but would do no harm
// either.
std::vector<std::vector<std::size_t>> NaiveSuccessors(const ptx::Function& function) {
  std::vector<std::vector<std::size_t>> successors(function.code.size());
  for (std::size_t i = 0; i < function.code.size(); ++i) {
    const ptx::Instruction& instruction = function.code[i];
    bool next = true;
    if (instruction.opcode == "bra") {
      successors[i].push_back(function.labels.at(instruction.operands[0].name));
      next = instruction.guard >= 0;
    } else if (instruction.opcode == "brx") {
      for (std::string_view name : function.target_lists.at(instruction.operands[1].name)) {
        successors[i].push_back(function.labels.at(name));
      }
      next = instruction.guard >= 0;
    } else if (instruction.opcode == "ret" || instruction.opcode == "exit") {
      next = instruction.guard >= 0;
      if (!next) successors[i].push_back(function.code.size());
    } else if (instruction.opcode == "trap") {
      next = instruction.guard >= 0;
    }
    if (next) successors[i].push_back(i + 1);
  }
  return successors;
}

int WidthInSlots(ptx::Type type) { return std::max(1, ptx::SizeOf(type) / 4); }

RC_GTEST_PROP(FlowRandom, RegistersLiveTogetherDoNotShare, ()) {
  FlowBuilder builder(0);
  MakeRandomFunction(builder);
  const ptx::Function& function = builder.function();
  const Flow flow = Analyse(function);
  RC_ASSERT(flow.ok);

  const std::size_t size = function.code.size();
  const auto successors = NaiveSuccessors(function);
  std::vector<Set> uses(size), definitions(size), in(size + 1), out(size);
  for (std::size_t i = 0; i < size; ++i) {
    const ptx::Instruction& instruction = function.code[i];
    const auto destinations = static_cast<std::size_t>(DestinationCount(instruction));
    if (instruction.guard >= 0) uses[i].set(static_cast<std::size_t>(instruction.guard));
    for (std::size_t o = 0; o < instruction.operands.size(); ++o) {
      std::vector<ptx::Operand> all{instruction.operands[o]};
      all.insert(all.end(), all[0].elements.begin(), all[0].elements.end());
      for (const ptx::Operand& operand : all) {
        if (operand.kind != ptx::Operand::Kind::kReg) continue;
        (o < destinations ? definitions : uses)[i].set(static_cast<std::size_t>(operand.reg));
      }
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = size; i-- > 0;) {
      Set after;
      for (std::size_t to : successors[i]) after |= in[to];
      Set before = after;
      if (function.code[i].guard < 0) before &= ~definitions[i];
      before |= uses[i];
      changed = changed || before != in[i];
      in[i] = before;
      out[i] = after;
    }
  }

  const auto overlap = [&](std::size_t a, std::size_t b) {
    const ptx::Type ta = function.registers[a].type, tb = function.registers[b].type;
    if ((ta == ptx::Type::kPred) != (tb == ptx::Type::kPred)) return false;
    const int wa = WidthInSlots(ta), wb = WidthInSlots(tb);
    return flow.place[a] < flow.place[b] + wb && flow.place[b] < flow.place[a] + wa;
  };
  const auto check = [&](const Set& set, const Set& others) {
    for (std::size_t a = 0; a < function.registers.size(); ++a) {
      for (std::size_t b = 0; set[a] && b < function.registers.size(); ++b) {
        if (a != b && others[b]) RC_ASSERT(!overlap(a, b));
      }
    }
  };
  Set used;
  for (std::size_t i = 0; i < size; ++i) {
    check(in[i], in[i]);
    check(out[i] | definitions[i], out[i] | definitions[i]);
    if (definitions[i].count() > 1) check(definitions[i], uses[i]);
    used |= uses[i] | definitions[i];
  }
  for (std::size_t a = 0; a < function.registers.size(); ++a) {
    RC_ASSERT((flow.place[a] == kNoSlot) == !used[a]);
    if (!used[a]) continue;
    const ptx::Type type = function.registers[a].type;
    if (type == ptx::Type::kPred) {
      RC_ASSERT(flow.place[a] < flow.predicates);
      continue;
    }
    RC_ASSERT(flow.place[a] % WidthInSlots(type) == 0);
    RC_ASSERT(flow.place[a] + WidthInSlots(type) <= flow.slots);
    for (std::size_t b = 0; b < a; ++b) {
      // Lanes of different widths lie across each other, so such registers never share.
      const ptx::Type other = function.registers[b].type;
      if (!used[b] || other == ptx::Type::kPred) continue;
      if ((WidthInSlots(type) == 1) != (WidthInSlots(other) == 1)) RC_ASSERT(!overlap(a, b));
    }
  }
}

RC_GTEST_PROP(FlowRandom, MeetingPointsAreImmediatePostDominators, ()) {
  FlowBuilder builder(0);
  MakeRandomFunction(builder);
  const ptx::Function& function = builder.function();
  const Flow flow = Analyse(function);
  RC_ASSERT(flow.ok);

  const std::size_t size = function.code.size();
  auto successors = NaiveSuccessors(function);
  const auto close = [&] {
    std::vector<Set> reach(size + 1);
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t i = 0; i < size; ++i) {
        Set set = reach[i];
        for (std::size_t to : successors[i]) set |= reach[to] | Set{}.set(to);
        changed = changed || set != reach[i];
        reach[i] = set;
      }
    }
    return reach;
  };
  auto reach = close();
  for (std::size_t i = 0; i < size; ++i) {
    // The last instruction of a cycle from which nothing but this cycle can go on for ever.
    if (reach[i][size] || !reach[i][i]) continue;
    bool last = true;
    for (std::size_t j = 0; j < size; ++j) {
      if (reach[i][j] && reach[j][j] && (j > i || !reach[j][i])) last = false;
    }
    if (last) successors[i].push_back(size);
  }
  reach = close();
  std::vector<Set> post(size + 1, Set{}.set());
  post[size] = Set{}.set(size);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = size; i-- > 0;) {
      if (!reach[i][size]) continue;
      Set set = Set{}.set();
      for (std::size_t to : successors[i]) {
        if (to == size || reach[to][size]) set &= post[to];
      }
      set.set(i);
      changed = changed || set != post[i];
      post[i] = set;
    }
  }
  for (std::size_t i = 0; i < size; ++i) {
    const ptx::Instruction& instruction = function.code[i];
    const bool parts =
        instruction.opcode == "brx" || (instruction.opcode == "bra" && instruction.guard >= 0);
    std::uint32_t expected = kNoPc;
    if (parts && reach[i][size]) {
      for (std::size_t j = 0; j < size; ++j) {
        // The nearest is the one that all others post-dominate.
        if (j == i || !post[i][j]) continue;
        Set rest = post[i];
        rest.reset(i);
        if (post[j] == rest) expected = static_cast<std::uint32_t>(j);
      }
    }
    RC_ASSERT(flow.reconverge[i] == expected);
  }
}

RC_GTEST_PROP(FlowRandom, DominatorsOfAnyGraph, ()) {
  const auto nodes = static_cast<std::uint32_t>(*rc::gen::inRange(1, 40));
  std::vector<Edge> edges;
  const int count = *rc::gen::inRange(0, 100);
  for (int i = 0; i < count; ++i) {
    edges.emplace_back(*rc::gen::inRange(0u, nodes), *rc::gen::inRange(0u, nodes));
  }
  const auto tree =
      flow_internal::Dominators(0, FromEdges(nodes, edges, false), FromEdges(nodes, edges, true));
  const auto reachable_without = [&](std::uint32_t without) {
    Set seen;
    if (without != 0) seen.set(0);
    for (bool changed = true; changed;) {
      changed = false;
      for (const auto& [from, to] : edges) {
        if (!seen[from] || seen[to] || to == without) continue;
        seen.set(to);
        changed = true;
      }
    }
    return seen;
  };
  const Set reachable = reachable_without(flow_internal::kNone);
  for (std::uint32_t a = 0; a < nodes; ++a) {
    const Set without = reachable_without(a);
    for (std::uint32_t b = 0; b < nodes; ++b) {
      const bool expected = reachable[a] && reachable[b] && (a == b || !without[b]);
      RC_ASSERT(tree.Dominates(a, b) == expected);
      if (tree.parent[b] != flow_internal::kNone) RC_ASSERT(tree.Dominates(tree.parent[b], b));
    }
  }
}

}  // namespace
}  // namespace allranks::node
