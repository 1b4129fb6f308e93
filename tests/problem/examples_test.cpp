// Solved examples: which problems they are of, and what a model reads of them.
#include "problem/examples.h"

#include <gtest/gtest.h>

#include <set>

#include "problem/prompt.h"
#include "problem/source.h"

namespace allranks::problem {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = ALLRANKS_SOURCE_DIR;

const std::vector<Problem>& Problems() {
  static const std::vector<Problem> problems = [] {
    std::vector<Problem> all;
    for (const fs::path& folder : Find(kRoot / "problems")) {
      std::vector<Problem> variants = LoadAll(folder).value();
      for (Problem& problem : variants) all.push_back(std::move(problem));
    }
    return all;
  }();
  return problems;
}

const Problem& Named(const std::string& slug) {
  for (const Problem& problem : Problems())
    if (problem.slug == slug) return problem;
  ADD_FAILURE() << "no problem " << slug;
  return Problems().front();
}

// For every problem: only public ones of its library, never its own family, no family twice, the
// same each time, and more examples begin with those of fewer.
TEST(ExamplesTest, AreOfOtherFamiliesAndAlwaysTheSame) {
  int chosen = 0;
  for (const Problem& problem : Problems()) {
    const auto three = ChooseExamples(problem, Problems(), 3);
    if (problem.library != "cuda") {
      ASSERT_FALSE(three) << problem.slug << ": all problems of NCCL are one family";
      EXPECT_NE(three.error().message.find(problem.library), std::string::npos);
      continue;
    }
    ASSERT_TRUE(three) << three.error().message;
    ASSERT_EQ(three->size(), 3u);
    std::set<std::string> families = {problem.family};
    for (const Example& example : *three) {
      const Problem& other = Named(example.slug);
      EXPECT_EQ(other.split, Split::kPublic);
      EXPECT_EQ(other.library, problem.library);
      EXPECT_TRUE(families.insert(other.family).second) << problem.slug << " " << example.slug;
    }
    std::vector<Problem> backwards(Problems().rbegin(), Problems().rend());
    const auto again = ChooseExamples(problem, backwards, 2);
    ASSERT_TRUE(again);
    EXPECT_EQ((*again)[0].slug, (*three)[0].slug);
    EXPECT_EQ((*again)[1].text, (*three)[1].text);
    ++chosen;
  }
  EXPECT_GT(chosen, 100);
}

TEST(ExamplesTest, ThoseOfTheCategoryComeFirstAndEasyOnesBeforeHardOnes) {
  const Problem& problem = Named("allreduce_one_shot");
  const auto examples = ChooseExamples(problem, Problems(), 2);
  ASSERT_TRUE(examples);
  for (const Example& example : *examples) {
    EXPECT_EQ(Named(example.slug).category, problem.category);
    EXPECT_EQ(Named(example.slug).level, "easy");
  }
  const auto many = ChooseExamples(problem, Problems(), 1000);
  ASSERT_FALSE(many);
  EXPECT_NE(many.error().message.find("not 1000"), std::string::npos) << many.error().message;
}

TEST(ExamplesTest, AModelReadsStatementHeaderAndSolutionBeforeItsTask) {
  const Problem& problem = Named("allreduce_one_shot");
  const node::Profile profile =
      node::LoadProfile((kRoot / "profiles/h100x8.toml").string()).value();
  PromptContext context{&problem, &profile, kRoot / "share/prompts", "13.0", {}};
  const PromptTemplate form = LoadPrompt("terse", context.folder).value();
  const Prompt without = MakePrompt(form, context).value();
  context.examples = ChooseExamples(problem, Problems(), 2).value();
  const Prompt with = MakePrompt(form, context).value();
  EXPECT_EQ(with.system, without.system);
  EXPECT_TRUE(with.task.ends_with(without.task)) << "the task itself is the same";
  for (const Example& example : context.examples) {
    const Problem& other = Named(example.slug);
    std::string statement = ReadFile(other.folder / "statement.md").value();
    statement.erase(statement.find_last_not_of('\n') + 1);
    const std::size_t at = with.task.find(statement);
    ASSERT_NE(at, std::string::npos) << example.slug;
    EXPECT_LT(at, with.task.size() - without.task.size());
    EXPECT_NE(example.text.find("struct Args"), std::string::npos) << example.text;
    const Region region = RegionOf(other).value();
    EXPECT_NE(example.text.find(region.before), std::string::npos);
    EXPECT_EQ(example.text.find("//@"), std::string::npos) << "a mutant's tag";
    EXPECT_EQ(example.text.find("static_assert(sizeof"), std::string::npos);
  }
}

}  // namespace
}  // namespace allranks::problem
