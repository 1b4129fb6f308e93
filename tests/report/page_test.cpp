// The page and the plots of a made-up run: what they contain, what hostile texts do to them, their
// size, and how a browser shows them.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/files.h"
#include "made_run.h"
#include "report/gnuplot.h"
#include "report/page_data.h"
#include "report/page_texts.h"
#include "report/report.h"

namespace allranks::report {
namespace {

using nlohmann::json;

class Folder {
 public:
  Folder() {
    std::string name = std::filesystem::temp_directory_path() / "allranks-page-XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

bool Installed(const std::string& program) {
  const char* path = getenv("PATH");
  std::string folders = path == nullptr ? "" : path;
  for (std::size_t at = 0; at <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', at), folders.size());
    if (access((folders.substr(at, end - at) + "/" + program).c_str(), X_OK) == 0) return true;
    at = end + 1;
  }
  return false;
}

std::string Between(const std::string& text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) return "";
  const std::size_t end = text.find(to, at + from.size());
  return text.substr(at + from.size(), end - at - from.size());
}

std::string DataOf(const std::string& page) {
  return Between(page, "<script type=\"application/json\" id=\"data\">", "</script>");
}

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

Options Quick() {
  Options options;
  options.resamples = 200;
  return options;
}

std::string PageOf(const campaign::Run& run) {
  const Result<Summary> summary = Summarise({run}, Quick());
  EXPECT_TRUE(summary) << summary.error().message;
  return RenderPage(*summary, {run}, run.folder, {}).value();
}

constexpr char kHostile[] =
    "</script><script>document.documentElement.dataset.pwned=1</script>"
    "<img src=x onerror=document.documentElement.dataset.pwned=1>'\"`{@x}%s\\n$(id)&lt;&#39;";

// A run whose model, problem, title and every text are hostile.
campaign::Run HostileRun(const std::filesystem::path& folder) {
  campaign::Run run = MakeRun(folder, {.models = 2, .problems = 4, .samples = 2, .rounds = 2});
  run.settings.models[0].name = kHostile;
  run.settings.problems[0].title = kHostile;
  run.settings.problems[0].level = kHostile;
  run.settings.problems[1].library = "it's `touch pwned`; system('touch pwned') %d {/*2 x} \\";
  for (campaign::Sample& sample : run.samples) {
    if (sample.model == "atlas-5") sample.model = kHostile;
    for (campaign::Round& round : sample.rounds) {
      round.text = kHostile;
      round.source_hash = "1";
      const std::filesystem::path own =
          folder / campaign::RoundFolder(sample.model, sample.problem, sample.sample, round.round);
      std::filesystem::create_directories(own);
      for (const char* name : {"source.cu", "compiler.log", "feedback.md"})
        std::ofstream(own / name) << "// >>> edit\n" << kHostile << "\n\xff\xfe\0x\n";
    }
  }
  std::ofstream(folder / "problems" / run.settings.problems[0].slug / "statement.md")
      << "# " << kHostile << "\n\n| a |\n|---|\n| " << kHostile << " |\n\n```\n"
      << kHostile;
  return run;
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
        if (own.problem == problem["slug"])
          for (const campaign::Round& one : own.rounds)
            if (one.strict) best = std::max(best, one.score);
      EXPECT_NEAR(round.value("score", 0.0), best, 1e-4) << problem["slug"];
      EXPECT_TRUE(data["texts"][round["source"].get<std::size_t>()].is_string());
    }
    EXPECT_EQ(tops, 1);
  }
  EXPECT_EQ(samples, run.samples.size());
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
  const std::string page = PageOf(run);
  EXPECT_LT(page.size(), 5'000'000u);
  EXPECT_GT(page.size(), 3'000'000u);  // the budget is used
  const json data = json::parse(DataOf(page));
  for (const json& problem : data["problems"])
    for (const json& sample : problem["samples"]) {
      if (!sample.contains("top") && !sample.contains("bottom")) continue;
      const json& round = sample["rounds"][sample["best_round"].get<std::size_t>()];
      EXPECT_TRUE(data["texts"][round["text"].get<std::size_t>()].is_string());
    }
}

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
       {"levels", "classes", "radar_category", "radar_library", "strict_lenient", "rounds",
        "movers", "problems/allreduce_one_shot-latency", "problems/allreduce_one_shot-bandwidth"})
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

struct Said {
  int code = -1;
  std::string out, err;
};
Said Command(const std::filesystem::path& folder, const std::string& arguments) {
  const std::string line = fmt::format("cd '{}' && '{}' report {} >out 2>err", folder.string(),
                                       ALLRANKS_COMMAND, arguments);
  const int status = std::system(line.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, ReadWhole(folder / "out").value_or(""),
          ReadWhole(folder / "err").value_or("")};
}

