// The flow analysis against stored PTX (flow/*.ptx with its expectation in *.expect), against naive
// versions of the same on random functions, and on functions made to be expensive.
//
// To write the expectations anew after a change, and then read their difference: run this program
// with ALLRANKS_WRITE_EXPECTED=1.
#include "node/flow.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bitset>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "node/flow_internal.h"
#include "ptx/parser.h"

namespace allranks::node {
namespace {

namespace fs = std::filesystem;
using flow_internal::Edge;
using flow_internal::FromEdges;

// ---- Stored PTX --------------------------------------------------------------------------------

std::string ReadFile(const fs::path& path) {
  std::ifstream stream(path);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::string DescribeFlow(const ptx::Function& function, const Flow& flow) {
  std::string out = fmt::format("slots {} predicates {}\n", flow.slots, flow.predicates);
  if (!flow.ok) out += "error " + flow.error + "\n";
  const auto list = [&](std::string_view title, const std::vector<std::uint32_t>& instructions) {
    for (std::uint32_t i : instructions) {
      out += fmt::format("  {} {} {}\n", title, i, function.code[i].Form());
    }
  };
  for (std::uint32_t i = 0; i < flow.reconverge.size(); ++i) {
    if (flow.reconverge[i] != kNoPc) out += fmt::format("meet {} -> {}\n", i, flow.reconverge[i]);
  }
  for (const SpinLoop& loop : flow.spin_loops) {
    out += fmt::format("spin {} -> {} outer {}\n", loop.branch, loop.head, loop.outer);
    for (std::int32_t reg : loop.carried) {
      out +=
          fmt::format("  carried {}\n", function.registers[static_cast<std::size_t>(reg)].Name());
    }
    list("linear", loop.linear_compares);
    list("nonlinear", loop.nonlinear_uses);
    for (const SpinLoop::Wrap& wrap : loop.wraps) {
      out += fmt::format("  wraps {} at {} bits{}\n", wrap.instruction, wrap.bits,
                         wrap.is_signed ? " signed" : "");
    }
  }
  return out;
}

TEST(FlowStored, MatchesExpectations) {
  const fs::path folder = fs::path(ALLRANKS_SOURCE_DIR) / "tests/node/flow";
  int cases = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".ptx") continue;
    SCOPED_TRACE(entry.path().filename());
    const auto module = ptx::Parse(ReadFile(entry.path()));
    ASSERT_TRUE(module) << module.error().message;
    ASSERT_EQ(module->functions.size(), 1u);
    const ptx::Function& function = module->functions[0];
    const std::string actual = DescribeFlow(function, Analyse(function));
    fs::path expected = entry.path();
    expected.replace_extension(".expect");
    if (std::getenv("ALLRANKS_WRITE_EXPECTED") != nullptr) std::ofstream(expected) << actual;
    EXPECT_EQ(actual, ReadFile(expected));
    ++cases;
  }
  EXPECT_GE(cases, 40);
}

// ---- Functions made by hand --------------------------------------------------------------------

class Builder {
 public:
  explicit Builder(std::size_t registers) {
    for (std::size_t i = 0; i < registers; ++i) {
      function_.registers.push_back({"%x", static_cast<std::int32_t>(i), ptx::Type::kB32});
    }
  }
  ptx::Function& function() { return function_; }
  std::string_view Text(std::string text) { return texts_.emplace_back(std::move(text)); }
  static ptx::Operand Reg(std::int32_t reg) {
    ptx::Operand operand;
    operand.kind = ptx::Operand::Kind::kReg;
    operand.reg = reg;
    return operand;
  }
  static ptx::Operand Symbol(std::string_view name) {
    ptx::Operand operand;
    operand.kind = ptx::Operand::Kind::kSymbol;
    operand.name = name;
    return operand;
  }
  ptx::Instruction& Add(std::string_view opcode, std::vector<ptx::Operand> operands = {}) {
    ptx::Instruction& instruction = function_.code.emplace_back();
    instruction.opcode = opcode;
    instruction.operands = std::move(operands);
    return instruction;
  }
  std::string_view Label(std::uint32_t index) {
    const std::string_view name = Text(fmt::format("L{}", index));
    function_.labels[name] = index;
    return name;
  }

