// tries: two million files and folders 10000 deep
// rows: H7
// verdict: wrong_result
// with: honest.inc
#include <sys/stat.h>
#include <unistd.h>
extern "C" void launch(const Args& args, cudaStream_t stream) {
  (void)!chdir("/tmp");
  for (int i = 0; i < 10000; ++i) {
    if (mkdir("d", 0700) == 0 && chdir("d") == 0) Honest(args, stream);
  }
}
