// Templates, what a candidate may change, and patches.
#include "problem/source.h"

#include <gtest/gtest.h>

namespace allranks::problem {
namespace {

constexpr const char* kTemplate =
    "#include \"problem.h\"\n"
    "int given();\n"
    "// >>> edit\n"
    "  // write launch() here\n"
    "// <<< edit\n";

Region Split() { return SplitTemplate(kTemplate).value(); }

std::string Refusal(std::string_view candidate) {
  const auto text = Assemble(Split(), candidate);
  return text ? "" : text.error().message;
}

TEST(SourceTest, TheRegionIsBetweenTheMarkers) {
  const Region region = Split();
  EXPECT_EQ(region.inside, "  // write launch() here\n");
  EXPECT_EQ(region.first_line, 4);
  EXPECT_EQ(region.before + region.inside + region.after, kTemplate);
}

TEST(SourceTest, ATemplateHasOneRegionAndNothingBehindIt) {
  EXPECT_FALSE(SplitTemplate("int x;\n"));
  EXPECT_FALSE(SplitTemplate("// <<< edit\n// >>> edit\n"));
  EXPECT_FALSE(SplitTemplate("// >>> edit\n// >>> edit\n// <<< edit\n"));
  EXPECT_TRUE(SplitTemplate("// >>> edit\n// <<< edit\n \n"));
  const auto behind = SplitTemplate("// >>> edit\n// <<< edit\n\nint main();\n");
  ASSERT_FALSE(behind);
  EXPECT_NE(behind.error().message.find("line 3"), std::string::npos) << behind.error().message;
}

TEST(SourceTest, ACandidateIsTheRegionOrTheWholeFile) {
  const std::string wanted =
      "#include \"problem.h\"\nint given();\n// >>> edit\nint mine;\n// <<< edit\n";
  EXPECT_EQ(Assemble(Split(), "int mine;\n").value(), wanted);
  EXPECT_EQ(Assemble(Split(), "int mine;").value(), wanted);
  EXPECT_EQ(Assemble(Split(), "int mine;\r\n").value(), wanted);
  EXPECT_EQ(Assemble(Split(), wanted).value(), wanted);
  // Editors strip blanks and line ends; what is compiled is the template's text anyway.
  EXPECT_EQ(Assemble(Split(),
                     "#include \"problem.h\"  \r\nint given();\r\n  // >>> edit\r\nint "
                     "mine;\r\n// <<< edit")
                .value_or("refused"),
            "refused");
  EXPECT_EQ(Assemble(Split(),
                     "#include \"problem.h\"  \r\nint given();\r\n// >>> edit\r\nint "
                     "mine;\r\n// <<< edit")
                .value(),
            wanted);
  EXPECT_EQ(Assemble(Split(), "").value(), Split().before + Split().after);
}

TEST(SourceTest, WhatIsOutsideCannotBeChanged) {
  EXPECT_NE(
      Refusal("#define given taken\n#include \"problem.h\"\nint given();\n// >>> edit\n// <<< "
              "edit\n")
          .find("line 1 is outside"),
      std::string::npos);
  EXPECT_NE(Refusal("#include \"problem.h\"\nint taken();\n// >>> edit\n// <<< edit\n")
                .find("line 2 is outside of the edit region: expected 'int given();', found "
                      "'int taken();'"),
            std::string::npos);
  EXPECT_NE(Refusal("#include \"problem.h\"\nint given();\n// >>> edit\n// <<< edit\nint more;\n")
                .find("nothing may follow"),
            std::string::npos);
  EXPECT_NE(Refusal("int mine;\n// <<< edit\n").find("once each"), std::string::npos);
  EXPECT_NE(Refusal("// >>> edit\nint mine;\n// <<< edit\n").find("line 1"), std::string::npos);
  EXPECT_NE(Refusal("#include \"problem.h\"\nint given();\n// >>> edit\n// <<< edit\n// <<< edit\n")
                .find("once each"),
            std::string::npos);
}

TEST(SourceTest, WhatHidesTextIsRefused) {
  EXPECT_NE(Refusal(std::string_view("int a;\nint\0b;\n", 14)).find("line 2 has a NUL"),
            std::string::npos);
  EXPECT_NE(Refusal("int a;\rint b;\n").find("carriage return"), std::string::npos);
  EXPECT_NE(Refusal(std::string(kLargestSource + 1, ' ')).find("the limit is"), std::string::npos);
  EXPECT_EQ(Refusal(std::string(kLargestSource, ' ')), "");
}

TEST(SourceTest, APatchFitsExactlyOrIsRefused) {
  const std::string text = "a\nb\nc\nd\ne\n";
  EXPECT_EQ(ApplyPatch(text, "--- x\n+++ y\n@@ -2,2 +2,2 @@\n b\n-c\n+C\n").value(),
            "a\nb\nC\nd\ne\n");
  // Elsewhere than it says.
  EXPECT_EQ(ApplyPatch(text, "@@ -1,2 +1,1 @@\n d\n-e\n").value(), "a\nb\nc\nd\n");
  EXPECT_EQ(ApplyPatch(text, "@@ -1,1 +1,3 @@\n a\n+x\n+y\n@@ -5,1 +7,1 @@\n-e\n+E\n").value(),
            "a\nx\ny\nb\nc\nd\nE\n");
  EXPECT_FALSE(ApplyPatch(text, "@@ -2,2 +2,2 @@\n b\n-x\n+C\n"));
  EXPECT_FALSE(ApplyPatch(text, "@@ -2,1 +2,1 @@\n b\n"));
  EXPECT_FALSE(ApplyPatch(text, "@@ -0,0 +1,1 @@\n+b\n"));
  EXPECT_FALSE(ApplyPatch(text, "nothing\n"));
  EXPECT_FALSE(ApplyPatch(text, "@@ here @@\n-a\n"));
  EXPECT_FALSE(ApplyPatch(text, "@@ -1 +1 @@\n-a\n*b\n"));
}

TEST(SourceTest, ReadingIsBounded) {
  EXPECT_NE(ReadFile("/dev/zero").value_or("refused").find("refused"), std::string::npos);
  EXPECT_FALSE(ReadFile(std::string(ALLRANKS_SOURCE_DIR) + "/README.md", 10));
  EXPECT_FALSE(ReadFile("/nowhere/at/all"));
}

}  // namespace
}  // namespace allranks::problem
