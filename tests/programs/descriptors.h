// Open descriptors from one process to another over a Unix socket, for programs whose ranks share
// memory by file descriptors.
#pragma once

#include <sys/socket.h>

#include <cstring>

#include "check.h"

// Sends a copy of `fd`.
inline void SendDescriptor(int socket, int fd) {
  char byte = 'f';
  iovec data{&byte, 1};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof fd)] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = sizeof space;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  REQUIRE(sendmsg(socket, &message, MSG_NOSIGNAL) == 1, "cannot send a descriptor");
}

inline int ReceiveDescriptor(int socket) {
  char byte = 0;
  iovec data{&byte, 1};
  int fd = -1;
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof fd)] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = sizeof space;
  REQUIRE(recvmsg(socket, &message, 0) == 1 && byte == 'f', "the partner is gone");
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  REQUIRE(header != nullptr && header->cmsg_type == SCM_RIGHTS, "no descriptor came");
  std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return fd;
}
