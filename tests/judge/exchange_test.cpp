// Memory files keep their size, and nobody but the judge can write inputs.
#include "judge/exchange.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "judge/scratch.h"

namespace allranks::judge {
namespace {

TEST(MemoryFileTest, InputsCannotBeWrittenByWhoeverGetsTheDescriptor) {
  const Result<MemoryFile> file = MemoryFile::Make("inputs", 4096, true);
  ASSERT_TRUE(file) << file.error().message;
  file->bytes()[0] = std::byte{7};
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd(), 0), MAP_FAILED);
  EXPECT_LT(pwrite(file->fd(), "x", 1, 0), 0);
  void* read = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file->fd(), 0);
  ASSERT_NE(read, MAP_FAILED);
  EXPECT_EQ(*static_cast<const std::byte*>(read), std::byte{7});
  munmap(read, 4096);
}

TEST(MemoryFileTest, NeitherFileCanShrinkUnderTheJudge) {
  for (const bool sealed : {false, true}) {
    const Result<MemoryFile> file = MemoryFile::Make("file", 8192, sealed);
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_NE(ftruncate(file->fd(), 0), 0);
    EXPECT_NE(fcntl(file->fd(), F_ADD_SEALS, F_SEAL_WRITE), 0);
  }
}

TEST(MemoryFileTest, WhatIsClearedIsZeroAndTakesNoMemory) {
  constexpr std::size_t kSize = 1 << 20;
  const Result<MemoryFile> file = MemoryFile::Make("outputs", kSize, false);
  ASSERT_TRUE(file) << file.error().message;
  for (std::byte& byte : file->bytes()) byte = std::byte{7};
  struct stat before{}, after{};
  ASSERT_EQ(fstat(file->fd(), &before), 0);
  file->Clear();
  ASSERT_EQ(fstat(file->fd(), &after), 0);
  EXPECT_GT(before.st_blocks, 0);
  EXPECT_EQ(after.st_blocks, 0);
  EXPECT_EQ(file->bytes().size(), kSize);
  EXPECT_EQ(file->bytes()[kSize - 1], std::byte{0});
}

TEST(PlacementTest, LargeTensorsAreWholePages) {
  problem::Problem problem;
  problem.params = {"n"};
  for (const auto dir : {problem::Tensor::Dir::kIn, problem::Tensor::Dir::kOut}) {
    problem::Tensor tensor;
    tensor.dir = dir;
    const auto shape = problem::Expression::Parse("n", {{"n", 1}});
    ASSERT_TRUE(shape);
    tensor.shape = {*shape};
    problem.tensors.push_back(tensor);
  }
  constexpr std::uint64_t kPage = 4096;
  for (const std::int64_t count : {1'001, 1'000'003}) {
    problem::Case one;
    one.world = 3;
    one.params = {count};
    const Placement placement = Place(problem, one, 2);
    std::uint64_t end = 0;
    for (const auto& items : placement.in) {
      ASSERT_EQ(items.size(), 1u);
      EXPECT_GE(items[0].place, end);
      EXPECT_EQ(items[0].bytes, static_cast<std::uint64_t>(count) * 4);
      EXPECT_EQ(items[0].place % (count > 1'001 ? kPage : 256), 0u);
      end = items[0].place + items[0].bytes;
    }
    EXPECT_LE(end, placement.in_bytes);
  }
}

TEST(HashTest, PartsAreToldApart) {
  EXPECT_EQ(HashOf({"a", "b"}), HashOf({"a", "b"}));
  EXPECT_NE(HashOf({"a", "b"}), HashOf({"ab"}));
  EXPECT_NE(HashOf({"a", "b"}), HashOf({"ab", ""}));
  EXPECT_EQ(HashOf({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(ScratchTest, IsGoneWithItsOwner) {
  std::string path;
  {
    Result<Scratch> scratch = Scratch::Make();
    ASSERT_TRUE(scratch) << scratch.error().message;
    path = scratch->path();
    SweepScratch();  // this process lives: its folder stays
    EXPECT_EQ(access(path.c_str(), F_OK), 0);
  }
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace allranks::judge