 private:
  ptx::Function function_;
  std::deque<std::string> texts_;
};

constexpr std::size_t kMost = 96;
using Set = std::bitset<kMost>;

void MakeRandomFunction(Builder& builder) {
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
  const auto reg = [&] { return Builder::Reg(*rc::gen::inRange(0, registers)); };
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
        builder.Add("bra", {Builder::Symbol(label())});
        break;
      case 11:
        builder.Add(*rc::gen::element("ret", "exit", "trap"));
        break;
      case 12:
        builder.Add("brx", {reg(), Builder::Symbol(list)});
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
  Builder builder(0);
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
  Builder builder(0);
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

// ---- Single facts ------------------------------------------------------------------------------

TEST(Flow, EmptyFunction) {
  const Flow flow = Analyse(ptx::Function{});
  EXPECT_TRUE(flow.ok);
  EXPECT_EQ(flow.slots, 0);
}

TEST(Flow, BranchToNowhereIsAnError) {
  Builder builder(0);
  builder.Add("bra", {Builder::Symbol("nowhere")});
  const Flow flow = Analyse(builder.function());
  EXPECT_FALSE(flow.ok);
  EXPECT_NE(flow.error.find("nowhere"), std::string::npos);
}

TEST(Flow, DestinationCounts) {
  const auto count = [](std::string_view statement) {
    const std::string text = fmt::format(
        ".version 9.0\n.target sm_90a\n.address_size 64\n.func f() {{ ret; }}\n"
        ".func (.param .b32 r) g() {{ ret; }}\n.entry e() {{\n"
        ".reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<4>; .param .b32 v;\n{}\nret; }}",
        statement);
    const auto module = ptx::Parse(text);
    EXPECT_TRUE(module) << statement << ": " << module.error().message;
    return module ? DestinationCount(module->FindFunction("e")->code[0]) : -1;
  };
  EXPECT_EQ(count("add.s32 %r1, %r2, %r3;"), 1);
  EXPECT_EQ(count("setp.eq.s32 %p1|%p2, %r2, %r3;"), 1);
  EXPECT_EQ(count("ld.v2.u32 {%r1, %r2}, [%rd1];"), 1);
  EXPECT_EQ(count("st.u32 [%rd1], %r1;"), 0);
  EXPECT_EQ(count("red.add.u32 [%rd1], %r1;"), 0);
  EXPECT_EQ(count("atom.add.u32 %r1, [%rd1], %r2;"), 1);
  EXPECT_EQ(count("bar.sync 0;"), 0);
  EXPECT_EQ(count("bar.red.popc.u32 %r1, 0, %p1;"), 1);
  EXPECT_EQ(count("bar.warp.sync %r1;"), 0);
  EXPECT_EQ(count("call f;"), 0);
  EXPECT_EQ(count("call (v), g, ();"), 1);
  EXPECT_EQ(count("mbarrier.try_wait.shared.b64 %p1, [%r1], %rd1;"), 1);
  EXPECT_EQ(count("mbarrier.arrive.shared.b64 %rd1, [%r1];"), 1);
  EXPECT_EQ(count("mbarrier.init.shared.b64 [%r1], %r2;"), 0);
  EXPECT_EQ(count("multimem.ld_reduce.relaxed.sys.global.add.f32 %r1, [%rd1];"), 1);
  EXPECT_EQ(count("multimem.red.relaxed.sys.global.add.f32 [%rd1], %r1;"), 0);
  EXPECT_EQ(count("cp.async.ca.shared.global [%r1], [%rd1], 16;"), 0);
  EXPECT_EQ(count("nanosleep.u32 %r1;"), 0);
}

// ---- Functions made to be expensive ------------------------------------------------------------

constexpr std::uint32_t kMany = 1'000'000;

TEST(FlowHostile, MillionRegistersLiveAtOnce) {
  Builder builder(kMany / 2);
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(kMany / 2); ++i) {
    builder.Add("mov", {Builder::Reg(i), {}});
  }
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(kMany / 2); ++i) {
    builder.Add("st", {Builder::Reg(i)});
  }
  const Flow flow = Analyse(builder.function());
  EXPECT_FALSE(flow.ok);
  EXPECT_NE(flow.error.find("live"), std::string::npos);
}

