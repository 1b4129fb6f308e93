// tries: ends the process with 0 instead of working
// rows: C1 H14
// verdict: crash
#include <unistd.h>
extern "C" void launch(const Args&, cudaStream_t) { _exit(0); }
