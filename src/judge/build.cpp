#include "judge/build.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "judge/host_rules.h"
#include "judge/sandbox.h"
#include "judge/scratch.h"
#include "problem/args.h"
#include "problem/machine.h"
#include "wire/frame.h"

namespace allranks::judge {
namespace {

constexpr std::size_t kMaxLog = 16 << 10;

// Template, constexpr and macro bombs end here; an honest candidate takes 1 to 5 s and 300 MB.
SandboxLimits CompilerLimits() {
  SandboxLimits limits;
  limits.memory_bytes = 3ull << 30;
  limits.file_bytes = 256ull << 20;
  limits.processes = 64;
  limits.cpu = std::chrono::seconds(20);
  limits.output_bytes = 1 << 20;
  return limits;
}

std::string Bounded(std::string text) {
  if (text.size() <= kMaxLog) return text;
  const std::size_t half = kMaxLog / 2;
  return text.substr(0, half) +
         fmt::format("\n... {} bytes left out ...\n", text.size() - kMaxLog) +
         text.substr(text.size() - half);
}

std::string FirstError(const std::string& log) {
  std::size_t at = 0;
  std::string first;
  while (at < log.size()) {
    const std::size_t end = std::min(log.find('\n', at), log.size());
    const std::string line = log.substr(at, end - at);
    if (first.empty() && !line.empty()) first = line;
    if (line.find("error") != std::string::npos ||
        line.find("undefined reference") != std::string::npos)
      return line;
    at = end + 1;
  }
  return first.empty() ? "the compiler failed without a message" : first;
}

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

const char* ReasonOf(const SandboxEnd& end) {
  switch (end.why) {
    case SandboxEnd::Why::kMemory:
      return "the compiler exceeded its memory limit";
    case SandboxEnd::Why::kProcesses:
      return "the compiler exceeded its limit of processes";
    case SandboxEnd::Why::kCpu:
      return "the compiler exceeded its CPU time limit";
    case SandboxEnd::Why::kIdle:
      return "the compiler stopped making progress";
    case SandboxEnd::Why::kOutput:
      return "the compiler exceeded its output limit";
    case SandboxEnd::Why::kFiles:
      return "the compiler exceeded its file limit";
    case SandboxEnd::Why::kSignal:
      return "the compiler was killed by a signal";
    default:
      return nullptr;
  }
}

// A missing entry point is an error of the linker, and so is a second main().
std::string LinkFlags(const problem::Problem& problem) {
  std::vector<std::string> names = problem.calls;
  if (problem.setup) names.push_back("setup");
  if (problem.window == problem::Window::kHost) names.push_back("host");
  if (problem.window == problem::Window::kQuery) names = {"answer"};
  std::string text;
  for (const std::string& name : names) text += " -Wl,--require-defined=" + name;
  // Library functions that move bytes are charged, too (shim/driver/instrumented.cpp).
  if (problem.window == problem::Window::kHost)
    text += " -Wl,--wrap=memcpy -Wl,--wrap=memmove -Wl,--wrap=memset";
  return text;
}

// Of all that a candidate may include of ours.
Result<std::string> HashOfGiven(const std::string& include) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(include, error))
    if (entry.is_regular_file()) files.push_back(entry.path().string());
  if (error) return Fail("cannot read {}: {}", include, error.message());
  std::sort(files.begin(), files.end());
  std::string all;
  for (const std::string& file : files) {
    const Result<std::string> hash = HashOfFile(file);
    if (!hash) return Fail(hash.error());
    all += *hash;
  }
  return all;
}

Build Internal(std::string text) {
  Build build;
  build.verdict = Verdict::kInternalError;
  build.text = std::move(text);
  return build;
}

// A program and the hash of the module in it, if both are in the cache. nvcc does not give the same
// bytes twice, and judgements of one source may build it at the same time: a module belongs to a
// program, not to a source.
bool TakeFrom(const Cache& cache, const std::string& hash, Build* build) {
  const std::string program = cache.Find("candidates", hash);
  if (program.empty()) return false;
  const Result<std::string> program_hash = HashOfFile(program);
  if (!program_hash) return false;
  const std::string module = cache.Find("modules", *program_hash);
  if (module.empty()) return false;
  const Result<std::string> module_hash = HashOfFile(module);
  if (!module_hash) return false;
  build->program = program;
  build->module = *module_hash;
  return true;
}

}  // namespace

