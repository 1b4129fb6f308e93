// Hostile and dying clients against a real node process: each harms only itself. The good rank
// waits in a virtual sleep while the bad one runs, because the node lets one thread run at a time.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <functional>
#include <random>

#include "tests/faults/node_handle.h"

namespace allranks {
namespace {

constexpr std::int64_t kMs = 1'000'000'000;  // ps

class ClientsTest : public ::testing::Test {
 protected:
  ClientsTest() : good(node) {
    token = good.Call(wire::Hello{}).token;
    good.Call(wire::Init{});
    free_at_start = good.Call(wire::MemInfo{}).free;
  }
  // Runs `body` in a child process that has been announced to the node, while the good rank sleeps.
  // Returns the child's wait status.
  int InChild(const std::function<int(std::uint64_t token)>& body) {
    const std::uint64_t child_token = good.Call(wire::NewProcess{}).token;
    const pid_t child = fork();
    if (child == 0) _exit(body(child_token));
    good.Ask(wire::Sleep{10 * kMs});
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_TRUE(good.Answer<wire::Sleep>().has_value());
    return status;
  }
  static wire::Hello ChildHello(std::uint64_t child_token) {
    wire::Hello hello;
    hello.kind = wire::Hello::Kind::kChild;
    hello.token = child_token;
    return hello;
  }
  void ExpectGoodIsWell() {
    EXPECT_TRUE(node.Alive());
    wire::Alloc alloc;
    alloc.size = 1 << 20;
    wire::Free free_message;
    free_message.address = good.Call(alloc).address;
    EXPECT_EQ(good.header.status, 0);
    wire::Memset memset;
    memset.dst = free_message.address;
    memset.value = 7;
    memset.count = 16;
    memset.wait = true;
    good.Call(memset);
    EXPECT_EQ(good.header.status, 0);
    wire::CopyOut out;
    out.src = free_message.address;
    out.size = 16;
    EXPECT_EQ(good.Call(out).bytes, wire::Blob(16, std::byte{7}));
    good.Call(free_message);
    EXPECT_EQ(good.Call(wire::MemInfo{}).free, free_at_start) << "memory was not returned";
  }

