// Every check looks at the machine itself, in the way in which the program will use it.
#include "cli/doctor.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/exec.h"
#include "cli/judge_tools.h"
#include "cli/places.h"
#include "cli/usage.h"
#include "cli/version.h"
#include "judge/build.h"
#include "judge/sandbox.h"
#include "judge/spawn.h"
#include "model/entry.h"
#include "problem/problem.h"

namespace allranks::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kHelp[] =
    R"(Looks at this machine and says what works, and for what does not the remedy. Nothing is changed or
sent. Keys of model providers are named, never printed.

  ok       it works
  missing  `exec` or `judge` does not work without it
  none     not there; only what is named needs it

Exit codes: 0; 1 if programs cannot be run or candidates cannot be judged; 2 wrong usage.

The JSON has the members version, allranks, exec, judge (whether they work),
  checks[]: name, standing (ok, missing, none), for (exec, judge, or what else needs it), found, remedy)";

struct Check {
  enum class Standing { kOk, kMissing, kNone };
  std::string name;
  std::string needed_by;  // "exec", "judge", or what else
  Standing standing = Standing::kOk;
  std::string found, remedy;
};

const char* NameOf(Check::Standing standing) {
  switch (standing) {
    case Check::Standing::kOk:
      return "ok";
    case Check::Standing::kMissing:
      return "missing";
    case Check::Standing::kNone:
      return "none";
  }
  return "";
}

// A program that a shell would find; empty: none.
std::string OnPath(std::string_view name) {
  const std::string path = Environment("PATH");
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    const fs::path program = fs::path(path.substr(at, end - at)) / name;
    if (access(program.c_str(), X_OK) == 0) return program.string();
    at = end + 1;
  }
  return "";
}

