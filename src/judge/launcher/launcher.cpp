// The first program inside a sandbox, its process 1: starts the command under the last bounds,
// reaps everything, takes results out and reports how it ended. bubblewrap starts it; the judge put
// its bytes into the sandbox (sandbox.cpp has the whole picture).
//
// It is built without a C library, so that it starts in microseconds and is a few KB. It is the
// only program of ours that shares the sandbox with hostile ones: it cannot be traced or looked
// into (it is not dumpable), process 1 takes no signals from inside, and it reads nothing that they
// write except the files to collect, which it copies without looking.
//
// A locked command may start no programs, but its own start comes after the filter: the filter
// sends execve to this process, which lets the first through and then closes the listener; from
// then on the kernel answers ENOSYS.
#include <asm/ioctl.h>
#include <asm/stat.h>
#include <asm/unistd.h>
#include <linux/close_range.h>
#include <linux/fcntl.h>
#include <linux/filter.h>
#include <linux/personality.h>
#include <linux/prctl.h>
#include <linux/resource.h>
#include <linux/sched.h>
#include <linux/seccomp.h>

#include <cstddef>

#include "judge/launch_config.h"
#include "wire/raw_syscall.h"

using allranks::judge::LaunchConfig;
using allranks::judge::LaunchReport;
using allranks::wire::RawSyscall;

// The compiler may call these for plain code.
extern "C" void* memset(void* to, int value, std::size_t bytes) {
  auto* p = static_cast<volatile char*>(to);
  while (bytes-- != 0) *p++ = static_cast<char>(value);
  return to;
}
extern "C" void* memcpy(void* to, const void* from, std::size_t bytes) {
  auto* p = static_cast<volatile char*>(to);
  const auto* q = static_cast<const char*>(from);
  while (bytes-- != 0) *p++ = *q++;
  return to;
}

namespace {

constexpr long kSigKill = 9, kSigChld = 17;
constexpr long kInterrupted = -4, kNoChild = -10;
constexpr std::uint32_t kRegular = 0100000, kTypeMask = 0170000;

struct Rusage {
  std::int64_t user_s, user_us, system_s, system_us, max_rss_kb, rest[13];
};
struct Statfs {
  std::int64_t type, block_size, blocks, free_blocks, available, files, free_files, rest[9];
};
struct Poll {
  int fd;
  short wanted, got;
};
struct Timespec {
  std::int64_t seconds, nanoseconds;
};

LaunchConfig g_config;
const char* g_arguments[LaunchConfig::kMostWords];
const char* g_variables[LaunchConfig::kMostWords];
const char* g_collected[LaunchConfig::kMostCollected];
char g_copy[64 << 10];

template <class T>
long P(T* pointer) {
  return reinterpret_cast<long>(pointer);
}

[[noreturn]] void Exit(int code) {
  for (;;) RawSyscall(__NR_exit_group, code);
}

void Report(const LaunchReport& report) {
  RawSyscall(__NR_write, g_config.status, P(&report), sizeof report);
}

void Limit(int which, std::uint64_t most) {
  if (most == 0) return;
  const std::uint64_t limit[2] = {most, most};
  RawSyscall(__NR_prlimit64, 0, which, P(limit), 0);
}

// Splits the text into the folder (returned), arguments, environment and paths.
const char* Split() {
  const char* at = g_config.text;
  const auto next = [&] {
    const char* word = at;
    while (*at != '\0') ++at;
    ++at;
    return word;
  };
  const char* folder = next();
  for (std::uint32_t i = 0; i < g_config.arguments; ++i) g_arguments[i] = next();
  for (std::uint32_t i = 0; i < g_config.variables; ++i) g_variables[i] = next();
  for (std::uint32_t i = 0; i < g_config.collected_count; ++i) g_collected[i] = next();
  return folder;
}

[[noreturn]] void BecomeCommand(const char* folder, int announce) {
  const auto fail = [&](long error) {
    const int no_listener = -1;
    if (g_config.locked) RawSyscall(__NR_write, announce, P(&no_listener), sizeof no_listener);
    Report({.event = LaunchReport::Event::kNotStarted, .value = static_cast<int>(-error)});
    Exit(127);
  };
  if (const long error = RawSyscall(__NR_chdir, P(folder)); error < 0) fail(error);
  const std::uint64_t none[2] = {0, 0};
  RawSyscall(__NR_prlimit64, 0, RLIMIT_CORE, P(none), 0);
  Limit(RLIMIT_CPU, g_config.cpu_seconds);
  Limit(RLIMIT_FSIZE, g_config.file_bytes);
  Limit(RLIMIT_DATA, g_config.data_bytes);
  Limit(RLIMIT_NPROC, g_config.processes);
  if (g_config.no_address_randomization) RawSyscall(__NR_personality, ADDR_NO_RANDOMIZE);
  long listener = -1;
  if (g_config.locked) {
    const sock_fprog program = {static_cast<unsigned short>(g_config.filter_length),
                                reinterpret_cast<sock_filter*>(g_config.filter)};
    listener = RawSyscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
                          P(&program));
    if (listener < 0) fail(listener);
    const int number = static_cast<int>(listener);
    RawSyscall(__NR_write, announce, P(&number), sizeof number);
  }
  // Until here the descriptors are shared with process 1, which so has the listener.
  if (const long error =
          RawSyscall(__NR_close_range, 3, ~0u, CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC);
      error < 0) {
    fail(error);
  }
  for (std::uint32_t i = 0; i < g_config.kept_count; ++i) {
    RawSyscall(__NR_fcntl, g_config.kept[i], F_SETFD, 0);
  }
  // Only now: a lower bound would forbid descriptors that exist.
  Limit(RLIMIT_NOFILE, g_config.descriptors);
  fail(RawSyscall(__NR_execve, P(g_arguments[0]), P(g_arguments), P(g_variables)));
  Exit(127);
}

