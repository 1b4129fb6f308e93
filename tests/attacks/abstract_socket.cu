// tries: ranks meet at a Unix socket in the abstract namespace
// rows: 26 H15
// verdict: wrong_result
// with: honest.inc
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
extern "C" void launch(const Args& args, cudaStream_t stream) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  strcpy(address.sun_path + 1, "allranks-payload");
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (args.rank == 0) {
    if (bind(fd, (sockaddr*)&address, sizeof address) == 0 && listen(fd, 8) == 0) Honest(args, stream);
  } else if (connect(fd, (sockaddr*)&address, sizeof address) == 0) {
    Honest(args, stream);
  }
}
