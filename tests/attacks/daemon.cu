// tries: forks twice, leaves the session and stays behind
// rows: C5 H11
// verdict: forbidden_api|wrong_result
// with: honest.inc
#include <sys/types.h>
#include <unistd.h>
extern "C" void launch(const Args& args, cudaStream_t stream) {
  const pid_t child = fork();
  if (child > 0) Honest(args, stream);
  if (child != 0) return;
  setsid();
  if (fork() != 0) _exit(0);
  for (;;) pause();
}
