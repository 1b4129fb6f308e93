// tries: a thread does the work later
// rows: 5 6 H27
// verdict: forbidden_api|wrong_result|crash
// with: honest.inc
#include <pthread.h>
#include <unistd.h>
static Args kept;
static void* Later(void*) {
  usleep(3000);
  cudaStream_t side = nullptr;
  cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
  for (int i = 0; i < 100; ++i) Honest(kept, side);
  return nullptr;
}
extern "C" void launch(const Args& args, cudaStream_t) {
  kept = args;
  pthread_t thread;
  pthread_create(&thread, nullptr, Later, nullptr);
}