TEST(Command, ReportsARunFromItsFolder) {
  const Folder folder;
  campaign::Run run =
      MakeRun(folder.path() / "run", {.models = 2, .problems = 2, .samples = 2, .rounds = 1});
  ASSERT_TRUE(WriteWhole(run.folder / "run.json", campaign::ToJson(run.settings)));
  run.samples.pop_back();  // not finished
  for (const campaign::Sample& sample : run.samples)
    ASSERT_TRUE(WriteWhole(run.folder /
                               campaign::SampleFolder(sample.model, sample.problem, sample.sample) /
                               "sample.json",
                           campaign::ToJson(sample)));
  const Said said = Command(folder.path(), "run --no-plots --title 'A title'");
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find("atlas-5"), std::string::npos) << said.out;
  EXPECT_NE(said.out.find("run/report/index.html"), std::string::npos) << said.out;
  const std::string page = ReadWhole(folder.path() / "run/report/index.html").value();
  EXPECT_NE(page.find("<title>A title</title>"), std::string::npos);
  EXPECT_EQ(json::parse(DataOf(page))["runs"][0]["unfinished"], 1);

  const Said printed = Command(folder.path(), "run --no-plots --json --out elsewhere");
  EXPECT_EQ(printed.code, 0) << printed.err;
  EXPECT_EQ(printed.out, ReadWhole(folder.path() / "elsewhere/summary.json").value());
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "elsewhere/index.html"));
}

TEST(Command, MistakesEndWithTheirRemedy) {
  const Folder folder;
  const campaign::Run run = MakeRun(folder.path() / "run", {.models = 1, .problems = 1});
  ASSERT_TRUE(WriteWhole(run.folder / "run.json", campaign::ToJson(run.settings)));
  const auto refused = [&](const std::string& arguments, const std::string& words) {
    const Said said = Command(folder.path(), arguments);
    EXPECT_EQ(said.code, 2) << arguments;
    EXPECT_NE(said.err.find(words), std::string::npos) << said.err;
  };
  refused("nowhere", "allranks run --out");
  refused("run run", "--out DIR");
  refused("run --panel nobody", "nobody");
}
// A page around pages: it shows each view in a frame as narrow as a phone and notes what it sees.
constexpr char kWatcher[] = R"(<!doctype html><pre id="seen"></pre><script>
const seen = {errors: []};
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
async function look(name, address, act) {
  const frame = document.createElement('iframe');
  frame.width = 360; frame.height = 740; frame.style.border = 0;
  frame.src = address;
  document.body.append(frame);
  await new Promise((done) => { frame.onload = done; });
  frame.contentWindow.addEventListener('error', (e) => seen.errors.push(name + ': ' + e.message));
  await wait(30);
  const d = frame.contentDocument;
  const text = (e) => (e ? e.textContent : null);
  const names = () => [...d.querySelectorAll('main table')[0]?.querySelectorAll('tbody tr .name') || []].map(text);
  seen[name] = {title: text(d.querySelector('h1')), width: d.documentElement.scrollWidth, names: names(),
    text: d.querySelector('main').textContent.length, pwned: d.documentElement.dataset.pwned || null,
    theme: d.documentElement.dataset.theme, figures: d.querySelectorAll('figure svg').length,
    scripts: d.querySelectorAll('main script, main img').length, added: d.querySelectorAll('.row.add').length};
  if (act) await act(seen[name], d, names);
  frame.remove();
}
async function clicks(note, d, names) {
  const head = (label) => [...d.querySelectorAll('th')].find((th) => th.textContent.startsWith(label));
  note.sort = head('Strict').getAttribute('aria-sort');
  head('Model').querySelector('button').click();
  note.by_name = names();
  note.name_sort = head('Model').getAttribute('aria-sort');
  head('Model').querySelector('button').click();
  note.by_name_down = names();
  const box = d.querySelector('input[type=checkbox]');
  if (box) { box.click(); note.open = names(); box.click(); }
  const choice = d.querySelector('select');
  choice.value = choice.options[1].value;
  choice.dispatchEvent(new Event('change'));
  note.filtered = names().length;
}
(async () => {
  try {
    VIEWS
  } catch (e) { seen.errors.push(String(e)); }
  document.getElementById('seen').textContent = 'SEEN' + JSON.stringify(seen) + 'NEES';
})();
</script>)";

json Watch(const std::filesystem::path& folder, const std::string& views) {
  std::string watcher = kWatcher;
  watcher.replace(watcher.find("VIEWS"), 5, views);
  std::ofstream(folder / "watcher.html") << watcher;
  // Reading a frame's document is allowed between files only on request.
  const std::string command = fmt::format(
      "chromium --headless=new --no-sandbox --disable-gpu --allow-file-access-from-files "
      "--user-data-dir='{0}/profile' --enable-logging=stderr --virtual-time-budget=20000 "
      "--dump-dom "
      "'file://{0}/watcher.html' 2>'{0}/browser.log'",
      folder.string());
  std::FILE* pipe = popen(command.c_str(), "r");
  std::string dom;
  char buffer[4096];
  for (std::size_t n = 0; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) dom.append(buffer, n);
  pclose(pipe);
  std::string text = Between(dom, ">SEEN", "NEES");
  for (const auto& [from, to] : {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&amp;", "&"}})
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + 1))
      text.replace(at, std::string(from).size(), to);
  const std::string log = ReadWhole(folder / "browser.log").value_or("");
  EXPECT_EQ(log.find("CONSOLE"), std::string::npos) << log;
  if (getenv("ALLRANKS_SHOW") != nullptr) fmt::print("{}\n", text);
  const json seen = json::parse(text, nullptr, false);
  EXPECT_FALSE(seen.is_discarded()) << dom.substr(0, 2000) << log;
  return seen;
}

