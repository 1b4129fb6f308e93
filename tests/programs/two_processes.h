// Two processes with one device each that can reach each other's memory: forked before any CUDA
// call, IPC handles exchanged over a socket pair.
#pragma once

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "check.h"
#include "descriptors.h"

class Partner {
 public:
  explicit Partner(int socket) : socket_(socket) {}

  // Sends `value` and returns what the partner sent at the same point of its program.
  template <class T>
  T Exchange(const T& value) {
    REQUIRE(send(socket_, &value, sizeof value, MSG_NOSIGNAL) == sizeof value,
            "the partner is gone (send)");
    T answer;
    REQUIRE(recv(socket_, &answer, sizeof answer, MSG_WAITALL) == sizeof answer,
            "the partner is gone (recv)");
    return answer;
  }

  void Barrier() { Exchange('b'); }

  // Sends an open descriptor, and returns the partner's as one of this process.
  int ExchangeDescriptor(int fd) {
    SendDescriptor(socket_, fd);
    return ReceiveDescriptor(socket_);
  }

  // Shows the partner `mine`, and returns the partner's allocation as this process sees it.
  template <class T>
  T* ExchangeMemory(T* mine) {
    cudaIpcMemHandle_t handle;
    CUDA_CHECK(cudaIpcGetMemHandle(&handle, mine));
    handle = Exchange(handle);
    void* theirs = nullptr;
    CUDA_CHECK(cudaIpcOpenMemHandle(&theirs, handle, cudaIpcMemLazyEnablePeerAccess));
    return static_cast<T*>(theirs);
  }

 private:
  int socket_;
};

// Runs `body(rank, partner)` as rank 0 in this process and as rank 1 in a child. Returns in the
// parent only, with the child's exit code.
template <class Body>
int RunTwoProcesses(Body body) {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair failed");
  const pid_t child = fork();
  REQUIRE(child >= 0, "fork failed");
  const int rank = child == 0 ? 1 : 0;
  close(ends[1 - rank]);
  body(rank, Partner(ends[rank]));
  if (rank == 1) std::exit(0);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child, "waitpid failed");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
