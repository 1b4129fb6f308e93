#include "judge/filter.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <memory>

#include "wire/frame.h"

namespace allranks::judge {

namespace {

constexpr std::uint64_t kNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                      CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
constexpr std::uint64_t kTerminalInput = 0x5412, kTerminalLinux = 0x541c;  // TIOCSTI, TIOCLINUX

// A condition on an argument. libseccomp's own macros for it are compound literals, which C++
// lacks.
scmp_arg_cmp Argument(unsigned number, scmp_compare how, scmp_datum_t a, scmp_datum_t b = 0) {
  return {number, how, a, b};
}

// Rules are collected with the first error kept; an unknown name is our own mistake or an older
// kernel's headers, and both must show.
class Rules {
 public:
  explicit Rules(std::uint32_t otherwise) : context_(seccomp_init(otherwise), seccomp_release) {
    if (context_ == nullptr) error_ = ENOMEM;
    // A tree instead of a list: the lists here have a hundred names.
    if (context_ != nullptr) seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
  }

  void Add(std::uint32_t action, const char* name, std::initializer_list<scmp_arg_cmp> when = {}) {
    if (error_ != 0) return;
    const int number = seccomp_syscall_resolve_name(name);
    if (number == __NR_SCMP_ERROR) return;  // libseccomp does not know it, so nor does the kernel
    error_ = -seccomp_rule_add_array(context_.get(), action, number,
                                     static_cast<unsigned>(when.size()), when.begin());
    if (error_ != 0) where_ = name;
  }
  void Add(std::uint32_t action, std::initializer_list<const char*> names) {
    for (const char* name : names) Add(action, name);
  }

  Result<Filter> Compile() {
    if (error_ != 0) return Fail("the filter's rule for {}: {}", where_, strerror(error_));
    const wire::Fd file(memfd_create("filter", MFD_CLOEXEC));
    struct stat about;
    if (file.get() < 0 || seccomp_export_bpf(context_.get(), file.get()) != 0 ||
        fstat(file.get(), &about) != 0) {
      return Fail("cannot compile the system-call filter: {}", strerror(errno));
    }
    Filter filter(static_cast<std::size_t>(about.st_size) / 8);
    if (pread(file.get(), filter.data(), filter.size() * 8, 0) != about.st_size) {
      return Fail("cannot read the system-call filter: {}", strerror(errno));
    }
    return filter;
  }