TEST(Browser, ShowsEveryViewWithinAPhonesWidth) {
  if (!Installed("chromium")) GTEST_SKIP() << "chromium is needed";
  const Folder folder;
  const campaign::Run run = MakeRun(folder.path() / "run", {.problems = 10});
  const Result<Written> written = WriteReport({run}, Quick(), folder.path(), Installed("gnuplot"));
  ASSERT_TRUE(written) << written.error().message;
  campaign::Run fresh = run;  // nothing has finished yet
  fresh.samples.clear();
  ASSERT_TRUE(WriteReport({fresh}, Quick(), folder.path() / "empty", false));
  const json seen = Watch(folder.path(), R"(
    await look('board', 'index.html?theme=dark#/', clicks);
    await look('problems', 'index.html?theme=light#/problems');
    await look('plots', 'index.html?theme=light#/plots');
    await look('model', 'index.html?theme=light#/model/cedar-r2');
    await look('problem', 'index.html?theme=light#/problem/allreduce_one_shot');
    await look('compare', 'index.html?theme=light#/compare/atlas-5/fjord-32b');
    await look('nothing', 'index.html?theme=light#/problem/%E0%A4%A');
    await look('empty', 'empty/index.html#/');
    await look('empty_model', 'empty/index.html#/model/cedar-r2');
    await look('empty_problem', 'empty/index.html#/problem/flag_pingpong');
    await look('empty_compare', 'empty/index.html#/compare');)");
  ASSERT_TRUE(seen.is_object());
  EXPECT_EQ(seen["errors"], json::array());
  for (const char* view :
       {"board", "problems", "plots", "model", "problem", "compare", "nothing"}) {
    EXPECT_LE(seen[view]["width"], 360) << view;
    EXPECT_GT(seen[view]["title"].get<std::string>().size(), 3u) << view;
  }
  std::vector<std::string> best_first, by_name, open;
  for (const ModelSummary& model : written->summary.models) {
    best_first.push_back(model.label);
    if (model.facts.open_weights) open.push_back(model.label);
  }
  by_name = best_first;
  std::sort(by_name.begin(), by_name.end());
  const json& board = seen["board"];
  EXPECT_EQ(board["theme"], "dark");
  EXPECT_EQ(board["names"], json(best_first));
  EXPECT_EQ(board["sort"], "descending");
  EXPECT_EQ(board["by_name"], json(by_name));
  EXPECT_EQ(board["name_sort"], "ascending");
  std::reverse(by_name.begin(), by_name.end());
  EXPECT_EQ(board["by_name_down"], json(by_name));
  EXPECT_EQ(board["open"].size(), open.size());
  EXPECT_EQ(board["filtered"], best_first.size());
  EXPECT_EQ(seen["model"]["title"], "cedar-r2");
  EXPECT_EQ(seen["empty_model"]["title"], "cedar-r2");
  EXPECT_GT(seen["problem"]["added"], 10);
  EXPECT_GE(seen["problem"]["figures"], 2);
  EXPECT_EQ(seen["plots"]["figures"], Installed("gnuplot") ? 7 : 0);
}

TEST(Browser, RunsNothingThatModelsWrote) {
  if (!Installed("chromium")) GTEST_SKIP() << "chromium is needed";
  const Folder folder;
  const campaign::Run run = HostileRun(folder.path() / "run");
  Options options = Quick();
  options.title = kHostile;
  const Result<Written> written = WriteReport({run}, options, folder.path(), Installed("gnuplot"));
  ASSERT_TRUE(written) << written.error().message;
  const json seen = Watch(folder.path(), R"(
    await look('board', 'index.html#/');
    await look('problem', 'index.html#/problem/allreduce_one_shot');
    await look('model', 'index.html#/model/' + encodeURIComponent(seen.board.names[0]));
    await look('other', 'index.html#/model/' + encodeURIComponent(seen.board.names[1]));
    await look('compare', 'index.html#/compare/<img src=x onerror=alert(1)>/b');)");
  ASSERT_TRUE(seen.is_object());
  EXPECT_EQ(seen["errors"], json::array());
  for (const char* view : {"board", "problem", "model", "other", "compare"}) {
    EXPECT_TRUE(seen[view]["pwned"].is_null()) << view;
    EXPECT_EQ(seen[view]["scripts"], 0) << view;
    EXPECT_LE(seen[view]["width"], 360) << view;
  }
  EXPECT_EQ(seen["problem"]["title"], kHostile);
}

}  // namespace
}  // namespace allranks::report
