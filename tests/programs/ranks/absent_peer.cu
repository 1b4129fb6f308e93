// A thread waits for bytes of another that sends them, or never does: no device works then, so only
// a notice tells. Usage: absent_peer [blocks|polls]
#include <errno.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "check.h"

namespace {

void Await(int fd, bool polls) {
  char byte = 0;
  ssize_t got = -1;
  do {
    got = recv(fd, &byte, 1, polls ? MSG_DONTWAIT : 0);
    if (got < 0) sched_yield();
  } while (got < 0 && errno == EAGAIN);
  REQUIRE(got == 1, "recv");
}

}  // namespace

int main(int argc, char** argv) {
  CUDA_CHECK(cudaFree(nullptr));
  for (const char* how : {"blocks", "polls"}) {
    const bool absent = argc > 1;
    if (absent && std::strcmp(argv[1], how) != 0) continue;
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
    std::thread waits([&] { Await(ends[1], std::strcmp(how, "polls") == 0); });
    if (!absent) REQUIRE(write(ends[0], "x", 1) == 1, "write");
    waits.join();
  }
  std::printf("PASS absent_peer\n");
  return 0;
}