 private:
  std::unique_ptr<void, void (*)(void*)> context_;
  int error_ = 0;
  const char* where_ = "start";
};

}  // namespace

Result<Filter> CommonFilter(bool network) {
  Rules rules(SCMP_ACT_ALLOW);
  const std::uint32_t no = SCMP_ACT_ERRNO(EPERM), unknown = SCMP_ACT_ERRNO(ENOSYS);
  // Other processes.
  rules.Add(no, {"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise",
                 "process_mrelease", "kcmp", "pidfd_getfd", "pidfd_open", "pidfd_send_signal"});
  // Mounts and namespaces.
  rules.Add(no, {"mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen",
                 "fsconfig", "fsmount", "fspick", "mount_setattr", "unshare", "setns",
                 "name_to_handle_at", "open_by_handle_at"});
  rules.Add(no, "clone", {Argument(0, SCMP_CMP_MASKED_EQ, CLONE_NEWNS, CLONE_NEWNS)});
  for (std::uint64_t flag = 1; flag != 0; flag <<= 1) {
    if ((kNamespaces & flag) != 0 && flag != CLONE_NEWNS) {
      rules.Add(no, "clone", {Argument(0, SCMP_CMP_MASKED_EQ, flag, flag)});
    }
  }
  // Its flags lie in memory, where a filter cannot look; the C library then takes clone.
  rules.Add(unknown, {"clone3"});
  // Parts of the kernel that no compiler, rank or node needs.
  rules.Add(no, {"bpf",
                 "perf_event_open",
                 "userfaultfd",
                 "io_uring_setup",
                 "io_uring_enter",
                 "io_uring_register",
                 "add_key",
                 "request_key",
                 "keyctl",
                 "fanotify_init",
                 "fanotify_mark",
                 "lookup_dcookie",
                 "quotactl",
                 "quotactl_fd",
                 "acct",
                 "syslog",
                 "init_module",
                 "finit_module",
                 "delete_module",
                 "kexec_load",
                 "kexec_file_load",
                 "reboot",
                 "swapon",
                 "swapoff",
                 "settimeofday",
                 "clock_settime",
                 "adjtimex",
                 "clock_adjtime",
                 "sethostname",
                 "setdomainname",
                 "iopl",
                 "ioperm",
                 "modify_ldt",
                 "vhangup",
                 "nfsservctl",
                 "vmsplice",
                 "move_pages",
                 "migrate_pages",
                 "mbind",
                 "set_mempolicy",
                 "set_mempolicy_home_node",
                 "landlock_create_ruleset",
                 "landlock_add_rule",
                 "landlock_restrict_self",
                 "memfd_secret",
                 "mq_open",
                 "mq_unlink",
                 "msgget",
                 "semget",
                 "shmget",
                 "setuid",
                 "setgid",
                 "setreuid",
                 "setregid",
                 "setresuid",
                 "setresgid",
                 "setgroups",
                 "setfsuid",
                 "setfsgid",
                 "capset",
                 "mknod",
                 "mknodat",
                 "flock",
                 "ioprio_set",
                 "sched_setscheduler",
                 "sched_setattr",
                 "sched_setparam",
                 "setpriority",
                 "fsetxattr",
                 "setxattr",
                 "lsetxattr"});
  // Other machines, and hosts past the namespace (AF_VSOCK).
  if (!network) rules.Add(no, "socket", {Argument(0, SCMP_CMP_NE, AF_UNIX)});
  rules.Add(no, "socketpair", {Argument(0, SCMP_CMP_NE, AF_UNIX)});
  // Only the lower half counts for the kernel.
  rules.Add(no, "ioctl", {Argument(1, SCMP_CMP_MASKED_EQ, 0xffffffffu, kTerminalInput)});
  rules.Add(no, "ioctl", {Argument(1, SCMP_CMP_MASKED_EQ, 0xffffffffu, kTerminalLinux)});
  return rules.Compile();
}

Result<Filter> LockedFilter(const Locked& what) {
  Rules rules(SCMP_ACT_ERRNO(EPERM));
  const std::uint32_t yes = SCMP_ACT_ALLOW;
  rules.Add(yes,
            {"read",     "write",      "readv",     "writev",      "pread64",   "pwrite64",
             "preadv",   "pwritev",    "close",     "close_range", "lseek",     "dup",
             "dup2",     "dup3",       "fstat",     "newfstatat",  "stat",      "lstat",
             "statx",    "statfs",     "fstatfs",   "access",      "faccessat", "faccessat2",
             "readlink", "readlinkat", "getcwd",    "getdents64",  "ftruncate", "fallocate",
             "fsync",    "fdatasync",  "fadvise64", "ioctl",       "umask",     "copy_file_range",
             "sendfile"});
  // No files without a name: they would not be counted.
  constexpr scmp_datum_t kNameless = O_TMPFILE & ~O_DIRECTORY;
  rules.Add(yes, "open", {Argument(1, SCMP_CMP_MASKED_EQ, kNameless, 0)});
  rules.Add(yes, "openat", {Argument(2, SCMP_CMP_MASKED_EQ, kNameless, 0)});
  rules.Add(yes, {"mmap", "munmap", "mprotect", "mremap", "madvise", "mincore", "msync", "mlock",
                  "mlock2", "munlock", "brk", "memfd_create", "membarrier", "pkey_alloc",
                  "pkey_free", "pkey_mprotect"});
  rules.Add(yes,
            {"poll", "ppoll", "select", "pselect6", "epoll_create", "epoll_create1", "epoll_ctl",
             "epoll_wait", "epoll_pwait", "epoll_pwait2", "eventfd", "eventfd2", "pipe", "pipe2",
             "timerfd_create", "timerfd_settime", "timerfd_gettime", "signalfd4"});
  rules.Add(yes, {"futex", "futex_waitv", "futex_wait", "futex_wake", "futex_requeue",
                  "set_robust_list", "get_robust_list", "rseq", "set_tid_address", "exit",
                  "exit_group", "wait4", "waitid", "restart_syscall"});
  rules.Add(yes, {"rt_sigaction",    "rt_sigprocmask",
                  "rt_sigreturn",    "rt_sigpending",
                  "rt_sigsuspend",   "rt_sigtimedwait",
                  "rt_sigqueueinfo", "rt_tgsigqueueinfo",
                  "sigaltstack",     "kill",
                  "tkill",           "tgkill",
                  "pause",           "alarm",
                  "setitimer",       "getitimer",
                  "timer_create",    "timer_settime",
                  "timer_gettime",   "timer_delete",
                  "timer_getoverrun"});
  rules.Add(yes, {"clock_gettime",
                  "clock_getres",
                  "clock_nanosleep",
                  "nanosleep",
                  "gettimeofday",
                  "time",
                  "times",
                  "getrusage",
                  "sysinfo",
                  "uname",
                  "getcpu",
                  "sched_yield",
                  "sched_getaffinity",
                  "sched_getparam",
                  "sched_getscheduler",
                  "sched_get_priority_max",
                  "sched_get_priority_min",
                  "getrandom",
                  "getpid",
                  "getppid",
                  "gettid",
                  "getuid",
                  "geteuid",
                  "getgid",
                  "getegid",
                  "getresuid",
                  "getresgid",
                  "getgroups",
                  "getpgrp",
                  "getpgid",
                  "getsid",
                  "getpriority",
                  "getrlimit",
                  "arch_prctl"});
  // No locks: a file of the system that two sandboxes see would carry a bit between them.
  for (const int command : {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL,
                            F_ADD_SEALS, F_GET_SEALS, F_GETPIPE_SZ}) {
    rules.Add(yes, "fcntl", {Argument(1, SCMP_CMP_EQ, static_cast<scmp_datum_t>(command))});
  }
  // Its own limits only, which it may lower.
  rules.Add(yes, "prlimit64", {Argument(0, SCMP_CMP_EQ, 0)});
  for (const int option : {PR_SET_NAME, PR_GET_NAME, PR_SET_VMA, PR_GET_DUMPABLE, PR_GET_PDEATHSIG,
                           PR_SET_PDEATHSIG, PR_SET_TIMERSLACK, PR_GET_SECCOMP}) {
    rules.Add(yes, "prctl", {Argument(0, SCMP_CMP_EQ, static_cast<scmp_datum_t>(option))});
  }
  rules.Add(yes, "socket", {Argument(0, SCMP_CMP_EQ, AF_UNIX)});
  rules.Add(yes, "socketpair", {Argument(0, SCMP_CMP_EQ, AF_UNIX)});
  rules.Add(yes, {"connect", "sendmsg", "recvmsg", "sendto", "recvfrom", "sendmmsg", "recvmmsg",
                  "shutdown", "getsockopt", "setsockopt", "getsockname", "getpeername"});
  if (what.network) {
    rules.Add(yes, "socket", {Argument(0, SCMP_CMP_EQ, AF_INET)});
    // Addresses of interfaces are asked for so.
    rules.Add(yes, "socket",
              {Argument(0, SCMP_CMP_EQ, AF_NETLINK), Argument(2, SCMP_CMP_EQ, NETLINK_ROUTE)});
  }
  if (what.listens) rules.Add(yes, {"bind", "listen", "accept", "accept4"});
  // A file that cannot be removed is counted for as long as it takes space (shared_folder.h). NCCL
  // ends where its call fails, so it is told that it did not.
  if (what.network) {
    rules.Add(SCMP_ACT_ERRNO(0), {"unlink", "unlinkat"});
  } else if (what.listens) {
    rules.Add(yes, {"unlink", "unlinkat"});
  }
  if (what.forks) {
    rules.Add(yes, "clone",
              {Argument(0, SCMP_CMP_EQ, CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD)});
  }
  // Threads, but no processes.
  rules.Add(yes, "clone", {Argument(0, SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD)});
  rules.Add(SCMP_ACT_ERRNO(ENOSYS), {"clone3"});
  rules.Add(SCMP_ACT_NOTIFY, {"execve"});
  return rules.Compile();
}

}  // namespace allranks::judge
