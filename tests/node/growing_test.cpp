// Modules of much PTX: functions are read and decoded when they are called, with the same outcome
// as in a small module.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "kernel_runner.h"
#include "node/machine/module_index.h"

namespace allranks::node {
namespace {

namespace fs = std::filesystem;

// Two functions that only a table names, one that only another function names, and a variable of
// shared memory and one of global memory that only functions name.
constexpr const char* kFunctions = R"(
.global .u32 addend = 100;
.shared .u32 room[32];
.func (.param .b32 out) twice(.param .b32 in) {
  .reg .b32 %r<4>;
  ld.param.u32 %r1, [in]; shl.b32 %r2, %r1, 1; st.param.b32 [out], %r2; ret;
}
.func (.param .b32 out) plus(.param .b32 in) {
  .reg .b32 %r<8>; .reg .b64 %rd<4>;
  mov.u32 %r6, %ntid.x;
  ld.param.u32 %r1, [in]; mov.u32 %r2, %tid.x; shl.b32 %r3, %r2, 2;
  mov.u32 %r4, room; add.u32 %r4, %r4, %r3; st.shared.u32 [%r4], %r1; ld.shared.u32 %r5, [%r4];
  mov.u64 %rd1, addend; ld.global.u32 %r3, [%rd1]; add.u32 %r5, %r5, %r3; add.u32 %r5, %r5, %r6;
  st.param.b32 [out], %r5; ret;
}
.func (.param .b32 out) both(.param .b32 in) {
  .reg .b32 %r<8>;
  ld.param.u32 %r1, [in];
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call.uni (b), plus, (a); ld.param.b32 %r2, [b]; }
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r2; call.uni (b), twice, (a); ld.param.b32 %r3, [b]; }
  st.param.b32 [out], %r3; ret;
}
.global .u64 table[3] = {twice, plus, both};
)";

// Thread t of `buffer` calls entry t % 3 of the table, then entry (t + 1) % 3, with its number.
constexpr const char* kBody = R"(
rem.u32 %r2, %r0, 3; mov.u32 %r9, %r0; mov.u32 %r20, 0;
again:
mul.wide.u32 %rd1, %r2, 8; mov.u64 %rd2, table; add.u64 %rd2, %rd2, %rd1; ld.global.u64 %rd3, [%rd2];
{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r9;
  proto: .callprototype (.param .b32 _) _ (.param .b32 _);
  call (b), %rd3, (a), proto; ld.param.b32 %r9, [b]; }
add.u32 %r2, %r2, 1; rem.u32 %r2, %r2, 3; add.u32 %r20, %r20, 1;
setp.lt.u32 %p1, %r20, 2; @%p1 bra again;
mul.wide.u32 %rd4, %r0, 4; add.u64 %rd4, %rd4, %rd0; st.global.u32 [%rd4], %r9;
)";

std::string Large(const std::string& text) {
  return text + std::string(std::size_t{9} << 20, '\n');
}

TEST(GrowingTest, CallsByPointerAreTheSame) {
  const std::string text = KernelRunner::Text(kBody, kFunctions);
  const std::vector<std::uint32_t> buffer(32, 0);
  KernelRunner small, large;
  const auto expected = small.RunOn(text, buffer, 32, 1);
  ASSERT_EQ(small.status, Status::kSuccess) << small.message;
  EXPECT_EQ(expected[0], (0 * 2) + 100 + 32u);
  EXPECT_EQ(expected[1], (1 + 100 + 32 + 100 + 32) * 2u);
  EXPECT_EQ(expected[2], (2 + 100 + 32) * 2 * 2u);
  EXPECT_EQ(large.RunOn(Large(text), buffer, 32, 1), expected);
  EXPECT_EQ(large.status, Status::kSuccess) << large.message;
  EXPECT_EQ(large.took, small.took) << "when a function is decoded is no matter of time";
  // The code has grown already, and constants of the new launch are complete from the start.
  EXPECT_EQ(large.RunOn(Large(text), buffer, 32, 4), expected);
}

// A folder for indices, and runs of a large text whose bytes stay.
class IndexTest : public testing::Test {
 protected:
  IndexTest()
      : folder_(fs::temp_directory_path() / ("modules." + std::to_string(getpid()))),
        text_(Large(KernelRunner::Text(kBody, kFunctions))) {}
  ~IndexTest() override { fs::remove_all(folder_); }

  std::vector<std::uint32_t> Run(bool indexed, bool stays = true) {
    MachineOptions options;
    if (indexed) options.index_folder = folder_;
    KernelRunner runner(options);
    runner.stays = stays;
    std::vector<std::uint32_t> values = runner.RunOn(text_, std::vector<std::uint32_t>(32, 0), 32);
    EXPECT_EQ(runner.status, Status::kSuccess) << runner.message;
    took_ = runner.took;
    return values;
  }
  std::vector<fs::path> Files() const {
    std::vector<fs::path> files;
    if (!fs::exists(folder_)) return files;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_))
      files.push_back(entry.path());
    return files;
  }

  const fs::path folder_;
  const std::string text_;
  Time took_ = 0;
};

