// The selection of arithmetic handlers: what nvcc emits has one, what does not fit has none;
// literals and shapes that forms.txt does not have; and that the property tests would notice a
// difference. The arithmetic itself is in alu_property_test.cpp.
#include <gtest/gtest.h>

#include <fstream>

#include "alu/property.h"

namespace allranks::node::alu_test {
namespace {

std::vector<std::string> LinesOf(const std::string& name) {
  std::ifstream file(std::string(ALLRANKS_SOURCE_DIR "/tests/node/alu/") + name);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') lines.push_back(line.substr(0, line.size() - 1));
  }
  EXPECT_FALSE(lines.empty()) << name;
  return lines;
}

// Every instruction in accepted.txt (what nvcc emits) has a handler, on each instruction set.
TEST(AluSelect, AcceptsWhatNvccEmits) {
  for (const std::string& text : LinesOf("accepted.txt")) {
    const Line line = ReadLine(text);
    const Property property(line);
    EXPECT_TRUE(property.selected()) << text << ": " << property.error();
  }
}
// No instruction in refused.txt has: wrong widths, counts and kinds of operands, unknown words.
TEST(AluSelect, RefusesWhatDoesNotFit) {
  for (const std::string& text : LinesOf("refused.txt")) {
    Line line;
    line.text = text + ";";
    EXPECT_FALSE(Property(line).selected()) << text;
  }
}
TEST(AluSelect, NamesTheInstructionSet) { EXPECT_EQ(AluIsa().substr(0, 8), "x86-64-v"); }

std::string Difference(const std::string& text, std::function<void(const u64*, u64*)> compute) {
  const Line line = ReadLine(text);
  Property property(line);
  if (!property.selected()) return text + ": " + property.error();
  Model model;
  model.compute = std::move(compute);
  return property.Run(model, 2000);
}

TEST(AluLiterals, AreOperands) {
  EXPECT_EQ(Difference("mov.u32 %r0, 4294967295", [](auto, u64* d) { d[0] = 0xffffffff; }), "");
  EXPECT_EQ(Difference("mov.b64 %rd0, 0x123456789abcdef0",
                       [](auto, u64* d) { d[0] = 0x123456789abcdef0; }),
            "");
  EXPECT_EQ(Difference("add.s32 %r0, %r1, -7",
                       [](const u64* s, u64* d) { d[0] = (s[0] - 7) & 0xffffffff; }),
            "");
  EXPECT_EQ(Difference("selp.u32 %r0, 1, 0, %p1", [](const u64* s, u64* d) { d[0] = s[2]; }), "");
  EXPECT_EQ(Difference("mov.pred %p0, 1", [](auto, u64* d) { d[0] = 1; }), "");
  EXPECT_EQ(Difference("mov.pred %p0, 0", [](auto, u64* d) { d[0] = 0; }), "");
  EXPECT_EQ(Difference("add.cc.u32 _, %r1, %r2",
                       [](const u64* s, u64* d) { d[1] = (s[0] + s[1]) >> 32; }),
            "");
}

TEST(AluLop3, AllTables) {
  for (u64 table = 0; table < 256; ++table) {
    EXPECT_EQ(Difference("lop3.b32 %r0, %r1, %r2, %r3, " + std::to_string(table),
                         [](const u64* s, u64* d) {
                           d[0] = 0;
                           for (int i = 0; i < 32; ++i) {
                             const u64 row =
                                 (s[0] >> i & 1) * 4 + (s[1] >> i & 1) * 2 + (s[2] >> i & 1);
                             d[0] |= (s[3] >> row & 1) << i;
                           }
                         }),
              "");
  }
}

// A wrong value, a wrong bit in a thousand threads, and an approximation that is off.
TEST(AluHarness, Notices) {
  EXPECT_NE(Difference("add.s32 %r0, %r1, %r2",
                       [](const u64* s, u64* d) { d[0] = (s[0] - s[1]) & 0xffffffff; }),
            "");
  EXPECT_NE(Difference("add.s32 %r0, %r1, %r2",
                       [](const u64* s, u64* d) {
                         d[0] = (s[0] + s[1]) & 0xffffffff;
                         if (s[0] == 0x7fffffff && s[1] == 64) d[0] ^= 1;
                       }),
            "");
  const Line line = ReadLine("ex2.approx.f32 %r0, %r1");
  Model model;
  model.accept = [](const u64* s, u64 got) { return s[0] != 0x3f800000 || got == 0x40000001; };
  EXPECT_NE(Property(line).Run(model, 1000), "");
}

}  // namespace
}  // namespace allranks::node::alu_test
