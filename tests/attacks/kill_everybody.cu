// tries: sends every signal to process 1 and to all others
// rows: H12 H13
// verdict: wrong_result
#include <signal.h>
extern "C" void launch(const Args&, cudaStream_t) {
  for (int number = 1; number < 32; ++number) {
    signal(number, SIG_IGN);
    kill(1, number);
    if (number != SIGSTOP) kill(-1, number);
  }
}
