#include "judge/cgroup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string_view>
#include <thread>

namespace allranks::judge {

namespace fs = std::filesystem;

namespace {

// What can be read: a group that another process removes meanwhile ends the file with an error,
// which a stream notes and its buffer would throw.
std::string ReadAll(const fs::path& path) {
  const std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

bool WriteAll(const fs::path& path, std::string_view text) {
  const wire::Fd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return fd.get() >= 0 &&
         write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// A file of the kernel's that is read again and again.
std::string ReadAgain(const wire::Fd& fd) {
  char buffer[2048];
  const ssize_t got = fd.get() < 0 ? -1 : pread(fd.get(), buffer, sizeof buffer, 0);
  return got <= 0 ? std::string() : std::string(buffer, static_cast<std::size_t>(got));
}

std::uint64_t ToNumber(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// The number in the line "KEY NUMBER".
std::uint64_t NumberOf(const std::string& text, std::string_view key) {
  std::istringstream lines(text);
  for (std::string word; lines >> word;) {
    std::uint64_t value = 0;
    if (!(lines >> value)) return 0;
    if (word == key) return value;
  }
  return 0;
}

struct Mount {
  std::string root, at, type, options;
};

std::vector<Mount> ParseMounts(const std::string& mountinfo) {
  std::vector<Mount> mounts;
  std::istringstream lines(mountinfo);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream left(line.substr(0, dash)), right(line.substr(dash + 3));
    std::string skipped, source;
    Mount mount;
    left >> skipped >> skipped >> skipped >> mount.root >> mount.at;
    right >> mount.type >> source >> mount.options;
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

// The folder of group `path` under a mount that shows the tree from `mount.root` on. A group that
// it does not show: the mount's top.
fs::path Place(const Mount& mount, const std::string& path) {
  if (mount.root == "/") return fs::path(mount.at) / path.substr(1);
  if (path == mount.root) return mount.at;
  if (path.starts_with(mount.root + "/")) {
    return fs::path(mount.at) / path.substr(mount.root.size() + 1);
  }
  return mount.at;
}

bool HasWord(const std::string& list, std::string_view word) {
  std::istringstream words(list);
  for (std::string each; std::getline(words, each, ',');) {
    if (each == word) return true;
  }
  return false;
}

// True if a group can be made there and has these files.
bool Usable(const fs::path& place, std::initializer_list<const char*> files) {
  const fs::path trial = place / (MakerName() + "-trial");
  if (mkdir(trial.c_str(), 0755) != 0) return false;
  const bool good = std::all_of(files.begin(), files.end(), [&](const char* file) {
    return access((trial / file).c_str(), W_OK) == 0;
  });
  rmdir(trial.c_str());
  return good;
}

// Field 22 of /proc/PID/stat: when the process began. Empty: there is none.
std::string StartOf(const std::string& pid) {
  const std::string stat = ReadAll(fs::path("/proc") / pid / "stat");
  const std::size_t end_of_name = stat.rfind(')');
  if (end_of_name == std::string::npos) return "";
  std::istringstream fields(stat.substr(end_of_name + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  return field;
}

std::string Namespace() {
  struct stat about;
  return stat("/proc/self/ns/pid", &about) == 0 ? std::to_string(about.st_ino) : "0";
}

void KillIn(const fs::path& folder) {
  if (WriteAll(folder / "cgroup.kill", "1")) return;
  std::istringstream pids(ReadAll(folder / "cgroup.procs"));
  for (pid_t pid; pids >> pid;) {
    if (pid > 0) kill(pid, SIGKILL);
  }
}

// A group can be removed when its last process is quite gone, which is soon after it is killed.
void Remove(const fs::path& folder) {
  for (int i = 0; i < 200; ++i) {
    if (rmdir(folder.c_str()) == 0 || errno != EBUSY) return;
    KillIn(folder);
    std::this_thread::sleep_for(std::chrono::milliseconds(i < 20 ? 1 : 10));
  }
}

void SweepUnder(const fs::path& folder, int depth) {
  std::error_code error;
  std::vector<fs::path> gone, others;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    std::error_code ignored;
    if (!entry.is_directory(ignored)) continue;
    if (entry.path().filename().string().starts_with(kMakerPrefix)) {
      if (MakerIsGone(entry.path().filename())) gone.push_back(entry.path());
    } else if (depth > 0) {
      others.push_back(entry.path());
    }
  }
  for (const fs::path& each : gone) {
    KillIn(each);
    Remove(each);
  }
  for (const fs::path& each : others) SweepUnder(each, depth - 1);
}

}  // namespace

std::string MakerName() {
  const std::string pid = std::to_string(getpid());
  return fmt::format("{}{}-{}-{}", kMakerPrefix, Namespace(), pid, StartOf(pid));
}

bool MakerIsGone(const std::string& name) {
  std::istringstream parts(name.substr(std::min(kMakerPrefix.size(), name.size())));
  std::string space, pid, start;
  std::getline(parts, space, '-');
  std::getline(parts, pid, '-');
  std::getline(parts, start, '-');
  const bool numbers =
      !pid.empty() && !start.empty() && pid.find_first_not_of("0123456789") == std::string::npos;
  return numbers && space == Namespace() && StartOf(pid) != start;
}

CgroupPlaces FindCgroupPlaces(const std::string& cgroup, const std::string& mountinfo) {
  std::map<std::string, std::string> groups;  // controller ("" in version 2) to path
  std::istringstream lines(cgroup);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos || second + 1 >= line.size()) continue;
    std::istringstream names(line.substr(first + 1, second - first - 1));
    std::string name;
    do {
      name.clear();
      std::getline(names, name, ',');
      groups[name] = line.substr(second + 1);
    } while (names);
  }
  const std::vector<Mount> mounts = ParseMounts(mountinfo);
  CgroupPlaces places;
  const auto controller = [&](const std::string& name) -> fs::path {
    if (!groups.contains(name)) return {};
    for (const Mount& mount : mounts) {
      if (mount.type != "cgroup" || !HasWord(mount.options, name)) continue;
      places.tops.push_back(mount.at);
      return Place(mount, groups[name]);
    }
    return {};
  };
  const fs::path memory = controller("memory"), pids = controller("pids"),
                 cpu = controller("cpuacct");
  if (!memory.empty() && !pids.empty() && !cpu.empty() &&
      Usable(memory, {"memory.limit_in_bytes"}) && Usable(pids, {"pids.max"}) && Usable(cpu, {})) {
    places.version = 1;
    places.memory = memory;
    places.pids = pids;
    places.cpu = cpu;
    return places;
  }
  places.tops.clear();
  for (const Mount& mount : mounts) {
    if (mount.type != "cgroup2") continue;
    // A group with processes of its own, as ours is, cannot bound groups inside it; the one around
    // it may.
    const fs::path own = Place(mount, groups[""]);
    for (const fs::path& place : {own, own.parent_path(), fs::path(mount.at)}) {
      if (!place.string().starts_with(mount.at)) continue;
      WriteAll(place / "cgroup.subtree_control", "+memory +pids");
      if (!Usable(place, {"memory.max", "pids.max", "cgroup.procs"})) continue;
      places.version = 2;
      places.memory = places.pids = places.cpu = place;
      places.tops = {mount.at};
      return places;
    }
  }
  return {};
}

const CgroupPlaces& OurCgroupPlaces() {
  static const CgroupPlaces kPlaces =
      FindCgroupPlaces(ReadAll("/proc/self/cgroup"), ReadAll("/proc/self/mountinfo"));
  return kPlaces;
}

Result<std::unique_ptr<Cgroup>> Cgroup::Make(const CgroupPlaces& places, const Bounds& bounds) {
  static std::atomic<std::uint64_t> next{0};
  const std::string name = fmt::format("{}-{}", MakerName(), next++);
  std::unique_ptr<Cgroup> group(new Cgroup);
  group->version_ = places.version;
  for (const fs::path& place : {places.memory, places.pids, places.cpu}) {
    const fs::path folder = place / name;
    if (std::find(group->folders_.begin(), group->folders_.end(), folder) !=
        group->folders_.end()) {
      continue;
    }
    if (mkdir(folder.c_str(), 0755) != 0) {
      return Fail("cannot create the control group {}: {}", folder.string(), strerror(errno));
    }
    group->folders_.push_back(folder);
    group->doors_.emplace_back(open((folder / "cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
    if (group->doors_.back().get() < 0) {
      return Fail("cannot join the control group {}: {}", folder.string(), strerror(errno));
    }
  }
  const fs::path memory = places.memory / name, pids = places.pids / name, cpu = places.cpu / name;
  const auto number = [](std::uint64_t value) { return std::to_string(value); };
  const bool v1 = places.version == 1;
  const bool bounded = WriteAll(memory / (v1 ? "memory.limit_in_bytes" : "memory.max"),
                                number(bounds.memory_bytes)) &&
                       WriteAll(pids / "pids.max", number(bounds.processes));
  if (!bounded) return Fail("cannot set the limits of {}: {}", memory.string(), strerror(errno));
  // Not every kernel has these.
  if (v1) {
    WriteAll(memory / "memory.memsw.limit_in_bytes", number(bounds.memory_bytes));
  } else {
    WriteAll(memory / "memory.swap.max", "0");
    WriteAll(memory / "memory.oom.group", "1");
  }
  const auto file = [](const fs::path& path) {
    return wire::Fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  };
  group->cpu_ = file(cpu / (v1 ? "cpuacct.usage" : "cpu.stat"));
  group->peak_ = file(memory / (v1 ? "memory.max_usage_in_bytes" : "memory.peak"));
  group->memory_events_ = file(memory / (v1 ? "memory.oom_control" : "memory.events"));
  group->pids_events_ = file(pids / "pids.events");
  return group;
}

Cgroup::~Cgroup() {
  doors_.clear();
  for (const fs::path& folder : folders_) Remove(folder);
}

std::uint64_t Cgroup::CpuMicroseconds() const {
  const std::string text = ReadAgain(cpu_);
  return version_ == 1 ? ToNumber(text) / 1000 : NumberOf(text, "usage_usec");
}

std::uint64_t Cgroup::PeakMemory() const { return ToNumber(ReadAgain(peak_)); }

bool Cgroup::OutOfMemory() const { return NumberOf(ReadAgain(memory_events_), "oom_kill") > 0; }

bool Cgroup::OutOfProcesses() const { return NumberOf(ReadAgain(pids_events_), "max") > 0; }

void SweepCgroups(const CgroupPlaces& places) {
  // Deep enough for a service's or a job's groups.
  for (const fs::path& top : places.tops) SweepUnder(top, 6);
}

}  // namespace allranks::judge
