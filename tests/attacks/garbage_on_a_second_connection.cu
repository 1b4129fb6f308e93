// tries: sends random bytes on a second connection
// rows: H22 W
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
  const int fd = Connect();
  unsigned char bytes[4096];
  for (unsigned i = 0; i < sizeof bytes; ++i) bytes[i] = (unsigned char)(i * 2654435761u >> 13);
  for (int i = 0; i < 16; ++i) send(fd, bytes, sizeof bytes, MSG_NOSIGNAL);
}
