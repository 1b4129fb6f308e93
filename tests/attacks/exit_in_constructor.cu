// tries: ends the process with 0 before main
// rows: C1 H14
// verdict: crash
#include <unistd.h>
__attribute__((constructor)) static void Early() { _exit(0); }
extern "C" void launch(const Args&, cudaStream_t) {}
