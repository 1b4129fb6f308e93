#include "judge/bubblewrap.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <initializer_list>

namespace allranks::judge {

namespace fs = std::filesystem;

namespace {

class Plan {
 public:
  explicit Plan(BubblewrapPlan* plan) : plan_(plan) {}

  void Add(std::initializer_list<std::string_view> words) {
    for (const std::string_view word : words) {
      plan_->arguments.append(word);
      plan_->arguments.push_back('\0');
    }
  }

  // A folder of the system, read-only, or the link that it is.
  void System(const char* path) {
    struct stat about;
    if (lstat(path, &about) != 0) return;
    if (S_ISLNK(about.st_mode)) {
      std::error_code ignored;
      const std::string target = fs::read_symlink(path, ignored);
      Add({"--symlink", target, path});
    } else {
      Add({"--ro-bind", path, path});
    }
  }

 private:
  BubblewrapPlan* plan_;
};

bool Covers(const std::string& folder, const std::string& path) {
  return path == folder || path.starts_with(folder + "/");
}

// A folder to mount over that hides none of the sources.
std::string PickStage(const std::vector<Bind>& binds) {
  for (const char* folder : {"/mnt", "/media", "/srv", "/opt", "/home"}) {
    struct stat about;
    if (stat(folder, &about) != 0 || !S_ISDIR(about.st_mode)) continue;
    bool free = true;
    for (const Bind& bind : binds) free = free && !Covers(folder, bind.from);
    if (free) return folder;
  }
  return "";
}

}  // namespace

Result<BubblewrapPlan> PlanBubblewrap(const SandboxSpec& spec, bool as_root, int launcher_fd,
                                      int filter_fd, int info_fd, const std::vector<int>& files) {
  BubblewrapPlan made;
  Plan plan(&made);
  const bool compiler = spec.filter == SandboxSpec::Filter::kCompiler;
  // Namespaces of every kind, so no network; the launcher is process 1, so its end is the end of
  // all.
  plan.Add({"--unshare-all", "--die-with-parent", "--new-session", "--as-pid-1", "--hostname",
            "sandbox", "--clearenv", "--seccomp", std::to_string(filter_fd), "--info-fd",
            std::to_string(info_fd)});
  if (spec.network_of != nullptr) plan.Add({"--share-net"});
  // Programs that are not started need only libraries: nothing else of the system is there.
  if (compiler) {
    for (const char* path :
         {"/usr/bin", "/usr/include", "/usr/libexec", "/bin", "/etc/alternatives"}) {
      plan.System(path);
    }
    std::error_code ignored;
    for (const fs::directory_entry& entry : fs::directory_iterator("/usr/local", ignored)) {
      if (entry.path().filename().string().starts_with("cuda")) plan.System(entry.path().c_str());
    }
  }
  for (const char* path :
       {"/usr/lib", "/usr/lib32", "/usr/lib64", "/lib", "/lib64", "/etc/ld.so.cache"}) {
    plan.System(path);
  }
  plan.Add({"--dev-bind", "/dev/null", "/dev/null"});
  // By which members of a team recognise each other.
  if (spec.filter == SandboxSpec::Filter::kTeam)
    plan.Add({"--dev-bind", "/dev/urandom", "/dev/urandom"});
  if (spec.proc) plan.Add({"--proc", "/proc"});
  if (spec.limits.file_bytes > 0) {
    plan.Add({"--size", std::to_string(spec.limits.file_bytes), "--tmpfs", "/tmp"});
  } else {
    plan.Add({"--dir", "/tmp"});
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    plan.Add({"--perms", "0644", "--file", std::to_string(files[i]), spec.files[i].path});
  }

  if (as_root && !spec.binds.empty()) {
    made.stage = PickStage(spec.binds);
    if (made.stage.empty()) {
      return Fail(
          "no folder for mounts: /mnt, /media, /srv, /opt and /home are missing or "
          "contain files that the sandbox needs");
    }
  }
  for (const Bind& bind : spec.binds) {
    struct stat about;
    if (stat(bind.from.c_str(), &about) != 0) {
      return Fail("{}: {}: {}", spec.name, bind.from, strerror(errno));
    }
    std::string from = bind.from;
    if (as_root) {
      std::error_code ignored;
      const fs::path real = fs::canonical(bind.from, ignored);
      Staged staged{real, fmt::format("{}/{}", made.stage, made.staged.size()),
                    S_ISDIR(about.st_mode)};
      from = staged.at;
      made.staged.push_back(std::move(staged));
    }
    plan.Add({bind.writable ? "--bind" : "--ro-bind", from, bind.to});
  }
  plan.Add({"--perms", "0755", "--file", std::to_string(launcher_fd), kLauncherPath});
  // The root is a tmpfs of bubblewrap's without a bound.
  plan.Add({"--remount-ro", "/"});
  return made;
}

}  // namespace allranks::judge
