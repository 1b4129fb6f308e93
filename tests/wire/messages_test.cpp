// Every message survives encoding and decoding, and no bytes whatever make the decoder misbehave.
#include "wire/messages.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstring>
#include <random>
#include <string>

namespace allranks::wire {
namespace {

// The third archive beside Writer and Reader: fills a message with values of its own choice.
class Filler {
 public:
  explicit Filler(std::uint64_t seed) : random_(seed) {}

  template <class... Ts>
  void operator()(Ts&... fields) {
    (Field(fields), ...);
  }

 private:
  // Small and extreme values are likelier than others.
  std::uint64_t Word() {
    switch (random_() % 4) {
      case 0:
        return random_() % 4;
      case 1:
        return ~std::uint64_t{0} >> random_() % 64;
      default:
        return random_();
    }
  }
  void Field(bool& value) { value = random_() % 2 == 1; }
  template <Scalar T>
  void Field(T& value) {
    value = static_cast<T>(Word());
  }
  template <class T>
    requires std::is_enum_v<T>
  void Field(T& value) {
    value = static_cast<T>(random_() % (static_cast<std::uint64_t>(T::kLast_) + 1));
  }
  void Field(std::string& value) {
    value.resize(random_() % 40);
    for (char& c : value) c = static_cast<char>(random_());
  }
  void Field(Blob& value) {
    value.resize(random_() % 300);
    for (std::byte& b : value) b = static_cast<std::byte>(random_());
  }
  template <class T>
  void Field(std::vector<T>& list) {
    list.resize(random_() % 6);
    for (T& element : list) Field(element);
  }
  template <Scalar T, std::size_t N>
  void Field(std::array<T, N>& list) {
    for (T& element : list) Field(element);
  }
  template <class T>
    requires std::is_class_v<T>
  void Field(T& value) {
    value.Visit(*this);
  }

  std::mt19937_64 random_;
};

template <class T>
class Message : public testing::Test {};

// Each request brings its reply.
using Requests =
    testing::Types<Hello, NewThread, ThreadExit, WaitThread, NewProcess, ProcessStarted, Exec,
                   WaitProcess, WaitFd, Sleep, Yield, BarrierWait, WatchKey, UnwatchKey, WaitKey,
                   WakeKey, HostPoll, BootstrapBarrier, Init, PutImage, DropImage, LoadModule,
                   UnloadModule, GetKernel, GetGlobal, SetMaxDynamicShared, SetLimit, Occupancy,
                   Alloc, Free, AllocPinned, FreePinned, Describe, IpcExport, IpcOpen, IpcClose,
                   CanAccessPeer, EnablePeer, DisablePeer, MemInfo, StickyError, ResetDevice>;
using MoreRequests =
    testing::Types<CreateStream, DestroyStream, StreamQuery, StreamSync, CreateEvent, DestroyEvent,
                   RecordEvent, WaitEvent, EventQuery, EventSync, EventElapsed, DeviceSync, Launch,
                   Copy, CopyIn, CopyOut, Memset, CallHost, NextHostCall, StreamValues, PutGraph,
                   UpdateGraph, DropGraph, LaunchGraph, ListKernels, SetVisible, ExportEvent,
                   OpenEvent, Finish, Deadlock>;
using MemoryRequests = testing::Types<DefaultPool, CreatePool, DestroyPool, GetPoolAttribute,
                                      SetPoolAttribute, TrimPool, SetPoolAccess, GetPoolAccess,
                                      AllocAsync, FreeAsync, RegisterHost, Prefetch>;

template <class T>
void RoundTrips() {
  EXPECT_TRUE(rc::check([](std::uint64_t seed) {
    T message;
    Filler filler(seed);
    message.Visit(filler);
    const Blob bytes = Encode(message);
    const auto decoded = Decode<T>(bytes);
    RC_ASSERT(decoded.has_value());
    RC_ASSERT(Encode(*decoded) == bytes);
  }));
}

template <class T>
void RefusesTruncation() {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    T message;
    Filler filler(seed);
    message.Visit(filler);
    Blob bytes = Encode(message);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(Decode<T>(std::span(bytes).first(size)).has_value());
    }
    bytes.push_back(std::byte{0});
    EXPECT_FALSE(Decode<T>(bytes).has_value()) << "a byte too many";
  }
}

