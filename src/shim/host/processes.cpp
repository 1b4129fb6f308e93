// Children: fork, spawn and exec announce the new process or image to the node, and waiting for a
// child becomes a wait which the node can see. A child inherits its parent's clock.
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/host/link.h"
#include "shim/host/real.h"

namespace allranks::shim {
namespace {

constexpr char kJoin[] = "ALLRANKS_JOIN=";

// A copy of an environment with ALLRANKS_JOIN set, for an image that will join the node again. One
// that has lost the node's address is left as it is: it is not meant to.
class Environment {
 public:
  Environment(char* const* from, const char* kind, std::uint64_t token) {
    int count = 0;
    bool linked = false;
    for (; from != nullptr && from[count] != nullptr; ++count) {
      linked = linked || strncmp(from[count], "ALLRANKS_SOCKET=", 16) == 0;
    }
    list_ = static_cast<char**>(malloc(sizeof(char*) * (static_cast<std::size_t>(count) + 2)));
    if (list_ == nullptr) return;
    int out = 0;
    for (int i = 0; i < count; ++i) {
      if (strncmp(from[i], kJoin, sizeof kJoin - 1) != 0) list_[out++] = from[i];
    }
    snprintf(join_, sizeof join_, "%s%s:%llx", kJoin, kind, static_cast<unsigned long long>(token));
    if (linked) list_[out++] = join_;
    list_[out] = nullptr;
  }
  ~Environment() { free(static_cast<void*>(list_)); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  char* const* get() const { return list_; }

 private:
  char** list_ = nullptr;
  char join_[64];
};

// Runs `execute` (which does not return if it succeeds) with the node told about it.
template <class F>
int Exec(char* const* environment, F execute) {
  Thread* self = Self();
  wire::ExecReply reply;
  if (self == nullptr || Call(self, wire::Exec{}, &reply) != 0) return execute(environment);
  Environment joined(environment, "exec", reply.token);
  const int result = execute(joined.get() != nullptr ? joined.get() : environment);
  const int error = errno;
  wire::Exec failed;
  failed.failed = true;
  Call(self, failed);
  errno = error;
  return result;
}

template <class F>
int Spawn(pid_t* pid, char* const* environment, F spawn) {
  Thread* self = Self();
  pid_t child = -1;
  wire::NewProcessReply reply;
  if (self == nullptr || Call(self, wire::NewProcess{}, &reply) != 0) {
    const int error = spawn(&child, environment);
    if (pid != nullptr && error == 0) *pid = child;
    return error;
  }
  Environment joined(environment, "child", reply.token);
  const int error = spawn(&child, joined.get() != nullptr ? joined.get() : environment);
  wire::ProcessStarted started;
  started.token = reply.token;
  started.pid = error == 0 ? child : -1;
  Call(self, started);
  if (pid != nullptr && error == 0) *pid = child;
  return error;
}

// Waits, visibly, until one of the children that `pid` names has ended. The pid to reap natively, 0
// if none has and the caller did not want to wait, or `pid` if the node knows of no such child.
pid_t WaitForChild(pid_t pid, int options) {
  Thread* self = Self();
  if (self == nullptr || pid == 0 || pid < -1) return pid;  // groups of processes: natively
  if ((options & ~(WNOHANG | WEXITED | WNOWAIT)) != 0) return pid;
  wire::WaitProcess wait;
  wait.pid = pid;
  wait.no_hang = (options & WNOHANG) != 0;
  wire::WaitProcessReply reply;
  if (Call(self, wait, &reply) != 0) return pid;
  return reply.pid;
}

}  // namespace
}  // namespace allranks::shim

namespace shim = allranks::shim;
namespace wire = allranks::wire;

ALLRANKS_INTERPOSE pid_t fork() noexcept {
  shim::Thread* self = shim::Self();
  wire::NewProcessReply reply;
  if (self == nullptr || shim::Call(self, wire::NewProcess{}, &reply) != 0) {
    return ALLRANKS_REAL(fork)();
  }
  shim::SetForking(true);
  const pid_t pid = ALLRANKS_REAL(fork)();
  const int error = errno;
  shim::SetForking(false);
  if (pid == 0) {
    shim::RejoinAfterFork(reply.token);
    return 0;
  }
  wire::ProcessStarted started;
  started.token = reply.token;
  started.pid = pid;
  shim::Call(self, started);
  errno = error;
  return pid;
}

// A child that shares its parent's memory would use the parent's link.
ALLRANKS_INTERPOSE pid_t vfork() noexcept { return fork(); }

ALLRANKS_INTERPOSE int execve(const char* path, char* const* arguments,
                              char* const* environment) noexcept {
  return shim::Exec(environment, [&](char* const* joined) {
    return ALLRANKS_REAL(execve)(path, arguments, joined);
  });
}

ALLRANKS_INTERPOSE int execvpe(const char* file, char* const* arguments,
                               char* const* environment) noexcept {
  return shim::Exec(environment, [&](char* const* joined) {
    return ALLRANKS_REAL(execvpe)(file, arguments, joined);
  });
}

ALLRANKS_INTERPOSE int fexecve(int fd, char* const* arguments, char* const* environment) noexcept {
  return shim::Exec(environment, [&](char* const* joined) {
    return ALLRANKS_REAL(fexecve)(fd, arguments, joined);
  });
}

ALLRANKS_INTERPOSE int execv(const char* path, char* const* arguments) noexcept {
  return execve(path, arguments, environ);
}

ALLRANKS_INTERPOSE int execvp(const char* file, char* const* arguments) noexcept {
  return execvpe(file, arguments, environ);
}

// The list forms: the arguments are gathered into an array.
#define ALLRANKS_EXEC_LIST(call, last)                                        \
  va_list list;                                                               \
  va_start(list, first);                                                      \
  std::size_t count = 1;                                                      \
  do {                                                                        \
    ++count;                                                                  \
  } while (va_arg(list, char*) != nullptr);                                   \
  va_end(list);                                                               \
  auto* arguments = static_cast<char**>(malloc(sizeof(char*) * count));       \
  if (arguments == nullptr) {                                                 \
    errno = ENOMEM;                                                           \
    return -1;                                                                \
  }                                                                           \
  va_start(list, first);                                                      \
  arguments[0] = const_cast<char*>(first);                                    \
  for (std::size_t i = 1; i < count; ++i) arguments[i] = va_arg(list, char*); \
  char* const* environment = environ;                                         \
  last;                                                                       \
  va_end(list);                                                               \
  const int result = call;                                                    \
  free(static_cast<void*>(arguments));                                        \
  return result

ALLRANKS_INTERPOSE int execl(const char* path, const char* first, ...) noexcept {
  ALLRANKS_EXEC_LIST(execve(path, arguments, environment), (void)0);
}

ALLRANKS_INTERPOSE int execlp(const char* file, const char* first, ...) noexcept {
  ALLRANKS_EXEC_LIST(execvpe(file, arguments, environment), (void)0);
}

ALLRANKS_INTERPOSE int execle(const char* path, const char* first, ...) noexcept {
  ALLRANKS_EXEC_LIST(execve(path, arguments, environment), environment = va_arg(list, char**));
}

ALLRANKS_INTERPOSE int posix_spawn(pid_t* __restrict pid, const char* __restrict path,
                                   const posix_spawn_file_actions_t* __restrict actions,
                                   const posix_spawnattr_t* __restrict attributes,
                                   char* const arguments[__restrict_arr],
                                   char* const environment[__restrict_arr]) {
  return shim::Spawn(pid, environment, [&](pid_t* child, char* const* joined) {
    return ALLRANKS_REAL(posix_spawn)(child, path, actions, attributes, arguments, joined);
  });
}

ALLRANKS_INTERPOSE int posix_spawnp(pid_t* __restrict pid, const char* __restrict file,
                                    const posix_spawn_file_actions_t* __restrict actions,
                                    const posix_spawnattr_t* __restrict attributes,
                                    char* const arguments[__restrict_arr],
                                    char* const environment[__restrict_arr]) {
  return shim::Spawn(pid, environment, [&](pid_t* child, char* const* joined) {
    return ALLRANKS_REAL(posix_spawnp)(child, file, actions, attributes, arguments, joined);
  });
}

ALLRANKS_INTERPOSE pid_t wait4(pid_t pid, int* status, int options, rusage* usage) noexcept {
  for (;;) {
    const pid_t child = shim::WaitForChild(pid, options);
    if (child == 0 && pid != 0) return 0;
    const pid_t reaped = ALLRANKS_REAL(wait4)(child, status, options, usage);
    // A handler of SIGCHLD may have reaped it while this thread waited: then for the next.
    if (reaped < 0 && errno == ECHILD && pid == -1 && child != pid) continue;
    return reaped;
  }
}

ALLRANKS_INTERPOSE pid_t waitpid(pid_t pid, int* status, int options) {
  return wait4(pid, status, options, nullptr);
}

ALLRANKS_INTERPOSE pid_t wait(int* status) { return wait4(-1, status, 0, nullptr); }

ALLRANKS_INTERPOSE pid_t wait3(int* status, int options, rusage* usage) noexcept {
  return wait4(-1, status, options, usage);
}

ALLRANKS_INTERPOSE int waitid(idtype_t type, id_t id, siginfo_t* info, int options) {
  while ((type == P_PID || type == P_ALL) && (options & WEXITED) != 0) {
    const pid_t wanted = type == P_ALL ? -1 : static_cast<pid_t>(id);
    const pid_t child = shim::WaitForChild(wanted, options);
    if (child < 0) break;
    if (child == 0) {
      if (info != nullptr) memset(info, 0, sizeof *info);
      return 0;
    }
    const int result = ALLRANKS_REAL(waitid)(P_PID, static_cast<id_t>(child), info, options);
    if (result < 0 && errno == ECHILD && type == P_ALL) continue;
    return result;
  }
  return ALLRANKS_REAL(waitid)(type, id, info, options);
}

// glibc's system() starts its shell past the functions above, so it is made of them here.
ALLRANKS_INTERPOSE int system(const char* command) {
  if (command == nullptr || shim::Self() == nullptr) return ALLRANKS_REAL(system)(command);
  struct sigaction ignore{}, old_interrupt, old_quit;
  ignore.sa_handler = SIG_IGN;
  sigset_t block, old_mask;
  sigemptyset(&block);
  sigaddset(&block, SIGCHLD);
  sigaction(SIGINT, &ignore, &old_interrupt);
  sigaction(SIGQUIT, &ignore, &old_quit);
  sigprocmask(SIG_BLOCK, &block, &old_mask);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t standard;
  sigemptyset(&standard);
  if (old_interrupt.sa_handler != SIG_IGN) sigaddset(&standard, SIGINT);
  if (old_quit.sa_handler != SIG_IGN) sigaddset(&standard, SIGQUIT);
  posix_spawnattr_setsigdefault(&attributes, &standard);
  posix_spawnattr_setsigmask(&attributes, &old_mask);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  const char* arguments[] = {"sh", "-c", command, nullptr};
  pid_t pid;
  int status = -1;
  const int error = posix_spawn(&pid, "/bin/sh", nullptr, &attributes,
                                const_cast<char* const*>(arguments), environ);
  if (error == 0) {
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
  } else {
    errno = error;
  }
  posix_spawnattr_destroy(&attributes);
  sigaction(SIGINT, &old_interrupt, nullptr);
  sigaction(SIGQUIT, &old_quit, nullptr);
  sigprocmask(SIG_SETMASK, &old_mask, nullptr);
  return status;
}
