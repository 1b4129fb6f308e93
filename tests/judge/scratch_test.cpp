// The cache of what was built: whole files, put in place once.
#include "judge/scratch.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

namespace allranks::judge {
namespace {

namespace fs = std::filesystem;

class CacheTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<Scratch> made = Scratch::Make();
    ASSERT_TRUE(made.has_value()) << made.error().message;
    scratch.emplace(std::move(*made));
    cache = Cache(scratch->path() + "/cache");
    file = scratch->path() + "/file";
    std::ofstream(file) << "built";
  }
  static ino_t InodeOf(const std::string& path) {
    struct stat info{};
    EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
    return info.st_ino;
  }

  std::optional<Scratch> scratch;
  Cache cache{""};
  std::string file;
};

TEST_F(CacheTest, WhatIsThereIsNotReplaced) {
  const Result<std::string> first = cache.Put("kind", "hash", file);
  ASSERT_TRUE(first.has_value()) << first.error().message;
  const ino_t inode = InodeOf(*first);
  const Result<std::string> second = cache.Put("kind", "hash", file);
  ASSERT_TRUE(second.has_value()) << second.error().message;
  EXPECT_EQ(*second, *first);
  EXPECT_EQ(InodeOf(*second), inode) << "a sandbox may be about to bind it";
  EXPECT_EQ(cache.Find("kind", "hash"), *first);
  EXPECT_EQ(std::distance(fs::directory_iterator(fs::path(*first).parent_path()), {}), 1)
      << "nothing is left beside it";
}

TEST_F(CacheTest, WhatOthersCouldHaveWrittenIsReplaced) {
  const Result<std::string> first = cache.Put("kind", "hash", file);
  ASSERT_TRUE(first.has_value()) << first.error().message;
  ASSERT_EQ(chmod(first->c_str(), 0666), 0);
  EXPECT_EQ(cache.Find("kind", "hash"), "");
  ASSERT_TRUE(cache.Put("kind", "hash", file).has_value());
  EXPECT_EQ(cache.Find("kind", "hash"), *first);
}

}  // namespace
}  // namespace allranks::judge
