// Frames on a socket: the node's non-blocking side and the client's blocking one. Both go through
// raw system calls, because this code also runs inside the library that interposes recvmsg and its
// kin.
#include "wire/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cstring>

#include "wire/raw_syscall.h"

namespace allranks::wire {
namespace {

struct Header {
  std::uint32_t length = 0;
  std::uint16_t op = 0;
  std::uint16_t version = kProtocolVersion;
  std::uint64_t sequence = 0;
};
static_assert(sizeof(Header) == kFrameHeaderBytes);

// Room for the descriptors of a frame and the sender's credentials.
struct ControlBuffer {
  alignas(cmsghdr) char bytes[CMSG_SPACE(sizeof(int) * kMaxFds) + CMSG_SPACE(sizeof(ucred))];
};

long SendMessage(int socket, const void* data, std::size_t size, const int* fds, int fd_count,
                 int flags) {
  iovec part{const_cast<void*>(data), size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  ControlBuffer control;
  if (fd_count > 0) {
    const std::size_t bytes = sizeof(int) * static_cast<std::size_t>(fd_count);
    std::memset(control.bytes, 0, sizeof control.bytes);
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* entry = CMSG_FIRSTHDR(&message);
    entry->cmsg_level = SOL_SOCKET;
    entry->cmsg_type = SCM_RIGHTS;
    entry->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(entry), fds, bytes);
  }
  for (;;) {
    const long sent =
        RawSyscall(SYS_sendmsg, socket, reinterpret_cast<long>(&message), flags | MSG_NOSIGNAL);
    if (sent != -EINTR) return sent;
  }
}

// One recvmsg. Descriptors are handed to `take_fd`; `*pid` becomes the sender if the kernel tells.
template <class TakeFd>
long ReceiveMessage(int socket, void* data, std::size_t size, int flags, pid_t* pid,
                    TakeFd take_fd) {
  iovec part{data, size};
  msghdr message{};
  ControlBuffer control;
  long got;
  do {
    message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    got =
        RawSyscall(SYS_recvmsg, socket, reinterpret_cast<long>(&message), flags | MSG_CMSG_CLOEXEC);
  } while (got == -EINTR);
  if (got < 0) return got;
  for (cmsghdr* entry = CMSG_FIRSTHDR(&message); entry != nullptr;
       entry = CMSG_NXTHDR(&message, entry)) {
    if (entry->cmsg_level != SOL_SOCKET) continue;
    if (entry->cmsg_type == SCM_RIGHTS) {
      const std::size_t count = (entry->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int fd;
        std::memcpy(&fd, CMSG_DATA(entry) + i * sizeof(int), sizeof fd);
        take_fd(fd);
      }
    } else if (entry->cmsg_type == SCM_CREDENTIALS) {
      ucred credentials;
      std::memcpy(&credentials, CMSG_DATA(entry), sizeof credentials);
      *pid = credentials.pid;
    }
  }
  return got;
}

bool ReceiveAll(int socket, void* data, std::size_t size, int* fds, int max_fds, int* received) {
  auto* next = static_cast<std::byte*>(data);
  while (size > 0) {
    pid_t pid = 0;
    const long got = ReceiveMessage(socket, next, size, 0, &pid, [&](int fd) {
      if (*received < max_fds) {
        fds[(*received)++] = fd;
      } else {
        RawSyscall(SYS_close, fd);
      }
    });
    if (got <= 0) return false;
    next += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

bool SendAll(int socket, const void* data, std::size_t size, std::span<const int> fds) {
  const auto* next = static_cast<const std::byte*>(data);
  int fd_count = static_cast<int>(fds.size());
  while (size > 0) {
    const long sent = SendMessage(socket, next, size, fds.data(), fd_count, 0);
    if (sent <= 0) return false;
    fd_count = 0;  // they went with the first bytes
    next += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

}  // namespace

Fd::~Fd() {
  if (fd_ >= 0) RawSyscall(SYS_close, fd_);
}

Blob EncodeFrame(Op op, std::uint64_t sequence, std::span<const std::byte> payload) {
  Header header;
  header.length = static_cast<std::uint32_t>(payload.size());
  header.op = static_cast<std::uint16_t>(op);
  header.sequence = sequence;
  Blob out(kFrameHeaderBytes + payload.size());
  std::memcpy(out.data(), &header, sizeof header);
  if (!payload.empty()) std::memcpy(out.data() + sizeof header, payload.data(), payload.size());
  return out;
}

FrameReader::State FrameReader::Bad(std::string why) {
  error_ = std::move(why);
  return State::kBad;
}

void FrameReader::Append(std::span<const std::byte> bytes) {
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

FrameReader::State FrameReader::Next(Frame* frame) {
  if (!error_.empty()) return State::kBad;
  if (buffered() < kFrameHeaderBytes) return State::kMore;
  Header header;
  std::memcpy(&header, buffer_.data() + start_, sizeof header);
  if (header.version != kProtocolVersion) {
    return Bad("protocol version " + std::to_string(header.version) + ", this node speaks " +
               std::to_string(kProtocolVersion));
  }
  if (header.op == 0 || header.op > static_cast<std::uint16_t>(Op::kLast_)) {
    return Bad("unknown operation " + std::to_string(header.op));
  }
  if (header.length > kMaxPayload) {
    return Bad("a frame of " + std::to_string(header.length) + " bytes; the limit is " +
               std::to_string(kMaxPayload));
  }
  if (buffered() < kFrameHeaderBytes + header.length) return State::kMore;
  const std::byte* payload = buffer_.data() + start_ + kFrameHeaderBytes;
  frame->op = static_cast<Op>(header.op);
  frame->sequence = header.sequence;
  frame->payload.assign(payload, payload + header.length);
  frame->fds = std::move(fds_);
  fds_.clear();
  start_ += kFrameHeaderBytes + header.length;
  if (start_ == buffer_.size()) {
    // A large message must not leave its size behind on every one of a thousand connections.
    if (buffer_.capacity() > (1u << 20)) {
      buffer_ = Blob();
    } else {
      buffer_.clear();
    }
    start_ = 0;
  }
  return State::kFrame;
}

FrameReader::State FrameReader::Read(int socket, pid_t pid, Frame* frame) {
  for (;;) {
    const State state = Next(frame);
    if (state != State::kMore) return state;
    if (start_ > 0) {
      buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(start_));
      start_ = 0;
    }
    // Large payloads are read in larger pieces, but memory follows what has really come: announcing
    // 64 MiB costs a peer's word, not the node's memory.
    const std::size_t want = buffer_.size() < kFrameHeaderBytes + 4096 ? 16384 : 262144;
    const std::size_t old_size = buffer_.size();
    buffer_.resize(old_size + want);
    pid_t sender = pid;
    std::vector<Fd> fds;
    const long got = ReceiveMessage(socket, buffer_.data() + old_size, want, MSG_DONTWAIT, &sender,
                                    [&](int fd) { fds.emplace_back(fd); });
    const bool foreign = got > 0 && pid != 0 && sender != pid;
    buffer_.resize(old_size + (got > 0 && !foreign ? static_cast<std::size_t>(got) : 0));
    if (got == -EAGAIN) return State::kMore;
    if (got <= 0) return State::kClosed;
    if (foreign) continue;
    for (Fd& fd : fds) fds_.push_back(std::move(fd));
    if (fds_.size() > static_cast<std::size_t>(kMaxFds)) return Bad("too many file descriptors");
  }
}

void FrameWriter::Queue(Op op, std::uint64_t sequence, std::span<const std::byte> payload, int fd) {
  Part& part = parts_.emplace_back();
  part.bytes = EncodeFrame(op, sequence, payload);
  if (fd >= 0) part.fd = Fd(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  queued_ += part.bytes.size();
}

bool FrameWriter::Flush(int socket) {
  std::size_t done = 0;
  bool alive = true;
  while (done < parts_.size()) {
    Part& part = parts_[done];
    const int fd = part.fd.get();
    const long sent =
        SendMessage(socket, part.bytes.data() + part.sent, part.bytes.size() - part.sent, &fd,
                    part.sent == 0 && fd >= 0 ? 1 : 0, MSG_DONTWAIT);
    if (sent == -EAGAIN) break;
    if (sent <= 0) {
      alive = false;
      break;
    }
    part.sent += static_cast<std::size_t>(sent);
    queued_ -= static_cast<std::size_t>(sent);
    if (part.sent == part.bytes.size()) ++done;
  }
  parts_.erase(parts_.begin(), parts_.begin() + static_cast<std::ptrdiff_t>(done));
  return alive;
}

bool SendFrame(int socket, Op op, std::uint64_t sequence, std::span<const std::byte> payload,
               std::span<const int> fds) {
  Header header;
  header.length = static_cast<std::uint32_t>(payload.size());
  header.op = static_cast<std::uint16_t>(op);
  header.sequence = sequence;
  // Small frames go out in one piece, so that the node wakes up once.
  std::byte small[512];
  if (payload.size() <= sizeof small - sizeof header) {
    std::memcpy(small, &header, sizeof header);
    if (!payload.empty()) std::memcpy(small + sizeof header, payload.data(), payload.size());
    return SendAll(socket, small, sizeof header + payload.size(), fds);
  }
  return SendAll(socket, &header, sizeof header, fds) &&
         SendAll(socket, payload.data(), payload.size(), {});
}

bool SendFrameInTwoParts(int socket, Op op, std::uint64_t sequence, std::span<const std::byte> head,
                         std::span<const std::byte> tail) {
  Header header;
  header.length = static_cast<std::uint32_t>(head.size() + tail.size());
  header.op = static_cast<std::uint16_t>(op);
  header.sequence = sequence;
  return SendAll(socket, &header, sizeof header, {}) &&
         SendAll(socket, head.data(), head.size(), {}) &&
         SendAll(socket, tail.data(), tail.size(), {});
}

bool ReceiveFrame(int socket, Op* op, std::uint64_t* sequence, Blob* payload, int* fds, int max_fds,
                  int* received) {
  int count = 0;
  Header header;
  bool good = ReceiveAll(socket, &header, sizeof header, fds, max_fds, &count) &&
              header.version == kProtocolVersion && header.length <= kMaxPayload;
  if (good) {
    payload->resize(header.length);
    good = ReceiveAll(socket, payload->data(), payload->size(), fds, max_fds, &count);
  }
  if (!good) {
    for (int i = 0; i < count; ++i) RawSyscall(SYS_close, fds[i]);
    return false;
  }
  *op = static_cast<Op>(header.op);
  *sequence = header.sequence;
  if (received != nullptr) *received = count;
  return true;
}

}  // namespace allranks::wire
