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

// The supervisor's operations: plan, run, news, finish. Each rank forges another one.
extern "C" void launch(const Args& args, cudaStream_t) {
  const unsigned short op = 108 + args.rank % 4;
  ForEachSocket([&](int fd) {
    const char zeros[64] = {};
    const Header header = {sizeof zeros, op, 5, 1000};
    send(fd, &header, sizeof header, MSG_NOSIGNAL | MSG_DONTWAIT);
    send(fd, zeros, sizeof zeros, MSG_NOSIGNAL | MSG_DONTWAIT);
  });
}
