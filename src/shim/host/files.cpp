// Blocking on pipes, sockets and the like. Before a call that could block, the descriptor is asked;
// if it is not ready the thread waits at the node, which has a copy of the descriptor and lets no
// virtual time pass beyond what the other end could still write. The native call then finds it
// ready. A call that does not wait (O_NONBLOCK, a timeout of 0) and finds nothing yields, so that
// polling loops cost time. Pinned memory that the kernel is to read or write is opened before. What
// has gone through a connection to another simulated host takes the time of the network
// (network.h).
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "shim/host/clock.h"
#include "shim/host/descriptors.h"
#include "shim/host/in_parts.h"
#include "shim/host/link.h"
#include "shim/host/network.h"
#include "shim/host/pinned.h"
#include "shim/host/real.h"

namespace allranks::shim {
namespace {

// poll in virtual time. `look` asks natively without waiting.
template <class F>
int PollVirtually(Thread* self, const pollfd* fds, nfds_t count, std::int64_t timeout_ns, F look) {
  const std::int64_t deadline = VirtualNowNs(self, CLOCK_MONOTONIC) + timeout_ns;
  for (;;) {
    const int ready = CallKernel(look);
    if (ready != 0) return ready;
    if (timeout_ns == 0) {
      Call(self, wire::Yield{});
      return CallKernel(look);
    }
    std::int64_t left = kNoTimeout;
    if (timeout_ns > 0) {
      left = deadline - VirtualNowNs(self, CLOCK_MONOTONIC);
      if (left <= 0) return 0;
    }
    if (!WaitAtNode(self, fds, count, left < 0 ? kNoTimeout : left * 1000)) {
      if (timeout_ns < 0) Call(self, wire::Yield{});
      if (!Linked()) return CallKernel(look);
    }
  }
}

// stdio reads behind our back when its buffer is empty.
void WaitForStream(FILE* stream) {
  if (stream == nullptr || Self() == nullptr) return;
  if (stream->_IO_read_ptr < stream->_IO_read_end) return;
  OpenPinnedPages();
  const int fd = fileno(stream);
  if (fd >= 0) WaitUntilReady(fd, POLLIN, false);
}

}  // namespace
}  // namespace allranks::shim

namespace shim = allranks::shim;

ALLRANKS_INTERPOSE ssize_t read(int fd, void* buffer, size_t size) {
  shim::WaitUntilReady(fd, POLLIN, false);
  shim::OpenPinnedPagesAt(buffer, size);
  return shim::Received(fd,
                        shim::CallKernel([&] { return ALLRANKS_REAL(read)(fd, buffer, size); }));
}

ALLRANKS_INTERPOSE ssize_t readv(int fd, const iovec* parts, int count) {
  shim::WaitUntilReady(fd, POLLIN, false);
  shim::OpenParts(parts, static_cast<std::size_t>(count));
  return shim::Received(fd,
                        shim::CallKernel([&] { return ALLRANKS_REAL(readv)(fd, parts, count); }));
}

ALLRANKS_INTERPOSE ssize_t write(int fd, const void* buffer, size_t size) {
  const iovec part{const_cast<void*>(buffer), size};
  if (shim::SendsInParts(fd, size, 0)) return shim::SendInParts(fd, shim::MessageOf(&part, 1), 0);
  shim::WaitUntilReady(fd, POLLOUT, false);
  shim::OpenPinnedPagesAt(buffer, size);
  return shim::Sent(fd, shim::CallKernel([&] { return ALLRANKS_REAL(write)(fd, buffer, size); }));
}

ALLRANKS_INTERPOSE ssize_t writev(int fd, const iovec* parts, int count) {
  const msghdr message = shim::MessageOf(parts, static_cast<std::size_t>(count));
  if (shim::SendsInParts(fd, shim::SizeOf(message), 0)) return shim::SendInParts(fd, message, 0);
  shim::WaitUntilReady(fd, POLLOUT, false);
  shim::OpenParts(parts, static_cast<std::size_t>(count));
  return shim::Sent(fd, shim::CallKernel([&] { return ALLRANKS_REAL(writev)(fd, parts, count); }));
}

