// Two processes exchange small messages over TCP as many libraries do: several short writes, then a
// wait for the answer with a timeout. The kernel may keep short segments back for tens of
// milliseconds of wall time, in which nobody acts; virtual time must not go on to the timeout.
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>

#include "check.h"

namespace {

constexpr int kRounds = 20, kWrites = 4;

void Take(int from, int bytes) {
  char byte = 0;
  for (int i = 0; i < bytes; ++i) {
    pollfd wait{from, POLLIN, 0};
    REQUIRE(poll(&wait, 1, 2000) == 1, "nothing came for 2 s of virtual time");
    REQUIRE(read(from, &byte, 1) == 1, "the connection is closed");
  }
}

int Answer(int listener) {
  const int peer = accept(listener, nullptr, nullptr);
  REQUIRE(peer >= 0, "accept");
  for (int round = 0; round < kRounds; ++round) {
    Take(peer, kWrites);
    REQUIRE(write(peer, "a", 1) == 1, "write");
  }
  return 0;
}

double Now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

int main() {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof name;
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  REQUIRE(bind(listener, reinterpret_cast<sockaddr*>(&name), length) == 0, "bind");
  REQUIRE(listen(listener, 1) == 0, "listen");
  getsockname(listener, reinterpret_cast<sockaddr*>(&name), &length);
  const pid_t child = fork();
  if (child == 0) return Answer(listener);
  const int peer = socket(AF_INET, SOCK_STREAM, 0);
  REQUIRE(connect(peer, reinterpret_cast<sockaddr*>(&name), length) == 0, "connect");
  const double begin = Now();
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kWrites; ++i) REQUIRE(write(peer, "q", 1) == 1, "write");
    Take(peer, 1);
  }
  const double took = Now() - begin;
  REQUIRE(took < 1e-3, "%d rounds took %g s", kRounds, took);
  int status = 1;
  REQUIRE(waitpid(child, &status, 0) == child && status == 0, "the other process: %d", status);
  CUDA_CHECK(cudaFree(nullptr));
  return 0;
}
