// A program that tries what a sandbox must deny: `sandbox_probe WHAT`. Prints one line and ends
// with 0 if the thing was denied, 1 if it was done, 2 if WHAT is unknown. What has no end (bombs)
// must be ended by the sandbox.
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/vm_sockets.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

// 0 if the call failed.
int Denied(long result) {
  if (result < 0) {
    printf("denied: %s\n", strerror(errno));
    return 0;
  }
  printf("done: %ld\n", result);
  return 1;
}

int Socket(int family, int type) { return Denied(socket(family, type, 0)); }

// The 32-bit way into the kernel has other numbers, which a filter may not know. 20 is getpid.
int OldAbi() {
  long result;
  asm volatile("int $0x80" : "=a"(result) : "a"(20) : "memory", "r8", "r9", "r10", "r11");
  printf("done: %ld\n", result);
  return result > 0 ? 1 : 0;
}

int Spin() {
  for (;;) asm volatile("");
}

int SpinOnAllCores() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(Spin);
  for (std::thread& each : threads) each.join();
  return 1;
}

int Balloon() {
  for (;;) {
    constexpr std::size_t kBytes = 16 << 20;
    void* p = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) _exit(3);
    memset(p, 1, kBytes);
  }
}

int MemoryFiles() {
  std::vector<char> bytes(1 << 20, 1);
  for (;;) {
    const int fd = memfd_create("balloon", 0);
    if (fd < 0) return Denied(-1);
    while (write(fd, bytes.data(), bytes.size()) > 0) {
    }
  }
}

int ForkBomb() {
  for (int i = 0; i < 100000; ++i) {
    const pid_t pid = fork();
    if (pid < 0) return Denied(-1);
    if (pid == 0) {
      pause();
      _exit(0);
    }
  }
  return 1;
}

void* Idle(void*) {
  pause();
  return nullptr;
}

int ThreadBomb() {
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 64 << 10);
  for (int i = 0; i < 100000; ++i) {
    pthread_t thread;
    if (const int error = pthread_create(&thread, &small, Idle, nullptr); error != 0) {
      errno = error;
      return Denied(-1);
    }
  }
  return 1;
}

int Recurse(int depth) {
  volatile char room[4096];
  room[0] = static_cast<char>(depth);
  return depth < 0 ? 0 : Recurse(depth + 1) + room[0];
}

int Flood(int fd) {
  const std::string bytes(4096, 'x');
  for (;;) {
    if (write(fd, bytes.data(), bytes.size()) < 0) return 0;
  }
}

int FillDisk() {
  const int fd = open("/tmp/fill", O_CREAT | O_RDWR, 0600);
  if (fd < 0) return Denied(-1);
  signal(SIGXFSZ, SIG_IGN);
  std::vector<char> bytes(1 << 20, 1);
  std::size_t total = 0;
  for (int file = 0; file < 64; ++file) {
    const int next = open(("/tmp/fill" + std::to_string(file)).c_str(), O_CREAT | O_RDWR, 0600);
    for (ssize_t n; (n = write(next, bytes.data(), bytes.size())) > 0;) {
      total += static_cast<std::size_t>(n);
    }
  }
  printf("%zu MiB\n", total >> 20);
  return 0;
}

int ManyFiles() {
  for (long i = 0; i < 100'000'000; ++i) {
    if (close(open(("/tmp/f" + std::to_string(i)).c_str(), O_CREAT | O_RDWR, 0600)) != 0) {
      return Denied(-1);
    }
  }
  return 1;
}

// Everywhere but in /tmp.
int WriteSomewhere() {
  for (const char* path :
       {"/x", "/usr/lib/x", "/etc/x", "/dev/x", "/usr/x", "/bound/x", "/proc/x"}) {
    if (open(path, O_CREAT | O_RDWR, 0600) >= 0) {
      printf("wrote %s\n", path);
      return 1;
    }
  }
  return 0;
}

