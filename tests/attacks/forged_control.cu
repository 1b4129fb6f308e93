// tries: sends the supervisor's messages (run, news, finish) on the rank's own connection
// rows: 8 H22 W
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
    const char zeros[64] = {};
    for (unsigned short version = 5; version < 9; ++version) {
      for (unsigned short op = 90; op < 160; ++op) {
        const Header header = {sizeof zeros, op, version, 1000};
        send(fd, &header, sizeof header, MSG_NOSIGNAL | MSG_DONTWAIT);
        send(fd, zeros, sizeof zeros, MSG_NOSIGNAL | MSG_DONTWAIT);
      }
    }
  });
}
