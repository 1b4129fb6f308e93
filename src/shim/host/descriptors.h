// What calls on descriptors have in common: they wait at the node instead of in the kernel, and the
// kernel must be able to reach their buffers. files.cpp has the theory.
#pragma once

#include <errno.h>
#include <poll.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

#include "shim/host/link.h"
#include "shim/host/pinned.h"

namespace allranks::shim {

inline constexpr std::int64_t kNoTimeout = -1;

// What poll says at this moment.
int PollNow(pollfd* fds, nfds_t count);

// Waits at the node for one of `fds`. False on timeout, or if the node cannot wait for them.
bool WaitAtNode(Thread* self, const pollfd* fds, nfds_t count, std::int64_t timeout_ps);

// Returns when `fd` is ready for `events`, or at once if the native call will not block or nothing
// can be said about it.
void WaitUntilReady(int fd, short events, bool never_blocks);

// Whether calls on it return at once (O_NONBLOCK).
bool NeverBlocks(int fd);

// Pinned pages of all parts, but not of lists that the kernel refuses.
void OpenParts(const iovec* parts, std::size_t count);

// Calls the kernel. To it a closed page is an error: then all are opened, and the call is repeated.
// Buffers are opened before, since what a failed call has read may be lost.
template <class F>
auto CallKernel(F call) {
  const auto result = call();
  if (result >= 0 || errno != EFAULT || !PinnedPagesClosed()) return result;
  OpenPinnedPages();
  return call();
}

}  // namespace allranks::shim