// These never wait, but the kernel must be able to reach pinned buffers.
ALLRANKS_INTERPOSE ssize_t pread(int fd, void* buffer, size_t size, off_t offset) {
  shim::OpenPinnedPagesAt(buffer, size);
  return shim::CallKernel([&] { return ALLRANKS_REAL(pread)(fd, buffer, size, offset); });
}

ALLRANKS_INTERPOSE ssize_t pread64(int fd, void* buffer, size_t size, off64_t offset) {
  shim::OpenPinnedPagesAt(buffer, size);
  return shim::CallKernel([&] { return ALLRANKS_REAL(pread64)(fd, buffer, size, offset); });
}

ALLRANKS_INTERPOSE ssize_t pwrite(int fd, const void* buffer, size_t size, off_t offset) {
  shim::OpenPinnedPagesAt(buffer, size);
  return shim::CallKernel([&] { return ALLRANKS_REAL(pwrite)(fd, buffer, size, offset); });
}

ALLRANKS_INTERPOSE ssize_t pwrite64(int fd, const void* buffer, size_t size, off64_t offset) {
  shim::OpenPinnedPagesAt(buffer, size);
  return shim::CallKernel([&] { return ALLRANKS_REAL(pwrite64)(fd, buffer, size, offset); });
}

namespace {

// What was only looked at stays, and errors are no bytes.
ssize_t ReceivedBy(int flags, int fd, ssize_t bytes) {
  return (flags & (MSG_PEEK | MSG_ERRQUEUE)) != 0 ? bytes : shim::Received(fd, bytes);
}

}  // namespace

ALLRANKS_INTERPOSE ssize_t recv(int fd, void* buffer, size_t size, int flags) {
  if (shim::ReceivesInParts(fd, flags)) {
    const iovec part{buffer, size};
    msghdr message = shim::MessageOf(&part, 1);
    return shim::ReceiveInParts(fd, &message, flags);
  }
  shim::WaitUntilReady(fd, POLLIN, (flags & MSG_DONTWAIT) != 0);
  shim::OpenPinnedPagesAt(buffer, size);
  return ReceivedBy(flags, fd,
                    shim::CallKernel([&] { return ALLRANKS_REAL(recv)(fd, buffer, size, flags); }));
}

ALLRANKS_INTERPOSE ssize_t recvfrom(int fd, void* __restrict buffer, size_t size, int flags,
                                    sockaddr* __restrict address, socklen_t* __restrict length) {
  if (address == nullptr) return recv(fd, buffer, size, flags);
  shim::WaitUntilReady(fd, POLLIN, (flags & MSG_DONTWAIT) != 0);
  shim::OpenPinnedPagesAt(buffer, size);
  return ReceivedBy(flags, fd, shim::CallKernel([&] {
                      return ALLRANKS_REAL(recvfrom)(fd, buffer, size, flags, address, length);
                    }));
}

ALLRANKS_INTERPOSE ssize_t recvmsg(int fd, msghdr* message, int flags) {
  if (message != nullptr && message->msg_control == nullptr && shim::ReceivesInParts(fd, flags) &&
      shim::SizeOf(*message) != 0)
    return shim::ReceiveInParts(fd, message, flags);
  shim::WaitUntilReady(fd, POLLIN, (flags & MSG_DONTWAIT) != 0);
  if (message != nullptr) shim::OpenParts(message->msg_iov, message->msg_iovlen);
  return ReceivedBy(flags, fd,
                    shim::CallKernel([&] { return ALLRANKS_REAL(recvmsg)(fd, message, flags); }));
}

ALLRANKS_INTERPOSE ssize_t send(int fd, const void* buffer, size_t size, int flags) {
  const iovec part{const_cast<void*>(buffer), size};
  if (shim::SendsInParts(fd, size, flags) && shim::IsStream(fd))
    return shim::SendInParts(fd, shim::MessageOf(&part, 1), flags);
  shim::WaitUntilReady(fd, POLLOUT, (flags & MSG_DONTWAIT) != 0);
  shim::OpenPinnedPagesAt(buffer, size);
  return shim::Sent(fd,
                    shim::CallKernel([&] { return ALLRANKS_REAL(send)(fd, buffer, size, flags); }));
}

