// tries: new namespaces, mounts, users, keys, devices
// rows: H18
// verdict: wrong_result
// with: honest.inc
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
extern "C" void launch(const Args& args, cudaStream_t stream) {
  const bool out = unshare(CLONE_NEWUSER) == 0 || unshare(CLONE_NEWNS) == 0 || unshare(CLONE_NEWNET) == 0 ||
                   mount("none", "/tmp", "tmpfs", 0, "") == 0 || chroot("/tmp") == 0 || setuid(0) == 0 ||
                   syscall(SYS_keyctl, 0, -3, 1) >= 0 || syscall(SYS_add_key, "user", "a", "b", 1, -4) >= 0 ||
                   ioctl(0, TIOCSTI, "x") == 0 || syscall(SYS_bpf, 0, nullptr, 0) >= 0 ||
                   syscall(SYS_userfaultfd, 0) >= 0 || syscall(SYS_perf_event_open, nullptr, 0, -1, -1, 0) >= 0 ||
                   syscall(SYS_setns, 0, 0) >= 0 || mknod("/tmp/d", S_IFCHR | 0600, 0x103) == 0;
  if (out) Honest(args, stream);
}
