// Bodies that are read later are what they would have been at once: alone and in linked modules.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "ptx/describe.h"
#include "ptx/link.h"
#include "ptx/parser.h"
#include "ptx/read_file.h"

namespace allranks::ptx {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> StoredTexts() {
  std::vector<fs::path> texts;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(ALLRANKS_SOURCE_DIR "/tests/ptx/stored"))
    if (entry.path().extension() == ".ptx") texts.push_back(entry.path());
  return texts;
}

Result<Module> Linked(const std::vector<std::string>& texts, Bodies bodies) {
  std::vector<LinkInput> inputs;
  for (const std::string& text : texts) {
    auto module = Parse(text, bodies);
    if (!module) return Fail(module.error());
    inputs.push_back({std::move(*module), "a file"});
  }
  return Link(std::move(inputs), [](std::string_view) { return true; });
}

// Reads all that is left, the last function first.
void ReadAll(Module* module) {
  for (auto function = module->functions.rbegin(); function != module->functions.rend();
       ++function) {
    const auto read = ReadBody(module, &*function);
    ASSERT_TRUE(read.has_value()) << read.error().message;
  }
}

TEST(LaterTest, StoredTextsAreTheSame) {
  ASSERT_FALSE(StoredTexts().empty());
  for (const fs::path& path : StoredTexts()) {
    const std::string text = ReadFile(path);
    auto later = Parse(text, Bodies::kLater);
    ASSERT_TRUE(later.has_value()) << later.error().message;
    bool left = false;
    for (const Function& function : later->functions) {
      EXPECT_TRUE(function.code.empty());
      left = left || function.reader != nullptr;
    }
    EXPECT_TRUE(left) << path;
    ReadAll(&*later);
    EXPECT_EQ(Describe(*later), Describe(*Parse(text))) << path;
  }
}

// The two texts have names of their own that are the same, so the second one's are changed.
TEST(LaterTest, LinkedTextsAreTheSame) {
  const std::string head = ".version 9.0\n.target sm_90\n.address_size 64\n";
  const std::vector<std::string> texts = {head + R"(
.global .u32 own = 1;
.shared .b32 room[4];
.func helper() { .reg .b32 %r<2>; mov.u32 %r1, own; /* } */ ret; }
.visible .func first() { .pragma "}"; // }
  call.uni helper; ret; }
.visible .entry k() { .loc 1 7 3
  call.uni first; ret; }
.file 1 "a.cu"
)",
                                          head + R"(
.global .u32 own = 2;
.func helper() { .reg .b32 %r<2>; { .reg .b32 %r<3>; mov.u32 %r2, own; } ret; }
.visible .func second() { .loc 1 9 1
  call.uni helper; ret; }
.file 1 "b.cu"
)"};
  const auto now = Linked(texts, Bodies::kNow);
  ASSERT_TRUE(now.has_value()) << now.error().message;
  auto later = Linked(texts, Bodies::kLater);
  ASSERT_TRUE(later.has_value()) << later.error().message;
  ReadAll(&*later);
  EXPECT_EQ(Describe(*later), Describe(*now));
}

// Names that the parser makes up outlive it.
TEST(LaterTest, MadeNamesStay) {
  const std::string text = R"(.version 9.0
.target sm_90
.address_size 64
.func (.param .b32 out) f(.param .b32 in);
.visible .entry k() {
  .reg .b32 %r<3>;
  { .param .b32 a; .param .b32 b; st.param.b32 [a], 1; call (b), f, (a); ld.param.b32 %r1, [b]; }
  { .param .b32 a; .param .b32 b; st.param.b32 [a], 2; call (b), f, (a); ld.param.b32 %r2, [b]; }
  ret;
})";
  auto later = Parse(text, Bodies::kLater);
  ASSERT_TRUE(later.has_value()) << later.error().message;
  ReadAll(&*later);
  EXPECT_EQ(Describe(*later), Describe(*Parse(text)));
}

TEST(LaterTest, WhatIsWrongIsToldWhenItIsRead) {
  const std::string text =
      ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k() {\n  bra nowhere;\n}\n";
  EXPECT_FALSE(Parse(text).has_value());
  auto later = Parse(text, Bodies::kLater);
  ASSERT_TRUE(later.has_value()) << later.error().message;
  const auto read = ReadBody(&*later, &later->functions[0]);
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().message, Parse(text).error().message);
  EXPECT_TRUE(later->functions[0].code.empty());
  EXPECT_FALSE(ReadBody(&*later, &later->functions[0]).has_value()) << "and every time";
  EXPECT_FALSE(
      Parse(".version 9.0\n.target sm_90\n.visible .entry k() { ret; ", Bodies::kLater).has_value())
      << "without an end";
}

}  // namespace
}  // namespace allranks::ptx
