// Frames on a Unix stream socket: 16 bytes of header (u32 payload length, u16 op, u16 version, u64
// sequence), then the payload. File descriptors travel beside a frame's first byte (SCM_RIGHTS).
// FrameReader and FrameWriter are the node's: they never block and hold a hostile peer to bounds.
// SendFrame and ReceiveFrame are the client's: they block, and use nothing that the shim
// interposes.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wire/messages.h"

namespace allranks::wire {

inline constexpr std::size_t kFrameHeaderBytes = 16;

// Owns a file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd();

  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

struct Frame {
  Op op = Op::kNone;
  std::uint64_t sequence = 0;
  Blob payload;
  std::vector<Fd> fds;
};

// Header and payload as bytes.
Blob EncodeFrame(Op op, std::uint64_t sequence, std::span<const std::byte> payload);

// A whole request or reply as a frame's payload.
template <class Header, class Body>
Blob EncodePayload(const Header& header, const Body& body) {
  Blob out;
  EncodeTo(header, out);
  EncodeTo(body, out);
  return out;
}

// Turns a stream of bytes into frames, as they come.
class FrameReader {
 public:
  enum class State {
    kFrame,   // *frame is one
    kMore,    // nothing whole yet
    kClosed,  // the peer is gone (after an end in the middle of a frame, too)
    kBad,     // not this protocol; error() says why. The connection must be closed.
  };

  // Reads what the socket has, without waiting, until a frame is whole. Bytes sent by another
  // process than `pid` (a child that inherited the socket) are dropped; 0: take any. That check
  // needs SO_PASSCRED on the socket.
  State Read(int socket, pid_t pid, Frame* frame);

  // The same from bytes at hand (tests, fuzzing). Append, then Next until it is not kFrame.
  void Append(std::span<const std::byte> bytes);
  State Next(Frame* frame);

  const std::string& error() const { return error_; }
  std::size_t buffered() const { return buffer_.size() - start_; }

 private:
  State Bad(std::string why);

  Blob buffer_;
  std::size_t start_ = 0;  // first byte not yet handed out
  std::vector<Fd> fds_;    // received, their frame not yet whole
  std::string error_;
};

// Bytes on their way to a peer that may be slow to take them.
class FrameWriter {
 public:
  // `fd` is sent with the frame if it is not -1; what is kept until then is a duplicate.
  void Queue(Op op, std::uint64_t sequence, std::span<const std::byte> payload, int fd = -1);
  // Writes what the socket takes. False if the peer is gone.
  bool Flush(int socket);
  std::size_t queued() const { return queued_; }

 private:
  struct Part {
    Blob bytes;
    std::size_t sent = 0;
    Fd fd;
  };
  std::vector<Part> parts_;
  std::size_t queued_ = 0;
};

// Blocking. False when the peer is gone or does not speak the protocol. A reply's descriptors are
// stored in `fds`, at most `max_fds`; further ones are closed. `received` is their number.
bool SendFrame(int socket, Op op, std::uint64_t sequence, std::span<const std::byte> payload,
               std::span<const int> fds = {});
// The payload is `head` and then `tail`, which is sent from where it lies.
bool SendFrameInTwoParts(int socket, Op op, std::uint64_t sequence, std::span<const std::byte> head,
                         std::span<const std::byte> tail);
bool ReceiveFrame(int socket, Op* op, std::uint64_t* sequence, Blob* payload, int* fds = nullptr,
                  int max_fds = 0, int* received = nullptr);

}  // namespace allranks::wire
