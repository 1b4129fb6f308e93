// The models that need no provider and no program: the problems' own material over all problems,
// and recordings.
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "model/entry.h"
#include "problem/answer.h"
#include "problem/source.h"
#include "temporary_folder.h"

namespace allranks::model {
namespace {

namespace fs = std::filesystem;

const fs::path kProblems = fs::path(ALLRANKS_SOURCE_DIR) / "problems";

std::vector<problem::Problem> Problems() {
  std::vector<problem::Problem> all;
  for (const fs::path& folder : problem::Find(kProblems)) {
    auto problem = problem::Load(folder);
    EXPECT_TRUE(problem) << problem.error().message;
    if (problem) all.push_back(std::move(*problem));
  }
  EXPECT_GE(all.size(), 104u);
  return all;
}

Outcome AskOf(const std::string& word, const problem::Problem& problem, int sample = 0,
              int round = 1) {
  const auto entry = FindModel(word, {});
  EXPECT_TRUE(entry) << entry.error().message;
  auto model = MakeModel(*entry, Budget(std::numeric_limits<double>::infinity()), nullptr);
  EXPECT_TRUE(model) << model.error().message;
  Ask ask;
  ask.messages = {{Message::Role::kUser, std::string(400, 'x')}};
  ask.problem = &problem;
  ask.sample = sample;
  ask.round = round;
  const Stop stop;
  return (*model)->Generate(ask, stop);
}

// What stands between the fences; nothing where there are none.
std::string CodeOf(const Reply& reply) {
  const std::size_t begin = reply.text.find("```cuda\n");
  if (begin == std::string::npos) return "";
  const std::size_t end = reply.text.find("```", begin + 8);
  return reply.text.substr(begin + 8, end == std::string::npos ? end : end - begin - 8);
}

std::string FileOf(const problem::Problem& problem, const fs::path& name) {
  const auto text =
      name == "template.cu" ? problem::TemplateOf(problem) : problem::SolutionOf(problem, name);
  return text.value_or("missing");
}

TEST(MaterialTest, OracleNopAndBaselinesAreTheFiles) {
  for (const problem::Problem& problem : Problems()) {
    for (int round : {1, 2}) {
      EXPECT_EQ(CodeOf(AskOf("oracle", problem, 3, round).value()),
                FileOf(problem, "reference.cu"));
      EXPECT_EQ(CodeOf(AskOf("nop", problem, 1, round).value()), FileOf(problem, "template.cu"));
      EXPECT_EQ(CodeOf(AskOf("material:baselines", problem, 0, round).value()),
                FileOf(problem, "baseline.cu"));
    }
    const Reply reply = AskOf("oracle", problem).value();
    EXPECT_EQ(reply.finish, Finish::kStop);
    EXPECT_EQ(reply.dollars, 0);
    EXPECT_FALSE(reply.usage_known);
    EXPECT_EQ(reply.usage.input, 100u);
    EXPECT_EQ(reply.usage.output, (reply.text.size() + 3) / 4);
    EXPECT_FALSE(reply.text.starts_with("```")) << "a sentence comes first";
  }
}

TEST(MaterialTest, ReferencesGoThroughTheAlternates) {
  for (const problem::Problem& problem : Problems()) {
    std::set<std::string> files = {FileOf(problem, "reference.cu")};
    for (const auto& entry : fs::directory_iterator(problem.folder / "alternates"))
      files.insert(FileOf(problem, "alternates" / entry.path().filename()));
    ASSERT_GE(files.size(), 2u);
    std::set<std::string> told;
    for (int sample = 0; sample < static_cast<int>(files.size()); ++sample)
      told.insert(CodeOf(AskOf("material:references", problem, sample).value()));
    EXPECT_EQ(told, files) << problem.slug;
    EXPECT_EQ(CodeOf(AskOf("material:references", problem, 0).value()),
              FileOf(problem, "reference.cu"));
    EXPECT_EQ(CodeOf(AskOf("material:references", problem, static_cast<int>(files.size())).value()),
              FileOf(problem, "reference.cu"));
  }
}

TEST(MaterialTest, TheMixtureIsFixedErrsInEveryWayAndMendsIt) {
  int prose = 0, cut = 0, right = 0, slow = 0, uncompiled = 0, mutants = 0, controls = 0;
  for (const problem::Problem& problem : Problems()) {
    // Bugs that outputs need not show may not be among them.
    std::set<std::string> silent, right_ones = {FileOf(problem, "reference.cu")};
    for (const problem::Mutant& mutant : problem.mutants)
      if (mutant.needs_checker) silent.insert(problem::MutantOf(problem, mutant).value());
    for (const auto& entry : fs::directory_iterator(problem.folder / "alternates"))
      right_ones.insert(FileOf(problem, "alternates" / entry.path().filename()));
    const auto region = problem::SplitTemplate(FileOf(problem, "template.cu"));
    ASSERT_TRUE(region);
    for (int sample = 0; sample < 8; ++sample) {
      for (int round : {1, 2, 3}) {
        const Reply reply = AskOf("material:mixture", problem, sample, round).value();
        EXPECT_EQ(reply.text, AskOf("material:mixture", problem, sample, round)->text);
        const std::string code = CodeOf(reply);
        EXPECT_FALSE(silent.contains(code)) << problem.slug << " " << sample << ": " << reply.text;
        // The campaign reads it as what it is.
        const bool is_cut = reply.finish == Finish::kLength;
        const problem::Answer answer = problem::ReadAnswer(reply.text, is_cut, *region);
        const auto expected = code.empty() ? problem::Answer::Kind::kNone
                              : is_cut     ? problem::Answer::Kind::kTruncated
                                           : problem::Answer::Kind::kSource;
        EXPECT_EQ(answer.kind, expected) << problem.slug << ": " << reply.text.substr(0, 80);
        if (expected == problem::Answer::Kind::kSource) {
          EXPECT_EQ(answer.source, code);
          EXPECT_TRUE(problem::Assemble(*region, code)) << reply.text.substr(0, 80);
        }
        EXPECT_TRUE(round < 3 || right_ones.contains(code)) << problem.slug;
        if (round > 1 || sample > 1) continue;
        prose += code.empty();
        cut += reply.finish == Finish::kLength;
        right += right_ones.contains(code);
        slow += code == FileOf(problem, "baseline.cu");
        uncompiled += code.find("return not_declared_anywhere;") != std::string::npos;
        mutants += reply.text.starts_with("The mutant");
        controls += reply.text.starts_with("The control");
      }
    }
  }
  // Two samples of each problem, as in the run of the README.
  for (const int count : {prose, cut, right, slow, uncompiled, mutants, controls})
    EXPECT_GE(count, 1);
  EXPECT_EQ(prose + cut + right + slow + uncompiled + mutants + controls,
            2 * static_cast<int>(Problems().size()));
}

TEST(MaterialTest, ASealedProblemIsAClearFailure) {
  auto problem = problem::Load(kProblems / "collective/allreduce_one_shot").value();
  const TemporaryFolder folder;
  folder.Write("template.cu", FileOf(problem, "template.cu"));
  problem.folder = folder.path();
  problem.split = problem::Split::kSealed;
  EXPECT_TRUE(AskOf("nop", problem));
  for (const char* word : {"oracle", "material:references", "material:baselines"}) {
    const auto outcome = AskOf(word, problem);
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().kind, Failure::Kind::kRequest);
    EXPECT_NE(outcome.error().message.find("sealed"), std::string::npos);
  }
}

class ReplayTest : public ::testing::Test {
 protected:
  ReplayTest() : problem_(problem::Load(kProblems / "p2p/flag_pingpong").value()) {}
  Outcome Play(int sample, int round) {
    return AskOf("r=replay:" + folder_.path().string(), problem_, sample, round);
  }

