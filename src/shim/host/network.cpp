// What passes between simulated hosts over sockets. A connection is known by its two ends: they are
// the same for both sides, in every process that has the descriptor, however often it was copied.
#include "shim/host/network.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "shim/host/link.h"
#include "shim/host/real.h"
#include "wire/raw_syscall.h"

namespace allranks::shim {
namespace {

using wire::Endpoint;
using wire::RawSyscall;

class KeepErrno {
 public:
  KeepErrno() : kept_(errno) {}
  ~KeepErrno() { errno = kept_; }
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;

 private:
  int kept_;
};

bool ToEndpoint(const sockaddr* name, socklen_t length, Endpoint* end) {
  if (name->sa_family == AF_INET && length >= sizeof(sockaddr_in)) {
    sockaddr_in v4;
    memcpy(&v4, name, sizeof v4);
    end->address[10] = end->address[11] = 0xff;
    memcpy(&end->address[12], &v4.sin_addr, 4);
    end->port = ntohs(v4.sin_port);
    return true;
  }
  if (name->sa_family != AF_INET6 || length < sizeof(sockaddr_in6)) return false;
  sockaddr_in6 v6;
  memcpy(&v6, name, sizeof v6);
  memcpy(end->address.data(), &v6.sin6_addr, end->address.size());
  end->port = ntohs(v6.sin6_port);
  return true;
}

// The other end's name, also of a connection that has been closed since: the option answers as long
// as the socket lives, but only to a buffer that is not longer than the name.
bool AskPeer(int fd, socklen_t length, Endpoint* end) {
  sockaddr_storage name{};
  return RawSyscall(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERNAME, reinterpret_cast<long>(&name),
                    reinterpret_cast<long>(&length)) == 0 &&
         ToEndpoint(reinterpret_cast<const sockaddr*>(&name), length, end);
}

// False: it is no connection over IP.
bool Ends(int fd, Endpoint* mine, Endpoint* theirs) {
  sockaddr_storage name{};
  socklen_t length = sizeof name;
  return RawSyscall(SYS_getsockname, fd, reinterpret_cast<long>(&name),
                    reinterpret_cast<long>(&length)) == 0 &&
         ToEndpoint(reinterpret_cast<const sockaddr*>(&name), length, mine) &&
         AskPeer(fd, length, theirs);
}

// The calling thread's link, where a call can be between simulated hosts.
Thread* Between() { return ReportsSockets() && SimulatedHosts() > 1 ? Self() : nullptr; }

// The kernel keeps small segments back until what was sent before is acknowledged, which takes up
// to 40 ms of wall time. All threads would wait in virtual time meanwhile, which then goes on to
// the next timer: what is sent has to be there at once.
void SendAtOnce(int fd) {
  const int yes = 1;
  RawSyscall(SYS_setsockopt, fd, IPPROTO_TCP, TCP_NODELAY, reinterpret_cast<long>(&yes),
             sizeof yes);
}

template <class M>
ssize_t Report(int fd, ssize_t bytes) {
  Thread* self = bytes > 0 ? Between() : nullptr;
  if (self == nullptr) return bytes;
  const KeepErrno keep;
  M message;
  message.bytes = static_cast<std::uint64_t>(bytes);
  if (IsStream(fd) && Ends(fd, &message.mine, &message.theirs)) Call(self, message);
  return bytes;
}

}  // namespace

bool IsStream(int fd) {
  int type = 0;
  socklen_t length = sizeof type;
  return RawSyscall(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, reinterpret_cast<long>(&type),
                    reinterpret_cast<long>(&length)) == 0 &&
         type == SOCK_STREAM;
}

void Opened(int fd) {
  if (Self() == nullptr) return;
  SendAtOnce(fd);
  Thread* self = Between();
  if (self == nullptr) return;
  const KeepErrno keep;
  wire::NetworkOpen message;
  socklen_t length = sizeof message.socket;
  if (IsStream(fd) && Ends(fd, &message.mine, &message.theirs) &&
      RawSyscall(SYS_getsockopt, fd, SOL_SOCKET, SO_COOKIE, reinterpret_cast<long>(&message.socket),
                 reinterpret_cast<long>(&length)) == 0)
    Call(self, message);
}

ssize_t Sent(int fd, ssize_t bytes) { return Report<wire::NetworkSend>(fd, bytes); }
ssize_t Received(int fd, ssize_t bytes) { return Report<wire::NetworkReceive>(fd, bytes); }

void WaitedForRoom(int fd) {
  Thread* self = ReportsSockets() ? Self() : nullptr;
  if (self == nullptr) return;
  const KeepErrno keep;
  Endpoint mine, theirs;
  if (Ends(fd, &mine, &theirs)) Call(self, wire::NetworkFull{});
}

}  // namespace allranks::shim

namespace shim = allranks::shim;

ALLRANKS_INTERPOSE int connect(int fd, const sockaddr* address, socklen_t length) {
  const int result = ALLRANKS_REAL(connect)(fd, address, length);
  // It goes on by itself after the last two.
  if (result == 0 || errno == EINPROGRESS || errno == EINTR) shim::Opened(fd);
  return result;
}