int Daemon() {
  if (fork() == 0) {
    setsid();
    if (fork() == 0) {
      signal(SIGTERM, SIG_IGN);
      for (;;) pause();
    }
    _exit(0);
  }
  usleep(20'000);
  return 0;
}

int KillAll() {
  signal(SIGTERM, SIG_IGN);
  for (const int number : {SIGSTOP, SIGTERM, SIGINT, SIGKILL}) {
    kill(-1, number);
    kill(1, number);
  }
  printf("still here\n");
  return 0;
}

int ShowDescriptors() {
  for (int fd = 3; fd < 1024; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) printf("%d ", fd);
  }
  printf("\n");
  return 0;
}

int ShowEnvironment() {
  for (char** each = environ; *each != nullptr; ++each) printf("%s\n", *each);
  return 0;
}

int ShowWorld() {
  for (const char* path : {"/", "/etc", "/dev", "/tmp", "/usr", "/proc"}) {
    DIR* folder = opendir(path);
    printf("%s:", path);
    if (folder != nullptr) {
      while (const dirent* entry = readdir(folder)) {
        if (entry->d_name[0] != '.') printf(" %s", entry->d_name);
      }
      closedir(folder);
    }
    printf("\n");
  }
  char name[256] = "";
  gethostname(name, sizeof name);
  printf("host %s uid %d groups %d pid %d ppid %d\n", name, getuid(), getgroups(0, nullptr),
         getpid(), getppid());
  return 0;
}

int ShowOne() {
  for (const char* path :
       {"/proc/1/cmdline", "/proc/1/environ", "/proc/1/maps", "/proc/1/mem", "/proc/1/exe"}) {
    char buffer[512] = "";
    const int fd = open(path, O_RDONLY);
    const ssize_t got = fd < 0 ? -1 : read(fd, buffer, sizeof buffer - 1);
    for (ssize_t i = 0; i + 1 < got; ++i) {
      if (buffer[i] == '\0') buffer[i] = ' ';
    }
    printf("%s %s\n", path, got < 0 ? "no" : buffer);
  }
  return 0;
}

// SIGXFSZ aside, every file descriptor that the bound grants and no more.
int Descriptors() {
  int count = 0;
  while (open("/dev/null", O_RDONLY) >= 0) ++count;
  printf("%d\n", count + 3);
  return 0;
}

int Exec() {
  char* const arguments[] = {program_invocation_name, const_cast<char*>("hello"), nullptr};
  execv(program_invocation_name, arguments);
  printf("execve: %s\n", strerror(errno));
  syscall(SYS_execveat, AT_FDCWD, program_invocation_name, arguments, environ, 0);
  printf("execveat: %s\n", strerror(errno));
  return 0;
}

