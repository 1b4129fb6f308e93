// tries: writes all over the memory that it shares with the node
// rows: H24 W
// verdict: wrong_result|crash|tampering
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
extern "C" void launch(const Args&, cudaStream_t) {
  for (int fd = 3; fd < 256; ++fd) {
    struct stat about;
    if (fstat(fd, &about) != 0 || about.st_size <= 0 || about.st_size > 1 << 30) continue;
    void* at = mmap(nullptr, about.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED) memset(at, 0xff, about.st_size);
  }
}
