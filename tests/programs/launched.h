// The sockets of a world whose ranks were started one by one, by torchrun or its like, maybe on
// several hosts: RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT say who and where. Rank
// 0 collects everyone's address and tells it to all, then each connects to those before it.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "check.h"

inline int FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  REQUIRE(value != nullptr, "%s is not set: the program must be started by a launcher", name);
  return std::atoi(value);
}

namespace launched {

template <class T>
void Send(int socket, const T& value) {
  REQUIRE(send(socket, &value, sizeof value, MSG_NOSIGNAL) == sizeof value, "send failed");
}
template <class T>
T Receive(int socket) {
  T value;
  REQUIRE(recv(socket, &value, sizeof value, MSG_WAITALL) == sizeof value, "recv failed");
  return value;
}

// Port 0 lets the system choose.
inline int Listen(int port) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(uint16_t(port));
  REQUIRE(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
              listen(listener, 128) == 0,
          "cannot listen on port %d", port);
  return listener;
}

inline int Connect(const sockaddr_in& address) {
  for (int attempt = 0; attempt < 10000; ++attempt) {
    const int link = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(link, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
      return link;
    close(link);
    usleep(1000);  // not listening yet
  }
  Fail(__FILE__, __LINE__, "cannot connect to port %d", ntohs(address.sin_port));
}

inline int Accept(int listener, sockaddr_in* from = nullptr) {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  const int link = accept(listener, reinterpret_cast<sockaddr*>(&address), &length);
  REQUIRE(link >= 0, "accept failed");
  if (from != nullptr) from->sin_addr = address.sin_addr;
  return link;
}

// links[p] becomes the connection with rank p.
inline void ConnectAll(int rank, int ranks, int* links) {
  sockaddr_in master{};
  master.sin_family = AF_INET;
  master.sin_port = htons(uint16_t(FromEnvironment("MASTER_PORT")));
  const char* host = std::getenv("MASTER_ADDR");
  REQUIRE(host != nullptr && inet_pton(AF_INET, host, &master.sin_addr) == 1,
          "MASTER_ADDR must be a numeric address");
  const int listener = Listen(rank == 0 ? ntohs(master.sin_port) : 0);
  struct Card {
    int rank;
    sockaddr_in address;
  };
  std::vector<sockaddr_in> addresses(ranks, master);
  if (rank == 0) {
    for (int i = 1; i < ranks; ++i) {
      sockaddr_in from{};
      const int link = Accept(listener, &from);
      Card card = Receive<Card>(link);
      card.address.sin_addr = from.sin_addr;
      links[card.rank] = link;
      addresses[card.rank] = card.address;
    }
    for (int r = 1; r < ranks; ++r) {
      for (const sockaddr_in& address : addresses) Send(links[r], address);
    }
  } else {
    Card card{rank, {}};
    socklen_t length = sizeof card.address;
    REQUIRE(getsockname(listener, reinterpret_cast<sockaddr*>(&card.address), &length) == 0,
            "getsockname failed");
    links[0] = Connect(master);
    Send(links[0], card);
    for (sockaddr_in& address : addresses) address = Receive<sockaddr_in>(links[0]);
    for (int r = 1; r < rank; ++r) {
      links[r] = Connect(addresses[r]);
      Send(links[r], rank);
    }
    for (int r = rank + 1; r < ranks; ++r) {
      const int link = Accept(listener);
      links[Receive<int>(link)] = link;
    }
  }
  close(listener);
}

}  // namespace launched
