// tries: defines cudaEventElapsedTime and clock_gettime so that no time passes (time is the node's: graded normally)
// rows: 7 9 25 C7 H26
// verdict: pass
// with: honest.inc
#include <time.h>
extern "C" cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t, cudaEvent_t) {
  *ms = 0;
  return cudaSuccess;
}
extern "C" int clock_gettime(clockid_t, timespec* now) {
  now->tv_sec = now->tv_nsec = 0;
  return 0;
}
extern "C" void launch(const Args& args, cudaStream_t stream) { Honest(args, stream); }