int Escapes() {
  struct Try {
    const char* name;
    std::function<long()> call;
  };
  sockaddr_vm vm = {};
  iovec vector = {&vm, sizeof vm};
  const std::vector<Try> tries = {
      {"unshare", [] { return unshare(CLONE_NEWUSER | CLONE_NEWNS); }},
      {"clone", [] { return syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0); }},
      {"clone3", [] { return syscall(SYS_clone3, nullptr, 0); }},
      {"setns", [] { return syscall(SYS_setns, 0, 0); }},
      {"mount", [] { return mount("none", "/tmp", "tmpfs", 0, ""); }},
      {"umount", [] { return umount2("/usr/lib", MNT_DETACH); }},
      {"chroot", [] { return chroot("/tmp"); }},
      {"ptrace", [] { return ptrace(PTRACE_ATTACH, 1, 0, 0); }},
      {"process_vm_readv", [&] { return process_vm_readv(1, &vector, 1, &vector, 1, 0); }},
      {"process_vm_writev", [&] { return process_vm_writev(getpid(), &vector, 1, &vector, 1, 0); }},
      {"pidfd_getfd", [] { return syscall(SYS_pidfd_getfd, 3, 0, 0); }},
      {"kcmp", [] { return syscall(SYS_kcmp, getpid(), getpid(), 0, 0, 0); }},
      {"bpf", [] { return syscall(SYS_bpf, 0, nullptr, 0); }},
      {"perf_event_open", [] { return syscall(SYS_perf_event_open, nullptr, 0, -1, -1, 0); }},
      {"keyctl", [] { return syscall(SYS_keyctl, 0, -3, 1); }},
      {"add_key", [] { return syscall(SYS_add_key, "user", "x", "y", 1, -4); }},
      {"io_uring", [] { return syscall(SYS_io_uring_setup, 1, nullptr); }},
      {"userfaultfd", [] { return syscall(SYS_userfaultfd, 0); }},
      {"mknod", [] { return mknod("/tmp/device", S_IFCHR | 0600, makedev(1, 3)); }},
      {"setuid", [] { return syscall(SYS_setuid, 0); }},
      {"shmget", [] { return syscall(SYS_shmget, 1, 4096, 01600); }},
      {"flock", [] { return syscall(SYS_flock, 0, 1); }},
      {"TIOCSTI", [] { return ioctl(0, TIOCSTI, "x"); }},
      {"TIOCSTI with high bits", [] { return syscall(SYS_ioctl, 0, 0x700005412ull, "x"); }},
      {"open_by_handle_at", [] { return syscall(SYS_open_by_handle_at, 0, nullptr, 0); }},
      {"AF_INET", [] { return socket(AF_INET, SOCK_STREAM, 0); }},
      {"AF_INET6", [] { return socket(AF_INET6, SOCK_DGRAM, 0); }},
      {"AF_NETLINK", [] { return socket(AF_NETLINK, SOCK_RAW, 0); }},
      {"AF_PACKET", [] { return socket(AF_PACKET, SOCK_RAW, 0); }},
      {"AF_VSOCK", [] { return socket(AF_VSOCK, SOCK_STREAM, 0); }},
      {"AF_ALG", [] { return socket(AF_ALG, SOCK_SEQPACKET, 0); }},
  };
  int done = 0;
  for (const Try& each : tries) {
    errno = 0;
    const long result = each.call();
    // EPERM or ENOSYS is the filter's word; another error came from behind it.
    if (result >= 0 || (errno != EPERM && errno != ENOSYS)) {
      printf("%s: %ld, %s\n", each.name, result, strerror(errno));
      ++done;
    }
  }
  return done != 0 ? 1 : 0;
}

// Locks on a file of the system, which other sandboxes see, too.
int Locks() {
  const int fd = open("/etc/ld.so.cache", O_RDONLY);
  struct flock lock = {};
  lock.l_type = F_RDLCK;
  if (fcntl(fd, F_SETLK, &lock) == 0 || fcntl(fd, F_GETLK, &lock) == 0) return 1;
  return Denied(fcntl(fd, F_OFD_SETLK, &lock));
}

// Another sandbox listens in the abstract namespace under this name, and this is not it.
int Abstract() {
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  strcpy(address.sun_path + 1, "allranks-probe");
  return Denied(connect(fd, reinterpret_cast<sockaddr*>(&address),
                        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 15)));
}

// The folder of a team: a file stays, whatever is done to it, and is small.
int KeepsFiles() {
  const int fd = open("/dev/shm/file", O_CREAT | O_EXCL | O_RDWR, 0600);
  if (fd < 0) return Denied(fd);
  signal(SIGXFSZ, SIG_IGN);
  if (ftruncate(fd, 4096) != 0 || ftruncate(fd, 2 << 20) == 0) return 1;
  unlink("/dev/shm/file");
  unlinkat(AT_FDCWD, "/dev/shm/file", 0);
  if (access("/dev/shm/file", F_OK) != 0) return 1;
  struct Try {
    const char* name;
    long result;
  };
  for (const Try& one : {
           Try{"rename", rename("/dev/shm/file", "/dev/shm/other")},
           Try{"link", link("/dev/shm/file", "/dev/shm/other")},
           Try{"symlink", symlink("/dev/shm/file", "/dev/shm/other")},
           Try{"mkdir", mkdir("/dev/shm/folder", 0700)},
           Try{"O_TMPFILE", open("/dev/shm", O_TMPFILE | O_RDWR, 0600)},
           Try{"open", syscall(SYS_open, "/dev/shm", O_TMPFILE | O_RDWR, 0600)},
           Try{"openat2", syscall(SYS_openat2, AT_FDCWD, "/dev/shm", nullptr, 0)},
       }) {
    if (one.result < 0) continue;
    printf("%s\n", one.name);
    return 1;
  }
  return 0;
}

