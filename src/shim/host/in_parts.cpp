// Errors are those of the whole call: once bytes have gone, it returns how many, and the next call
// meets the error. That is why a part is not tried where it would consume one.
#include "shim/host/in_parts.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "shim/host/descriptors.h"
#include "shim/host/network.h"
#include "shim/host/real.h"
#include "wire/raw_syscall.h"

namespace allranks::shim {
namespace {

using wire::RawSyscall;

constexpr std::size_t kMostAtOnce = 0x7ffff000;  // of one call, as the kernel has it

// A message without its first `done` bytes, or the beginning of that: at most `most` bytes.
class Rest {
 public:
  Rest(const msghdr& message, std::size_t done, std::size_t most) : rest_(message) {
    rest_.msg_iov = parts_;
    rest_.msg_iovlen = 0;
    if (done != 0) {
      rest_.msg_control = nullptr;
      rest_.msg_controllen = 0;
    }
    for (std::size_t i = 0; i < message.msg_iovlen && most != 0; ++i) {
      if (rest_.msg_iovlen == std::size(parts_)) break;
      const iovec& part = message.msg_iov[i];
      const std::size_t skipped = std::min(done, part.iov_len);
      done -= skipped;
      if (skipped == part.iov_len) continue;
      const std::size_t size = std::min(part.iov_len - skipped, most);
      most -= size;
      parts_[rest_.msg_iovlen++] = {static_cast<char*>(part.iov_base) + skipped, size};
    }
  }
  Rest(const Rest&) = delete;
  Rest& operator=(const Rest&) = delete;
  msghdr* get() { return &rest_; }
  // Opens pinned pages below it.
  void Open() const { OpenParts(parts_, rest_.msg_iovlen); }

 private:
  msghdr rest_;
  iovec parts_[16];
};

bool IsPipe(int fd) {
  struct stat about;
  return fstat(fd, &about) == 0 && S_ISFIFO(about.st_mode);
}

// `option`: SO_SNDTIMEO or SO_RCVTIMEO. Such a call ends in its middle by the kernel's clock.
bool HasTimeout(int fd, int option) {
  timeval timeout{};
  socklen_t length = sizeof timeout;
  return RawSyscall(SYS_getsockopt, fd, SOL_SOCKET, option, reinterpret_cast<long>(&timeout),
                    reinterpret_cast<long>(&length)) == 0 &&
         (timeout.tv_sec != 0 || timeout.tv_usec != 0);
}

// Whether the next part would only meet an error.
bool IsBroken(int fd) {
  pollfd entry{fd, 0, 0};
  return PollNow(&entry, 1) > 0 && (entry.revents & (POLLERR | POLLHUP)) != 0;
}

// The node has died in the middle: what is left waits natively.
void WaitNatively(int fd, short events) {
  pollfd entry{fd, events, 0};
  RawSyscall(SYS_ppoll, reinterpret_cast<long>(&entry), 1, 0, 0, 0);
}

}  // namespace

msghdr MessageOf(const iovec* parts, std::size_t count) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts);
  message.msg_iovlen = count;
  return message;
}

std::size_t SizeOf(const msghdr& message) {
  if (Self() == nullptr || message.msg_iov == nullptr || message.msg_iovlen > IOV_MAX) return 0;
  std::size_t size = 0;
  for (std::size_t i = 0; i < message.msg_iovlen; ++i) size += message.msg_iov[i].iov_len;
  return size;
}

bool SendsInParts(int fd, std::size_t size, int flags) {
  if (Self() == nullptr || size <= PIPE_BUF || (flags & MSG_DONTWAIT) != 0 || NeverBlocks(fd))
    return false;
  return IsStream(fd) ? !HasTimeout(fd, SO_SNDTIMEO) : flags == 0 && IsPipe(fd);
}

ssize_t SendInParts(int fd, const msghdr& message, int flags) {
  const std::size_t size = std::min(SizeOf(message), kMostAtOnce);
  const bool socket = IsStream(fd);
  // How much there is room for differs from run to run, so the network has all of it from the
  // beginning.
  Sent(fd, static_cast<ssize_t>(size));
  bool waited = false;
  for (std::size_t done = 0;;) {
    WaitUntilReady(fd, POLLOUT, false);
    if (socket && done != 0 && IsBroken(fd)) return static_cast<ssize_t>(done);
    Rest rest(message, done, socket ? size - done : std::min<std::size_t>(size - done, PIPE_BUF));
    rest.Open();
    const ssize_t sent = CallKernel([&] {
      if (socket) return ALLRANKS_REAL(sendmsg)(fd, rest.get(), flags | MSG_DONTWAIT);
      return ALLRANKS_REAL(writev)(fd, rest.get()->msg_iov,
                                   static_cast<int>(rest.get()->msg_iovlen));
    });
    if (sent < 0 && errno == EAGAIN) {
      waited = true;
      if (!Linked()) WaitNatively(fd, POLLOUT);
      continue;
    }
    if (sent < 0) return done != 0 ? static_cast<ssize_t>(done) : sent;
    done += static_cast<std::size_t>(sent);
    if (sent != 0 && done < size) {
      waited = true;
      continue;
    }
    if (socket && waited) WaitedForRoom(fd);
    return static_cast<ssize_t>(done);
  }
}

bool ReceivesInParts(int fd, int flags) {
  return (flags & MSG_WAITALL) != 0 && (flags & (MSG_PEEK | MSG_DONTWAIT | MSG_ERRQUEUE)) == 0 &&
         Self() != nullptr && !NeverBlocks(fd) && IsStream(fd) && !HasTimeout(fd, SO_RCVTIMEO);
}

ssize_t ReceiveInParts(int fd, msghdr* message, int flags) {
  const std::size_t size = std::min(SizeOf(*message), kMostAtOnce);
  for (std::size_t done = 0;;) {
    WaitUntilReady(fd, POLLIN, false);
    if (done != 0 && IsBroken(fd)) {
      pollfd entry{fd, POLLIN, 0};
      if (PollNow(&entry, 1) <= 0 || (entry.revents & POLLERR) != 0)
        return static_cast<ssize_t>(done);
    }
    Rest rest(*message, done, size - done);
    rest.Open();
    const ssize_t got = CallKernel([&] {
      return ALLRANKS_REAL(recvmsg)(fd, done == 0 ? message : rest.get(), flags & ~MSG_WAITALL);
    });
    if (got < 0) return done != 0 ? static_cast<ssize_t>(done) : got;
    done += static_cast<std::size_t>(Received(fd, got));
    if (got == 0 || done >= size) return static_cast<ssize_t>(done);
  }
}

}  // namespace allranks::shim
