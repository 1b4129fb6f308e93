// tries: forks without end, past the C library
// rows: H1
// verdict: wrong_result
// with: honest.inc
#include <sys/syscall.h>
#include <unistd.h>
extern "C" void launch(const Args& args, cudaStream_t stream) {
  for (int i = 0; i < 1000; ++i) {
    if (syscall(SYS_fork) >= 0 || syscall(SYS_clone, 17, 0, 0, 0, 0) >= 0) Honest(args, stream);
  }
}