// What decodes at all must be a message that encodes to the very same bytes.
template <class T>
void SurvivesGarbage() {
  EXPECT_TRUE(rc::check([](std::uint64_t seed, const std::vector<std::uint8_t>& noise) {
    T message;
    Filler filler(seed);
    message.Visit(filler);
    Blob bytes = Encode(message);
    for (std::size_t i = 0; i < noise.size() && !bytes.empty(); ++i) {
      bytes[(seed >> (i % 32)) % bytes.size()] = static_cast<std::byte>(noise[i]);
    }
    const auto decoded = Decode<T>(bytes);
    if (decoded.has_value()) RC_ASSERT(Encode(*decoded) == bytes);
  }));
}

TYPED_TEST_SUITE(Message, Requests);
TYPED_TEST(Message, RoundTrips) {
  RoundTrips<TypeParam>();
  RoundTrips<typename TypeParam::Reply>();
}
TYPED_TEST(Message, RefusesTruncation) {
  RefusesTruncation<TypeParam>();
  RefusesTruncation<typename TypeParam::Reply>();
}
TYPED_TEST(Message, SurvivesGarbage) {
  SurvivesGarbage<TypeParam>();
  SurvivesGarbage<typename TypeParam::Reply>();
}

template <class T>
class Work : public testing::Test {};
TYPED_TEST_SUITE(Work, MoreRequests);
TYPED_TEST(Work, RoundTrips) {
  RoundTrips<TypeParam>();
  RoundTrips<typename TypeParam::Reply>();
}
TYPED_TEST(Work, RefusesTruncation) {
  RefusesTruncation<TypeParam>();
  RefusesTruncation<typename TypeParam::Reply>();
}
TYPED_TEST(Work, SurvivesGarbage) {
  SurvivesGarbage<TypeParam>();
  SurvivesGarbage<typename TypeParam::Reply>();
}

template <class T>
class Memory : public testing::Test {};
TYPED_TEST_SUITE(Memory, MemoryRequests);
TYPED_TEST(Memory, RoundTrips) {
  RoundTrips<TypeParam>();
  RoundTrips<typename TypeParam::Reply>();
}
TYPED_TEST(Memory, RefusesTruncation) {
  RefusesTruncation<TypeParam>();
  RefusesTruncation<typename TypeParam::Reply>();
}
TYPED_TEST(Memory, SurvivesGarbage) {
  SurvivesGarbage<TypeParam>();
  SurvivesGarbage<typename TypeParam::Reply>();
}

// A change of these bytes is a new protocol version.
TEST(Format, IsWhatItWas) {
  Hello hello;
  hello.kind = Hello::Kind::kThread;
  hello.pid = 0x01020304;
  hello.token = 0x1112131415161718;
  hello.thread = 5;
  hello.protocol = 2;
  hello.rank = 6;
  hello.host = -1;
  hello.placed = true;
  const unsigned char expected[] = {
      2, 0, 0, 0, 1, 4, 3, 2, 1, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,
      5, 0, 0, 0, 0, 0, 0, 0, 6, 0,    0,    0,    0xff, 0xff, 0xff, 0xff, 1};
  const Blob bytes = Encode(hello);
  ASSERT_EQ(bytes.size(), sizeof expected);
  EXPECT_EQ(std::memcmp(bytes.data(), expected, sizeof expected), 0);
}

TEST(Format, CountBeyondTheBytesIsRefusedBeforeAllocating) {
  const unsigned char bytes[] = {0xff, 0xff, 0xff, 0xff, 0, 0};
  EXPECT_FALSE(Decode<CopyOutReply>(std::as_bytes(std::span(bytes))).has_value());
  EXPECT_FALSE(Decode<InitReply>(std::as_bytes(std::span(bytes))).has_value());
}

TEST(Format, EnumsAndBooleansAreChecked) {
  Blob bytes = Encode(Hello{});
  bytes[4] = std::byte{4};
  EXPECT_FALSE(Decode<Hello>(bytes).has_value());
  bytes = Encode(CanAccessPeerReply{});
  bytes[0] = std::byte{2};
  EXPECT_FALSE(Decode<CanAccessPeerReply>(bytes).has_value());
}

TEST(OpNames, AreKnown) {
  EXPECT_STREQ(OpName(Op::kHello), "hello");
  EXPECT_STREQ(OpName(Op::kLaunch), "launch");
  EXPECT_STREQ(OpName(Op::kDeadlock), "deadlock");
  EXPECT_STREQ(OpName(static_cast<Op>(999)), "?");
}

}  // namespace
}  // namespace allranks::wire
