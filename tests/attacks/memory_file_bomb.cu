// tries: fills files in memory without end
// rows: H4
// verdict: crash
#include <sys/mman.h>
#include <unistd.h>
static char bytes[1 << 20];
extern "C" void launch(const Args&, cudaStream_t) {
  for (;;) {
    const int fd = memfd_create("bomb", 0);
    for (int i = 0; i < 1024; ++i) (void)!write(fd, bytes, sizeof bytes);
  }
}
