// Makes tables.h and puts the files of a program for hardware together.
#include "problem/hardware.h"

#include <fmt/format.h>

#include "problem/args.h"
#include "problem/source.h"

namespace allranks::problem {
namespace {

constexpr char kMain[] =
#include <allranks_hardware_main.inc>
    ;

constexpr const char* kBuild = R"sh(#!/bin/sh
# Builds the program; nvcc's own options may follow, such as -arch=sm_100.
cd "$(dirname "$0")" && exec nvcc -std=c++20 -O2 -arch=sm_90 -cudart shared -I. -Iinclude \
  "$@" -o run main.cpp candidate.cu oracle.cpp -lcuda
)sh";

constexpr const char* kTypes = R"(
enum class DrawKind { kMixed, kUniform, kIntegers, kBits, kBelow, kCounts, kTopK };
enum class FieldKind { kRank, kWorld, kParam, kOwn, kPeer, kMulticast };
struct TensorTable {
  const char* name;
  allranks::oracle::Type type;
  int size;
  allranks::oracle::Dir dir;
  bool multicast, host;
  DrawKind draw;
};
struct FieldTable {
  FieldKind what;
  std::uint32_t offset, index, peer;
};
)";

const char* NameOf(Draw::Kind kind) {
  constexpr const char* kNames[] = {"kMixed", "kUniform", "kIntegers", "kBits",
                                    "kBelow", "kCounts",  "kTopK"};
  return kNames[static_cast<int>(kind)];
}

const char* NameOf(FieldKind kind) {
  constexpr const char* kNames[] = {"kRank", "kWorld", "kParam", "kOwn", "kPeer", "kMulticast"};
  return kNames[static_cast<int>(kind)];
}

const char* NameOf(Tensor::Dir dir) {
  constexpr const char* kNames[] = {"kIn", "kOut", "kSymmetric"};
  return kNames[static_cast<int>(dir)];
}

std::string CaseRow(const Problem& problem, const Case& one) {
  const Values values = ValuesOf(problem, one);
  std::string params, counts, rows, limits;
  for (const std::int64_t param : one.params) params += fmt::format("{}, ", param);
  for (const Tensor& tensor : problem.tensors) {
    counts += fmt::format("{}, ", CountOf(problem, tensor, one));
    const std::int64_t row =
        tensor.shape.empty() ? 0 : tensor.shape.back().Evaluate(values).value_or(0);
    rows += fmt::format("{}, ", row);
    limits += fmt::format("{}, ", tensor.draw.limit.Evaluate(values).value_or(0));
  }
  return fmt::format("    {{\"{}\", {}, {}, {{{}}}, {{{}}}, {{{}}}, {{{}}}}},\n", one.name,
                     one.world, one.kind == Case::Kind::kTimed, params, counts, rows, limits);
}

std::string RenderTables(const Problem& problem) {
  std::string text = fmt::format(
      "// {} in tables, for main.cpp. Made from its problem.toml.\n#pragma once\n\n"
      "#include <allranks/boot.h>\n#include <allranks/oracle.h>\n\n#include \"problem.h\"\n",
      problem.slug);
  text += kTypes;
  const std::size_t params = problem.params.size(), tensors = problem.tensors.size();
  text += fmt::format(
      "struct CaseTable {{\n  const char* name;\n  int world;\n  bool timed;\n"
      "  std::int64_t params[{}];\n  std::uint64_t counts[{}], rows[{}];  // by tensor\n"
      "  std::int64_t limits[{}];\n}};\n\n",
      std::max<std::size_t>(params, 1), tensors, tensors, tensors);
  text += fmt::format(
      "constexpr int kBurst = {};\nconstexpr int kHostThreads = {};\nconstexpr bool kCaptured = "
      "{};\n"
      "constexpr int kParamCount = {};\nconstexpr int kTensorCount = {};\n"
      "constexpr int kCaseCount = {};\n",
      problem.burst, problem.host_threads, problem.window == Window::kGraph, params, tensors,
      problem.cases.size());
  text += "constexpr const char* kParams[] = {";
  for (const std::string& param : problem.params) text += fmt::format("\"{}\", ", param);
  text += params == 0 ? "\"\"};\n" : "};\n";
  text += "constexpr TensorTable kTensors[] = {\n";
  for (const Tensor& tensor : problem.tensors) {
    text += fmt::format(
        "    {{\"{}\", allranks::oracle::Type({}), {}, allranks::oracle::Dir::{}, {}, {}, "
        "DrawKind::{}}},\n",
        tensor.name, static_cast<int>(tensor.type), SizeOf(tensor.type), NameOf(tensor.dir),
        tensor.multicast, tensor.host, NameOf(tensor.draw.kind));
  }
  text += "};\nconstexpr FieldTable kFields[] = {\n";
  for (const Field& field : LayOut(problem).fields)
    text += fmt::format("    {{FieldKind::{}, {}, {}, {}}},\n", NameOf(field.kind), field.offset,
                        field.index, field.peer);
  text += "};\nconstexpr CaseTable kCases[] = {\n";
  for (const Case& one : problem.cases) text += CaseRow(problem, one);
  text += "};\n\ninline void Calls(const Args& args, cudaStream_t stream) {\n";
  for (const std::string& call : problem.calls) text += fmt::format("  {}(args, stream);\n", call);
  text += "}\n";
  text += problem.setup
              ? "inline void SetUp(allranks::Boot& boot, const Args& args) { setup(boot, args); }\n"
              : "inline void SetUp(allranks::Boot&, const Args&) {}\n";
  text += problem.window == Window::kHost
              ? "inline void Host(const Args& args, int thread) { host(args, thread); }\n"
              : "inline void Host(const Args&, int) {}\n";
  return text;
}

}  // namespace

Result<std::map<std::string, std::string>> ExportForHardware(const Problem& problem,
                                                             const std::string& solution) {
  if (problem.window == Window::kQuery)
    return Fail("{} is about the simulated machine and cannot be exported", problem.slug);
  const auto region = RegionOf(problem);
  if (!region) return Fail(region.error());
  const auto candidate = Assemble(*region, solution);
  if (!candidate) return Fail("the solution: {}", candidate.error().message);
  const auto oracle = ReadFile(problem.folder / "oracle.cpp");
  if (!oracle) return Fail(oracle.error());
  return std::map<std::string, std::string>{
      {"main.cpp", kMain},
      {"tables.h", RenderTables(problem)},
      {"problem.h", RenderHeader(problem)},
      {"candidate.cu", *candidate},
      {"oracle.cpp", "#define ALLRANKS_ORACLE_MODULE\n" + *oracle},
      {"build.sh", kBuild}};
}

}  // namespace allranks::problem
