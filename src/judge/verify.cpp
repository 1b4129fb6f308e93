// Compiling, loading and calling an oracle. See verify.h; the interface to the shared object is
// include/allranks/oracle/abi.h.
#include "judge/verify.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <allranks/oracle/abi.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/check.h"
#include "judge/stream.h"
#include "problem/source.h"

namespace allranks::judge {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kTold = 5;  // wrong elements that are described

// Comparing is loops over doubles: as wide as this machine has them. No contraction and no
// reordering, so every width computes the same.
std::vector<std::string> Flags() {
  std::vector<std::string> flags = {"-std=c++20", "-O3",   "-ffp-contract=off",
                                    "-shared",    "-fPIC", "-DALLRANKS_ORACLE_MODULE"};
  if (__builtin_cpu_supports("avx2")) flags.push_back("-mavx2");
  return flags;
}

Result<std::string> Read(const fs::path& path) { return problem::ReadFile(path); }

// Of everything that decides what the shared object does.
Result<std::string> HashOf(const fs::path& source, const fs::path& include) {
  std::vector<fs::path> files = {include / "allranks" / "oracle.h"};
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(include / "allranks" / "oracle", error)) {
    files.push_back(entry.path());
  }
  if (error) return Fail("{}: {}", (include / "allranks/oracle").string(), error.message());
  std::sort(files.begin(), files.end());
  files.push_back(source);
  std::string all;
  for (const fs::path& file : files) {
    const Result<std::string> text = Read(file);
    if (!text) return Fail(text.error());
    all += fmt::format("{} {}\n{}\n", file.filename().string(), text->size(), *text);
  }
  for (const std::string& flag : Flags()) all += flag + "\n";
  return Hex(KeyOf(all, "oracle")).substr(0, 32);
}

Status Compile(const fs::path& source, const fs::path& include, const fs::path& to) {
  const fs::path log = to.string() + ".log";
  std::vector<std::string> command = {"g++"};
  for (const std::string& flag : Flags()) command.push_back(flag);
  for (const std::string& word :
       {std::string("-I"), include.string(), source.string(), std::string("-o"), to.string()}) {
    command.push_back(word);
  }
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child = 0;
  const int error = posix_spawnp(&child, "g++", &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return Fail("cannot start g++: {}", std::strerror(error));
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return Fail("cannot wait for g++: {}", std::strerror(errno));
  }
  const std::string words = Read(log).value_or("");
  std::error_code ignored;
  fs::remove(log, ignored);
  if (status != 0) return Fail("{} does not compile:\n{}", source.string(), words.substr(0, 4000));
  return Ok();
}

void* OpenLibrary(const fs::path& path) { return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); }

// A call as the shared object wants it. Points into itself and into the view: not to be moved.
struct RawView {
  std::vector<const char*> params;
  std::vector<oracle::RawTensor> tensors;
  std::vector<const void*> data;
  std::vector<std::uint32_t> poison;
  oracle::RawCall call{};

  RawView() = default;
  RawView(const RawView&) = delete;
  RawView& operator=(const RawView&) = delete;

  // `outputs`: they must be there.
  Status Set(const problem::Problem& problem, const problem::Case& one, const CallView& view,
             bool outputs) {
    for (const std::string& name : problem.params) params.push_back(name.c_str());
    for (const problem::Tensor& tensor : problem.tensors) {
      const bool symmetric = tensor.dir == problem::Tensor::Dir::kSymmetric;
      tensors.push_back({.name = tensor.name.c_str(),
                         .count = symmetric ? 0 : problem::CountOf(problem, tensor, one),
                         .type = static_cast<oracle::Type>(tensor.type),
                         .dir = static_cast<oracle::Dir>(tensor.dir)});
    }
    if (view.by_rank.size() != static_cast<std::size_t>(one.world)) {
      return Fail("views of {} ranks, not {}", view.by_rank.size(), one.world);
    }
    for (std::size_t rank = 0; rank < view.by_rank.size(); ++rank) {
      const auto& by_tensor = view.by_rank[rank];
      if (by_tensor.size() != tensors.size()) return Fail("not a view for every tensor");
      for (std::size_t t = 0; t < tensors.size(); ++t) {
        const std::uint64_t bytes = tensors[t].count * problem::SizeOf(problem.tensors[t].type);
        const bool absent = by_tensor[t].empty() && tensors[t].dir == oracle::Dir::kOut && !outputs;
        if (by_tensor[t].size() != bytes && !absent && tensors[t].dir != oracle::Dir::kSymmetric) {
          return Fail("rank {}'s '{}' has {} bytes, not {}", rank, tensors[t].name,
                      by_tensor[t].size(), bytes);
        }
        data.push_back(by_tensor[t].data());
        poison.push_back(view.poison);
      }
    }
    call = {.version = oracle::kAbiVersion,
            .world = one.world,
            .param_count = static_cast<std::uint32_t>(params.size()),
            .tensor_count = static_cast<std::uint32_t>(tensors.size()),
            .param_names = params.data(),
            .params = one.params.data(),
            .tensors = tensors.data(),
            .data = data.data(),
            .poison = poison.data(),
            .random = {view.random[0], view.random[1], view.random[2], view.random[3]}};
    return Ok();
  }
};

