// The page of a made-up run: what it contains, what hostile texts do to it, and its size.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/files.h"
#include "page_fixture.h"
#include "report/dates.h"
#include "report/page_data.h"
#include "report/page_texts.h"

namespace allranks::report {
namespace {

using nlohmann::json;

std::size_t Count(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++count;
  return count;
}

// The usual made-up run, made once.
const campaign::Run& UsualRun() {
  static const Folder folder;
  static const campaign::Run run = MakeRun(folder.path() / "run", {});
  return run;
}

std::string PageOf(const campaign::Run& run) {
  const Result<Summary> summary = Summarise({run}, Quick());
  EXPECT_TRUE(summary) << summary.error().message;
  return RenderPage(*summary, {run}, run.folder, {}).value();
}

TEST(Page, AsksNobodyForAnything) {
  const std::string page = PageOf(UsualRun());
  std::string rest = page;
  rest.replace(rest.find(DataOf(page)), DataOf(page).size(), "");
  // The only address is the name of SVG.
  EXPECT_EQ(Count(rest, "http"),
            Count(rest, "http://www.w3.org/2000/svg") + Count(rest, "http-equiv"));
  for (const char* way :
       {"src=", "url(", "@import", "fetch(", "XMLHttpRequest", "import(", "<link", "innerHTML",
        "outerHTML", "insertAdjacentHTML", "document.write", "eval("})
    EXPECT_EQ(rest.find(way), std::string::npos) << way;
  EXPECT_NE(rest.find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(rest.find("script-src 'unsafe-inline'"), std::string::npos);
}

TEST(Page, CarriesTheSummarysFigures) {
  const campaign::Run& run = UsualRun();
  const Summary summary = Summarise({run}, Quick()).value();
  const json data = json::parse(DataOf(PageOf(run)));
  ASSERT_EQ(data["models"].size(), summary.models.size());
  for (std::size_t i = 0; i < summary.models.size(); ++i) {
    EXPECT_EQ(data["models"][i]["name"], summary.models[i].label);
    EXPECT_NEAR(data["models"][i]["all"]["score"][0], summary.models[i].all.score.value, 1e-5);
    EXPECT_NEAR(data["models"][i]["all"]["strict"][2], summary.models[i].all.strict_pass.high,
                1e-5);
  }
  ASSERT_EQ(data["problems"].size(), 20u);
  // Every sample is there with every round; the best solution has its source.
  std::size_t samples = 0;
  for (const json& problem : data["problems"]) {
    samples += problem["samples"].size();
    int tops = 0;
    for (const json& sample : problem["samples"]) {
      if (!sample.contains("top")) continue;
      ++tops;
      const json& round = sample["rounds"][sample["best_round"].get<std::size_t>()];
      double best = 0;
      for (const campaign::Sample& own : run.samples)
        if (own.problem == problem["slug"].get<std::string>())
          for (const campaign::Round& one : own.rounds)
            if (one.strict) best = std::max(best, one.score);
      EXPECT_NEAR(round.value("score", 0.0), best, 1e-4) << problem["slug"];
      EXPECT_TRUE(data["texts"][round["source"].get<std::size_t>()].is_string());
    }
    EXPECT_EQ(tops, 1);
  }
  EXPECT_EQ(samples, run.samples.size());
}

TEST(Page, SaysWhenARunWasMade) {
  const json data = json::parse(DataOf(PageOf(UsualRun())));
  EXPECT_EQ(data["runs"][0]["begun"], "2026-11-18T23:04:05Z");
  EXPECT_EQ(data["runs"][0]["ended"], "2026-11-19T01:02:03Z");  // a line without a time follows
  EXPECT_EQ(data["runs"][0]["version"], "0.0");
  const Folder folder;
  const auto dates = [&](const std::string& log) {
    EXPECT_TRUE(WriteWhole(folder.path() / "log.txt", log));
    return DatesOf(folder.path());
  };
  EXPECT_EQ(DatesOf(folder.path() / "nowhere").first, "");
  EXPECT_EQ(dates("").first, "");
  EXPECT_EQ(dates("<b>").last, "");
  EXPECT_EQ(dates("2026-11-18T23:04:0xZ begun\n").last, "");
  EXPECT_EQ(dates("2026-11-18T23:04:05Z begun\n" + std::string(100'000, 'x')).last,
            "2026-11-18T23:04:05Z");
  std::filesystem::remove(folder.path() / "log.txt");
  std::filesystem::create_symlink("/dev/zero", folder.path() / "log.txt");
  EXPECT_EQ(DatesOf(folder.path()).first, "");
}

TEST(Page, HostileTextsStayTexts) {
  const Folder folder;
  const campaign::Run run = HostileRun(folder.path() / "run");
  Options options = Quick();
  options.title = kHostile;
  const Summary summary = Summarise({run}, options).value();
  const std::string page = RenderPage(summary, {run}, run.folder, {}).value();
  EXPECT_EQ(Count(page, "<script"), 2u);
  EXPECT_EQ(Count(page, "</script>"), 2u);
  EXPECT_EQ(page.find("<img"), std::string::npos);
  const std::string text = DataOf(page);
  EXPECT_EQ(text.find_first_of("<>&"), std::string::npos);
  const json data = json::parse(text);
  EXPECT_EQ(data["title"], kHostile);
  EXPECT_EQ(data["problems"][0]["title"], kHostile);
}

TEST(Page, TextsOfProblemsThatAreNotPublicStayOut) {
  const Folder folder;
  campaign::Run run = MakeRun(folder.path() / "run", {.models = 1, .problems = 3, .samples = 2});
  run.settings.problems[0].split = "sealed";
  run.settings.problems[1].split = "private";
  for (campaign::Sample& sample : run.samples)
    for (campaign::Round& round : sample.rounds) {
      round.text = "words about " + sample.problem;
      round.source_hash = "1";
      std::ofstream(
          run.folder /
          campaign::RoundFolder(sample.model, sample.problem, sample.sample, round.round) /
          "source.cu")
          << "source of " << sample.problem;
    }
  for (const campaign::ProblemFacts& facts : run.settings.problems)
    std::ofstream(run.folder / "problems" / facts.slug / "statement.md")
        << "statement of " << facts.slug;
  const std::vector<std::string> kinds = {"words about ", "source of ", "statement of ", "Solve "};
  const auto has = [](const std::string& page, const std::string& text) {
    return DataOf(page).find(text) != std::string::npos;
  };
  const std::string page = PageOf(run);
  for (const std::string& kind : kinds) {
    EXPECT_FALSE(has(page, kind + run.settings.problems[0].slug)) << kind;
    EXPECT_FALSE(has(page, kind + run.settings.problems[1].slug)) << kind;
    EXPECT_TRUE(has(page, kind + run.settings.problems[2].slug)) << kind;
  }
  Options options = Quick();
  options.private_texts = true;
  const std::string all =
      RenderPage(Summarise({run}, options).value(), {run}, run.folder, {}).value();
  for (const std::string& kind : kinds)
    EXPECT_TRUE(has(all, kind + run.settings.problems[0].slug)) << kind;
}

TEST(Page, TextsWithinABudgetAreThoseThatMatterMost) {
  PageTexts texts(3000, {});
  const int other = texts.WantText(Weight::kOther, std::string(500, 'o'), 1000);
  const int long_one = texts.WantText(Weight::kRound, std::string(2800, 'r'), 4000);
  const int best = texts.WantText(Weight::kBest, std::string(400, 'b'), 1000);
  const int problem = texts.WantText(Weight::kProblem, std::string(900, 'p'), 1000);
  const int same = texts.WantText(Weight::kOther, std::string(900, 'p'), 1000);
  const int none = texts.WantFile(Weight::kProblem, "/nowhere/at/all", 1000);
  const std::vector<PageTexts::Text> taken = texts.Take();
  using Kind = PageTexts::Text::Kind;
  const auto kind = [&](int number) { return taken[static_cast<std::size_t>(number)].kind; };
  EXPECT_EQ(kind(problem), Kind::kText);
  EXPECT_EQ(kind(best), Kind::kText);
  EXPECT_EQ(kind(long_one), Kind::kLeftOut);
  EXPECT_EQ(kind(other), Kind::kText);
  EXPECT_EQ(kind(same), Kind::kSame);
  EXPECT_EQ(taken[static_cast<std::size_t>(same)].same, problem);
  EXPECT_EQ(kind(none), Kind::kText);
  EXPECT_EQ(taken[static_cast<std::size_t>(none)].text, "");
}

TEST(Page, RepliesAreKeptWithoutTheirSource) {
  EXPECT_EQ(WithoutSource("a\n```\nint x;\ny\n```\nb", "int x;\ny\n\n"), "a\n```\n\n```\nb");
  EXPECT_EQ(WithoutSource("int x;", "int x;\n"), "");
  EXPECT_EQ(WithoutSource("other", "int x;\n"), "other");
  EXPECT_EQ(WithoutSource("other", ""), "other");
  const json data = json::parse(DataOf(PageOf(UsualRun())));
  EXPECT_NE(
      std::find(data["texts"].begin(), data["texts"].end(),
                "Each rank reads its peers directly.\n\n```cuda\n\n```\n\nThe flag orders the "
                "loads.\n"),
      data["texts"].end());
}

TEST(Page, LinksThatLeadOutOfARunAreNotFollowed) {
  const Folder folder;
  std::filesystem::create_directories(folder.path() / "run");
  ASSERT_TRUE(WriteWhole(folder.path() / "secret", "a key"));
  ASSERT_TRUE(WriteWhole(folder.path() / "run/own", "own"));
  std::filesystem::create_symlink("../secret", folder.path() / "run/out");
  std::filesystem::create_symlink("own", folder.path() / "run/in");
  PageTexts texts(3000, {folder.path() / "run"});
  const int out = texts.WantFile(Weight::kProblem, folder.path() / "run/out", 1000);
  const int in = texts.WantFile(Weight::kProblem, folder.path() / "run/in", 1000);
  const std::vector<PageTexts::Text> taken = texts.Take();
  EXPECT_EQ(taken[static_cast<std::size_t>(out)].text, "");
  EXPECT_EQ(taken[static_cast<std::size_t>(in)].text, "own");
}

TEST(Page, StaysBelowFiveMegabytesForABigRun) {
  const Folder folder;
  campaign::Run run =
      MakeRun(folder.path() / "run",
              {.models = 10, .problems = 100, .samples = 5, .rounds = 3, .files = false});
  // Texts that are all different, as sources would be, without tens of thousands of files.
  std::size_t texts = 0, number = 0;
  for (campaign::Sample& sample : run.samples)
    for (campaign::Round& round : sample.rounds) {
      round.text = fmt::format("{} {}", ++number, std::string(2500, 't'));
      texts += round.text.size();
    }
  ASSERT_GT(texts, 20'000'000u);
  const Summary summary = Summarise({run}, Quick()).value();
  const std::string page = RenderPage(summary, {run}, run.folder, {},
                                      {{"models.csv", ModelsCsv(summary)},
                                       {"summary.json", ToJson(summary)},
                                       {"cases.csv", CasesCsv({run})}})
                               .value();
  EXPECT_LT(page.size(), 5'000'000u);
  EXPECT_GT(page.size(), 3'000'000u);  // the budget is used
  const json data = json::parse(DataOf(page));
  EXPECT_EQ(data["files"][0]["text"], ModelsCsv(summary));
  EXPECT_TRUE(data["files"][2]["text"].is_null());  // it lies beside the page
  for (const json& problem : data["problems"])
    for (const json& sample : problem["samples"]) {
      if (!sample.contains("top") && !sample.contains("bottom")) continue;
      const json& round = sample["rounds"][sample["best_round"].get<std::size_t>()];
      EXPECT_TRUE(data["texts"][round["text"].get<std::size_t>()].is_string());
    }
}

}  // namespace
}  // namespace allranks::report