std::vector<std::string> CompilerFlags(const problem::Problem& problem,
                                       const node::Profile& profile) {
  const std::string arch = problem::ArchOf(problem, profile).substr(3);  // behind "sm_"
  std::vector<std::string> flags = {
      "-std=c++17", "-O3", "-lineinfo",
      fmt::format("-gencode=arch=compute_{0},code=[sm_{0},compute_{0}]", arch)};
  if (problem.window == problem::Window::kHost) {
    // Its accesses to shared memory are seen and its work is charged: shim/driver/instrumented.cpp.
    // What the compiler expands in place after that has no hooks, so these stay calls.
    // Volatile accesses count as relaxed ones, so they have hooks of their own.
    for (const char* flag : {"-fsanitize=thread", "--param=tsan-distinguish-volatile=1",
                             "-fsanitize-coverage=trace-pc", "-fno-builtin-memcpy",
                             "-fno-builtin-memmove", "-fno-builtin-memset"})
      flags.insert(flags.end(), {"-Xcompiler", flag});
  }
  return flags;
}

Result<std::string> CudaVersion(const Tools& tools) {
  constexpr std::string_view kDefine = "#define CUDART_VERSION";
  for (const char* folder : {"/include", "/targets/x86_64-linux/include"}) {
    std::ifstream header(tools.cuda + folder + "/cuda_runtime_api.h");
    for (std::string line; std::getline(header, line);) {
      if (!line.starts_with(kDefine)) continue;
      const int number = std::atoi(line.c_str() + kDefine.size());  // 13000: 13.0
      if (number >= 1000) return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
    }
  }
  return Fail(
      "no version in {}/include/cuda_runtime_api.h: install the whole CUDA toolkit or set "
      "CUDA_HOME",
      tools.cuda);
}

