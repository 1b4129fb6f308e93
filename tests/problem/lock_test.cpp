// reference.lock: it says again what was written, notices change, and refuses what it does not
// know.
#include "problem/lock.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "problem/problem.h"

namespace allranks::problem {
namespace {

namespace fs = std::filesystem;

class LockTest : public ::testing::Test {
 protected:
  LockTest() : folder_(fs::temp_directory_path() / ("allranks_lock." + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~LockTest() override { fs::remove_all(folder_); }
  Result<Lock> Load(const std::string& variant = "") const {
    Problem problem;
    problem.folder = folder_;
    problem.variant = variant;
    return LoadLock(problem);
  }
  void Write(const char* name, const std::string& text) { std::ofstream(folder_ / name) << text; }

  fs::path folder_;
};

TEST_F(LockTest, WhatIsWrittenIsRead) {
  EXPECT_TRUE(Load().value().empty());
  Lock lock;
  lock.reference = HashOf("reference");
  lock.baseline = HashOf("baseline");
  lock.problem = HashOf("problem");
  lock.profiles["h100x8"]["timed.w8.n1"] = {{1234.567, 0.001, 99}, {5, 6, 7}, {}};
  lock.profiles["h100x8"]["timed.w8.n2"] = {{123456789012.345, 1, 12'345'678'901}, {}, {}};
  lock.profiles["b300x8"]["timed.w8.n1"] = {};
  Write("reference.lock", Render(lock));
  const auto again = Load();
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->profiles, lock.profiles);
  EXPECT_EQ(again->reference, lock.reference);
  ASSERT_NE(again->Find("h100x8", "timed.w8.n1"), nullptr);
  EXPECT_EQ(again->Find("h100x8", "timed.w8.n1")->reference.isolated_ns, 1234.567);
  EXPECT_EQ(again->Find("h100x8", "timed.w8.n3"), nullptr);
  EXPECT_EQ(again->Find("gh200", "timed.w8.n1"), nullptr);
  EXPECT_EQ(again->MostInstructions("h100x8"), 12'345'678'901u);
  EXPECT_EQ(again->MostInstructions("gh200"), 0u);
}

TEST_F(LockTest, NcclIsThereOrNot) {
  Lock lock;
  lock.reference = lock.baseline = lock.problem = HashOf("");
  lock.profiles["h100x8"]["timed.w8.n1"].nccl = LockedTimes{1.5, 2.5, 3};
  lock.profiles["h100x8"]["timed.w8.n2"] = {};
  lock.nccl = HashOf("nccl");
  Write("reference.lock", Render(lock));
  Write("nccl.cu", "nccl");
  const auto again = Load();
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->profiles, lock.profiles);
  EXPECT_EQ(StaleBecause(*again, folder_), "");
  Write("nccl.cu", "another");
  EXPECT_EQ(StaleBecause(*again, folder_), "nccl.cu has changed since");
}

TEST_F(LockTest, AVariantHasItsOwn) {
  Lock lock;
  lock.reference = lock.baseline = lock.problem = HashOf("");
  lock.profiles["h100x8"]["timed.w8.n1"] = {};
  Write("reference.bf16.lock", Render(lock));
  EXPECT_TRUE(Load().value().empty());
  EXPECT_FALSE(Load("bf16").value().empty());
}

TEST_F(LockTest, ChangedFilesMakeItStale) {
  Write("problem.toml", "title = \"a\"\nlibrary = \"cuda\"\n[run]\n");
  Write("reference.cu", "reference");
  Write("baseline.cu", "baseline");
  Lock lock;
  lock.reference = HashOf("reference");
  lock.baseline = HashOf("baseline");
  lock.problem = HashOf("library = \"cuda\"\n[run]\n");
  EXPECT_EQ(StaleBecause(lock, folder_), "");
  Write("reference.cu", "another");
  EXPECT_NE(StaleBecause(lock, folder_).find("reference.cu"), std::string::npos);
  fs::remove(folder_ / "reference.cu");  // sealed: not shipped
  EXPECT_EQ(StaleBecause(lock, folder_), "");
  // What only people read decides nothing.
  Write("problem.toml", "title = \"b\"\nlevel = \"hard\"\nlibrary = \"cuda\"\n[run]\n");
  EXPECT_EQ(StaleBecause(lock, folder_), "");
  Write("problem.toml", "title = \"a\"\nlibrary = \"cuda\"\n[run]\ntitle = 1");
  EXPECT_NE(StaleBecause(lock, folder_).find("problem.toml"), std::string::npos);
}

TEST_F(LockTest, WhatItDoesNotKnowIsRefused) {
  for (const char* text : {"schema = 2\nreference = \"a\"\nbaseline = \"a\"\nproblem = \"b\"\n",
                           "schema = 1\n", "nonsense",
                           "schema = 1\nreference = \"a\"\nbaseline = \"a\"\nproblem = "
                           "\"b\"\n[profile.p.c]\nreference = "
                           "{ isolated_ns = -1, call_ns = 1, thread_instructions = 1 }\n"}) {
    Write("reference.lock", text);
    EXPECT_FALSE(Load()) << text;
  }
}

}  // namespace
}  // namespace allranks::problem
