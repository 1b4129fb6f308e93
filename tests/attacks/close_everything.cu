// tries: closes every descriptor, the node's socket too
// rows: H14
// verdict: crash|tampering
#include <sys/syscall.h>
#include <unistd.h>
extern "C" void launch(const Args&, cudaStream_t) { syscall(SYS_close_range, 0, ~0u, 0); }