Build BuildCandidate(const Tools& tools, const problem::Problem& problem,
                     const node::Profile& profile, const std::string& source,
                     const std::string& folder) {
  const std::string header = problem::RenderHeader(problem);
  const std::string driver = tools.shim + "/liballranks_driver.a";
  const Result<std::string> driver_hash = HashOfFile(driver);
  if (!driver_hash) return Internal(driver_hash.error().message);
  const Result<std::string> runtime_hash = HashOfFile(tools.shim + "/libcudart.so.13");
  if (!runtime_hash) return Internal(runtime_hash.error().message);
  const std::string flags = Joined(CompilerFlags(problem, profile));
  struct stat nvcc{};
  if (stat((tools.cuda + "/bin/nvcc").c_str(), &nvcc) != 0) {
    return Internal(
        fmt::format("no nvcc in {}/bin: install the CUDA toolkit or set CUDA_HOME", tools.cuda));
  }
  const Result<std::string> given = HashOfGiven(tools.include);
  if (!given) return Internal(given.error().message);
  const bool nccl = problem::UsesNccl(problem);
  std::string library;  // flags for the linker
  if (nccl) {
    if (tools.nccl.empty())
      return Internal(
          "no libnccl.so.2: install NCCL where the CUDA toolkit or the system has its libraries, "
          "or set NCCL_HOME");
    library = " " + tools.nccl;
  }
  const std::string command = fmt::format(
      "nvcc {} --keep -I/tmp -I/allranks/include -c candidate.cu -o candidate.o && "
      "nm --format=posix candidate.o > symbols && "
      "g++ -o rank candidate.o -Wl,--whole-archive /allranks/shim/liballranks_driver.a "
      "-Wl,--no-whole-archive -rdynamic{} -L/allranks/shim -l:libcudart.so.13 "
      "-l:libcuda.so.1 -l:liballranks_host.so{} -lpthread -ldl",
      flags, LinkFlags(problem), library);
  // What was built without a sandbox is never taken for what was built in one.
  const std::string hash =
      HashOf({tools.trusted ? "trusted build 4" : "build 4", command, *given, source, header,
              *driver_hash, *runtime_hash, flags, tools.cuda, std::to_string(nvcc.st_mtim.tv_sec),
              std::to_string(nvcc.st_size)});
  const Cache cache(tools.cache);
  Build build;
  if (TakeFrom(cache, hash, &build)) {
    build.cached = true;
    return build;
  }
  const bool host = problem.window == problem::Window::kHost;
  if (std::string why = host ? RefusedSource(source) : ""; !why.empty()) {
    build.verdict = Verdict::kForbiddenApi;
    build.text = std::move(why);
    return build;
  }

  SandboxSpec spec;
  spec.name = "compiler";
  spec.filter = SandboxSpec::Filter::kCompiler;
  spec.trusted = tools.trusted;
  spec.limits = CompilerLimits();
  spec.files = {{"/tmp/candidate.cu", source}, {"/tmp/problem.h", header}};
  spec.collect = {"/tmp/rank", "/tmp/candidate.fatbin", "/tmp/symbols"};
  if (host) spec.collect.push_back("/tmp/candidate.cudafe1.cpp");
  spec.binds = {{tools.include, "/allranks/include", false}, {tools.shim, "/allranks/shim", false}};
  if (nccl) spec.binds.push_back({tools.nccl, tools.nccl, false});
  if (!tools.cuda.starts_with("/usr/")) spec.binds.push_back({tools.cuda, tools.cuda, false});
  spec.environment = {"PATH=" + tools.cuda + "/bin:/usr/bin:/bin", "TMPDIR=/tmp", "LC_ALL=C"};
  // The linker is called by g++ itself: nvcc would link device code once more.
  spec.command = {"/bin/sh", "-c", command};
  Result<std::unique_ptr<Sandbox>> sandbox = Sandbox::Start(spec);
  if (!sandbox) return Internal(sandbox.error().message);
  const SandboxEnd& end = (*sandbox)->Wait();
  build.cpu_seconds = end.cpu_seconds;
  build.log = Bounded(end.err + end.out);
  if (end.why == SandboxEnd::Why::kSandbox) return Internal(end.text);
  if (end.why == SandboxEnd::Why::kExit && (end.code == 126 || end.code == 127))
    return Internal("cannot start the compiler: " + FirstError(build.log));
  if (const char* reason = ReasonOf(end); reason != nullptr || end.code != 0) {
    build.verdict = Verdict::kCompileError;
    build.text = reason != nullptr ? reason : FirstError(build.log);
    return build;
  }
  if (!std::all_of(end.collected.begin(), end.collected.end(),
                   [](const auto& file) { return file.has_value(); })) {
    build.verdict = Verdict::kCompileError;
    build.text = "the build produced no program";
    return build;
  }
  build.log.clear();  // warnings: not there when it comes from the cache
  if (host) {
    std::string why = RefusedHostText(*end.collected[3], "candidate.cu");
    if (why.empty()) why = RefusedSymbols(*end.collected[2]);
    if (!why.empty()) {
      build.verdict = Verdict::kForbiddenApi;
      build.text = std::move(why);
      return build;
    }
  }
  build.program = folder + "/rank";
  const std::string module = folder + "/module";
  for (const auto& [made, what] : {std::pair(build.program, 0), std::pair(module, 1)}) {
    const std::string& bytes = *end.collected[static_cast<std::size_t>(what)];
    const wire::Fd file(open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755));
    if (file.get() < 0 ||
        write(file.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
      return Internal(fmt::format("cannot write {}: {}", made, std::strerror(errno)));
  }
  const Result<std::string> module_hash = HashOfFile(module);
  if (!module_hash) return Internal(module_hash.error().message);
  build.module = *module_hash;
  if (!cache.enabled()) return build;
  const Result<std::string> program_hash = HashOfFile(build.program);
  if (!program_hash) return Internal(program_hash.error().message);
  Result<std::string> kept = cache.Put("modules", *program_hash, module);
  // A program whose module somebody has removed would stay there, and be of no use, for ever.
  std::error_code none;
  if (Build known; kept && !TakeFrom(cache, hash, &known))
    std::filesystem::remove(cache.Find("candidates", hash), none);
  if (kept) kept = cache.Put("candidates", hash, build.program);
  if (!kept) return Internal(kept.error().message);
  if (!TakeFrom(cache, hash, &build)) return Internal("what was built is not in the cache");
  return build;
}

}  // namespace allranks::judge