TEST_F(IndexTest, AnOutlineGivesTheSame) {
  const auto expected = Run(false, false);
  const Time took = took_;
  EXPECT_EQ(Run(false), expected);
  EXPECT_EQ(took_, took);
  EXPECT_EQ(Run(true, false), expected);
  EXPECT_TRUE(Files().empty()) << "bytes that do not stay have no index";
  EXPECT_EQ(Run(true), expected);
  EXPECT_EQ(took_, took);
  ASSERT_EQ(Files().size(), 1u);
  EXPECT_EQ(Run(true), expected) << "from the index";
  EXPECT_EQ(took_, took);
  EXPECT_EQ(Files().size(), 1u);
}

TEST_F(IndexTest, ItIsRead) {
  const auto expected = Run(true);
  ASSERT_EQ(Files().size(), 1u);
  const std::string name = Files()[0].filename();
  auto index = LoadIndex(folder_, name);
  ASSERT_TRUE(index);
  std::string& text = index->texts.at(0).outline.text;
  text.replace(text.find("addend = 100"), 12, "addend = 300");
  StoreIndex(folder_, name, *index);
  EXPECT_EQ(Run(true)[0], expected[0] + 200) << "only the index says so";
}

TEST_F(IndexTest, ADamagedOneIsMadeAgain) {
  const auto expected = Run(true);
  ASSERT_EQ(Files().size(), 1u);
  const fs::path file = Files()[0];
  const auto size = fs::file_size(file);
  for (const std::uint64_t kept : {std::uint64_t{0}, std::uint64_t{30}, size / 2, size - 1}) {
    fs::resize_file(file, kept);
    EXPECT_FALSE(LoadIndex(folder_, file.filename()));
    EXPECT_EQ(Run(true), expected);
    EXPECT_EQ(fs::file_size(file), size);
  }
  for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{40}, size / 2, size - 1}) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(at));
    const char changed = static_cast<char>(stream.get() ^ 1);
    stream.seekp(static_cast<std::streamoff>(at));
    stream.put(changed);
    stream.close();
    EXPECT_FALSE(LoadIndex(folder_, file.filename())) << at;
    EXPECT_EQ(Run(true), expected);
    EXPECT_TRUE(LoadIndex(folder_, file.filename()));
  }
}

// One of other images: it is whole, but what it says is not so.
TEST_F(IndexTest, AForeignOneIsNotUsed) {
  const auto expected = Run(true);
  ASSERT_EQ(Files().size(), 1u);
  const std::string name = Files()[0].filename();
  const auto index = LoadIndex(folder_, name);
  ASSERT_TRUE(index);
  auto foreign = *index;
  foreign.texts.at(0).image = 1;
  StoreIndex(folder_, name, foreign);
  EXPECT_EQ(Run(true), expected);
  foreign = *index;
  foreign.texts.at(0).outline.bodies.pop_back();
  StoreIndex(folder_, name, foreign);
  EXPECT_EQ(Run(true), expected);
}

TEST_F(IndexTest, AFolderThatCannotBeMadeIsNoError) {
  const auto expected = Run(false);
  std::ofstream(folder_.string()) << "a file";
  EXPECT_EQ(Run(true), expected);
}

TEST_F(IndexTest, ItsNameIsThatOfTheContents) {
  const auto name = [](std::string_view bytes, std::uint32_t arch) {
    return IndexName({{"", std::as_bytes(std::span(bytes))}}, arch);
  };
  EXPECT_EQ(name("a text", 90), name("a text", 90));
  EXPECT_NE(name("a text", 90), name("a test", 90));
  EXPECT_NE(name("a text", 90), name("a text", 100));
}

TEST(GrowingTest, AWrongBodyFaultsWhenItIsCalled) {
  std::string functions = kFunctions;
  functions.replace(functions.find("shl.b32 %r2, %r1, 1"), 19, "bra nowhere_at_all ");
  KernelRunner runner;
  runner.RunOn(Large(KernelRunner::Text(kBody, functions)), std::vector<std::uint32_t>(32, 0), 32);
  EXPECT_EQ(runner.status, Status::kIllegalInstruction);
  EXPECT_NE(runner.message.find("branch to an unknown label"), std::string::npos) << runner.message;
}

TEST(GrowingTest, APointerToNothingFaults) {
  const std::string body = "mov.u64 %rd3, 64; proto: .callprototype _ (); call %rd3, (), proto;";
  KernelRunner runner;
  runner.RunOn(Large(KernelRunner::Text(body, kFunctions)), std::vector<std::uint32_t>(32, 0), 32);
  EXPECT_EQ(runner.status, Status::kIllegalInstruction);
  EXPECT_NE(runner.message.find("not a function of this module"), std::string::npos);
}

}  // namespace
}  // namespace allranks::node