// Lets the command's own start through, and nothing after it.
void LetFirstThrough(int announced) {
  int listener = -1;
  if (RawSyscall(__NR_read, announced, P(&listener), sizeof listener) != sizeof listener) return;
  if (listener < 0) return;
  Poll poll = {listener, 1, 0};
  while (RawSyscall(__NR_poll, P(&poll), 1, -1) == kInterrupted) {
  }
  seccomp_notif asked = {};
  if (RawSyscall(__NR_ioctl, listener, SECCOMP_IOCTL_NOTIF_RECV, P(&asked)) == 0) {
    seccomp_notif_resp answer = {};
    answer.id = asked.id;
    answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    RawSyscall(__NR_ioctl, listener, SECCOMP_IOCTL_NOTIF_SEND, P(&answer));
  }
  RawSyscall(__NR_close, listener);
}

// True if the file is a plain one of bounded size and was copied.
bool Collect(const char* path, int to) {
  const long fd = RawSyscall(__NR_openat, AT_FDCWD, P(path),
                             O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) return false;
  struct stat about = {};
  bool good = RawSyscall(__NR_fstat, fd, P(&about)) == 0 &&
              (about.st_mode & kTypeMask) == kRegular &&
              static_cast<std::uint64_t>(about.st_size) <= g_config.collect_bytes;
  for (std::uint64_t total = 0; good;) {
    const long got = RawSyscall(__NR_read, fd, P(g_copy), sizeof g_copy);
    if (got <= 0) {
      good = got == 0;
      break;
    }
    total += static_cast<std::uint64_t>(got);
    good = total <= g_config.collect_bytes && RawSyscall(__NR_write, to, P(g_copy), got) == got;
  }
  RawSyscall(__NR_close, fd);
  return good;
}

bool TooManyFiles() {
  Statfs about = {};
  if (RawSyscall(__NR_statfs, P("/tmp"), P(&about)) != 0) return false;
  return static_cast<std::uint64_t>(about.files - about.free_files) > g_config.files;
}

