// Images in files that processes have mapped: which may be read, and by what they are known.
#include "server/image_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace allranks::server {
namespace {

namespace fs = std::filesystem;

class ImageFilesTest : public testing::Test {
 protected:
  ImageFilesTest() : folder_(fs::temp_directory_path() / ("images." + std::to_string(getpid()))) {
    fs::create_directories(folder_);
    std::ofstream(library_) << "0123456789";
  }
  ~ImageFilesTest() override { fs::remove_all(folder_); }

  static std::string TextOf(const LinkSetImage& part) {
    return {reinterpret_cast<const char*>(part.bytes.data()), part.bytes.size()};
  }

  const fs::path folder_;
  const std::string library_ = folder_ / "library.so";
};

TEST_F(ImageFilesTest, PartsAreReadWhereTheyAre) {
  ImageFiles files(std::nullopt);
  const auto image = files.Find({1, library_, {{2, 3}, {8, 2}}});
  ASSERT_TRUE(image);
  ASSERT_EQ(image->parts().size(), 2u);
  EXPECT_EQ(TextOf(image->parts()[0]), "234");
  EXPECT_EQ(TextOf(image->parts()[1]), "89");
  EXPECT_FALSE(image->trusted());
  EXPECT_TRUE(image->stays());
}

TEST_F(ImageFilesTest, KeysStandForFileAndParts) {
  ImageFiles files(std::nullopt), others(std::nullopt);
  const auto key = [&](ImageFiles& from, std::vector<wire::FileImage::Part> parts) {
    const auto image = from.Find({7, library_, std::move(parts)});
    return image ? image->key() : "";
  };
  EXPECT_EQ(key(files, {{0, 4}}), key(others, {{0, 4}}));
  EXPECT_NE(key(files, {{0, 4}}), key(files, {{0, 5}}));
  EXPECT_NE(key(files, {{0, 4}}), key(files, {{0, 4}, {4, 1}}));
  EXPECT_TRUE(ImageFiles::IsKey(key(files, {{0, 4}})));
  // Of bytes that were sent, whatever they are, it is a digest.
  EXPECT_FALSE(ImageFiles::IsKey(node::ModuleImage(std::as_bytes(std::span("file x"))).key()));
}

TEST_F(ImageFilesTest, WhatIsNotThereIsNotKnown) {
  ImageFiles files(std::nullopt);
  EXPECT_FALSE(files.Find({1, library_, {}}));
  EXPECT_FALSE(files.Find({1, library_, {{8, 3}}}));
  EXPECT_FALSE(files.Find({1, library_, {{11, 0}}}));
  EXPECT_FALSE(files.Find({1, library_, {{1, ~0ull}}}));
  EXPECT_FALSE(files.Find({1, folder_ / "missing", {{0, 1}}}));
  EXPECT_FALSE(files.Find({1, folder_, {{0, 1}}}));
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(files.Find({1, pipe, {{0, 1}}}));
}

TEST_F(ImageFilesTest, AFileThatHasChangedIsSentInstead) {
  ImageFiles files(std::nullopt);
  ASSERT_TRUE(files.Find({1, library_, {{0, 4}}}));
  std::ofstream(library_) << "another one";
  EXPECT_FALSE(files.Find({1, library_, {{0, 4}}}));
}

TEST_F(ImageFilesTest, AJudgedNodeOpensItsLibraryOnly) {
  ImageFiles none(std::vector<std::string>{}), one(std::vector<std::string>{library_});
  EXPECT_FALSE(none.Find({1, library_, {{0, 4}}}));
  EXPECT_TRUE(one.Find({1, library_, {{0, 4}}}));
  EXPECT_FALSE(one.Find({1, folder_ / "." / "library.so", {{0, 4}}}));
  EXPECT_FALSE(one.Find({1, "/etc/passwd", {{0, 4}}}));
}

}  // namespace
}  // namespace allranks::server
