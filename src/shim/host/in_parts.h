// Calls that the kernel would let wait in their middle, where the node does not see it: those that
// send more than a socket or pipe has room for, and those that receive until all is there. They are
// made in parts, each of which waits at the node.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>

namespace allranks::shim {

// A list of buffers as a message.
msghdr MessageOf(const iovec* parts, std::size_t count);
// 0: the list is none, the kernel refuses it, or the thread has no node to wait at.
std::size_t SizeOf(const msghdr& message);

// Whether a call that sends so much is to be made in parts. `flags` as of send, 0 for write.
bool SendsInParts(int fd, std::size_t size, int flags);
// Returns what the call would.
ssize_t SendInParts(int fd, const msghdr& message, int flags);

bool ReceivesInParts(int fd, int flags);
// What else the message brings comes with its first bytes.
ssize_t ReceiveInParts(int fd, msghdr* message, int flags);

}  // namespace allranks::shim
