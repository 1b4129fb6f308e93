// What bytes cost that ranks send each other over TCP: nothing on a host, the time of the NICs'
// links between hosts, and twice that for two ranks that send at the same time.
//
// run one_host: --profile h100x8x2-ib --ranks 2 --ranks-per-host 2 | 0
// run two_hosts: --profile h100x8x2-ib --ranks 2 --ranks-per-host 1 | 1
// run pairs: --profile h100x8x2-ib --ranks 4 --ranks-per-host 2 | 2
#include <fcntl.h>
#include <poll.h>
#include <time.h>

#include <vector>

#include "check.h"
#include "store.h"

namespace {

constexpr size_t kBytes = 8 << 20;
constexpr double kGBs = 48.5;  // of the profile's network, less what packets cost

double NowUs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1e6 + now.tv_nsec * 1e-3;
}

// A connection from the second half of the ranks to the first, one to one.
int Connect(int rank, int ranks, Store* store) {
  const bool listens = rank < ranks / 2;
  int listener = -1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (listens) {
    listener = socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(bind(listener, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
                listen(listener, 1) == 0 &&
                getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) == 0,
            "cannot listen");
  }
  const std::vector<uint16_t> ports = store->AllGather(address.sin_port);
  if (listens) return accept(listener, nullptr, nullptr);
  address.sin_port = ports[rank - ranks / 2];
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  REQUIRE(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0,
          "cannot connect");
  return fd;
}

std::vector<char> Pattern(int rank) {
  std::vector<char> bytes(kBytes);
  for (size_t i = 0; i < kBytes; ++i) bytes[i] = static_cast<char>(i * 7 + i / 4096 + rank);
  return bytes;
}

// Without blocking, as communication libraries do it.
void ReceivePolling(int fd, char* data, size_t size) {
  REQUIRE(fcntl(fd, F_SETFL, O_NONBLOCK) == 0, "fcntl");
  for (size_t done = 0; done < size;) {
    char first;
    if (recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) < 0) {
      pollfd entry{fd, POLLIN, 0};
      poll(&entry, 1, -1);
      continue;
    }
    const ssize_t n = recv(fd, data + done, size - done, 0);
    REQUIRE(n > 0 && data[done] == first, "recv and its peek differ");
    done += size_t(n);
  }
}

}  // namespace

int main(int argc, char** argv) {
  REQUIRE(argc == 2, "how many ranks share a host's NIC?");
  const int sharing = std::atoi(argv[1]);
  const int rank = FromEnvironment("RANK"), ranks = FromEnvironment("WORLD_SIZE");
  Store store(rank, ranks);
  const int fd = Connect(rank, ranks, &store);
  const bool receives = rank < ranks / 2;
  const int peer = receives ? rank + ranks / 2 : rank - ranks / 2;

  store.AllGather(0);
  const double begin = NowUs();
  if (receives) {
    std::vector<char> got(kBytes);
    if (rank % 2 == 0)
      REQUIRE(recv(fd, got.data(), kBytes, MSG_WAITALL) == ssize_t(kBytes), "recv");
    else
      ReceivePolling(fd, got.data(), kBytes);
    REQUIRE(got == Pattern(peer), "rank %d received something else", rank);
  } else {
    const std::vector<char> bytes = Pattern(rank);
    SendAll(fd, bytes.data(), kBytes);
  }
  const double took = NowUs() - begin;
  const double expected = sharing * kBytes / kGBs / 1000;
  double slowest = 0;
  for (double us : store.AllGather(receives ? took : 0)) slowest = us > slowest ? us : slowest;
  if (rank == 0) {
    std::printf("%.1f us, the links take %.1f\n", slowest, expected);
    REQUIRE(slowest >= expected && slowest < expected * 1.3 + 20, "expected %.1f us, took %.1f",
            expected, slowest);
    std::printf("PASS network\n");
  }
  return 0;
}
