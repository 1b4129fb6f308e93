// Fat binaries made by nvcc (tests/ptx/stored): plain, LZ4 and zstd, the choice among images, and
// damage of every kind.
#include "ptx/fatbin.h"

#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string>

#include "ptx/parser.h"
#include "ptx/read_file.h"

namespace allranks::ptx {
namespace {

std::string Stored(const std::string& name) {
  return ReadFile(std::string(ALLRANKS_SOURCE_DIR "/tests/ptx/stored/") + name);
}

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}

class CompressionTest : public testing::TestWithParam<std::pair<std::string, Compression>> {};

TEST_P(CompressionTest, EveryImageIsPtx) {
  const std::string bytes = Stored("ptx_only_" + GetParam().first + ".fatbin");
  const Result<Fatbin> fatbin = Fatbin::Open(BytesOf(bytes));
  ASSERT_TRUE(fatbin.has_value()) << fatbin.error().message;
  ASSERT_EQ(fatbin->images().size(), 3u);
  const std::string targets[] = {"sm_75", "sm_90", "sm_90a"};
  for (std::size_t i = 0; i < 3; ++i) {
    const FatbinImage& image = fatbin->images()[i];
    EXPECT_EQ(image.kind, ImageKind::kPtx);
    EXPECT_EQ(image.compression, GetParam().second);
    EXPECT_EQ(image.arch, i == 0 ? 75u : 90u);
    EXPECT_EQ(image.variant, i == 2 ? ArchVariant::kSpecific : ArchVariant::kPlain);
    EXPECT_FALSE(image.debug);
    const Result<std::string> text = fatbin->Extract(i);
    ASSERT_TRUE(text.has_value()) << text.error().message;
    EXPECT_EQ(text->size(), image.bytes);
    const Result<Module> module = Parse(*text);
    ASSERT_TRUE(module.has_value()) << module.error().message;
    EXPECT_EQ(module->target, targets[i]);
    EXPECT_FALSE(fatbin->Extract(i, 100).has_value());
  }
  EXPECT_FALSE(fatbin->Extract(3).has_value());
  EXPECT_EQ(fatbin->PickPtx(70), 0u) << "nothing lower: the lowest above it";
  EXPECT_EQ(fatbin->PickPtx(75), 0u);
  EXPECT_EQ(fatbin->PickPtx(89), 0u);
  EXPECT_EQ(fatbin->PickPtx(90), 2u);
  EXPECT_EQ(fatbin->PickPtx(100), 1u) << "sm_90a code runs on sm_90 only";
  EXPECT_EQ(fatbin->PickCubin(90), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Ptx, CompressionTest,
                         testing::Values(std::pair("none", Compression::kNone),
                                         std::pair("speed", Compression::kLz4),
                                         std::pair("size", Compression::kZstd)),
                         [](const auto& test) { return test.param.first; });

TEST(FatbinTest, CubinsAndFamilies) {
  const std::string bytes = Stored("cubins.fatbin");
  const Result<Fatbin> fatbin = Fatbin::Open(BytesOf(bytes));
  ASSERT_TRUE(fatbin.has_value()) << fatbin.error().message;
  const auto arch_of = [&](std::optional<std::size_t> i) {
    return i ? fatbin->images()[*i].arch * 10 +
                   static_cast<std::uint32_t>(fatbin->images()[*i].variant)
             : 0;
  };
  EXPECT_EQ(arch_of(fatbin->PickCubin(75)), 0u);
  EXPECT_EQ(arch_of(fatbin->PickCubin(80)), 800u);
  EXPECT_EQ(arch_of(fatbin->PickCubin(86)), 860u);
  EXPECT_EQ(arch_of(fatbin->PickCubin(89)), 860u);
  EXPECT_EQ(arch_of(fatbin->PickCubin(90)), 902u);
  EXPECT_EQ(arch_of(fatbin->PickCubin(100)), 0u);
  EXPECT_EQ(arch_of(fatbin->PickPtx(90)), 900u);
  EXPECT_EQ(arch_of(fatbin->PickPtx(100)), 1001u);
  EXPECT_EQ(arch_of(fatbin->PickPtx(103)), 1001u);
  EXPECT_EQ(arch_of(fatbin->PickPtx(120)), 900u) << "sm_100f code stays in its family";
  for (std::size_t i = 0; i < fatbin->images().size(); ++i) {
    const Result<std::string> image = fatbin->Extract(i);
    ASSERT_TRUE(image.has_value()) << image.error().message;
    if (fatbin->images()[i].kind == ImageKind::kCubin) {
      EXPECT_EQ(image->substr(1, 3), "ELF");
    }
  }
}

TEST(FatbinTest, SeveralInARow) {
  const std::string one = Stored("ptx_only_size.fatbin");
  const std::string two = one + Stored("cubins.fatbin") + std::string(40, '\0');
  const Result<Fatbin> first = Fatbin::Open(BytesOf(one));
  const Result<Fatbin> both = Fatbin::Open(BytesOf(two));
  ASSERT_TRUE(first.has_value() && both.has_value());
  EXPECT_EQ(both->images().size(), 9u);
  EXPECT_EQ(*first->Extract(1), *both->Extract(1));
  EXPECT_EQ(both->Extract(3)->substr(1, 3), "ELF");
  EXPECT_EQ(Fatbin::ContainerBytes(BytesOf(two)).value(), one.size());
}

TEST(FatbinTest, BadHeaders) {
  const std::string bytes = Stored("ptx_only_size.fatbin");
  EXPECT_FALSE(Fatbin::Open({}).has_value());
  EXPECT_FALSE(Fatbin::Open(BytesOf(std::string(64, 'x'))).has_value());
  std::string damaged = bytes;
  damaged[4] = 9;  // version
  EXPECT_FALSE(Fatbin::Open(BytesOf(damaged)).has_value());
  for (const std::uint64_t size :
       {std::uint64_t{0} - 1, std::uint64_t{0} - 16, std::uint64_t{1} << 30}) {
    damaged = bytes;
    std::memcpy(damaged.data() + 8, &size, sizeof(size));  // content's size
    EXPECT_FALSE(Fatbin::Open(BytesOf(damaged)).has_value());
    damaged = bytes;
    std::memcpy(damaged.data() + 24, &size, sizeof(size));  // payload's size
    EXPECT_FALSE(Fatbin::Open(BytesOf(damaged)).has_value());
    damaged = bytes;
    std::memcpy(damaged.data() + 72, &size, sizeof(size));  // decompressed size
    const Result<Fatbin> fatbin = Fatbin::Open(BytesOf(damaged));
    ASSERT_TRUE(fatbin.has_value());
    EXPECT_FALSE(fatbin->Extract(0).has_value());
  }
}

// No truncation and no flipped bit may do more than give an error (or, in padding, nothing).
TEST(FatbinTest, EveryTruncationAndManyFlips) {
  for (const std::string name : {"ptx_only_none", "ptx_only_speed", "ptx_only_size"}) {
    const std::string bytes = Stored(name + ".fatbin");
    for (std::size_t size = 0; size < bytes.size(); size += 7) {
      EXPECT_FALSE(Fatbin::Open(BytesOf(bytes.substr(0, size))).has_value());
    }
    for (std::size_t at = 0; at < bytes.size(); at += 11) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
      const Result<Fatbin> fatbin = Fatbin::Open(BytesOf(damaged));
      if (!fatbin) continue;
      for (std::size_t i = 0; i < fatbin->images().size(); ++i) {
        (void)fatbin->Extract(i, std::uint64_t{1} << 20);
      }
    }
  }
}

}  // namespace
}  // namespace allranks::ptx