  problem::Problem problem_;
  TemporaryFolder folder_;
};

TEST_F(ReplayTest, FilesArePlayedBySampleAndRound) {
  folder_.Write("flag_pingpong/0.1.txt", "zero one");
  folder_.Write("flag_pingpong/0.3.txt", "zero three");
  folder_.Write("flag_pingpong/2.1.txt", std::string("two\0one", 7));
  folder_.Write("flag_pingpong/2.1.json",
                R"({"finish":"length","input_tokens":7,"output_tokens":9,"dollars":2.5})");
  folder_.Write("flag_pingpong/notes.txt", "not a recording");
  EXPECT_EQ(Play(0, 1)->text, "zero one");
  EXPECT_EQ(Play(0, 2)->text, "zero one") << "a missing round repeats the last";
  EXPECT_EQ(Play(0, 3)->text, "zero three");
  EXPECT_EQ(Play(0, 9)->text, "zero three");
  EXPECT_EQ(Play(2, 1)->text, std::string("two\0one", 7));
  EXPECT_EQ(Play(1, 1)->text, std::string("two\0one", 7)) << "the second of the two there are";
  EXPECT_EQ(Play(4, 1)->text, "zero one");
  const Reply reply = Play(2, 1).value();
  EXPECT_EQ(reply.finish, Finish::kLength);
  EXPECT_EQ(reply.usage.input, 7u);
  EXPECT_EQ(reply.usage.output, 9u);
  EXPECT_TRUE(reply.usage_known);
  EXPECT_EQ(reply.dollars, 0) << "nothing is spent again";
  EXPECT_FALSE(Play(0, 1)->usage_known);
}

TEST_F(ReplayTest, AFinishedRunIsPlayed) {
  folder_.Write("flag_pingpong/1/round-1/reply.txt", "first");
  folder_.Write("flag_pingpong/1/round-2/reply.txt", "second");
  folder_.Write("flag_pingpong/1/round-2/reply.json",
                R"({"schema":1,"key":"k","finish":"stop","input_tokens":5,"usage_known":false})");
  EXPECT_EQ(Play(0, 1)->text, "first");
  EXPECT_EQ(Play(1, 2)->text, "second");
  EXPECT_EQ(Play(1, 2)->usage.input, 5u);
  EXPECT_FALSE(Play(1, 2)->usage_known);
}

TEST_F(ReplayTest, WhatIsMissingOrWrongIsTold) {
  EXPECT_EQ(Play(0, 1).error().kind, Failure::Kind::kRequest);
  EXPECT_NE(Play(0, 1).error().message.find("flag_pingpong"), std::string::npos);
  folder_.Write("flag_pingpong/0.1.txt", "text");
  for (const char* facts :
       {"[", "[]", R"({"finish":"perhaps"})", R"({"input_tokens":-1})", R"({"output_tokens":1.5})",
        R"({"dollars":-1})", R"({"input_tokens":18446744073709551615})"}) {
    folder_.Write("flag_pingpong/0.1.json", facts);
    ASSERT_FALSE(Play(0, 1)) << facts;
    EXPECT_NE(Play(0, 1).error().message.find("0.1.json"), std::string::npos);
  }
}

}  // namespace
}  // namespace allranks::model