// The first line of a file; empty: there is none.
std::string LineOf(const char* file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

double Gigabytes(double bytes) { return bytes / 1e9; }

// --- what exec needs ---------------------------------------------------------------------------

Check Libraries() {
  Check check{.name = "libraries", .needed_by = "exec", .found = {}, .remedy = {}};
  const Result<std::string> folder = FindShim();
  if (!folder) {
    check.standing = Check::Standing::kMissing;
    check.found = folder.error().message;
    check.remedy = "install allranks again; bin/ and lib/ must stay beside each other";
    return check;
  }
  check.found = *folder;
  if (access((*folder + "/libcudart.so.13").c_str(), R_OK) != 0) {
    check.standing = Check::Standing::kMissing;
    check.found += ", without libcudart.so.13: it was built without CUDA's headers";
    check.remedy = "build it where nvcc is installed, or install the package";
  }
  return check;
}

Check Runtime() {
  return {
      .name = "CUDA runtime",
      .needed_by = "exec",
      .found = "programs with the shared or the static runtime (nvcc's default); no stripped ones",
      .remedy = {}};
}

Check Profiles() {
  Check check{.name = "profiles", .needed_by = "exec", .found = {}, .remedy = {}};
  std::size_t count = 0;
  std::error_code error;
  for (const std::string& folder : ProfileFolders())
    for (const auto& entry : fs::directory_iterator(folder, error))
      count += entry.path().extension() == ".toml";
  check.found = fmt::format("{} in {}", count, ProfileFolders().back());
  if (count != 0) return check;
  check.standing = Check::Standing::kMissing;
  check.remedy = "install allranks again; bin/ and share/ must stay beside each other";
  return check;
}

Check SharedMemory() {
  Check check{.name = "/dev/shm", .needed_by = "exec", .found = {}, .remedy = {}};
  struct statvfs status{};
  if (statvfs("/dev/shm", &status) != 0 || access("/dev/shm", W_OK) != 0) {
    check.standing = Check::Standing::kNone;
    check.needed_by = "programs with shm_open, NCCL";
    check.found = "cannot be written";
    check.remedy = "mount a tmpfs there";
    return check;
  }
  const double size = static_cast<double>(status.f_blocks) * static_cast<double>(status.f_frsize);
  const double free = static_cast<double>(status.f_bavail) * static_cast<double>(status.f_frsize);
  check.found = fmt::format("{:.1f} GB, {:.1f} free", Gigabytes(size), Gigabytes(free));
  if (free < 100e6) check.remedy = "NCCL needs more: docker run --shm-size=1g";
  return check;
}

Check Machine() {
  Check check{.name = "machine", .needed_by = "exec", .found = {}, .remedy = {}};
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  double available = 0;
  std::ifstream memory("/proc/meminfo");
  for (std::string key; memory >> key;) {
    double kilobytes = 0;
    std::string rest;
    memory >> kilobytes;
    std::getline(memory, rest);
    if (key == "MemAvailable:") available = kilobytes * 1024;
  }
  check.found =
      fmt::format("{} cores, {:.1f} GB of memory available", CPU_COUNT(&set), Gigabytes(available));
  if (available < 3e9) check.remedy = "a judgement may need 2.5 GB beside its ranks";
  return check;
}

// --- what judge needs --------------------------------------------------------------------------

Check Nvcc(const std::string& cuda) {
  Check check{.name = "nvcc", .needed_by = "judge", .found = {}, .remedy = {}};
  judge::Tools tools;
  tools.cuda = cuda;
  const Result<std::string> version = judge::CudaVersion(tools);
  if (version && access((cuda + "/bin/nvcc").c_str(), X_OK) == 0) {
    check.found = fmt::format("{} in {}", *version, cuda);
    return check;
  }
  check.standing = Check::Standing::kMissing;
  check.found = cuda.empty() ? "not found"
                : version    ? cuda + "/bin/nvcc cannot be run"
                             : version.error().message;
  check.remedy = "install the CUDA toolkit 13.0 and add its bin/ to PATH, or set CUDA_HOME";
  return check;
}

Check Program(const char* name, std::string found, std::string needed_by, std::string remedy,
              bool required) {
  Check check{
      .name = name, .needed_by = std::move(needed_by), .found = std::move(found), .remedy = {}};
  if (!check.found.empty()) return check;
  check.standing = required ? Check::Standing::kMissing : Check::Standing::kNone;
  check.found = "not on PATH";
  check.remedy = std::move(remedy);
  return check;
}

// Whether this user may make one, by making one in a child.
bool MakesUserNamespace() {
  const pid_t child = fork();
  if (child == 0) _exit(unshare(CLONE_NEWUSER) == 0 ? 0 : 1);
  int status = 1;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

Check UserNamespaces() {
  Check check{.name = "user namespaces", .needed_by = "judge", .found = "allowed", .remedy = {}};
  if (MakesUserNamespace()) return check;
  if (geteuid() == 0) {
    check.found = "not allowed, and not needed: this is root";
    return check;
  }
  check.standing = Check::Standing::kMissing;
  check.found = "not allowed";
  if (LineOf("/proc/sys/kernel/unprivileged_userns_clone") == "0") {
    check.remedy = "sysctl kernel.unprivileged_userns_clone=1";
  } else if (LineOf("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1") {
    check.remedy = "sysctl kernel.apparmor_restrict_unprivileged_userns=0";
  } else if (LineOf("/proc/sys/user/max_user_namespaces") == "0") {
    check.remedy = "sysctl user.max_user_namespaces=10000";
  } else {
    check.remedy = "in a container: docker run --security-opt seccomp=unconfined, or as root";
  }
  return check;
}

Check Sandbox() {
  Check check{.name = "sandbox", .needed_by = "judge", .found = {}, .remedy = {}};
  const judge::SandboxMeans& means = judge::Means();
  if (!means.missing.empty()) {
    check.standing = Check::Standing::kMissing;
    check.found = means.missing;
    check.remedy =
        "see bwrap and user namespaces; `allranks judge --trusted` needs neither, for code of your "
        "own";
    return check;
  }
  check.found = means.drops_user ? "works; candidates run as nobody" : "works";
  return check;
}

Check Bounds() {
  Check check{.name = "control groups",
              .needed_by = "bounds of memory for all processes of a candidate",
              .found = judge::Means().cgroup,
              .remedy = {}};
  if (check.found != "none") return check;
  check.standing = Check::Standing::kNone;
  check.found = "cannot be written: memory is bounded by process only";
  check.remedy = "systemd-run --user --scope -p Delegate=yes allranks judge ...";
  return check;
}

Check Seccomp() {
  Check check{.name = "seccomp", .needed_by = "judge", .found = {}, .remedy = {}};
  const std::string actions = LineOf("/proc/sys/kernel/seccomp/actions_avail");
  check.found = actions.empty() ? "the kernel has no filters" : "filters";
  if (!actions.empty()) return check;
  check.standing = Check::Standing::kMissing;
  check.remedy = "a kernel with CONFIG_SECCOMP_FILTER";
  return check;
}

Check Landlock() {
  Check check{.name = "landlock", .needed_by = "nothing yet", .found = {}, .remedy = {}};
  constexpr long kCreateRuleset = 444, kVersion = 1;
  const long version = syscall(kCreateRuleset, nullptr, 0, kVersion);
  check.found = version > 0 ? fmt::format("version {}", version) : "not in this kernel";
  if (version <= 0) check.standing = Check::Standing::kNone;
  return check;
}

Check Ptrace() {
  Check check{.name = "ptrace", .needed_by = "debuggers of ranks", .found = {}, .remedy = {}};
  const std::string scope = LineOf("/proc/sys/kernel/yama/ptrace_scope");
  check.found = scope.empty() || scope == "0" ? "of any own process"
                : scope == "1"                ? "of children only"
                                              : "not allowed";
  return check;
}

Check Problems() {
  Check check{.name = "problems", .needed_by = "judge", .found = {}, .remedy = {}};
  std::size_t count = 0;
  for (const std::string& folder : ProblemFolders("")) count += problem::Find(folder).size();
  check.found = fmt::format("{} in {}", count, ProblemFolders("").back());
  if (count != 0) return check;
  check.standing = Check::Standing::kMissing;
  check.remedy = "install the package allranks-problems, or set ALLRANKS_PROBLEMS";
  return check;
}

Check CacheOfBuilds() {
  Check check{
      .name = "cache", .needed_by = "not compiling again what has been", .found = {}, .remedy = {}};
  const Result<std::string> folder = FindCache();
  check.found = folder ? *folder : folder.error().message;
  if (folder) return check;
  check.standing = Check::Standing::kNone;
  check.remedy = "ALLRANKS_CACHE=FOLDER";
  return check;
}

// --- the rest ----------------------------------------------------------------------------------

Check Keys() {
  Check check{.name = "keys of models", .needed_by = "run", .found = {}, .remedy = {}};
  const Result<std::vector<fs::path>> files = FindModelsFiles("");
  const Result<std::vector<model::Entry>> entries =
      files ? model::LoadModels(*files) : Result<std::vector<model::Entry>>(Fail(files.error()));
  if (!entries) {
    check.standing = Check::Standing::kNone;
    check.found = entries.error().message;
    return check;
  }
  std::vector<std::string> set, unset;
  for (const model::Entry& entry : *entries) {
    if (entry.key_variable.empty()) continue;
    auto& list = Environment(entry.key_variable.c_str()).empty() ? unset : set;
    if (std::find(list.begin(), list.end(), entry.key_variable) == list.end())
      list.push_back(entry.key_variable);
  }
  check.found = set.empty() ? "none is set" : fmt::format("{}", fmt::join(set, ", "));
  if (!set.empty()) return check;
  check.standing = Check::Standing::kNone;
  check.remedy = fmt::format("export one of {}", fmt::join(unset, ", "));
  return check;
}

Check Nccl(const std::string& cuda) {
  Check check{.name = "NCCL",
              .needed_by = "problems with library nccl",
              .found = FindNccl(cuda),
              .remedy = {}};
  if (!check.found.empty()) return check;
  check.standing = Check::Standing::kNone;
  check.found = "no libnccl.so.2";
  check.remedy = "install libnccl2 of CUDA's repository, or set NCCL_HOME";
  return check;
}

Check Verbs() {
  Check check{.name = "verbs", .needed_by = "nothing yet", .found = {}, .remedy = {}};
  std::error_code error;
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator("/sys/class/infiniband", error))
    count += !entry.path().empty();
  check.found =
      count == 0 ? "no adapters, and none are needed" : fmt::format("{} adapters, not used", count);
  if (count == 0) check.standing = Check::Standing::kNone;
  return check;
}

std::vector<Check> AllChecks() {
  const std::string cuda = FindCuda();
  std::vector<Check> checks = {Libraries(), Runtime(), Profiles(), SharedMemory(), Machine()};
  checks.push_back(Nvcc(cuda));
  checks.push_back(Program("g++", OnPath("g++"), "judge", "apt install g++", true));
  checks.push_back(
      Program("bwrap", judge::FindBubblewrap(), "judge", "apt install bubblewrap", true));
  checks.push_back(UserNamespaces());
  checks.push_back(Seccomp());
  checks.push_back(Sandbox());
  checks.push_back(Problems());
  checks.push_back(Bounds());
  checks.push_back(Landlock());
  checks.push_back(Ptrace());
  checks.push_back(CacheOfBuilds());
  checks.push_back(Nccl(cuda));
  checks.push_back(Verbs());
  checks.push_back(Keys());
  checks.push_back(
      Program("gnuplot", OnPath("gnuplot"), "plots of report", "apt install gnuplot-nox", false));
  checks.push_back(Program("mpirun", OnPath("mpirun"), "programs that it starts",
                           "apt install openmpi-bin", false));
  checks.push_back(Program("sbatch", OnPath("sbatch"), "campaigns on a Slurm cluster",
                           "a login node of the cluster", false));
  return checks;
}

bool Works(const std::vector<Check>& checks, std::string_view what) {
  return std::none_of(checks.begin(), checks.end(), [&](const Check& check) {
    return check.standing == Check::Standing::kMissing &&
           (check.needed_by == "exec" || check.needed_by == what);
  });
}

class DoctorCommand : public Command {
 public:
  explicit DoctorCommand(CLI::App* app) {
    command_ = app->add_subcommand("doctor", "Say what works on this machine, and what is missing");
    command_->footer(kHelp);
    command_->formatter(std::make_shared<UsageFormatter>("doctor [--json]"));
    command_->add_flag("--json", json_, "Print JSON");
  }
  int Run() const override;

 private:
  bool json_ = false;
};

int DoctorCommand::Run() const {
  const std::vector<Check> checks = AllChecks();
  const bool exec = Works(checks, "exec"), judges = Works(checks, "judge");
  if (json_) {
    nlohmann::ordered_json all = {
        {"version", 1}, {"allranks", LongVersion()}, {"exec", exec}, {"judge", judges}};
    for (const Check& check : checks)
      all["checks"].push_back({{"name", check.name},
                               {"standing", NameOf(check.standing)},
                               {"for", check.needed_by},
                               {"found", check.found},
                               {"remedy", check.remedy}});
    fmt::print("{}\n", all.dump(2));
    return exec && judges ? 0 : 1;
  }
  fmt::print("{}\n\n", LongVersion());
  for (const Check& check : checks) {
    std::string found = check.found;
    std::replace(found.begin(), found.end(), '\n', ' ');
    fmt::print("{:<8} {:<16} {}\n", NameOf(check.standing), check.name, found);
    if (check.standing != Check::Standing::kOk && check.needed_by != "exec" &&
        check.needed_by != "judge")
      fmt::print("{:<25} only for: {}\n", "", check.needed_by);
    if (!check.remedy.empty()) fmt::print("{:<25} remedy: {}\n", "", check.remedy);
  }
  const auto word = [](bool works) { return works ? "works" : "does not work: see `missing`"; };
  fmt::print("\nexec, check: {}\njudge: {}\n", word(exec), word(judges));
  return exec && judges ? 0 : 1;
}

}  // namespace

std::unique_ptr<Command> MakeDoctorCommand(CLI::App* app) {
  return std::make_unique<DoctorCommand>(app);
}

}  // namespace allranks::cli
