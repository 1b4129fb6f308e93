// Frames through real sockets: pieces of any size, descriptors, foreign processes, hostile peers.
#include "wire/frame.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace allranks::wire {
namespace {

struct Pair {
  Pair() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0); }
  ~Pair() {
    close(ends[0]);
    if (ends[1] >= 0) close(ends[1]);
  }
  int ends[2];
};

Blob Bytes(std::size_t size) {
  Blob bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7);
  return bytes;
}

TEST(FrameReader, TakesAnyPieces) {
  EXPECT_TRUE(
      rc::check([](const std::vector<std::uint16_t>& sizes, const std::vector<std::uint8_t>& cuts) {
        Blob stream;
        for (std::size_t i = 0; i < sizes.size(); ++i) {
          const Blob frame = EncodeFrame(Op::kYield, i, Bytes(sizes[i] % 2000));
          stream.insert(stream.end(), frame.begin(), frame.end());
        }
        FrameReader reader;
        std::size_t at = 0, seen = 0, cut = 0;
        Frame frame;
        while (at < stream.size()) {
          const std::size_t piece = std::min(
              stream.size() - at, std::size_t{1} + (cuts.empty() ? 99 : cuts[cut++ % cuts.size()]));
          reader.Append(std::span(stream).subspan(at, piece));
          at += piece;
          while (reader.Next(&frame) == FrameReader::State::kFrame) {
            RC_ASSERT(frame.sequence == seen);
            RC_ASSERT(frame.payload == Bytes(sizes[seen] % 2000));
            ++seen;
          }
        }
        RC_ASSERT(seen == sizes.size());
        RC_ASSERT(reader.Next(&frame) == FrameReader::State::kMore);
      }));
}

TEST(FrameReader, RefusesWhatIsNotTheProtocol) {
  const auto refuses = [](std::size_t offset, std::uint8_t value) {
    Blob bytes = EncodeFrame(Op::kYield, 1, Bytes(8));
    bytes[offset] = static_cast<std::byte>(value);
    FrameReader reader;
    reader.Append(bytes);
    Frame frame;
    const bool bad = reader.Next(&frame) == FrameReader::State::kBad;
    EXPECT_EQ(bad, !reader.error().empty());
    return bad;
  };
  EXPECT_TRUE(refuses(3, 0xff));  // length
  EXPECT_TRUE(refuses(4, 0));     // operation 0
  EXPECT_TRUE(refuses(5, 9));     // unknown operation
  EXPECT_TRUE(refuses(6, 77));    // version
}

TEST(FrameReader, RandomBytesNeverCrash) {
  EXPECT_TRUE(rc::check([](const std::vector<std::uint8_t>& noise) {
    FrameReader reader;
    reader.Append(std::as_bytes(std::span(noise)));
    Frame frame;
    while (reader.Next(&frame) == FrameReader::State::kFrame) {
    }
  }));
}

TEST(Socket, LargeFrameInBothDirections) {
  Pair pair;
  const Blob payload = Bytes(20 << 20);
  std::thread client([&] {
    EXPECT_TRUE(SendFrame(pair.ends[1], Op::kCopyIn, 5, payload));
    Op op;
    std::uint64_t sequence;
    Blob reply;
    EXPECT_TRUE(ReceiveFrame(pair.ends[1], &op, &sequence, &reply));
    EXPECT_EQ(op, Op::kCopyOut);
    EXPECT_EQ(sequence, 6u);
    EXPECT_EQ(reply, payload);
  });
  FrameReader reader;
  Frame frame;
  FrameReader::State state;
  while ((state = reader.Read(pair.ends[0], 0, &frame)) == FrameReader::State::kMore) usleep(100);
  ASSERT_EQ(state, FrameReader::State::kFrame);
  EXPECT_EQ(frame.payload, payload);
  FrameWriter writer;
  writer.Queue(Op::kCopyOut, 6, payload);
  while (writer.queued() > 0) {
    ASSERT_TRUE(writer.Flush(pair.ends[0]));
    usleep(100);
  }
  client.join();
}

TEST(Socket, TwoPartsAreOneFrame) {
  Pair pair;
  const Blob head = Bytes(10), tail = Bytes(3000);
  ASSERT_TRUE(SendFrameInTwoParts(pair.ends[1], Op::kCopyIn, 1, head, tail));
  FrameReader reader;
  Frame frame;
  ASSERT_EQ(reader.Read(pair.ends[0], 0, &frame), FrameReader::State::kFrame);
  Blob both = head;
  both.insert(both.end(), tail.begin(), tail.end());
  EXPECT_EQ(frame.payload, both);
}

TEST(Socket, DescriptorsTravelBothWays) {
  Pair pair;
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  ASSERT_TRUE(
      SendFrame(pair.ends[1], Op::kWaitFd, 1, Bytes(4), std::span<const int>(pipe_ends, 2)));
  FrameReader reader;
  Frame frame;
  ASSERT_EQ(reader.Read(pair.ends[0], 0, &frame), FrameReader::State::kFrame);
  ASSERT_EQ(frame.fds.size(), 2u);
  ASSERT_EQ(write(frame.fds[1].get(), "x", 1), 1);
  char byte = 0;
  ASSERT_EQ(read(pipe_ends[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'x');

  FrameWriter writer;
  writer.Queue(Op::kAllocPinned, 1, Bytes(4), pipe_ends[1]);
  ASSERT_TRUE(writer.Flush(pair.ends[0]));
  Op op;
  std::uint64_t sequence;
  Blob reply;
  int fd = -1, count = 0;
  ASSERT_TRUE(ReceiveFrame(pair.ends[1], &op, &sequence, &reply, &fd, 1, &count));
  ASSERT_EQ(count, 1);
  EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
  ASSERT_EQ(write(fd, "y", 1), 1);
  ASSERT_EQ(read(pipe_ends[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  close(fd);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

TEST(Socket, BytesOfAnotherProcessAreDropped) {
  Pair pair;
  const int on = 1;
  ASSERT_EQ(setsockopt(pair.ends[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on), 0);
  const pid_t child = fork();
  if (child == 0) {
    SendFrame(pair.ends[1], Op::kYield, 666, Bytes(100));
    _exit(0);
  }
  int status;
  waitpid(child, &status, 0);
  ASSERT_TRUE(SendFrame(pair.ends[1], Op::kYield, 7, Bytes(3)));
  FrameReader reader;
  Frame frame;
  ASSERT_EQ(reader.Read(pair.ends[0], getpid(), &frame), FrameReader::State::kFrame);
  EXPECT_EQ(frame.sequence, 7u);
}

TEST(Socket, EndIsToldApartFromSilence) {
  Pair pair;
  FrameReader reader;
  Frame frame;
  EXPECT_EQ(reader.Read(pair.ends[0], 0, &frame), FrameReader::State::kMore);
  ASSERT_EQ(write(pair.ends[1], "abc", 3), 3);
  EXPECT_EQ(reader.Read(pair.ends[0], 0, &frame), FrameReader::State::kMore);
  close(pair.ends[1]);
  pair.ends[1] = -1;
  EXPECT_EQ(reader.Read(pair.ends[0], 0, &frame), FrameReader::State::kClosed);
  Op op;
  std::uint64_t sequence;
  Blob payload;
  EXPECT_FALSE(ReceiveFrame(pair.ends[0], &op, &sequence, &payload));
  EXPECT_FALSE(SendFrame(pair.ends[0], Op::kYield, 1, {}));
}

}  // namespace
}  // namespace allranks::wire
