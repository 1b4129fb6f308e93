// Every message survives encoding and decoding, and no bytes whatever make the decoder misbehave.
#include "wire/messages.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstring>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

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

// A message type as the properties below see it, so that they are compiled once and not per type.
struct Kind {
  std::string name;
  Op op;
  Blob (*filled)(std::uint64_t seed);  // encoded
  // Decoded and encoded again; nothing if it was refused.
  std::optional<Blob> (*again)(std::span<const std::byte> bytes);
};

template <class T>
Kind KindOf(std::string name, Op op) {
  return {std::move(name), op,
          [](std::uint64_t seed) {
            T message;
            Filler filler(seed);
            message.Visit(filler);
            return Encode(message);
          },
          [](std::span<const std::byte> bytes) -> std::optional<Blob> {
            T message;
            if (!DecodeFrom(bytes, &message) || !bytes.empty()) return std::nullopt;
            return Encode(message);
          }};
}

// Each request brings its reply.
template <class... Requests>
void Add(std::vector<Kind>* kinds) {
  (kinds->push_back(KindOf<Requests>(OpName(kOpOf<Requests>), kOpOf<Requests>)), ...);
  (kinds->push_back(KindOf<typename Requests::Reply>(
       std::string(OpName(kOpOf<Requests>)) + " reply", kOpOf<Requests>)),
   ...);
}

const std::vector<Kind>& Kinds() {
  static const std::vector<Kind> all = [] {
    std::vector<Kind> kinds;
#define ALLRANKS_MESSAGE(type, name, sender, cost, traits) Add<type>(&kinds);
#include "wire/messages.def"
#undef ALLRANKS_MESSAGE
    return kinds;
  }();
  return all;
}

// The list is the protocol: what has been added stands where it was added.
TEST(Messages, HaveTheirNumbers) {
  EXPECT_EQ(static_cast<int>(Op::kHello), 1);
  EXPECT_EQ(static_cast<int>(Op::kInit), 26);
  EXPECT_EQ(static_cast<int>(Op::kMemset), 65);
  EXPECT_EQ(static_cast<int>(Op::kDeadlock), static_cast<int>(Op::kLast_));
  EXPECT_EQ(Kinds().size(), 2 * static_cast<std::size_t>(Op::kLast_));
}

TEST(Messages, RoundTrip) {
  for (const Kind& kind : Kinds()) {
    EXPECT_TRUE(rc::check(kind.name, [&](std::uint64_t seed) {
      const Blob bytes = kind.filled(seed);
      const auto again = kind.again(bytes);
      RC_ASSERT(again.has_value());
      RC_ASSERT(*again == bytes);
    })) << kind.name;
  }
}

TEST(Messages, RefuseTruncation) {
  for (const Kind& kind : Kinds()) {
    SCOPED_TRACE(kind.name);
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      Blob bytes = kind.filled(seed);
      for (std::size_t size = 0; size < bytes.size(); ++size) {
        EXPECT_FALSE(kind.again(std::span(bytes).first(size)).has_value());
      }
      bytes.push_back(std::byte{0});
      EXPECT_FALSE(kind.again(bytes).has_value()) << "a byte too many";
    }
  }
}

// What decodes at all must be a message that encodes to the very same bytes.
TEST(Messages, SurviveGarbage) {
  for (const Kind& kind : Kinds()) {
    EXPECT_TRUE(rc::check(kind.name, [&](std::uint64_t seed,
                                         const std::vector<std::uint8_t>& noise) {
      Blob bytes = kind.filled(seed);
      for (std::size_t i = 0; i < noise.size() && !bytes.empty(); ++i) {
        bytes[(seed >> (i % 32)) % bytes.size()] = static_cast<std::byte>(noise[i]);
      }
      const auto again = kind.again(bytes);
      if (again.has_value()) RC_ASSERT(*again == bytes);
    })) << kind.name;
  }
}

// A change of these bytes is a new protocol version.
TEST(Format, IsWhatItWas) {
  Hello hello;
  hello.kind = Hello::Kind::kThread;
  hello.tid = 0x01020304;
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
