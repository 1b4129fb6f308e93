// Sockets, and connections between simulated hosts. Their bytes go natively, over the loopback; the
// node counts them, and says when they would be there. Nothing is sent where there is one host
// only, or in a judged run.
#pragma once

#include <sys/types.h>

namespace allranks::shim {

// Whether it is one end of a stream of bytes between two processes.
bool IsStream(int fd);

// After connect or accept: an end of a connection, which may be anything.
void Opened(int fd);
// After a call on `fd`, which may be anything. `bytes` is what the call has returned, and is
// returned again; errno stays as it is.
ssize_t Sent(int fd, ssize_t bytes);
// Returns when they have arrived.
ssize_t Received(int fd, ssize_t bytes);
// A call could not send all of its bytes at once: over TCP that depends on buffers of the real
// machine, and so does when it returns.
void WaitedForRoom(int fd);

}  // namespace allranks::shim
