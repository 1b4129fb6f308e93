// tries: opens sockets of every family but Unix, and io_uring
// rows: H15
// verdict: wrong_result
// with: honest.inc
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
extern "C" void launch(const Args& args, cudaStream_t stream) {
  for (int family = 2; family < 46; ++family) {
    for (int type = 1; type <= 5; ++type) {
      if (socket(family, type, 0) >= 0) Honest(args, stream);
    }
  }
  char parameters[256] = {};
  if (syscall(SYS_io_uring_setup, 4, parameters) >= 0) Honest(args, stream);
}
