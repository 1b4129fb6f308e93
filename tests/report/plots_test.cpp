// The plots of a made-up run, and which files a report replaces.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/files.h"
#include "page_fixture.h"
#include "report/gnuplot.h"

namespace allranks::report {
namespace {

TEST(Plots, TextsFromOutsideAreQuoted) {
  EXPECT_EQ(Quoted("it's"), "'it''s'");
  EXPECT_EQ(Quoted("a\nb\tc\x7f"), "'a b c '");
  EXPECT_EQ(Quoted("\xff\xc3\xa9\xed\xa0\x80"),
            "'?\xc3\xa9??"
            "?'");
  EXPECT_EQ(Quoted("abcdef", 4), "'abc…'");
  EXPECT_EQ(Quoted("äöüß", 4), "'äöüß'");
  EXPECT_EQ(Quoted("äöüßx", 4), "'äöü…'");
  EXPECT_EQ(LengthOf("äöüß"), 4u);
}

TEST(Plots, AreDrawnAsSvgAndPng) {
  if (!Installed("gnuplot")) GTEST_SKIP() << "gnuplot is needed";
  const Folder folder;
  const campaign::Run run =
      MakeRun(folder.path() / "run", {.models = 9, .problems = 10, .files = false});
  const Summary summary = Summarise({run}, Quick()).value();
  const Result<std::vector<std::string>> plots = WritePlots(summary, {run}, folder.path());
  ASSERT_TRUE(plots) << plots.error().message;
  for (const char* name :
       {"levels", "classes", "radar_category", "radar_library", "parallelism", "strict_lenient",
        "rounds", "movers", "problems/allreduce_one_shot-latency",
        "problems/allreduce_one_shot-bandwidth"})
    EXPECT_EQ(std::count(plots->begin(), plots->end(), name), 1) << name;
  for (const std::string& name : *plots) {
    const std::string svg = ReadWhole(folder.path() / "plots" / (name + ".svg")).value();
    EXPECT_NE(svg.find("</svg>"), std::string::npos) << name;
    EXPECT_EQ(svg.find("\"black\""), std::string::npos) << name;
    EXPECT_EQ(svg.find("NaN"), std::string::npos) << name;
    const std::string png = ReadWhole(folder.path() / "plots" / (name + ".png")).value();
    EXPECT_EQ(png.substr(1, 3), "PNG") << name;
    EXPECT_GT(png.size(), 4000u) << name;
  }
  const std::string levels = ReadWhole(folder.path() / "plots" / "levels.svg").value();
  for (const ModelSummary& model : summary.models)
    EXPECT_NE(levels.find(">" + model.label + "<"), std::string::npos) << model.label;
  // Each has a title, and names of its axes.
  for (const auto& [name, texts] : std::map<std::string, std::vector<std::string>>{
           {"levels", {"Strict pass by level", "strict pass in round 1, % of problems", " 25"}},
           {"classes",
            {"Speed of what passes", "% of strict passes, against the reference", " 75"}},
           {"radar_category", {"Score by category, %", "25", "50", "75", "100"}},
           {"parallelism", {"Score by parallelism", "score in round 1, %", "ep", "tp"}},
           {"strict_lenient", {"Strict against lenient pass", "round 1, % of problems"}},
           {"rounds", {"Gain by round", "rounds at most", "strict pass, % of problems"}},
           {"movers", {"Bytes by mover", "% of the bytes of a burst, strict passes"}},
           {"problems/allreduce_one_shot-latency",
            {"Time of a call of allreduce_one_shot", "time of a call, µs, modelled", "100 kB"}},
           {"problems/allreduce_one_shot-bandwidth",
            {"Bandwidth of allreduce_one_shot", "payload that must reach a rank"}}}) {
    const std::string svg = ReadWhole(folder.path() / "plots" / (name + ".svg")).value();
    for (const std::string& text : texts)
      EXPECT_NE(svg.find(">" + text + "<"), std::string::npos) << name << ": " << text;
  }
}

TEST(Plots, HostileNamesAreNames) {
  if (!Installed("gnuplot")) GTEST_SKIP() << "gnuplot is needed";
  const Folder folder;
  campaign::Run run = HostileRun(folder.path() / "run");
  for (campaign::ModelFacts& model : run.settings.models)
    if (model.name == "birch-large") model.name = "`touch pwned`";
  for (campaign::Sample& sample : run.samples)
    if (sample.model == "birch-large") sample.model = "`touch pwned`";
  const Summary summary = Summarise({run}, Quick()).value();
  const Result<std::vector<std::string>> plots = WritePlots(summary, {run}, folder.path());
  ASSERT_TRUE(plots) << plots.error().message;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
    EXPECT_NE(entry.path().filename(), "pwned");
  const std::string svg = ReadWhole(folder.path() / "plots" / "strict_lenient.svg").value();
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_NE(svg.find("&lt;/script>"), std::string::npos);
  EXPECT_NE(svg.find(">`touch pwned`<"), std::string::npos);
}

TEST(Report, ReplacesItsOwnPlotsAndNothingElse) {
  if (!Installed("gnuplot")) GTEST_SKIP() << "gnuplot is needed";
  const Folder folder;
  const std::filesystem::path plots = folder.path() / "plots";
  const campaign::Run run = MakeRun(folder.path() / "run", {.problems = 2, .files = false});
  std::filesystem::create_directories(plots);
  std::ofstream(plots / "mine.png") << "mine";
  std::ofstream(plots / "plots.gp") << "# my own\nset output 'mine.png'\n";
  ASSERT_TRUE(WriteReport({run}, Quick(), folder.path(), false));
  EXPECT_TRUE(std::filesystem::exists(plots / "mine.png"));
  EXPECT_TRUE(std::filesystem::exists(plots / "plots.gp"));
  ASSERT_TRUE(WriteReport({run}, Quick(), folder.path(), true));
  EXPECT_TRUE(std::filesystem::exists(plots / "levels.svg"));
  EXPECT_TRUE(std::filesystem::exists(plots / "problems/allreduce_one_shot-latency.png"));
  ASSERT_TRUE(WriteReport({run}, Quick(), folder.path(), false));
  EXPECT_TRUE(std::filesystem::exists(plots / "mine.png"));
  EXPECT_FALSE(std::filesystem::exists(plots / "levels.svg"));
  EXPECT_FALSE(std::filesystem::exists(plots / "plots.gp"));
  EXPECT_FALSE(std::filesystem::exists(plots / "problems"));
}

TEST(Report, ComesWithoutPlotsWhereThereIsNoGnuplot) {
  const Folder folder;
  const campaign::Run run = MakeRun(folder.path() / "run", {.models = 2, .problems = 3});
  const std::string path = getenv("PATH");
  setenv("PATH", folder.path().c_str(), 1);
  const Result<Written> written = WriteReport({run}, Quick(), folder.path() / "report", true);
  setenv("PATH", path.c_str(), 1);
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_NE(written->no_plots.find("apt install gnuplot-nox"), std::string::npos);
  for (const char* name : {"index.html", "summary.json", "models.csv", "problems.csv", "cases.csv"})
    EXPECT_TRUE(std::filesystem::exists(folder.path() / "report" / name)) << name;
}

}  // namespace
}  // namespace allranks::report
