// The child shares the judge's memory until it execs (vfork: the judge may hold gigabytes that fork
// would have to map again), so it only makes system calls, and those that the C library would carry
// out for all threads (setresuid) directly. Everything that it needs is laid out before.
#include "judge/spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "wire/frame.h"

namespace allranks::judge {

namespace {

constexpr long kNobody = 65534;

struct Child {
  const SpawnOrder& order;
  const char* program;
  char* const* arguments;
  char* const* environment;
  int null;
  pid_t judge;
  // What went wrong, for the judge to read after the child is gone.
  const char* failed = nullptr;
  int error = 0;

  bool Check(bool good, const char* what) {
    if (good) return true;
    error = errno;
    failed = what;
    return false;
  }

  bool Prepare() {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    signal(SIGPIPE, SIG_DFL);
    setsid();  // a Ctrl-C at the terminal is the judge's
    for (const int door : order.doors) {
      if (!Check(write(door, "0", 1) == 1, "joining the control group")) return false;
    }
    // The lowest numbers last, or a duplicate could take the place of what is still needed: all
    // others are above 2, because the judge has its own 0 to 2.
    if (!Check(dup2(null, 0) == 0 && dup2(order.out, 1) == 1 && dup2(order.err, 2) == 2,
               "redirecting the output")) {
      return false;
    }
    if (!Check(syscall(SYS_close_range, 3, ~0u, CLOSE_RANGE_CLOEXEC) == 0, "close_range")) {
      return false;
    }
    for (const int fd : order.inherited) {
      if (!Check(fcntl(fd, F_SETFD, 0) == 0, "handing a descriptor on")) return false;
    }
    // An ordinary user may join only as a member of the namespace that owns the network.
    const int joined = order.drop_user ? CLONE_NEWNET : CLONE_NEWNET | CLONE_NEWUSER;
    if (order.network >= 0 && !Check(setns(order.network, joined) == 0, "joining a network"))
      return false;
    if (order.drop_user && !DropUser()) return false;
    if (!order.folder.empty() && !Check(chdir(order.folder.c_str()) == 0, "entering its folder"))
      return false;
    for (const Bound& bound : order.bounds) {
      rlimit limit{};
      if (!Check(getrlimit(bound.what, &limit) == 0, "getrlimit")) return false;
      if (bound.most < limit.rlim_max) limit.rlim_max = bound.most;
      limit.rlim_cur = limit.rlim_max;
      if (!Check(setrlimit(bound.what, &limit) == 0, "setrlimit")) return false;
    }
    // A container's filter may forbid it; then addresses differ, and nothing else.
    if (order.fixed_addresses) personality(ADDR_NO_RANDOMIZE);
    // After the change of user, which clears it.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return Check(getppid() == judge, "outliving the judge");
  }

  bool DropUser() {
    if (!order.stage.empty()) {
      const char* stage = order.stage.c_str();
      if (!Check(unshare(CLONE_NEWNS) == 0, "unshare") ||
          !Check(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0,
                 "making mounts private") ||
          !Check(mount("stage", stage, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") == 0,
                 "mounting the stage")) {
        return false;
      }
      for (const Staged& each : order.staged) {
        const char* at = each.at.c_str();
        const bool made = each.folder ? mkdir(at, 0755) == 0 : mknod(at, S_IFREG | 0644, 0) == 0;
        if (!Check(made && mount(each.from.c_str(), at, nullptr, MS_BIND | MS_REC, nullptr) == 0,
                   "staging a mount")) {
          return false;
        }
      }
    }
    return Check(syscall(SYS_setgroups, 0, nullptr) == 0 &&
                     syscall(SYS_setresgid, kNobody, kNobody, kNobody) == 0 &&
                     syscall(SYS_setresuid, kNobody, kNobody, kNobody) == 0,
                 "becoming nobody");
  }
};

// Apart from its caller, whose variables a vfork child could otherwise disturb.
[[gnu::noinline]] pid_t Fork(Child* child) {
  // NOLINTNEXTLINE(bugprone-unsafe-functions): posix_spawn cannot do what Prepare() does
  const pid_t pid = vfork();
  if (pid != 0) return pid;
  if (child->Prepare()) {
    execve(child->program, child->arguments, child->environment);
    child->Check(false, child->program);
  }
  _exit(127);
}

}  // namespace

const std::string& FindBubblewrap() {
  static const std::string kFound = [] {
    const char* path = getenv("PATH");
    std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
    for (std::string folder; std::getline(folders, folder, ':');) {
      const std::string candidate = folder + "/bwrap";
      if (folder.starts_with("/") && access(candidate.c_str(), X_OK) == 0) return candidate;
    }
    return std::string();
  }();
  return kFound;
}

Result<pid_t> Spawn(const SpawnOrder& order) {
  const wire::Fd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (null.get() < 3 || order.out < 3 || order.err < 3) {
    return Fail("the judge must have its standard input, output and error open");
  }
  const auto pointers = [](const std::vector<std::string>& words) {
    std::vector<char*> all;
    for (const std::string& word : words) all.push_back(const_cast<char*>(word.c_str()));
    all.push_back(nullptr);
    return all;
  };
  const std::vector<char*> arguments = pointers(order.arguments),
                           environment = pointers(order.environment);
  const std::string& program = order.program.empty() ? FindBubblewrap() : order.program;
  Child child{order, program.c_str(), arguments.data(), environment.data(), null.get(), getpid()};
  // No handler of the judge's may run on the shared memory.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = Fork(&child);
  const int error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return Fail("cannot start a process: {}", strerror(error));
  if (child.failed != nullptr) {
    waitpid(pid, nullptr, 0);
    return Fail("cannot start {}: {}: {}", order.program.empty() ? "the sandbox" : "the program",
                child.failed, strerror(child.error));
  }
  return pid;
}

}  // namespace allranks::judge