ALLRANKS_INTERPOSE ssize_t sendto(int fd, const void* buffer, size_t size, int flags,
                                  const sockaddr* address, socklen_t length) {
  if (address == nullptr) return send(fd, buffer, size, flags);
  shim::WaitUntilReady(fd, POLLOUT, (flags & MSG_DONTWAIT) != 0);
  shim::OpenPinnedPagesAt(buffer, size);
  return shim::Sent(fd, shim::CallKernel([&] {
                      return ALLRANKS_REAL(sendto)(fd, buffer, size, flags, address, length);
                    }));
}

ALLRANKS_INTERPOSE ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  if (message != nullptr && message->msg_name == nullptr &&
      shim::SendsInParts(fd, shim::SizeOf(*message), flags) && shim::IsStream(fd))
    return shim::SendInParts(fd, *message, flags);
  shim::WaitUntilReady(fd, POLLOUT, (flags & MSG_DONTWAIT) != 0);
  if (message != nullptr) shim::OpenParts(message->msg_iov, message->msg_iovlen);
  return shim::Sent(fd,
                    shim::CallKernel([&] { return ALLRANKS_REAL(sendmsg)(fd, message, flags); }));
}

ALLRANKS_INTERPOSE int accept(int fd, sockaddr* __restrict address, socklen_t* __restrict length) {
  shim::WaitUntilReady(fd, POLLIN, false);
  const int accepted = shim::CallKernel([&] { return ALLRANKS_REAL(accept)(fd, address, length); });
  if (accepted >= 0) shim::Opened(accepted);
  return accepted;
}

ALLRANKS_INTERPOSE int accept4(int fd, sockaddr* __restrict address, socklen_t* __restrict length,
                               int flags) {
  shim::WaitUntilReady(fd, POLLIN, false);
  const int accepted =
      shim::CallKernel([&] { return ALLRANKS_REAL(accept4)(fd, address, length, flags); });
  if (accepted >= 0) shim::Opened(accepted);
  return accepted;
}

ALLRANKS_INTERPOSE int poll(pollfd* fds, nfds_t count, int timeout) {
  shim::Thread* self = shim::Self();
  if (self == nullptr) return ALLRANKS_REAL(poll)(fds, count, timeout);
  const std::int64_t ns = timeout < 0 ? -1 : std::int64_t{timeout} * 1'000'000;
  return shim::PollVirtually(self, fds, count, ns,
                             [&] { return ALLRANKS_REAL(poll)(fds, count, 0); });
}

ALLRANKS_INTERPOSE int ppoll(pollfd* fds, nfds_t count, const timespec* timeout,
                             const sigset_t* mask) {
  shim::Thread* self = shim::Self();
  if (self == nullptr) return ALLRANKS_REAL(ppoll)(fds, count, timeout, mask);
  const timespec zero{0, 0};
  return shim::PollVirtually(self, fds, count, timeout == nullptr ? -1 : shim::ToNs(*timeout),
                             [&] { return ALLRANKS_REAL(ppoll)(fds, count, &zero, mask); });
}

namespace {

// The sets of select as entries of poll; -1 if there are too many to wait for.
int ToPoll(int limit, const fd_set* read, const fd_set* write, const fd_set* except, pollfd* out) {
  int count = 0;
  for (int fd = 0; fd < limit; ++fd) {
    short events = 0;
    if (read != nullptr && FD_ISSET(fd, read)) events |= POLLIN;
    if (write != nullptr && FD_ISSET(fd, write)) events |= POLLOUT;
    if (except != nullptr && FD_ISSET(fd, except)) events |= POLLPRI;
    if (events == 0) continue;
    if (count == allranks::wire::kMaxFds) return -1;
    out[count++] = {fd, events, 0};
  }
  return count;
}

int SelectVirtually(shim::Thread* self, int limit, fd_set* read, fd_set* write, fd_set* except,
                    std::int64_t timeout_ns, const sigset_t* mask) {
  pollfd entries[allranks::wire::kMaxFds];
  int count = ToPoll(limit, read, write, except, entries);
  if (count < 0) count = 0;
  fd_set sets[3];
  fd_set* const given[3] = {read, write, except};
  for (int i = 0; i < 3; ++i) {
    if (given[i] != nullptr) sets[i] = *given[i];
  }
  return shim::PollVirtually(self, entries, static_cast<nfds_t>(count), timeout_ns, [&] {
    for (int i = 0; i < 3; ++i) {
      if (given[i] != nullptr) *given[i] = sets[i];
    }
    const timespec zero{0, 0};
    return ALLRANKS_REAL(pselect)(limit, read, write, except, &zero, mask);
  });
}

}  // namespace

