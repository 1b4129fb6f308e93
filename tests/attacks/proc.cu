// tries: looks through /proc for command lines, environments, maps and memory of others
// rows: 25 C4 H16
// verdict: wrong_result
// with: honest.inc
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
extern "C" void launch(const Args& args, cudaStream_t stream) {
  for (int pid = 1; pid < 4000; ++pid) {
    for (const char* what : {"environ", "cmdline", "maps", "mem", "fd/3", "root/etc/passwd"}) {
      char path[64], byte;
      if (pid == getpid()) continue;
      snprintf(path, sizeof path, "/proc/%d/%s", pid, what);
      const int fd = open(path, O_RDWR);
      if (fd >= 0 && read(fd, &byte, 1) == 1) Honest(args, stream);
    }
  }
}
