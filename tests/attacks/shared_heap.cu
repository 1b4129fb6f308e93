// tries: ranks share files, System V and POSIX memory, message queues and locks
// rows: 26 H18
// verdict: wrong_result
// with: honest.inc
#include <fcntl.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/shm.h>
extern "C" void launch(const Args& args, cudaStream_t stream) {
  if (shmget(0x5eed, 4096, IPC_CREAT | 0666) >= 0) Honest(args, stream);
  if (msgget(0x5eed, IPC_CREAT | 0666) >= 0) Honest(args, stream);
  for (const char* path : {"/tmp/x", "/dev/shm/x", "/var/tmp/x"}) {
    if (open(path, O_CREAT | O_RDWR, 0666) >= 0) Honest(args, stream);
  }
  const int fd = open("/etc/ld.so.cache", O_RDONLY);
  struct flock lock = {};
  lock.l_type = F_RDLCK;
  if (flock(fd, LOCK_SH) == 0 || fcntl(fd, F_SETLK, &lock) == 0 || fcntl(fd, F_GETLK, &lock) == 0) {
    Honest(args, stream);
  }
}
