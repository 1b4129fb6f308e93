// Calls that send more than a pipe or a socket has room for, and calls that wait until all is
// there: they wait in their middle for another thread of the program.
#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <functional>
#include <thread>
#include <vector>

#include "check.h"

namespace {

constexpr size_t kBytes = 5 << 20;

std::vector<char> Pattern() {
  std::vector<char> bytes(kBytes);
  for (size_t i = 0; i < kBytes; ++i) bytes[i] = static_cast<char>(i * 7 + i / 4096);
  return bytes;
}

std::vector<iovec> Parts(std::vector<char>& bytes) {
  std::vector<iovec> parts;
  for (size_t at = 0, size = 1; at < bytes.size(); at += size, size = size * 3 / 2 + 1) {
    if (parts.size() == 21 || size > bytes.size() - at) size = bytes.size() - at;
    parts.push_back({&bytes[at], size});
  }
  return parts;
}

using Call = std::function<ssize_t(int fd, std::vector<char>& bytes)>;

ssize_t Write(int fd, std::vector<char>& bytes) { return write(fd, bytes.data(), bytes.size()); }
ssize_t Send(int fd, std::vector<char>& bytes) { return send(fd, bytes.data(), bytes.size(), 0); }
ssize_t SendTo(int fd, std::vector<char>& bytes) {
  return sendto(fd, bytes.data(), bytes.size(), 0, nullptr, 0);
}
ssize_t WriteParts(int fd, std::vector<char>& bytes) {
  const std::vector<iovec> parts = Parts(bytes);
  return writev(fd, parts.data(), static_cast<int>(parts.size()));
}
ssize_t SendMessage(int fd, std::vector<char>& bytes) {
  std::vector<iovec> parts = Parts(bytes);
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  return sendmsg(fd, &message, 0);
}

ssize_t ReadUntilAll(int fd, std::vector<char>& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = read(fd, &bytes[done], bytes.size() - done);
    if (n <= 0) return n;
    done += static_cast<size_t>(n);
  }
  return static_cast<ssize_t>(done);
}
ssize_t ReceiveAll(int fd, std::vector<char>& bytes) {
  return recv(fd, bytes.data(), bytes.size(), MSG_WAITALL);
}
ssize_t ReceiveMessage(int fd, std::vector<char>& bytes) {
  std::vector<iovec> parts = Parts(bytes);
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  return recvmsg(fd, &message, MSG_WAITALL);
}

void Pass(const char* what, const int (&fds)[2], const Call& send, const Call& receive) {
  std::vector<char> bytes = Pattern(), got(kBytes);
  ssize_t sent = 0, received = 0;
  std::thread receiver([&] { received = receive(fds[0], got); });
  sent = send(fds[1], bytes);
  receiver.join();
  REQUIRE(sent == ssize_t(kBytes) && received == ssize_t(kBytes), "%s: %zd sent, %zd received",
          what, sent, received);
  REQUIRE(got == bytes, "%s: something else has come", what);
}

// Whoever has sent something hears of the end only by the next call.
void LoseReader() {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "no descriptors");
  std::thread reader([&] {
    std::vector<char> some(100'000);
    REQUIRE(recv(ends[0], some.data(), some.size(), MSG_WAITALL) == 100'000, "recv");
    close(ends[0]);
  });
  std::vector<char> bytes = Pattern();
  const ssize_t sent = write(ends[1], bytes.data(), bytes.size());
  reader.join();
  REQUIRE(sent >= 100'000 && sent < ssize_t(kBytes), "write: %zd", sent);
  REQUIRE(send(ends[1], "x", 1, MSG_NOSIGNAL) < 0 && errno == EPIPE, "no error");
  close(ends[1]);
}

// What is there when the other end closes is all.
void LoseWriter() {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "no descriptors");
  std::thread writer([&] {
    std::vector<char> some(70'000);
    REQUIRE(write(ends[1], some.data(), some.size()) == 70'000, "write");
    close(ends[1]);
  });
  std::vector<char> bytes(kBytes);
  REQUIRE(recv(ends[0], bytes.data(), bytes.size(), MSG_WAITALL) == 70'000, "recv");
  REQUIRE(recv(ends[0], bytes.data(), bytes.size(), MSG_WAITALL) == 0, "the end");
  writer.join();
  close(ends[0]);
}

}  // namespace

int main() {
  int ends[2], sockets[2];
  REQUIRE(pipe(ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0, "no descriptors");
  Pass("write to a pipe", ends, Write, ReadUntilAll);
  Pass("writev to a pipe", ends, WriteParts, ReadUntilAll);
  Pass("write", sockets, Write, ReadUntilAll);
  Pass("writev", sockets, WriteParts, ReceiveAll);
  Pass("send", sockets, Send, ReceiveMessage);
  Pass("sendto", sockets, SendTo, ReceiveAll);
  Pass("sendmsg", sockets, SendMessage, ReceiveMessage);
  LoseReader();
  LoseWriter();
  std::printf("PASS long_writes\n");
  return 0;
}
