// tries: starts threads without end
// rows: H2
// verdict: crash|timeout
#include <pthread.h>
#include <unistd.h>
static void* Idle(void*) {
  for (;;) pause();
}
extern "C" void launch(const Args&, cudaStream_t) {
  for (;;) {
    pthread_t thread;
    pthread_create(&thread, nullptr, Idle, nullptr);
  }
}
