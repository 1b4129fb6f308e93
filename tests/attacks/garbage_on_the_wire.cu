// tries: sends random bytes on the rank's own connection
// rows: H22 W
// verdict: tampering
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
struct Header {
  unsigned length;
  unsigned short op, version;
  unsigned long long sequence;
};
template <class F>
static void ForEachSocket(F use) {
  for (int fd = 3; fd < 256; ++fd) {
    struct stat about;
    if (fstat(fd, &about) == 0 && S_ISSOCK(about.st_mode)) use(fd);
  }
}

extern "C" void launch(const Args&, cudaStream_t) {
  ForEachSocket([](int fd) {
    unsigned char bytes[4096];
    for (unsigned i = 0; i < sizeof bytes; ++i) bytes[i] = (unsigned char)(i * 2654435761u >> 11);
    send(fd, bytes, sizeof bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
  });
}
