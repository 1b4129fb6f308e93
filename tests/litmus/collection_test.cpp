// What the collection of litmus tests promises as a whole, that files which expect nothing are
// refused, and that expectations which do not hold are told.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "litmus_file.h"
#include "node/hardware/profile.h"
#include "section_run.h"
#include "verdict.h"

namespace allranks::litmus {
namespace {

std::vector<litmus::Test> AllTests() {
  const std::string root = ALLRANKS_SOURCE_DIR "/tests/litmus";
  std::vector<litmus::Test> tests;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() != ".litmus") continue;
    auto test = ReadTest(root, std::filesystem::relative(entry.path(), root).string());
    EXPECT_TRUE(test) << test.error().message;
    if (test) tests.push_back(std::move(*test));
  }
  return tests;
}

TEST(LitmusCollectionTest, EveryRuleHasTestsAndEveryTestARule) {
  std::map<std::string, int> rules;
  std::ifstream document(ALLRANKS_SOURCE_DIR "/docs/memory-model.md");
  for (std::string line; std::getline(document, line);)
    if (line.starts_with("### ")) rules[line.substr(4)] = 0;
  ASSERT_GE(rules.size(), 30u);
  for (const litmus::Test& test : AllTests()) {
    for (const std::string& rule : test.rules) {
      ASSERT_TRUE(rules.contains(rule)) << test.path << " names the rule '" << rule << "'";
      ++rules[rule];
    }
  }
  for (const auto& [rule, tests] : rules) EXPECT_GT(tests, 0) << "no test of " << rule;
}

TEST(LitmusCollectionTest, ItIsAsLargeAsPromised) {
  std::set<std::string> explanations;
  std::size_t inter_device = 0;
  const std::vector<litmus::Test> tests = AllTests();
  for (const litmus::Test& test : tests) {
    inter_device += test.Devices().size() >= 2;
    EXPECT_TRUE(explanations.insert(test.explanation).second)
        << test.path << " explains itself as another does";
  }
  EXPECT_GE(tests.size(), 150u);
  EXPECT_GE(inter_device, 80u);
}

// Everything that a section's first runs leave, as text.
std::string Story(const node::Profile& profile, const litmus::Test& test, const Section& section) {
  SectionRun run(profile, test, section, true);
  const auto prepared = run.Prepare();
  EXPECT_TRUE(prepared) << prepared.error().message;
  std::string story;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const auto ending = run.Run(seed);
    EXPECT_TRUE(ending) << ending.error().message;
    if (!ending) return story;
    for (const std::uint64_t value : ending->values) story += fmt::format("{} ", value);
    for (const node::Finding& finding : ending->findings) story += Describe(finding);
    story += fmt::format("{}{}at {}\n", ending->hang, ending->fault, run.machine().now());
    if (!ending->hang.empty() || !ending->fault.empty()) return story;
  }
  return story;
}

TEST(LitmusCollectionTest, SeedsRepeatToTheLetter) {
  const auto profile = node::LoadProfile(ALLRANKS_SOURCE_DIR "/profiles/h100x8.toml");
  ASSERT_TRUE(profile);
  for (const litmus::Test& test : AllTests())
    for (const Section& section : test.sections)
      ASSERT_EQ(Story(*profile, test, section), Story(*profile, test, section))
          << test.path << " [" << section.title << "]";
}

constexpr const char* kHead =
    "A message from one device to another.\nrule race\nmemory x flag gpu1\nthread P0 gpu0\n"
    "thread P1 gpu1\n";
constexpr const char* kCorrect =
    "[correct]\nP0:\n  st.global.u32 [x], 1;\n  st.release.sys.global.u32 [flag], 1;\nP1:\n"
    "  until %r0 == 1: ld.acquire.sys.global.u32 %r0, [flag];\n  ld.global.u32 %r1, [x];\n";
constexpr const char* kClean = "clean -- the message orders them\n";
constexpr const char* kBroken =
    "[broken: the flag is relaxed]\nP0:\n  st.global.u32 [x], 1;\n"
    "  st.relaxed.sys.global.u32 [flag], 1;\n";
