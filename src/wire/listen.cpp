#include "wire/listen.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

namespace allranks::wire {

Result<Fd> Listen(const std::string& path, int backlog) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return Fail("the path of the socket is too long: {} (set TMPDIR to a shorter folder)", path);
  std::memcpy(address.sun_path, path.c_str(), path.size());
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  if (fd.get() < 0 || setsockopt(fd.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0 ||
      bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(fd.get(), backlog) != 0)
    return Fail("cannot listen at {}: {}", path, std::strerror(errno));
  return fd;
}

}  // namespace allranks::wire
