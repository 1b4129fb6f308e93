// tries: attaches to process 1 and to every other process
// rows: 25 H13
// verdict: wrong_result
// with: honest.inc
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>
extern "C" void launch(const Args& args, cudaStream_t stream) {
  char byte = 0;
  iovec mine = {&byte, 1}, theirs = {(void*)0x400000, 1};
  for (pid_t pid = 1; pid < 300; ++pid) {
    if (ptrace(PTRACE_ATTACH, pid, 0, 0) == 0) Honest(args, stream);
    if (process_vm_readv(pid, &mine, 1, &theirs, 1, 0) > 0) Honest(args, stream);
    if (process_vm_writev(pid, &mine, 1, &theirs, 1, 0) > 0) Honest(args, stream);
  }
}