int FillFolder() {
  for (int i = 0; i < 100; ++i) {
    const std::string path = "/dev/shm/" + std::to_string(i);
    if (open(path.c_str(), O_CREAT | O_WRONLY, 0600) < 0) return 3;
    unlink(path.c_str());
  }
  return 0;
}

sockaddr_in Meeting(const char* host) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(4711);
  inet_pton(AF_INET, host, &address.sin_addr);
  return address;
}

// Waits for a member of its team.
int Serve() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in address = Meeting("127.0.0.1");
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(fd, 1) != 0)
    return 2;
  return accept(fd, nullptr, nullptr) >= 0 ? 0 : 1;
}

// Calls it, for two seconds; 1: it was there.
int CallMember(const char* host) {
  const sockaddr_in address = Meeting(host);
  for (int i = 0; i < 200; ++i) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return 1;
    if (errno != ECONNREFUSED) {
      printf("%s\n", strerror(errno));
      return 0;
    }
    close(fd);
    usleep(10'000);
  }
  printf("%s\n", strerror(errno));
  return 0;
}

int Results() {
  if (FILE* file = fopen("/tmp/plain", "w")) {
    fputs("result", file);
    fclose(file);
  }
  if (symlink("/etc/ld.so.cache", "/tmp/link") != 0 || mkdir("/tmp/folder", 0700) != 0) {
    printf("made not all: %s\n", strerror(errno));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IONBF, 0);
  const std::map<std::string, std::function<int()>> all = {
      {"serve", Serve},
      {"call", [] { return CallMember("127.0.0.1"); }},
      {"call_out", [] { return CallMember("198.51.100.1"); }},
      {"hello", [] { return printf("hello\n") > 0 ? 0 : 1; }},
      {"code", [] { return 7; }},
      {"abort", [] { return abort(), 0; }},
      {"spin", Spin},
      {"spin_on_all_cores", SpinOnAllCores},
      {"sleep", [] { return pause(); }},
      {"balloon", Balloon},
      {"memory_files", MemoryFiles},
      {"fork_bomb", ForkBomb},
      {"thread_bomb", ThreadBomb},
      {"recurse", [] { return Recurse(0); }},
      {"flood", [] { return Flood(1); }},
      {"flood_errors", [] { return Flood(2); }},
      {"fill_disk", FillDisk},
      {"many_files", ManyFiles},
      {"write_somewhere", WriteSomewhere},
      {"daemon", Daemon},
      {"kill_all", KillAll},
      {"descriptors", ShowDescriptors},
      {"environment", ShowEnvironment},
      {"world", ShowWorld},
      {"one", ShowOne},
      {"most_descriptors", Descriptors},
      {"exec", Exec},
      {"fork", [] { return Denied(fork()); }},
      {"vfork", [] { return Denied(syscall(SYS_vfork)); }},
      {"thread",
       [] {
         int ran = 0;
         std::thread([&] { ran = 1; }).join();
         printf("ran %d\n", ran);
         return 0;
       }},
      {"escapes", Escapes},
      {"old_abi", OldAbi},
      {"locks", Locks},
      {"keeps_files", KeepsFiles},
      {"fill_folder", FillFolder},
      {"abstract", Abstract},
      {"results", Results},
      {"personality",
       [] {
         printf("%x\n", static_cast<unsigned>(personality(0xffffffff)));
         return 0;
       }},
      {"tcp", [] { return Socket(AF_INET, SOCK_STREAM); }},
  };
  const auto found = argc > 1 ? all.find(argv[1]) : all.end();
  return found == all.end() ? 2 : found->second();
}
