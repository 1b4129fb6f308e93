// The flow analysis against stored PTX (flow/*.ptx with its expectation in *.expect) and on
// functions made to be expensive. flow_random_test.cpp has random ones.
//
// To write the expectations anew after a change, and then read their difference: run this program
// with ALLRANKS_WRITE_EXPECTED=1.
#include "node/decode/flow.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "flow_builder.h"
#include "ptx/parser.h"

namespace allranks::node {
namespace {

namespace fs = std::filesystem;

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
    out += fmt::format("spin {} -> {} outer {}{}\n", loop.branch, loop.head, loop.outer,
                       loop.seldom ? " seldom" : "");
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

// ---- Single facts ------------------------------------------------------------------------------

TEST(Flow, EmptyFunction) {
  const Flow flow = Analyse(ptx::Function{});
  EXPECT_TRUE(flow.ok);
  EXPECT_EQ(flow.slots, 0);
}

TEST(Flow, BranchToNowhereIsAnError) {
  FlowBuilder builder(0);
  builder.Add("bra", {FlowBuilder::Symbol("nowhere")});
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
  FlowBuilder builder(kMany / 2);
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(kMany / 2); ++i) {
    builder.Add("mov", {FlowBuilder::Reg(i), {}});
  }
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(kMany / 2); ++i) {
    builder.Add("st", {FlowBuilder::Reg(i)});
  }
  const Flow flow = Analyse(builder.function());
  EXPECT_FALSE(flow.ok);
  EXPECT_NE(flow.error.find("live"), std::string::npos);
}

TEST(FlowHostile, ManyRegistersThroughManyBlocks) {
  // Every register is defined at the start, used at the end, and there is a branch at each step.
  constexpr std::int32_t kRegisters = 20'000;
  FlowBuilder builder(kRegisters);
  for (std::int32_t i = 0; i < kRegisters; ++i) builder.Add("mov", {FlowBuilder::Reg(i), {}});
  for (std::uint32_t i = 0; i < kMany / 5; ++i) {
    const auto at = static_cast<std::uint32_t>(builder.function().code.size());
    builder.Add("bra", {FlowBuilder::Symbol(builder.Label(i % 3 == 0 ? 0 : at + 1))}).guard = 0;
  }
  for (std::int32_t i = 0; i < kRegisters; ++i) builder.Add("st", {FlowBuilder::Reg(i)});
  const Flow flow = Analyse(builder.function());
  EXPECT_TRUE(flow.ok);
  EXPECT_EQ(flow.slots, kRegisters);
}

TEST(FlowHostile, DeepNestsOfLoops) {
  // k loops inside one another, each with a load of its own and the counter of the innermost.
  constexpr std::uint32_t kDepth = 100'000;
  FlowBuilder builder(2);
  builder.function().registers[1].type = ptx::Type::kPred;
  for (std::uint32_t i = 0; i < kDepth; ++i) builder.Add("ld", {FlowBuilder::Reg(0), {}});
  for (std::uint32_t i = kDepth; i-- > 0;) {
    builder.Add("bra", {FlowBuilder::Symbol(builder.Label(i))}).guard = 1;
  }
  const Flow flow = Analyse(builder.function());
  EXPECT_TRUE(flow.ok);
  EXPECT_FALSE(flow.spin_loops.empty());
}

TEST(FlowHostile, ManyBranchesToOneHead) {
  FlowBuilder builder(2);
  builder.function().registers[1].type = ptx::Type::kPred;
  for (std::uint32_t i = 0; i < kMany / 2; ++i) {
    builder.Add("ld", {FlowBuilder::Reg(0), {}});
    builder.Add("bra", {FlowBuilder::Symbol(builder.Label(0))}).guard = 1;
  }
  EXPECT_TRUE(Analyse(builder.function()).ok);
}

TEST(FlowHostile, LongTargetListUsedOften) {
  constexpr std::uint32_t kTargets = 50'000;
  FlowBuilder builder(1);
  auto& targets = builder.function().target_lists["LIST"];
  for (std::uint32_t i = 0; i < kTargets; ++i) targets.push_back(builder.Label(i));
  for (std::uint32_t i = 0; i < kTargets; ++i) {
    builder.Add("brx", {FlowBuilder::Reg(0), FlowBuilder::Symbol("LIST")});
  }
  EXPECT_TRUE(Analyse(builder.function()).ok);
}

TEST(FlowHostile, LadderThatDefeatsSimpleDominators) {
  // Two ways down, with rungs both ways at each step: many rounds for iterative algorithms.
  constexpr std::uint32_t kSteps = 100'000;
  FlowBuilder builder(1);
  builder.function().registers[0].type = ptx::Type::kPred;
  for (std::uint32_t i = 0; i < kSteps; ++i) {
    const std::uint32_t at = 2 * i;
    builder.Add("bra", {FlowBuilder::Symbol(builder.Label(2 * kSteps - at))}).guard = 0;
    builder.Add("bra", {FlowBuilder::Symbol(builder.Label(at / 2))}).guard = 0;
  }
  EXPECT_TRUE(Analyse(builder.function()).ok);
}

}  // namespace
}  // namespace allranks::node
