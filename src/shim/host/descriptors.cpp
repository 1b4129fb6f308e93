#include "shim/host/descriptors.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/syscall.h>

#include "wire/raw_syscall.h"

namespace allranks::shim {

using wire::RawSyscall;

int PollNow(pollfd* fds, nfds_t count) {
  const timespec zero{0, 0};
  return static_cast<int>(RawSyscall(SYS_ppoll, reinterpret_cast<long>(fds),
                                     static_cast<long>(count), reinterpret_cast<long>(&zero)));
}

bool WaitAtNode(Thread* self, const pollfd* fds, nfds_t count, std::int64_t timeout_ps) {
  wire::WaitFd wait;
  int numbers[wire::kMaxFds];
  int used = 0;
  for (nfds_t i = 0; i < count; ++i) {
    if (fds[i].fd < 0) continue;
    if (used == wire::kMaxFds) break;
    numbers[used++] = fds[i].fd;
    wait.events.push_back(fds[i].events);
  }
  wait.timeout_ps = timeout_ps;
  wire::WaitFdReply reply;
  const int status =
      Call(self, wait, &reply, std::span<const int>(numbers, static_cast<std::size_t>(used)));
  return status == 0 && reply.ready;
}

bool NeverBlocks(int fd) { return (RawSyscall(SYS_fcntl, fd, F_GETFL) & O_NONBLOCK) != 0; }

void WaitUntilReady(int fd, short events, bool never_blocks) {
  Thread* self = Self();
  if (self == nullptr || fd < 0) return;
  pollfd entry{fd, events, 0};
  if (PollNow(&entry, 1) != 0) return;
  if (never_blocks || NeverBlocks(fd)) {
    Call(self, wire::Yield{});
    return;
  }
  do {
    if (!WaitAtNode(self, &entry, 1, kNoTimeout)) return;
    entry.revents = 0;
  } while (PollNow(&entry, 1) == 0);  // another thread was quicker
}

void OpenParts(const iovec* parts, std::size_t count) {
  if (!PinnedPagesClosed() || parts == nullptr || count > IOV_MAX) return;
  for (std::size_t i = 0; i < count; ++i) OpenPinnedPagesAt(parts[i].iov_base, parts[i].iov_len);
}

}  // namespace allranks::shim
