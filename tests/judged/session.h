// A node with its ranks, and the judge's end of both, for tests: sockets, memory files and
// messages, without a sandbox.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wire/frame.h"
#include "wire/messages.h"

namespace allranks {

class Session {
 public:
  static constexpr std::size_t kFile = 16 << 20;

  // `options`: more of the node's.
  explicit Session(int world, const std::vector<std::string>& options = {}) : world_(world) {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "allranks-judged-XXXXXX").string();
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    inputs_ = wire::Fd(memfd_create("inputs", 0));
    outputs_ = wire::Fd(memfd_create("outputs", 0));
    in = Map(inputs_.get());
    out = Map(outputs_.get());
    std::vector<std::string> arguments = {
        "allranks-node", "node",
        "--profile",     ALLRANKS_SOURCE_DIR "/profiles/h100x8.toml",
        "--devices",     std::to_string(world)};
    arguments.insert(arguments.end(), options.begin(), options.end());
    std::vector<wire::Fd> listening;
    for (int r = 0; r < world; ++r) {
      listening.emplace_back(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
      const sockaddr_un address = AddressOf(r);
      EXPECT_EQ(
          bind(listening.back().get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
          0);
      EXPECT_EQ(listen(listening.back().get(), 64), 0);
      arguments.insert(arguments.end(), {"--judge-listen", std::to_string(listening.back().get())});
    }
    int control[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, control), 0);
    control_ = wire::Fd(control[0]);
    const wire::Fd theirs(control[1]);
    fcntl(control_.get(), F_SETFD, FD_CLOEXEC);
    const timeval patience{20, 0};
    setsockopt(control_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    arguments.insert(
        arguments.end(),
        {"--control", std::to_string(theirs.get()), "--judge-inputs", std::to_string(inputs_.get()),
         "--judge-outputs", std::to_string(outputs_.get()), "--secret", std::string(64, '5')});
    node_ = Start(ALLRANKS_COMMAND, arguments, {});
  }
  ~Session() {
    control_ = wire::Fd();
    KillRanks();
    if (node_ > 0) waitpid(node_, nullptr, 0);  // it ends because the connection has
    std::filesystem::remove_all(folder_);
    munmap(in.data(), in.size());
    munmap(out.data(), out.size());
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void StartRanks() {
    for (int r = 0; r < world_; ++r)
      ranks_.push_back(Start(
          RANK_PROGRAM, {"rank", "launch"},
          {"ALLRANKS_SOCKET=" + folder_ + "/" + std::to_string(r), "LD_LIBRARY_PATH=" SHIM_FOLDER,
           "LD_PRELOAD=" SHIM_FOLDER "/liballranks_host.so"}));
  }
  void KillRanks() {
    for (const pid_t rank : ranks_) {
      kill(rank, SIGKILL);
      waitpid(rank, nullptr, 0);
    }
    ranks_.clear();
  }
  // How the rank has ended, as waitpid says it.
  int WaitFor(std::size_t rank) {
    int status = -1;
    waitpid(ranks_[rank], &status, 0);
    ranks_.erase(ranks_.begin() + static_cast<std::ptrdiff_t>(rank));
    return status;
  }
  wire::Fd Connect(int rank) const {
    wire::Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_un address = AddressOf(rank);
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return fd;
  }

  template <class M>
  std::optional<typename M::Reply> Call(const M& message, std::int32_t* status = nullptr) {
    if (!wire::SendFrame(control_.get(), wire::kOpOf<M>, ++sequence_,
                         wire::EncodePayload(wire::RequestHeader{}, message)))
      return std::nullopt;
    for (;;) {
      wire::Op op{};
      std::uint64_t sequence = 0;
      wire::Blob payload;
      if (!wire::ReceiveFrame(control_.get(), &op, &sequence, &payload)) return std::nullopt;
      if (Keep(op, payload)) continue;
      EXPECT_EQ(op, wire::kOpOf<M>);
      EXPECT_EQ(sequence, sequence_);
      std::span<const std::byte> bytes = payload;
      wire::ReplyHeader header;
      typename M::Reply reply;
      if (!wire::DecodeFrom(bytes, &header) || !wire::DecodeFrom(bytes, &reply))
        return std::nullopt;
      if (status != nullptr) *status = header.status;
      return reply;
    }
  }
  // The next news; waits for it.
  wire::JudgeNews News() {
    while (news_.empty()) {
      wire::Op op{};
      std::uint64_t sequence = 0;
      wire::Blob payload;
      if (!wire::ReceiveFrame(control_.get(), &op, &sequence, &payload) || !Keep(op, payload)) {
        ADD_FAILURE() << "no news of the node";
        return {};
      }
    }
    wire::JudgeNews first = news_.front();
    news_.pop_front();
    return first;
  }
  bool HasNews() {
    pollfd poll_for{control_.get(), POLLIN, 0};
    return !news_.empty() || poll(&poll_for, 1, 0) > 0;
  }

  std::span<std::byte> in, out;

 private:
  static std::span<std::byte> Map(int fd) {
    EXPECT_EQ(ftruncate(fd, kFile), 0);
    void* at = mmap(nullptr, kFile, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    EXPECT_NE(at, MAP_FAILED);
    return {static_cast<std::byte*>(at), kFile};
  }
  sockaddr_un AddressOf(int rank) const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = folder_ + "/" + std::to_string(rank);
    std::memcpy(address.sun_path, path.c_str(), path.size());
    return address;
  }
  static pid_t Start(const char* program, std::vector<std::string> arguments,
                     std::vector<std::string> environment) {
    std::vector<char*> argv, envp;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    for (std::string& variable : environment) envp.push_back(variable.data());
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    const pid_t pid = fork();
    if (pid == 0) {
      personality(ADDR_NO_RANDOMIZE);
      execve(program, argv.data(), envp.data());
      _exit(126);
    }
    return pid;
  }
  bool Keep(wire::Op op, const wire::Blob& payload) {
    if (op != wire::Op::kJudgeNews) return false;
    const auto news = wire::Decode<wire::JudgeNews>(payload);
    EXPECT_TRUE(news.has_value());
    if (news) news_.push_back(*news);
    return true;
  }

  int world_;
  std::string folder_;
  wire::Fd inputs_, outputs_, control_;
  pid_t node_ = -1;
  std::vector<pid_t> ranks_;
  std::uint64_t sequence_ = 0;
  std::deque<wire::JudgeNews> news_;
};

}  // namespace allranks