// Waits for the command; others' ends are only noted by the kernel.
int Await(long command) {
  const std::uint64_t child_ended = 1ull << (kSigChld - 1);
  bool told = false;
  for (;;) {
    int status = 0;
    const long ended = RawSyscall(__NR_wait4, -1, P(&status), g_config.files != 0 ? 1 : 0, 0);
    if (ended == command) return status;
    if (ended > 0 || ended == kInterrupted) continue;
    if (ended < 0) return 127 << 8;
    const Timespec pause = {0, 20'000'000};
    RawSyscall(__NR_rt_sigtimedwait, P(&child_ended), 0, P(&pause), 8);
    if (!told && TooManyFiles()) {
      Report({.event = LaunchReport::Event::kFiles});
      RawSyscall(__NR_kill, -1, kSigKill);
      told = true;
    }
  }
}

}  // namespace

extern "C" [[noreturn]] void Main(const long* stack) {
  const char* number = reinterpret_cast<const char* const*>(stack + 1)[1];
  int fd = 0;
  for (; number != nullptr && *number >= '0' && *number <= '9'; ++number) {
    fd = fd * 10 + *number - '0';
  }
  auto* into = reinterpret_cast<char*>(&g_config);
  for (std::size_t got = 0; got < sizeof g_config;) {
    const long more =
        RawSyscall(__NR_read, fd, P(into + got), static_cast<long>(sizeof g_config - got));
    if (more <= 0) break;  // the text may be shorter than its room
    got += static_cast<std::size_t>(more);
  }
  RawSyscall(__NR_close, fd);
  RawSyscall(__NR_prctl, PR_SET_DUMPABLE, 0);
  const char* folder = Split();
  // The judge is gone, and bubblewrap may have gone with it before its own death signal was set.
  Poll judge = {g_config.status, 0, 0};
  if (RawSyscall(__NR_poll, P(&judge), 1, 0) != 0) Exit(1);

  std::uint64_t mask = 0;
  const std::uint64_t child_ended = 1ull << (kSigChld - 1);
  int announce[2] = {-1, -1};
  if (g_config.locked) RawSyscall(__NR_pipe2, P(announce), O_CLOEXEC);
  Report({.event = LaunchReport::Event::kStarted});
  // CLONE_FILES: the listener that the child makes is this process's, too.
  const long command = RawSyscall(__NR_clone, CLONE_FILES | kSigChld, 0, 0, 0, 0);
  if (command == 0) {
    RawSyscall(__NR_rt_sigprocmask, 2, P(&mask), 0, 8);
    BecomeCommand(folder, announce[1]);
  }
  if (command < 0) {
    Report({.event = LaunchReport::Event::kNotStarted, .value = static_cast<int>(-command)});
    Exit(1);
  }
  RawSyscall(__NR_rt_sigprocmask, 0, P(&child_ended), 0, 8);
  if (g_config.locked) LetFirstThrough(announce[0]);

  LaunchReport report = {.event = LaunchReport::Event::kEnded};
  report.value = Await(command);
  // Nobody may touch the results while they are taken out.
  RawSyscall(__NR_kill, -1, kSigKill);
  for (long ended = 0; ended != kNoChild;) ended = RawSyscall(__NR_wait4, -1, 0, 0, 0);
  if (report.value == 0) {
    for (std::uint32_t i = 0; i < g_config.collected_count; ++i) {
      if (Collect(g_collected[i], g_config.collected[i])) report.collected |= 1u << i;
    }
  }
  Rusage usage = {};
  RawSyscall(__NR_getrusage, -1 /* of children */, P(&usage));
  report.cpu_us = static_cast<std::uint64_t>((usage.user_s + usage.system_s) * 1'000'000 +
                                             usage.user_us + usage.system_us);
  report.peak_bytes = static_cast<std::uint64_t>(usage.max_rss_kb) << 10;
  Report(report);
  Exit(0);
}

// The kernel enters with the arguments on the stack.
asm(".globl _start\n_start:\n  xor %ebp, %ebp\n  mov %rsp, %rdi\n  and $-16, %rsp\n  call Main\n");
