// The files of --findings: what other programs read of findings.
#include "cli/finding_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace allranks::cli {
namespace {

namespace fs = std::filesystem;

ListedFinding Race(const std::string& file) {
  ListedFinding listed;
  listed.id = "0123abcd";
  listed.counts = true;
  listed.finding.text = "device 1's load and <device 0's> \"store\" & more are not ordered";
  listed.finding.advice = "a fence";
  for (const int line : {12, 7}) {
    node::FindingAccess& access = listed.finding.accesses.emplace_back();
    access.what = line == 12 ? "load" : "store";
    access.kernel = "AllReduce(float*)";
    access.file = file;
    access.line = line;
  }
  return listed;
}

FindingRun OneRun() { return {{"./prog", "-n", "2"}, {0, 7}, {}, 87, "1.2.3"}; }

class FindingFilesTest : public testing::Test {
 protected:
  FindingFilesTest() : folder_(fs::path(testing::TempDir()) / "finding_files") {
    fs::create_directories(folder_ / "src");
    fs::create_directories(folder_ / ".git");
  }
  ~FindingFilesTest() override { fs::remove_all(folder_); }

  fs::path folder_;
};

TEST_F(FindingFilesTest, FormatsHaveNamesAndSuffixes) {
  EXPECT_EQ(FormatNamed("sarif"), FindingFormat::kSarif);
  EXPECT_EQ(FormatNamed("SARIF"), std::nullopt);
  EXPECT_EQ(FormatOfFile("a/b.sarif"), FindingFormat::kSarif);
  EXPECT_EQ(FormatOfFile("b.xml"), FindingFormat::kJunit);
  EXPECT_EQ(FormatOfFile("b.txt"), FindingFormat::kText);
  EXPECT_EQ(FormatOfFile("sarif"), FindingFormat::kJson);
}

TEST_F(FindingFilesTest, SarifNamesFilesByTheirPlaceInTheRepository) {
  ListedFinding suppressed = Race((folder_ / "src" / "my kernel.cu").string());
  suppressed.suppressed = true;
  suppressed.counts = false;
  const auto sarif = nlohmann::json::parse(
      FindingsAsSarif(OneRun(), {Race((folder_ / "src" / "my kernel.cu").string()), suppressed}));
  EXPECT_EQ(sarif["version"], "2.1.0");
  const auto& run = sarif["runs"][0];
  EXPECT_EQ(run["originalUriBaseIds"]["SRCROOT"]["uri"], "file://" + folder_.string() + "/");
  EXPECT_EQ(run["tool"]["driver"]["version"], "1.2.3");
  ASSERT_EQ(run["tool"]["driver"]["rules"].size(), 1u);
  EXPECT_EQ(run["tool"]["driver"]["rules"][0]["id"], "race");
  EXPECT_EQ(run["invocations"][0]["exitCode"], 87);
  ASSERT_EQ(run["results"].size(), 2u);
  const auto& result = run["results"][0];
  EXPECT_EQ(result["ruleId"], "race");
  EXPECT_EQ(result["level"], "error");
  const auto& place = result["locations"][0]["physicalLocation"];
  EXPECT_EQ(place["artifactLocation"]["uri"], "src/my%20kernel.cu");
  EXPECT_EQ(place["region"]["startLine"], 12);
  EXPECT_EQ(result["relatedLocations"][0]["physicalLocation"]["region"]["startLine"], 7);
  EXPECT_EQ(result["partialFingerprints"]["allranks/v1"], "0123abcd");
  EXPECT_FALSE(result.contains("suppressions"));
  EXPECT_EQ(run["results"][1]["level"], "note");
  EXPECT_EQ(run["results"][1]["suppressions"][0]["kind"], "external");
}

TEST_F(FindingFilesTest, SarifHasAPlaceForWhatHasNoLines) {
  FindingRun run = OneRun();
  run.failures.push_back({0, 86, "deadlock at 3 us: every thread waits\n"});
  const auto sarif = nlohmann::json::parse(FindingsAsSarif(run, {Race("")}));
  const auto& results = sarif["runs"][0]["results"];
  ASSERT_EQ(results.size(), 2u);
  for (const auto& result : results) {
    const std::string uri =
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].get<std::string>();
    EXPECT_TRUE(uri.ends_with("prog")) << uri;
  }
  EXPECT_EQ(results[1]["ruleId"], "deadlock");
  EXPECT_EQ(results[1]["message"]["text"], "deadlock at 3 us: every thread waits");
  EXPECT_EQ(sarif["runs"][0]["invocations"][0]["executionSuccessful"], false);
}

TEST_F(FindingFilesTest, JunitCountsWhatCounts) {
  ListedFinding leak = Race("a.cu");
  leak.counts = false;
  const std::string text = FindingsAsJunit(OneRun(), {Race("a.cu"), leak});
  EXPECT_NE(text.find("tests=\"1\" failures=\"1\""), std::string::npos) << text;
  EXPECT_NE(text.find("name=\"race 0123abcd a.cu:12\""), std::string::npos) << text;
  EXPECT_NE(text.find("&lt;device 0's&gt; &quot;store&quot; &amp; more"), std::string::npos);
  EXPECT_EQ(text.find("<device"), std::string::npos);
  const std::string clean = FindingsAsJunit(OneRun(), {});
  EXPECT_NE(clean.find("tests=\"1\" failures=\"0\""), std::string::npos) << clean;
}

TEST_F(FindingFilesTest, WhatIsNoUtf8IsReplaced) {
  ListedFinding odd = Race("a.cu");
  odd.finding.text = "\xff\x01";
  EXPECT_NO_THROW(nlohmann::json::parse(FindingsAsSarif(OneRun(), {odd})));
  const std::string text = FindingsAsJunit(OneRun(), {odd});
  EXPECT_EQ(text.find('\xff'), std::string::npos);
  EXPECT_EQ(text.find('\x01'), std::string::npos);
}

}  // namespace
}  // namespace allranks::cli