// The numbering of types and directions is part of the interface.
static_assert(static_cast<int>(oracle::Type::kU64) == static_cast<int>(problem::Type::kU64));
static_assert(static_cast<int>(oracle::Type::kBf16) == static_cast<int>(problem::Type::kBf16));
static_assert(static_cast<int>(oracle::Dir::kSymmetric) ==
              static_cast<int>(problem::Tensor::Dir::kSymmetric));

struct Told {
  const problem::Problem* problem;
  std::string text;
  static void Wrong(void* context, std::int32_t rank, std::uint32_t tensor, std::uint64_t index,
                    const char* expected, const char* got) {
    auto* told = static_cast<Told*>(context);
    if (!told->text.empty()) told->text += "; ";
    told->text += fmt::format("rank {}, {}[{}]: {} expected", rank,
                              told->problem->tensors[tensor].name, index, expected);
    if (got[0] != 0) told->text += fmt::format(", got {}", got);
  }
};

}  // namespace

Result<Oracle> Oracle::Load(const Tools& tools, const problem::Problem& problem) {
  const fs::path source = problem.folder / "oracle.cpp";
  const Result<std::string> hash = HashOf(source, tools.include);
  if (!hash) return Fail(hash.error());
  std::error_code error;
  const bool keep = !tools.cache.empty();
  const fs::path folder = keep ? fs::path(tools.cache) : fs::temp_directory_path(error);
  fs::create_directories(folder, error);
  if (error) return Fail("{}: {}", folder.string(), error.message());
  const fs::path kept = folder / fmt::format("oracle-{}.so", *hash);

  Oracle oracle;
  if (keep && fs::exists(kept, error)) oracle.handle_ = OpenLibrary(kept);
  if (oracle.handle_ == nullptr) {
    // Under a name of its own first: others may compile the same now, or read it.
    const fs::path fresh =
        folder / fmt::format("oracle-{}.{}.tmp", *hash, Hex(FreshKey()).substr(0, 16));
    const Status compiled = Compile(source, tools.include, fresh);
    if (!compiled) {
      fs::remove(fresh, error);
      return Fail(compiled.error());
    }
    oracle.handle_ = OpenLibrary(fresh);
    const char* why = oracle.handle_ == nullptr ? dlerror() : nullptr;
    if (keep && oracle.handle_ != nullptr) fs::rename(fresh, kept, error);
    fs::remove(fresh, error);
    if (oracle.handle_ == nullptr) {
      return Fail("{} does not load: {}", source.string(), why == nullptr ? "no reason" : why);
    }
  }
  oracle.entry_ = dlsym(oracle.handle_, oracle::kEntry);
  oracle.floors_ = dlsym(oracle.handle_, oracle::kFloorsEntry);
  if (oracle.entry_ == nullptr || oracle.floors_ == nullptr) {
    return Fail("{} does not include <allranks/oracle.h>", source.string());
  }
  return oracle;
}

Oracle::~Oracle() {
  if (handle_ != nullptr) dlclose(handle_);
}

Oracle::Oracle(Oracle&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)),
      entry_(other.entry_),
      floors_(other.floors_) {}

Verified Oracle::Verify(const problem::Problem& problem, const problem::Case& one,
                        const CallView& view) const {
  RawView raw;
  if (const Status set = raw.Set(problem, one, view, true); !set) {
    return {.failure = set.error().message, .wrong = 0, .text = ""};
  }
  Told told{.problem = &problem, .text = ""};
  oracle::RawReport report{
      .context = &told, .wrong = &Told::Wrong, .limit = kTold, .wrong_count = 0, .error = {}};
  const int status = reinterpret_cast<oracle::EntryFunction>(entry_)(&raw.call, &report);
  if (status == 0) {
    return {.failure = "", .wrong = report.wrong_count, .text = std::move(told.text)};
  }
  return {.failure = status == 2 ? "the oracle has another version"
                                 : fmt::format("the oracle of {}: {}", problem.slug, report.error),
          .wrong = 0,
          .text = ""};
}

Result<std::vector<FloorValues>> Oracle::Floors(const problem::Problem& problem,
                                                const problem::Case& one,
                                                const CallView& view) const {
  const Result<FloorValues> common = FloorOf(problem, one);
  if (!common) return Fail(common.error());
  RawView raw;
  if (const Status set = raw.Set(problem, one, view, false); !set) return Fail(set.error());
  std::vector<FloorValues> floors;
  for (int rank = 0; rank < one.world; ++rank) {
    oracle::Floor floor{common->ingress, common->egress, common->busiest,
                        common->hbm,     common->flops,  common->hops};
    char why[256] = {};
    const int status =
        reinterpret_cast<oracle::FloorsFunction>(floors_)(&raw.call, rank, &floor, why);
    if (status != 0) return Fail("floors of {}: {}", problem.slug, why);
    floors.push_back(
        {floor.ingress, floor.egress, floor.busiest, floor.hbm, floor.flops, floor.hops});
  }
  return floors;
}

}  // namespace allranks::judge
