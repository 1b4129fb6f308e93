// tries: stops itself, so that a harness waits for ever
// rows: H12
// verdict: timeout
#include <signal.h>
extern "C" void launch(const Args&, cudaStream_t) {
  signal(SIGTERM, SIG_IGN);
  raise(SIGSTOP);
}
