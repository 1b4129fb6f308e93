// Files are whole or not there, also on a full disk.
#include "base/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <thread>
#include <vector>

#include "base/stop.h"

namespace allranks {
namespace {

namespace fs = std::filesystem;

class FilesTest : public testing::Test {
 protected:
  FilesTest() {
    char name[] = "/tmp/allranks-files-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~FilesTest() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(FilesTest, WritesReplacesAndMakesFolders) {
  const fs::path file = folder_ / "a/b/c.json";
  ASSERT_TRUE(WriteWhole(file, "one"));
  ASSERT_TRUE(WriteWhole(file, "two"));
  EXPECT_EQ(*ReadWhole(file), "two");
  EXPECT_EQ(std::distance(fs::directory_iterator(file.parent_path()), {}), 1);
}

TEST_F(FilesTest, ReadingSaysWhy) {
  EXPECT_FALSE(ReadWhole(folder_ / "none"));
  EXPECT_NE(ReadWhole(folder_).error().message.find("folder"), std::string::npos);
  ASSERT_TRUE(WriteWhole(folder_ / "long", std::string(100, 'x')));
  EXPECT_FALSE(ReadWhole(folder_ / "long", 99));
  EXPECT_TRUE(ReadWhole(folder_ / "long", 100));
}

TEST_F(FilesTest, SweepsWhatAKilledProcessLeft) {
  ASSERT_TRUE(WriteWhole(folder_ / "a/whole.json", "{}"));
  ASSERT_TRUE(WriteWhole(folder_ / "a/half.json.17-3.part", "{"));
  SweepUnfinished(folder_);
  SweepUnfinished(folder_ / "none");
  EXPECT_TRUE(fs::exists(folder_ / "a/whole.json"));
  EXPECT_FALSE(fs::exists(folder_ / "a/half.json.17-3.part"));
}

TEST_F(FilesTest, AFullDiskIsAnError) {
  // /dev/full answers every write as a full disk does; here it stands where the line would go.
  fs::create_symlink("/dev/full", folder_ / "log");
  const Status status = AppendLine(folder_ / "log", "a line");
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("No space"), std::string::npos);
}

TEST_F(FilesTest, APipeIsNotWaitedFor) {
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  const Result<std::string> text = ReadWhole(folder_ / "pipe");
  ASSERT_FALSE(text);
  EXPECT_NE(text.error().message.find("not a regular file"), std::string::npos);
}

TEST_F(FilesTest, ALineDoesNotJoinHalfOfOne) {
  ASSERT_TRUE(WriteWhole(folder_ / "log", "one\nhalf"));
  ASSERT_TRUE(AppendLine(folder_ / "log", "two"));
  ASSERT_TRUE(AppendLine(folder_ / "log", "three"));
  EXPECT_EQ(*ReadWhole(folder_ / "log"), "one\nhalf\ntwo\nthree\n");
}

TEST_F(FilesTest, LinesOfThreadsDoNotMix) {
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i)
        ASSERT_TRUE(AppendLine(folder_ / "log", std::string(50, static_cast<char>('a' + t))));
    });
  threads.clear();
  const std::string all = *ReadWhole(folder_ / "log");
  ASSERT_EQ(all.size(), 100u * 51);
  for (std::size_t at = 0; at < all.size(); at += 51) {
    const std::set<char> letters(all.begin() + static_cast<long>(at),
                                 all.begin() + static_cast<long>(at) + 50);
    EXPECT_EQ(letters.size(), 1u);
    EXPECT_EQ(all[at + 50], '\n');
  }
}

TEST(StopTest, EndsASleep) {
  Stop stop;
  EXPECT_FALSE(stop.Sleep(std::chrono::milliseconds(1)));
  std::jthread other([&] { stop.Request(); });
  EXPECT_TRUE(stop.Sleep(std::chrono::seconds(100)));
}

}  // namespace
}  // namespace allranks
