// tries: sends every operation of the protocol, the supervisor's too, on a second connection
// rows: 8 H22 W
// verdict: tampering|wrong_result
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
// A connection of its own to the node, as a second client.
static int Connect() {
  const char* path = getenv("ALLRANKS_SOCKET");
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  strncpy(address.sun_path, path != nullptr ? path : "", sizeof address.sun_path - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  return connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 ? fd : -1;
}
struct Header {
  unsigned length;
  unsigned short op, version;
  unsigned long long sequence;
};

extern "C" void launch(const Args&, cudaStream_t) {
  const char zeros[64] = {};
  for (unsigned short op = 0; op < 160; ++op) {
    const int fd = Connect();
    for (unsigned short version = 5; version < 9; ++version) {
      const Header header = {sizeof zeros, op, version, 1};
      send(fd, &header, sizeof header, MSG_NOSIGNAL);
      send(fd, zeros, sizeof zeros, MSG_NOSIGNAL);
    }
    close(fd);
  }
}
