// What a hostile text may not do: exhaust the stack or the memory, or take more than linear time.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "ptx/parser.h"

namespace allranks::ptx {
namespace {

const std::string kHeader = ".version 9.0\n.target sm_90\n.address_size 64\n";

std::string Repeat(const std::string& piece, std::size_t times) {
  std::string text;
  text.reserve(piece.size() * times);
  for (std::size_t i = 0; i < times; ++i) text += piece;
  return text;
}

std::string ErrorOf(std::string text) {
  const Result<Module> module = Parse(std::move(text));
  return module ? "" : module.error().message;
}

TEST(PtxLimitsTest, TextSize) {
  EXPECT_EQ(ErrorOf(kHeader + std::string(kMaxTextBytes, ' ')),
            "ptx:1: the text has 268435500 bytes, the limit is 268435456");
  EXPECT_EQ(ErrorOf(kHeader + std::string(1 << 20, ' ')), "");
}

TEST(PtxLimitsTest, TrailingZerosAreIgnored) {
  EXPECT_EQ(ErrorOf(kHeader + std::string(7, '\0')), "");
  EXPECT_EQ(ErrorOf(std::string(7, '\0')), "ptx:1: expected .version near 'end of text'");
  EXPECT_EQ(ErrorOf(kHeader + std::string(1, '\0') + ".func f();"),
            "ptx:4: expected a directive near '?'");
}

TEST(PtxLimitsTest, Nesting) {
  const auto body = [](const std::string& text) { return kHeader + ".entry k() {" + text + "}"; };
  EXPECT_EQ(ErrorOf(body(Repeat("{", 60) + Repeat("}", 60))), "");
  EXPECT_EQ(ErrorOf(body(Repeat("{", 1000000))), "ptx:4: scopes nested too deeply near '{'");
  EXPECT_EQ(ErrorOf(body("mov " + Repeat("{", 1000000))),
            "ptx:4: operand nested too deeply near '{'");
  EXPECT_EQ(ErrorOf(body("call " + Repeat("(", 1000000))),
            "ptx:4: operand nested too deeply near '('");
  EXPECT_EQ(ErrorOf(body("mov " + Repeat("(", 1000000))),
            "ptx:4: expression nested too deeply near '('");
  EXPECT_EQ(ErrorOf(body("mov (" + Repeat("-", 1000000))),
            "ptx:4: expression nested too deeply near '-'");
  EXPECT_EQ(ErrorOf(body("mov (" + Repeat("1 ? ", 1000000))),
            "ptx:4: expression nested too deeply near '?'");
  EXPECT_EQ(ErrorOf(kHeader + ".global .u8 a[1] = " + Repeat("{", 1000000)),
            "ptx:4: initialiser nested too deeply near '{'");
  EXPECT_EQ(ErrorOf(kHeader + ".global .u8 a" + Repeat("[1]", 1000000)),
            "ptx:4: too many dimensions near '['");
}

TEST(PtxLimitsTest, Operands) {
  EXPECT_EQ(ErrorOf(kHeader + ".entry k() { mov " + Repeat("1,", 5000) + "1; }"),
            "ptx:4: too many operands near ','");
  EXPECT_EQ(ErrorOf(kHeader + ".entry k() { mov" + Repeat(".u32", 65) + " 1; }"),
            "ptx:4: too many modifiers near '.u32'");
}

TEST(PtxLimitsTest, RegistersOfManyFunctions) {
  std::string text = kHeader;
  for (int i = 0; i < 1000; ++i) text += fmt::format(".func f{}() {{ .reg .b32 %r<1000>; }}\n", i);
  EXPECT_EQ(ErrorOf(text), "ptx:57: far more registers declared than the text can use near '>'");
}

// Texts that would be slow if any step went over what was read before. Each has about 4 MB; the
// bound is generous for a loaded machine and still a hundred times below quadratic.
TEST(PtxLimitsTest, LinearTime) {
  std::string labels = kHeader + ".entry k() {\n";
  for (int i = 0; i < 100000; ++i) labels += fmt::format("L{}: bra L{};\n", i, 99999 - i);
  labels += "}\n";
  std::string scopes = kHeader + ".entry k() {\n" + Repeat("{", 60);
  for (int i = 0; i < 100000; ++i) scopes += fmt::format("{{ .reg .b32 a{}; bra L; }}\n", i % 7);
  scopes += Repeat("}", 60) + "L: }";
  std::string sites = kHeader + ".entry k() {\n";
  for (int i = 1; i < 50000; ++i) {
    sites += fmt::format(".loc 1 {} 1, function_name S{}, inlined_at 1 {} 1\nret;\n", i + 1, i, i);
  }
  sites += "}\n.file 1 \"a.cu\"\n.section .debug_str {\n";
  for (int i = 1; i < 50000; ++i) sites += fmt::format("S{}: .b8 65\n", i);
  sites += "}\n";
  std::string names = kHeader + ".entry k() {\n";
  for (int i = 0; i < 100000; ++i) names += "{ .param .b32 param0; st.param [param0], 1; }\n";
  names += "}\n";
  std::string aliases = kHeader + ".func f();\n";
  for (int i = 0; i < 100000; ++i) aliases += fmt::format(".alias a{}, f;\n", i);

  for (const std::string* text : {&labels, &scopes, &sites, &names, &aliases}) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(ErrorOf(*text), "");
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    EXPECT_LT(time.count(), 5.0);
  }
}

}  // namespace
}  // namespace allranks::ptx