constexpr const char* kRace = "race on x -- nothing orders them\n";

std::string ErrorOf(const std::string& text) {
  const auto test = ParseTest("t.litmus", text);
  return test ? "" : test.error().message;
}

TEST(LitmusFormatTest, FilesThatExpectNothingAreRefused) {
  const std::string head = kHead, correct = kCorrect, broken = kBroken;
  EXPECT_EQ(ErrorOf(head + correct + kClean + broken + kRace), "");
  EXPECT_NE(ErrorOf(head + correct + broken + kRace).find("forbids something or is clean"),
            std::string::npos);
  EXPECT_NE(ErrorOf(head + correct + kClean + broken).find("expects something"), std::string::npos);
  EXPECT_NE(ErrorOf(head + correct + kRace + broken + kRace).find("has no finding"),
            std::string::npos);
  EXPECT_NE(ErrorOf(head + correct + kClean).find("a correct and a broken"), std::string::npos);
  EXPECT_NE(ErrorOf(""), "");
}

TEST(LitmusFormatTest, MistakesAreNamedWithTheirLine) {
  const std::string head = kHead, correct = kCorrect, rest = std::string(kBroken) + kRace;
  const auto with = [&](const std::string& line) {
    return ErrorOf(head + correct + kClean + line + "\n" + rest);
  };
  EXPECT_NE(with("forbid r9=0 -- nobody uses this register").find("t.litmus:14: 0 threads"),
            std::string::npos);
  EXPECT_NE(with("forbid r1=0").find("REASON"), std::string::npos);
  EXPECT_NE(with("forbid z=0 -- there is no such memory").find("no register or memory"),
            std::string::npos);
  EXPECT_NE(with("races -- there is no such kind").find("no kind of a finding"), std::string::npos);
  EXPECT_NE(ErrorOf("A thread too many stands at one place.\nthread P0 gpu0\nthread P1 gpu0\n")
                .find("same place"),
            std::string::npos);
}

// What a section with these expectations is told; empty if all of them hold.
std::string FailureOf(const std::string& code, const std::string& expectations, bool correct) {
  const auto profile = node::LoadProfile(ALLRANKS_SOURCE_DIR "/profiles/h100x8.toml");
  EXPECT_TRUE(profile);
  const std::string other = correct ? std::string(kBroken) + kRace : "";
  const auto test =
      ParseTest("t.litmus", std::string(kHead) + (correct ? "" : std::string(kCorrect) + kClean) +
                                code + expectations + other);
  EXPECT_TRUE(test) << test.error().message;
  if (!profile || !test) return "not even read";
  return Judge(*profile, *test, test->sections[correct ? 0 : 1], 50, true).failure;
}

TEST(LitmusVerdictTest, WhatDoesNotHoldIsTold) {
  EXPECT_EQ(FailureOf(kCorrect, "forbid r1=0 -- it is ordered\n", true), "");
  EXPECT_NE(FailureOf(kCorrect, "forbid r1=1 -- this is what happens\n", true)
                .find("seed 0: 'forbid r1=1' does not hold"),
            std::string::npos);
  EXPECT_NE(FailureOf(kBroken, "race on flag -- that one is right\n", false)
                .find("'race on flag': seed 0 does not show it"),
            std::string::npos);
  EXPECT_NE(FailureOf(kBroken, "scope -- scopes are wide enough\n", false)
                .find("a finding that is not expected"),
            std::string::npos);
  const std::string never =
      "[broken: nobody raises the flag]\nP0:\n  st.relaxed.sys.global.u32 [flag], 2;\n";
  EXPECT_NE(FailureOf(never, "race -- it does not come so far\n", false).find("wait for ever"),
            std::string::npos);
  EXPECT_EQ(FailureOf(never, "hang -- nobody raises the flag\n", false), "");
}

TEST(LitmusVerdictTest, WhatNoSeedReachesIsTold) {
  EXPECT_NE(FailureOf(std::string(kBroken) + kRace, "allow r1=7 -- nobody stores 7\n", false)
                .find("'allow r1=7': no seed reaches it"),
            std::string::npos);
}

}  // namespace
}  // namespace allranks::litmus
