// tries: a file of 1 TiB, and as much of it as there is room for
// rows: H6
// verdict: wrong_result
// with: honest.inc
#include <fcntl.h>
#include <unistd.h>
extern "C" void launch(const Args& args, cudaStream_t stream) {
  for (const char* path : {"/tmp/fill", "fill", "/fill", "/dev/fill", "/allranks/fill", "/node/fill"}) {
    if (open(path, O_CREAT | O_RDWR, 0600) >= 0) Honest(args, stream);
  }
}
