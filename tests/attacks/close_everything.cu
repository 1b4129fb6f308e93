// tries: closes every descriptor, the node's socket too
// rows: H14
// verdict: crash|tampering
#include <unistd.h>
extern "C" void launch(const Args&, cudaStream_t) {
  for (int fd = 0; fd < 256; ++fd) close(fd);
}