TEST(FlowHostile, ManyRegistersThroughManyBlocks) {
  // Every register is defined at the start, used at the end, and there is a branch at each step.
  constexpr std::int32_t kRegisters = 20'000;
  Builder builder(kRegisters);
  for (std::int32_t i = 0; i < kRegisters; ++i) builder.Add("mov", {Builder::Reg(i), {}});
  for (std::uint32_t i = 0; i < kMany / 5; ++i) {
    const auto at = static_cast<std::uint32_t>(builder.function().code.size());
    builder.Add("bra", {Builder::Symbol(builder.Label(i % 3 == 0 ? 0 : at + 1))}).guard = 0;
  }
  for (std::int32_t i = 0; i < kRegisters; ++i) builder.Add("st", {Builder::Reg(i)});
  const Flow flow = Analyse(builder.function());
  EXPECT_TRUE(flow.ok);
  EXPECT_EQ(flow.slots, kRegisters);
}

TEST(FlowHostile, DeepNestsOfLoops) {
  // k loops inside one another, each with a load of its own and the counter of the innermost.
  constexpr std::uint32_t kDepth = 100'000;
  Builder builder(2);
  builder.function().registers[1].type = ptx::Type::kPred;
  for (std::uint32_t i = 0; i < kDepth; ++i) builder.Add("ld", {Builder::Reg(0), {}});
  for (std::uint32_t i = kDepth; i-- > 0;) {
    builder.Add("bra", {Builder::Symbol(builder.Label(i))}).guard = 1;
  }
  const Flow flow = Analyse(builder.function());
  EXPECT_TRUE(flow.ok);
  EXPECT_FALSE(flow.spin_loops.empty());
}

TEST(FlowHostile, ManyBranchesToOneHead) {
  Builder builder(2);
  builder.function().registers[1].type = ptx::Type::kPred;
  for (std::uint32_t i = 0; i < kMany / 2; ++i) {
    builder.Add("ld", {Builder::Reg(0), {}});
    builder.Add("bra", {Builder::Symbol(builder.Label(0))}).guard = 1;
  }
  EXPECT_TRUE(Analyse(builder.function()).ok);
}

TEST(FlowHostile, LongTargetListUsedOften) {
  constexpr std::uint32_t kTargets = 50'000;
  Builder builder(1);
  auto& targets = builder.function().target_lists["LIST"];
  for (std::uint32_t i = 0; i < kTargets; ++i) targets.push_back(builder.Label(i));
  for (std::uint32_t i = 0; i < kTargets; ++i) {
    builder.Add("brx", {Builder::Reg(0), Builder::Symbol("LIST")});
  }
  EXPECT_TRUE(Analyse(builder.function()).ok);
}

TEST(FlowHostile, LadderThatDefeatsSimpleDominators) {
  // Two ways down, with rungs both ways at each step: many rounds for iterative algorithms.
  constexpr std::uint32_t kSteps = 100'000;
  Builder builder(1);
  builder.function().registers[0].type = ptx::Type::kPred;
  for (std::uint32_t i = 0; i < kSteps; ++i) {
    const std::uint32_t at = 2 * i;
    builder.Add("bra", {Builder::Symbol(builder.Label(2 * kSteps - at))}).guard = 0;
    builder.Add("bra", {Builder::Symbol(builder.Label(at / 2))}).guard = 0;
  }
  EXPECT_TRUE(Analyse(builder.function()).ok);
}

}  // namespace
}  // namespace allranks::node
