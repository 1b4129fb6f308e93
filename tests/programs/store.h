// Exchanges values over TCP between ranks that a launcher started (RANK, WORLD_SIZE, MASTER_ADDR,
// MASTER_PORT), as frameworks do without MPI.
#pragma once

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "check.h"

inline int FromEnvironment(const char* name) {
  const char* text = std::getenv(name);
  REQUIRE(text != nullptr, "%s is not set", name);
  return std::atoi(text);
}

inline void SendAll(int fd, const void* data, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t n = send(fd, static_cast<const char*>(data) + done, size - done, 0);
    REQUIRE(n > 0, "send failed");
    done += size_t(n);
  }
}

inline void ReceiveAll(int fd, void* data, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t n = recv(fd, static_cast<char*>(data) + done, size - done, 0);
    REQUIRE(n > 0, "the other end has closed");
    done += size_t(n);
  }
}

// A star around rank 0.
class Store {
 public:
  Store(int rank, int ranks) : rank_(rank), ranks_(ranks), peers_(ranks) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(uint16_t(FromEnvironment("MASTER_PORT")));
    inet_pton(AF_INET, std::getenv("MASTER_ADDR"), &address.sin_addr);
    auto* any = reinterpret_cast<sockaddr*>(&address);
    if (rank != 0) {
      while (connect(peers_[0] = socket(AF_INET, SOCK_STREAM, 0), any, sizeof address) != 0) {
        close(peers_[0]);
        usleep(1000);  // rank 0 does not listen yet
      }
      SendAll(peers_[0], &rank, sizeof rank);
      return;
    }
    const int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    REQUIRE(bind(listener, any, sizeof address) == 0 && listen(listener, ranks) == 0,
            "cannot listen at the master's port");
    for (int i = 1; i < ranks; ++i) {
      const int fd = accept(listener, nullptr, nullptr);
      int who = 0;
      ReceiveAll(fd, &who, sizeof who);
      REQUIRE(who > 0 && who < ranks, "rank %d has come", who);
      peers_[who] = fd;
    }
    close(listener);
  }

  template <class T>
  std::vector<T> AllGather(const T& own) {
    std::vector<T> all(ranks_);
    all[rank_] = own;
    if (rank_ != 0) {
      SendAll(peers_[0], &own, sizeof own);
      ReceiveAll(peers_[0], all.data(), all.size() * sizeof(T));
      return all;
    }
    for (int r = 1; r < ranks_; ++r) ReceiveAll(peers_[r], &all[r], sizeof(T));
    for (int r = 1; r < ranks_; ++r) SendAll(peers_[r], all.data(), all.size() * sizeof(T));
    return all;
  }

 private:
  int rank_, ranks_;
  std::vector<int> peers_;
};
