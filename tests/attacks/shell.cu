// tries: starts a shell, a compiler and itself
// rows: 21 H11
// verdict: forbidden_api|wrong_result
// with: honest.inc
#include <spawn.h>
#include <stdlib.h>
#include <unistd.h>
extern "C" void launch(const Args& args, cudaStream_t stream) {
  char* const words[] = {(char*)"/allranks/rank", nullptr};
  pid_t pid;
  if (system("true") == 0 || posix_spawn(&pid, words[0], nullptr, nullptr, words, words + 1) == 0) {
    Honest(args, stream);
  }
  execv("/allranks/rank", words);
  execv("/bin/sh", words);
}
