// The layout of Args and the text of problem.h.
#include "problem/args.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace allranks::problem {
namespace {

bool Uses(const Problem& problem, Type type) {
  return std::any_of(problem.tensors.begin(), problem.tensors.end(),
                     [&](const Tensor& tensor) { return tensor.type == type; });
}

std::string PointerOf(const Tensor& tensor) {
  const bool constant = tensor.dir == Tensor::Dir::kIn && !tensor.changes;
  return (constant ? "const " : "") + tensor.type_name + "*";
}

}  // namespace

ArgsLayout LayOut(const Problem& problem) {
  ArgsLayout layout;
  // Every member behind the two ints has eight bytes, so there is never padding.
  const auto add = [&](FieldKind kind, std::uint32_t bytes, std::size_t index, int peer) {
    layout.fields.push_back(
        {kind, layout.bytes, static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(peer)});
    layout.bytes += bytes;
  };
  add(FieldKind::kRank, 4, 0, 0);
  add(FieldKind::kWorld, 4, 0, 0);
  for (std::size_t i = 0; i < problem.params.size(); ++i) add(FieldKind::kParam, 8, i, 0);
  for (std::size_t i = 0; i < problem.tensors.size(); ++i) {
    add(FieldKind::kOwn, 8, i, 0);
    if (problem.tensors[i].peers) {
      for (int peer = 0; peer < problem.max_ranks; ++peer) add(FieldKind::kPeer, 8, i, peer);
    }
    if (problem.tensors[i].multicast) add(FieldKind::kMulticast, 8, i, 0);
  }
  return layout;
}

std::string RenderHeader(const Problem& problem) {
  std::string text =
      fmt::format("// What {} gives to a solution. Made from its problem.toml.\n", problem.slug);
  text += "#pragma once\n\n#include <cuda_runtime.h>\n";
  text += "#include <cstddef>\n#include <cstdint>\n";
  if (problem.setup) text += "\n#include <allranks/boot.h>\n";
  if (UsesNccl(problem)) text += "#include <allranks/nccl.h>\n";
  text += "\n";
  // Args has only pointers, and their headers would double the time to compile a small solution.
  if (Uses(problem, Type::kBf16)) text += "struct __nv_bfloat16;  // <cuda_bf16.h> has it\n";
  if (Uses(problem, Type::kF16)) text += "struct __half;  // <cuda_fp16.h> has it\n";
  for (const auto& [name, type] : problem.vary)
    text += fmt::format("using {} = {};\n", name, CudaNameOf(type));
  for (const auto& [name, value] : problem.constants)
    text += fmt::format("constexpr std::int64_t {} = {};\n", name, value);
  text += fmt::format("constexpr int kMaxRanks = {};\n\n", problem.max_ranks);
  text += "struct Args {\n  std::int32_t rank, world;\n";
  for (const std::string& param : problem.params)
    text += fmt::format("  std::int64_t {};\n", param);
  for (const Tensor& tensor : problem.tensors) {
    const std::string pointer = PointerOf(tensor);
    text += fmt::format("  {} {};\n", pointer, tensor.name);
    if (tensor.peers) text += fmt::format("  {} {}_peers[kMaxRanks];\n", pointer, tensor.name);
    if (tensor.multicast) text += fmt::format("  {} {}_multicast;\n", pointer, tensor.name);
  }
  text += "};\n";
  // The driver fills Args by these offsets.
  const ArgsLayout layout = LayOut(problem);
  text += fmt::format("static_assert(sizeof(Args) == {});\n", layout.bytes);
  for (const Field& field : layout.fields) {
    std::string name;
    switch (field.kind) {
      case FieldKind::kRank:
        name = "rank";
        break;
      case FieldKind::kWorld:
        name = "world";
        break;
      case FieldKind::kParam:
        name = problem.params[field.index];
        break;
      case FieldKind::kOwn:
        name = problem.tensors[field.index].name;
        break;
      case FieldKind::kPeer:
        if (field.peer == 0) name = problem.tensors[field.index].name + "_peers";
        break;
      case FieldKind::kMulticast:
        name = problem.tensors[field.index].name + "_multicast";
        break;
    }
    if (!name.empty())
      text += fmt::format("static_assert(offsetof(Args, {}) == {});\n", name, field.offset);
  }
  text += "\n";
  if (problem.setup) text += "extern \"C\" void setup(allranks::Boot& boot, const Args& args);\n";
  if (problem.window == Window::kQuery) {
    text += "extern \"C\" std::size_t answer(const Args& args, void* out, std::size_t capacity);\n";
  } else {
    for (const std::string& call : problem.calls)
      text += fmt::format("extern \"C\" void {}(const Args& args, cudaStream_t stream);\n", call);
  }
  if (problem.window == Window::kHost)
    text += "extern \"C\" void host(const Args& args, int thread);\n";
  return text;
}

std::vector<std::string> Declarations(const Problem& problem) {
  std::istringstream lines(RenderHeader(problem));
  std::vector<std::string> all;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("extern \"C\"")) all.push_back(line.substr(0, line.rfind(';')));
  return all;
}

}  // namespace allranks::problem
