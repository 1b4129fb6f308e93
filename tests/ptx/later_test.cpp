// Bodies that are read later are what they would have been at once: alone and in linked modules.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "ptx/describe.h"
#include "ptx/link.h"
#include "ptx/outline.h"
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

// By way of an outline.
Result<Module> Outlined(const std::string& text) {
  auto outline = MakeOutline(text);
  if (!outline) return Fail(outline.error());
  return ParseOutline(std::move(*outline), [text]() -> Result<std::string> { return text; });
}

Result<Module> Linked(const std::vector<std::string>& texts, Bodies bodies, bool outlined = false) {
  std::vector<LinkInput> inputs;
  for (const std::string& text : texts) {
    auto module = outlined ? Outlined(text) : Parse(text, bodies);
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
    auto outlined = Outlined(text);
    ASSERT_TRUE(outlined.has_value()) << outlined.error().message;
    EXPECT_LT(outlined->text->size(), text.size()) << "without the bodies";
    ReadAll(&*outlined);
    EXPECT_EQ(Describe(*outlined), Describe(*Parse(text))) << path;
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
  auto outlined = Linked(texts, Bodies::kLater, true);
  ASSERT_TRUE(outlined.has_value()) << outlined.error().message;
  ReadAll(&*outlined);
  EXPECT_EQ(Describe(*outlined), Describe(*now));
}

// Whatever stands where in the blocks in which bodies are skipped.
TEST(LaterTest, EndsOfBodiesAreFoundAnywhere) {
  const std::string head = ".version 9.0\n.target sm_90\n.address_size 64\n";
  for (std::size_t room = 0; room < 40; ++room) {
    for (const char* odd : {"/* } */", "// }", ".pragma \"}\";", "{ }", "/**/", "{{}{}}", "//"}) {
      const std::string text = head + ".visible .entry k() {" + std::string(room, ' ') + odd +
                               "\n  ret;\n}" + std::string(room % 7, '\n') +
                               ".visible .entry l() { ret; }\n";
      auto later = Parse(text, Bodies::kLater);
      ASSERT_TRUE(later.has_value()) << later.error().message << text;
      ReadAll(&*later);
      EXPECT_EQ(Describe(*later), Describe(*Parse(text))) << text;
      auto outlined = Outlined(text);
      ASSERT_TRUE(outlined.has_value()) << outlined.error().message << text;
      ReadAll(&*outlined);
      EXPECT_EQ(Describe(*outlined), Describe(*Parse(text))) << text;
      EXPECT_EQ(outlined->functions[1].text_line, Parse(text)->functions[1].text_line);
    }
  }
}

TEST(LaterTest, AnOutlineTellsOfSharedMemory) {
  const auto outline = MakeOutline(R"(.version 9.0
.target sm_90
.address_size 64
.shared .b32 room[4];
.func own() { .shared .b32 here[2]; ret; }
.func names() { .reg .b32 %r1; mov.u32 %r1, room; ld.shared.u32 %r1, [%r1]; ret; }
.func neither() { ret; }
)");
  ASSERT_TRUE(outline.has_value()) << outline.error().message;
  ASSERT_EQ(outline->bodies.size(), 3u);
  EXPECT_TRUE(outline->bodies[0].shared);
  EXPECT_FALSE(outline->bodies[1].shared);
  EXPECT_EQ(outline->bodies[1].named, std::vector<std::uint32_t>{0});
  EXPECT_TRUE(outline->bodies[2].named.empty());
  EXPECT_EQ(outline->shared_names, std::vector<std::string>{"room"});
}

TEST(LaterTest, AnotherTextIsRefused) {
  const std::string text =
      ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n";
  for (const std::string& other : {text + " ", std::string(text.size(), 'x')}) {
    auto outline = MakeOutline(text);
    ASSERT_TRUE(outline.has_value());
    auto module = ParseOutline(std::move(*outline), [&]() -> Result<std::string> { return other; });
    ASSERT_TRUE(module.has_value());
    const auto read = ReadBody(&*module, &module->functions[0]);
    ASSERT_FALSE(read.has_value());
    EXPECT_EQ(read.error().message, "the text is not the one that was read before");
  }
  auto outline = MakeOutline(text);
  outline->bodies.clear();
  EXPECT_FALSE(
      ParseOutline(std::move(*outline), [&]() -> Result<std::string> { return text; }).has_value());
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
