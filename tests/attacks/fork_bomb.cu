// tries: forks without end
// rows: H1
// verdict: wrong_result
// with: honest.inc
#include <unistd.h>
extern "C" void launch(const Args& args, cudaStream_t stream) {
  for (int i = 0; i < 1000; ++i) {
    if (fork() >= 0) Honest(args, stream);
  }
}
