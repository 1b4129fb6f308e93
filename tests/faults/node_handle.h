// A real node process for tests, and raw connections to it that speak (or break) the protocol
// without the shim's help.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>

#include "wire/frame.h"

namespace allranks {

class NodeHandle {
 public:
  NodeHandle() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "allranks-test-XXXXXX").string();
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    address_.sun_family = AF_UNIX;
    const std::string path = folder_ + "/node";
    std::memcpy(address_.sun_path, path.c_str(), path.size());
    const int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    EXPECT_EQ(bind(listening, reinterpret_cast<sockaddr*>(&address_), sizeof address_), 0);
    EXPECT_EQ(listen(listening, 64), 0);
    int control[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control), 0);
    control_ = wire::Fd(control[0]);
    pid_ = fork();
    if (pid_ == 0) {
      fcntl(listening, F_SETFD, 0);
      fcntl(control[1], F_SETFD, 0);
      const std::string listen_text = std::to_string(listening);
      const std::string control_text = std::to_string(control[1]);
      execl(ALLRANKS_COMMAND, "allranks-node", "node", "--listen", listen_text.c_str(), "--control",
            control_text.c_str(), "--profile", ALLRANKS_SOURCE_DIR "/profiles/h100x8.toml",
            "--patience-ms", "1000", static_cast<char*>(nullptr));
      _exit(1);
    }
    close(listening);
    close(control[1]);
  }
  ~NodeHandle() {
    control_ = wire::Fd();
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    std::filesystem::remove_all(folder_);
  }

  bool Alive() const { return waitpid(pid_, nullptr, WNOHANG) == 0; }
  pid_t pid() const { return pid_; }
  wire::Fd Connect() const {
    wire::Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&address_), sizeof address_), 0);
    const timeval patience{10, 0};
    setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return fd;
  }

 private:
  std::string folder_;
  sockaddr_un address_{};
  wire::Fd control_;
  pid_t pid_ = -1;
};

// A well-behaved thread.
class Rank {
 public:
  explicit Rank(const NodeHandle& node) : fd_(node.Connect()) {}

  template <class M>
  void Ask(const M& message) {
    EXPECT_TRUE(wire::SendFrame(fd_.get(), wire::kOpOf<M>, ++sequence_,
                                wire::EncodePayload(wire::RequestHeader{}, message)));
  }
  template <class M>
  std::optional<typename M::Reply> Answer() {
    wire::Op op{};
    std::uint64_t sequence = 0;
    wire::Blob payload;
    int fds[1];
    int received = 0;
    if (!wire::ReceiveFrame(fd_.get(), &op, &sequence, &payload, fds, 1, &received))
      return std::nullopt;
    if (received == 1) memory = wire::Fd(fds[0]);
    EXPECT_EQ(op, wire::kOpOf<M>);
    EXPECT_EQ(sequence, sequence_);
    std::span<const std::byte> bytes = payload;
    typename M::Reply reply;
    EXPECT_TRUE(wire::DecodeFrom(bytes, &header));
    EXPECT_TRUE(wire::DecodeFrom(bytes, &reply));
    return reply;
  }
  template <class M>
  typename M::Reply Call(const M& message) {
    Ask(message);
    auto reply = Answer<M>();
    EXPECT_TRUE(reply.has_value()) << wire::OpName(wire::kOpOf<M>) << " was not answered";
    return reply.value_or(typename M::Reply{});
  }
  int fd() const { return fd_.get(); }
  void Close() { fd_ = wire::Fd(); }

  wire::ReplyHeader header;
  wire::Fd memory;  // the last descriptor that came

 private:
  wire::Fd fd_;
  std::uint64_t sequence_ = 0;
};

}  // namespace allranks