ALLRANKS_INTERPOSE int select(int limit, fd_set* __restrict read, fd_set* __restrict write,
                              fd_set* __restrict except, timeval* __restrict timeout) {
  shim::Thread* self = shim::Self();
  if (self == nullptr) return ALLRANKS_REAL(select)(limit, read, write, except, timeout);
  const std::int64_t ns =
      timeout == nullptr ? -1 : timeout->tv_sec * shim::kNsPerSecond + timeout->tv_usec * 1000;
  return SelectVirtually(self, limit, read, write, except, ns, nullptr);
}

ALLRANKS_INTERPOSE int pselect(int limit, fd_set* __restrict read, fd_set* __restrict write,
                               fd_set* __restrict except, const timespec* __restrict timeout,
                               const sigset_t* __restrict mask) {
  shim::Thread* self = shim::Self();
  if (self == nullptr) return ALLRANKS_REAL(pselect)(limit, read, write, except, timeout, mask);
  return SelectVirtually(self, limit, read, write, except,
                         timeout == nullptr ? -1 : shim::ToNs(*timeout), mask);
}

ALLRANKS_INTERPOSE int epoll_pwait(int fd, epoll_event* events, int count, int timeout,
                                   const sigset_t* mask) {
  shim::Thread* self = shim::Self();
  if (self == nullptr) return ALLRANKS_REAL(epoll_pwait)(fd, events, count, timeout, mask);
  const pollfd entry{fd, POLLIN, 0};
  const std::int64_t ns = timeout < 0 ? -1 : std::int64_t{timeout} * 1'000'000;
  return shim::PollVirtually(
      self, &entry, 1, ns, [&] { return ALLRANKS_REAL(epoll_pwait)(fd, events, count, 0, mask); });
}

ALLRANKS_INTERPOSE int epoll_wait(int fd, epoll_event* events, int count, int timeout) {
  return epoll_pwait(fd, events, count, timeout, nullptr);
}

ALLRANKS_INTERPOSE char* fgets(char* __restrict line, int size, FILE* __restrict stream) {
  shim::WaitForStream(stream);
  return ALLRANKS_REAL(fgets)(line, size, stream);
}

ALLRANKS_INTERPOSE size_t fread(void* __restrict data, size_t size, size_t count,
                                FILE* __restrict stream) {
  shim::WaitForStream(stream);
  shim::OpenPinnedPages();
  return ALLRANKS_REAL(fread)(data, size, count, stream);
}

ALLRANKS_INTERPOSE size_t fwrite(const void* __restrict data, size_t size, size_t count,
                                 FILE* __restrict stream) {
  shim::OpenPinnedPages();
  return ALLRANKS_REAL(fwrite)(data, size, count, stream);
}

ALLRANKS_INTERPOSE int fgetc(FILE* stream) {
  shim::WaitForStream(stream);
  return ALLRANKS_REAL(fgetc)(stream);
}

ALLRANKS_INTERPOSE int getc(FILE* stream) { return fgetc(stream); }

ALLRANKS_INTERPOSE ssize_t getdelim(char** __restrict line, size_t* __restrict size, int delimiter,
                                    FILE* __restrict stream) {
  shim::WaitForStream(stream);
  return ALLRANKS_REAL(getdelim)(line, size, delimiter, stream);
}

ALLRANKS_INTERPOSE ssize_t getline(char** __restrict line, size_t* __restrict size,
                                   FILE* __restrict stream) {
  return getdelim(line, size, '\n', stream);
}
