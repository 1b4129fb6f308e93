#include "problem/controls.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>

#include "problem/source.h"

namespace allranks::problem {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kVerdictLine = "// verdict: ";

// What expressions of problem.toml call. Names of our own end in _ or stand in a namespace: a
// reference and its parameters have theirs.
constexpr std::string_view kFunctions = R"(
namespace control {
__device__ std::int64_t Least(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
__device__ std::int64_t Most(std::int64_t a, std::int64_t b) { return a < b ? b : a; }
__device__ std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
__device__ std::int64_t log2_ceil(std::int64_t a) {
  std::int64_t bits = 0;
  while ((std::int64_t{1} << bits) < a) ++bits;
  return bits;
}
)";

bool CanBeMade(const Problem& problem) {
  const bool on_devices = std::none_of(problem.tensors.begin(), problem.tensors.end(),
                                       [](const Tensor& tensor) { return tensor.host; });
  const bool kernels = Allows(problem, "kernel");
  const bool calls = problem.window == Window::kGraph || problem.window == Window::kStream;
  return on_devices && kernels && calls && problem.calls.size() == 1 && !problem.setup;
}

std::string InCuda(const Problem& problem, const Expression& expression) {
  std::string text = expression.text();
  for (const auto& [name, type] : problem.vary) {
    text = std::regex_replace(text, std::regex("sizeof\\(" + name + "\\)"),
                              std::to_string(SizeOf(type)));
  }
  text = std::regex_replace(text, std::regex("\\bmin\\("), "Least(");
  return std::regex_replace(text, std::regex("\\bmax\\("), "Most(");
}

std::string BytesInCuda(const Problem& problem, const Tensor& tensor) {
  std::string text = fmt::format("std::int64_t{{{}}}", SizeOf(tensor.type));
  for (const Expression& length : tensor.shape)
    text += fmt::format(" * ({})", InCuda(problem, length));
  return text;
}

// The names of a case as variables.
std::string Names(const Problem& problem) {
  std::string text = "  [[maybe_unused]] const std::int64_t world = args.world";
  for (const std::string& param : problem.params) text += fmt::format(", {0} = args.{0}", param);
  return text + ";\n";
}

std::vector<const Tensor*> Outputs(const Problem& problem) {
  std::vector<const Tensor*> all;
  for (const Tensor& tensor : problem.tensors)
    if (tensor.dir == Tensor::Dir::kOut) all.push_back(&tensor);
  return all;
}

// Every byte of every output becomes `value`, an expression over its index `i_`.
std::string Fill(const Problem& problem, const std::string& value) {
  std::string text = std::string(kFunctions) + "__global__ void Fill(Args args) {\n" +
                     Names(problem) +
                     "  const std::int64_t first_ = blockIdx.x * blockDim.x + threadIdx.x;\n"
                     "  const std::int64_t stride_ = gridDim.x * blockDim.x;\n";
  for (const Tensor* out : Outputs(problem)) {
    text += fmt::format(
        "  for (std::int64_t i_ = first_; i_ < {}; i_ += stride_)\n"
        "    reinterpret_cast<unsigned char*>(args.{})[i_] = {};\n",
        BytesInCuda(problem, *out), out->name, value);
  }
  return text + fmt::format(
                    "}}\n}}  // namespace control\n"
                    "extern \"C\" void {}(const Args& args, cudaStream_t stream) {{\n"
                    "  control::Fill<<<4, 256, 0, stream>>>(args);\n}}\n",
                    problem.calls[0]);
}

std::string Local(const Problem& problem) {
  const auto in = std::find_if(problem.tensors.begin(), problem.tensors.end(),
                               [](const Tensor& tensor) { return tensor.dir == Tensor::Dir::kIn; });
  if (in == problem.tensors.end()) return "";
  const std::string bytes = BytesInCuda(problem, *in);
  return Fill(problem,
              fmt::format("({0}) == 0 ? 0 : reinterpret_cast<const unsigned char*>(args.{1})"
                          "[i_ % Most(1, {0})]",
                          bytes, in->name));
}

// Outputs change places with those of the call before, as far as there is room for them.
std::string PreviousCall(const Problem& problem, const std::string& reference) {
  std::string text = fmt::format("#define {0} Reference_{0}\n{1}#undef {0}\n{2}", problem.calls[0],
                                 reference, kFunctions);
  text +=
      "__device__ unsigned char outputs_before[1 << 20];\n"
      "__device__ int calls_before;\n"
      "__global__ void Exchange(Args args) {\n" +
      Names(problem) +
      "  const bool first_ = calls_before == 0;\n"
      "  std::int64_t at_ = 0;\n";
  for (const Tensor* out : Outputs(problem)) {
    text += fmt::format(
        "  for (std::int64_t i_ = threadIdx.x; i_ < {0}; i_ += blockDim.x) {{\n"
        "    if (at_ + i_ >= static_cast<std::int64_t>(sizeof outputs_before)) break;\n"
        "    unsigned char* place_ = reinterpret_cast<unsigned char*>(args.{1}) + i_;\n"
        "    const unsigned char now_ = *place_;\n"
        "    if (!first_) *place_ = outputs_before[at_ + i_];\n"
        "    outputs_before[at_ + i_] = now_;\n"
        "  }}\n"
        "  at_ += {0};\n",
        BytesInCuda(problem, *out), out->name);
  }
  return text + fmt::format(
                    "  __syncthreads();\n"
                    "  if (threadIdx.x == 0) ++calls_before;\n"
                    "}}\n}}  // namespace control\n"
                    "extern \"C\" void {0}(const Args& args, cudaStream_t stream) {{\n"
                    "  Reference_{0}(args, stream);\n"
                    "  control::Exchange<<<1, 256, 0, stream>>>(args);\n}}\n",
                    problem.calls[0]);
}

// A file says in its first line what it must get; that line is no part of the candidate.
Control FromFile(const fs::path& path) {
  Control control{.name = path.stem().string(), .verdict = "", .region = "", .error = ""};
  Result<std::string> text = ReadFile(path);
  if (!text) {
    control.error = text.error().message;
    return control;
  }
  const std::size_t end = text->find('\n');
  const std::string line = text->substr(0, end);
  if (line.starts_with(kVerdictLine)) {
    control.verdict = line.substr(kVerdictLine.size());
    control.verdict.erase(control.verdict.find_last_not_of(" \r") + 1);
    text->erase(0, end == std::string::npos ? end : end + 1);
  }
  const auto& known = Verdicts();
  if (std::find(known.begin(), known.end(), control.verdict) == known.end())
    control.error = "the first line is not '// verdict: ' and a verdict";
  control.region = std::move(*text);
  return control;
}

}  // namespace

std::vector<Control> ControlsOf(const Problem& problem) {
  std::map<std::string, Control> controls;
  const auto add = [&](const char* name, std::string region) {
    if (region.empty()) return;
    controls[name] = {
        .name = name, .verdict = "wrong_result", .region = std::move(region), .error = ""};
  };
  if (CanBeMade(problem)) {
    add("zeros", Fill(problem, "0"));
    add("local", Local(problem));
    if (const auto whole = SolutionOf(problem, "reference.cu")) {
      if (const auto reference = SplitTemplate(*whole))
        add("previous_call", PreviousCall(problem, reference->inside));
    }
  }
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(problem.folder / "controls", error)) {
    if (entry.path().extension() != ".cu") continue;
    Control control = FromFile(entry.path());
    controls[control.name] = std::move(control);
  }
  std::vector<Control> all;
  for (auto& [name, control] : controls) all.push_back(std::move(control));
  return all;
}

}  // namespace allranks::problem
