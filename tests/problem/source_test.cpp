// Templates, what a candidate may change, and patches.
#include "problem/source.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "problem/controls.h"

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

constexpr const char* kProblem = R"toml(schema = 1
title = "Copy to the next rank"
category = "p2p"
level = "easy"
library = "cuda"
family = "copy"
[run]
window = "graph"
links = ["nvlink"]
allow = ["kernel"]
max_ctas = 4
[tensors]
in = { dir = "in", type = "T", shape = ["min(n, 8)", "2"], draw = "bits" }
out = { dir = "out", type = "T", shape = ["n"] }
[vary]
T = ["u32"]
[cases]
timed = { world = [2], n = [64] }
[floor]
ingress = "n*sizeof(T)"
[mutants]
first = { replace = "i = 0", with = "i = 1", gets = "wrong_result" }
gone = { replace = "int i = 0;", with = "", gets = "race:needs_checker" }
)toml";

constexpr const char* kRegion =
    "int i = 0;\nextern \"C\" void launch(const Args&, cudaStream_t) {}\n";

// A folder that has nothing but problem.toml and a reference without markers.
class FolderTest : public ::testing::Test {
 protected:
  FolderTest() : folder_(std::filesystem::path(::testing::TempDir()) / "folder_test/p2p/copy") {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "problem.toml") << kProblem;
    std::ofstream(folder_ / "reference.cu") << kRegion;
    problem_ = Load(folder_).value();
  }
  ~FolderTest() override { std::filesystem::remove_all(folder_.parent_path().parent_path()); }

  std::filesystem::path folder_;
  Problem problem_;
};

TEST_F(FolderTest, TheTemplateIsMadeOfTheDescription) {
  EXPECT_EQ(TemplateOf(problem_).value(),
            "// Copy to the next rank\n#include \"problem.h\"\n\n// >>> edit\n"
            "extern \"C\" void launch(const Args& args, cudaStream_t stream) {\n}\n// <<< edit\n");
  std::ofstream(folder_ / "template.cu") << kTemplate;
  EXPECT_EQ(TemplateOf(problem_).value(), kTemplate);
  EXPECT_EQ(SolutionOf(problem_, "reference.cu").value(), Split().before + kRegion + Split().after);
}

TEST_F(FolderTest, AReplacementIsMadeAtTheOnlyPlaceOfItsText) {
  EXPECT_EQ(Mutate(problem_, problem_.mutants.at(0), "int i = 0;\n").value(), "int i = 1;\n");
  EXPECT_EQ(Mutate(problem_, problem_.mutants.at(1), "int i = 0;\n").value(), "\n");
  EXPECT_TRUE(problem_.mutants.at(1).needs_checker);
  EXPECT_EQ(Mutate(problem_, problem_.mutants.at(0), "int k;\n").error().message,
            "reference.cu does not contain 'i = 0'");
  EXPECT_EQ(Mutate(problem_, problem_.mutants.at(0), "i = 0; i = 0;").error().message,
            "reference.cu contains 'i = 0' more than once");
}

TEST_F(FolderTest, ControlsAreMadeAndFilesTakeTheirPlace) {
  const auto names = [&] {
    std::string all;
    for (const Control& control : ControlsOf(problem_))
      all += control.name + ":" + control.verdict + " ";
    return all;
  };
  EXPECT_EQ(names(), "local:wrong_result previous_call:wrong_result zeros:wrong_result ");
  const std::vector<Control> made = ControlsOf(problem_);
  // Sizes are those of problem.toml, in CUDA.
  EXPECT_NE(made[0].region.find("std::int64_t{4} * (Least(n, 8)) * (2)"), std::string::npos)
      << made[0].region;
  EXPECT_NE(made[1].region.find("#define launch Reference_launch\n" + std::string(kRegion)),
            std::string::npos)
      << made[1].region;
  std::filesystem::create_directories(folder_ / "controls");
  std::ofstream(folder_ / "controls/zeros.cu") << "// verdict: deadlock\nint own;\n";
  std::ofstream(folder_ / "controls/wrong.cu") << "int own;\n";
  EXPECT_EQ(names(), "local:wrong_result previous_call:wrong_result wrong: zeros:deadlock ");
  EXPECT_EQ(ControlsOf(problem_)[2].error, "the first line is not '// verdict: ' and a verdict");
  EXPECT_EQ(ControlsOf(problem_)[3].region, "int own;\n");
  // A kernel is not always allowed.
  problem_.allow = {"memcpy"};
  EXPECT_EQ(names(), "wrong: zeros:deadlock ");
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