  NodeHandle node;
  Rank good;
  std::uint64_t token = 0, free_at_start = 0;
};

bool ClosedByNode(int fd) {
  char byte;
  return recv(fd, &byte, 1, 0) <= 0;
}

TEST_F(ClientsTest, GarbageBytes) {
  const int status = InChild([&](std::uint64_t child_token) {
    Rank bad(node);
    bad.Call(ChildHello(child_token));
    wire::Alloc alloc;
    alloc.size = 64 << 20;
    bad.Call(alloc);
    std::mt19937 random(7);
    std::string bytes(100'000, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    send(bad.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    return ClosedByNode(bad.fd()) ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
  ExpectGoodIsWell();
}

TEST_F(ClientsTest, GarbageBeforeHello) {
  const wire::Fd stranger = node.Connect();
  const std::string bytes = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  send(stranger.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  EXPECT_TRUE(ClosedByNode(stranger.get()));
  ExpectGoodIsWell();
}

TEST_F(ClientsTest, HalfAFrameHoldsUpNobody) {
  const wire::Fd stranger = node.Connect();
  const wire::Blob frame = wire::EncodeFrame(wire::Op::kHello, 1, wire::Blob(100));
  send(stranger.get(), frame.data(), 20, MSG_NOSIGNAL);
  ExpectGoodIsWell();
}

TEST_F(ClientsTest, AnnouncedLengthIsNotAllocated) {
  const wire::Fd stranger = node.Connect();
  wire::Blob frame = wire::EncodeFrame(wire::Op::kHello, 1, {});
  const std::uint32_t length = 0xffffffff;
  std::memcpy(frame.data(), &length, sizeof length);
  send(stranger.get(), frame.data(), frame.size(), MSG_NOSIGNAL);
  EXPECT_TRUE(ClosedByNode(stranger.get()));
  ExpectGoodIsWell();
}

TEST_F(ClientsTest, KilledWhileItWaits) {
  const int status = InChild([&](std::uint64_t child_token) {
    Rank bad(node);
    bad.Call(ChildHello(child_token));
    wire::Alloc alloc;
    alloc.size = 1 << 30;
    bad.Call(alloc);
    wire::AllocPinned pinned;
    pinned.size = 1 << 20;
    bad.Call(pinned);
    bad.Ask(wire::WaitKey{});
    raise(SIGKILL);
    return 0;
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  ExpectGoodIsWell();
}

TEST_F(ClientsTest, PinnedMemoryCannotBeTakenFromUnderTheNode) {
  const int status = InChild([&](std::uint64_t child_token) {
    Rank bad(node);
    bad.Call(ChildHello(child_token));
    bad.Call(wire::Init{});
    wire::AllocPinned pinned;
    pinned.size = 1 << 20;
    const auto memory = bad.Call(pinned);
    const int fd = bad.memory.get();
    if (fd < 0 || memory.size != pinned.size) return 2;
    if (ftruncate(fd, 0) == 0) return 3;
    if (ftruncate(fd, 4096) == 0) return 4;
    if (ftruncate(fd, 1 << 30) == 0) return 5;
    void* map = mmap(nullptr, memory.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) return 6;
    std::memset(map, 0xff, memory.size);
    // What the node reads from there is its copy of the bytes, whatever happens to them meanwhile.
    wire::Copy copy;
    copy.src = memory.address;
    wire::Alloc alloc;
    alloc.size = memory.size;
    copy.dst = bad.Call(alloc).address;
    copy.size = memory.size;
    copy.wait = true;
    bad.Call(copy);
    if (bad.header.status != 0) return 7;
    fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1 << 20);
    bad.Call(copy);
    return bad.header.status == 0 ? 0 : 8;
  });
  EXPECT_EQ(WEXITSTATUS(status), 0);
  ExpectGoodIsWell();
}

TEST_F(ClientsTest, AnInheritedConnectionIsNotTheChilds) {
  // The node takes only what the process that said hello has sent.
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 3; ++i)
      wire::SendFrame(good.fd(), wire::Op::kFinish, 99, wire::Encode(wire::Finish{}));
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  ExpectGoodIsWell();
}

TEST_F(ClientsTest, TokensOfOthersAreGuessedInVain) {
  const int status = InChild([&](std::uint64_t child_token) {
    Rank bad(node);
    bad.Call(ChildHello(child_token));
    for (std::uint64_t guess : {std::uint64_t{0}, std::uint64_t{1}, token, ~std::uint64_t{0}}) {
      const wire::Fd stranger = node.Connect();
      wire::Hello hello;
      hello.kind = wire::Hello::Kind::kThread;
      hello.token = guess;
      hello.thread = 1;
      wire::SendFrame(stranger.get(), wire::Op::kHello, 1,
                      wire::EncodePayload(wire::RequestHeader{}, hello));
      if (!ClosedByNode(stranger.get())) return 1;
    }
    return 0;
  });
  EXPECT_EQ(status, 0);
  ExpectGoodIsWell();
}

TEST_F(ClientsTest, ManyConnectionsAtOnce) {
  std::vector<wire::Fd> strangers;
  for (int i = 0; i < 400; ++i) {
    wire::Fd fd(node.Connect());
    strangers.push_back(std::move(fd));
  }
  ExpectGoodIsWell();
}

TEST_F(ClientsTest, HandlesOfNobody) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t number = random() >> (random() % 64);
    wire::Launch launch;
    launch.kernel = number;
    good.Call(launch);
    EXPECT_NE(good.header.status, 0);
    good.Call(wire::Free{number});
    EXPECT_NE(good.header.status, 0);
    good.Call(wire::EventSync{number});
    EXPECT_NE(good.header.status, 0);
    wire::CopyOut out;
    out.src = number;
    out.size = 64;
    good.Call(out);
    EXPECT_NE(good.header.status, 0);
    wire::Memset memset;
    memset.dst = number;
    memset.count = random();
    memset.width = 4;
    memset.wait = true;
    good.Call(memset);
    EXPECT_NE(good.header.status, 0);
  }
  ExpectGoodIsWell();
}

}  // namespace
}  // namespace allranks
