// How a browser shows the page of a made-up run, where there is one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/files.h"
#include "browser.h"
#include "page_fixture.h"
#include "report/page_data.h"

namespace allranks::report {
namespace {

using nlohmann::json;

// A page around pages: it shows each view in a frame as narrow as a phone and notes what it sees.
constexpr char kWatcher[] = R"(<!doctype html><pre id="seen"></pre><script>
const seen = {errors: []};
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
// Words of the view that stand on two lines. Code and texts in boxes may break anywhere.
function broken(d) {
  const found = [], walker = d.createTreeWalker(d.querySelector('main'), NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node.parentElement.closest('pre, .code, svg, option')) continue;
    for (const match of node.data.matchAll(/\w{3,}/g)) {
      const range = d.createRange();
      range.setStart(node, match.index);
      range.setEnd(node, match.index + match[0].length);
      if (new Set([...range.getClientRects()].map((r) => Math.round(r.top))).size > 1) found.push(match[0]);
    }
  }
  return found;
}
async function look(name, address, act, width = 360) {
  const frame = document.createElement('iframe');
  frame.width = width; frame.height = 740; frame.style.border = 0;
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
    scripts: d.querySelectorAll('main script, main img').length, added: d.querySelectorAll('.row.add').length, broken: broken(d),
    groups: [...d.querySelectorAll('.group')].map(text), facts: text(d.querySelector('.facts')),
    bounds: [...d.querySelectorAll('td .bounds')].map(text),
    drawings: [...d.querySelectorAll('figure svg')].map((e) => e.getAttribute('aria-label')),
    used: d.querySelector('main').getBoundingClientRect().width};
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
// One filter of four, and the files of the report as the page has them.
async function parallelism(note, d, names) {
  const choice = [...d.querySelectorAll('label')].find((l) => l.textContent.startsWith('Parallelism')).querySelector('select');
  note.parallelisms = [...choice.options].map((o) => o.value);
  const figures = () => [...d.querySelectorAll('td .meter > b')].map(text_);
  note.before = figures();
  choice.value = 'ep';
  choice.dispatchEvent(new Event('change'));
  note.after = figures();
  note.files = {};
  for (const link of d.querySelectorAll('footer .downloads a'))
    note.files[link.download] = link.getAttribute('href').startsWith('blob:') ? await (await fetch(link.href)).text() : 'beside: ' + link.getAttribute('href');
}
const text_ = (e) => e.textContent;
async function transcript(note, d) {
  const box = (kind) => d.querySelector('.turn.' + kind).getBoundingClientRect();
  note.turns = [...d.querySelectorAll('.exchange')].map((e) => [...e.querySelectorAll('.turn h3')].map(text_));
  note.beside = box('replied').left > box('asked').right && box('replied').top === box('asked').top;
  note.below = box('replied').top > box('asked').bottom && box('replied').left === box('asked').left;
  note.remarks = [...d.querySelectorAll('.exchange')].map((e) => [...e.querySelectorAll('.remark')].map((r) => [r.previousElementSibling.dataset.n, text_(r).slice(0, 40)]));
  note.replies = [...d.querySelectorAll('.turn.replied')].map((e) => e.querySelectorAll('.words').length);
  note.asked = text_(d.querySelector('.turn.asked pre'));
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
  return SeenBy(folder, watcher);
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
  // A race in the first round, which names lines, and further rounds.
  const auto race =
      std::find_if(run.samples.begin(), run.samples.end(), [](const campaign::Sample& sample) {
        return sample.rounds.size() > 1 && sample.rounds[0].verdict == "race";
      });
  ASSERT_NE(race, run.samples.end());
  const std::string of = fmt::format("{}/{}/{}", race->problem, race->model, race->sample);
  const json seen = Watch(folder.path(), fmt::format("const of = '{}';", of) + R"(
    await look('board', 'index.html?theme=dark#/', clicks);
    await look('wide', 'index.html?theme=light#/', parallelism, 1440);
    await look('screen', 'index.html?theme=light#/', null, 2560);
    await look('large_phone', 'index.html?theme=light#/', null, 414);
    await look('transcript', 'index.html#/sample/' + of, transcript, 1440);
    await look('phone_transcript', 'index.html#/sample/' + of, transcript);
    await look('no_transcript', 'index.html#/sample/allreduce_one_shot/ember-mini/77');
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
  for (const char* view : {"board", "problems", "plots", "model", "problem", "compare", "nothing",
                           "phone_transcript", "large_phone", "no_transcript"}) {
    EXPECT_LE(seen[view]["width"], view == std::string("large_phone") ? 414 : 360) << view;
    EXPECT_EQ(seen[view]["broken"], json::array()) << view;
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
  EXPECT_EQ(seen["plots"]["figures"], Installed("gnuplot") ? 10 : 2);
  // Groups have letters, which nobody takes for ranks.
  std::map<int, std::string> letters;
  for (const ModelSummary& model : written->summary.models) letters[model.rank_group];
  char letter = 'A';
  for (auto& [group, name] : letters) name = letter++;
  ASSERT_EQ(board["groups"].size(), best_first.size());
  for (std::size_t i = 0; i < best_first.size(); ++i)
    EXPECT_EQ(board["groups"][i], letters[written->summary.models[i].rank_group]);
  EXPECT_GT(letters.size(), 1u);
  const json& wide = seen["wide"];
  EXPECT_GT(seen["screen"]["used"], 2540);  // all but a scroll bar
  EXPECT_EQ(wide["facts"], "run 2026-11-18 to 2026-11-19 · allranks 0.0 · h100x8 version 3");
  const auto numbers = [](const Interval& interval) {  // halves are rounded up, as in JavaScript
    return fmt::format("[{}, {}]", std::floor(100 * interval.low + 0.5),
                       std::floor(100 * interval.high + 0.5));
  };
  ASSERT_GE(wide["bounds"].size(), 2 * best_first.size());
  EXPECT_EQ(wide["bounds"][0], numbers(written->summary.models[0].all.strict_pass));
  EXPECT_EQ(wide["bounds"][1], numbers(written->summary.models[0].all.score));
  EXPECT_EQ(seen["plots"]["drawings"][0],
            "Cost against score: score, % over dollars per problem, all rounds");
  EXPECT_EQ(seen["plots"]["drawings"][1],
            "fast_p: % of problems over p: speedup over the reference");
  EXPECT_EQ(wide["parallelisms"], json({"", "dp", "ep", "pp", "tp"}));
  EXPECT_NE(wide["before"], wide["after"]);
  for (const char* name : {"summary.json", "models.csv", "problems.csv"})
    EXPECT_EQ(wide["files"][name], ReadWhole(folder.path() / name).value()) << name;
  EXPECT_EQ(wide["files"]["cases.csv"], "beside: cases.csv");  // 0.8 MB
  const json& transcript = seen["transcript"];
  json turns = json::array();
  for (std::size_t i = 0; i < race->rounds.size(); ++i)
    turns.push_back({i == 0 ? "Prompt" : "Feedback", race->model, "Judge"});
  EXPECT_EQ(transcript["turns"], turns);
  EXPECT_EQ(transcript["beside"], true);
  EXPECT_EQ(seen["phone_transcript"]["below"], true);
  EXPECT_EQ(transcript["asked"],
            "[system]\nYou write CUDA.\n\n[user]\nSolve " + race->problem + ".");
  EXPECT_EQ(transcript["replies"][0], 2);  // words before and after the source
  const char* remark = "race in case timed.w8.n262144: rank 3 re";
  EXPECT_EQ(transcript["remarks"][0],
            json::array({json::array({"19", remark}), json::array({"27", remark})}));
  EXPECT_EQ(seen["no_transcript"]["title"], "No such transcript");
}

// Where a source does not fit into the page, its place in the reply has the note that says where it
// is.
TEST(Browser, NamesASourceThatDidNotFit) {
  if (!Installed("chromium")) GTEST_SKIP() << "chromium is needed";
  const Folder folder;
  const campaign::Run run =
      MakeRun(folder.path() / "run",
              {.models = 1, .problems = 2, .samples = 1, .rounds = 1, .source_lines = 400});
  const Summary summary = Summarise({run}, Quick()).value();
  std::string data, address, file;
  for (std::size_t budget = 1000; address.empty() && budget < 60'000; budget += 500) {
    data = PageData(summary, {run}, {}, {}, budget);
    const json read = json::parse(data);
    for (const json& problem : read["problems"])
      for (const json& sample : problem["samples"]) {
        const json& round = sample["rounds"][0];
        if (!round.contains("source") || !round.contains("reply")) continue;
        if (!read["texts"][round["source"].get<std::size_t>()].is_null() ||
            !read["texts"][round["reply"].get<std::size_t>()].is_string())
          continue;
        address = "#/sample/" + problem["slug"].get<std::string>() + "/atlas-5/0";
      }
  }
  ASSERT_NE(address, "");
  std::string page = RenderPage(summary, {run}, folder.path(), {}).value();
  const std::string usual = DataOf(page);
  page.replace(page.find(usual), usual.size(), data);
  ASSERT_TRUE(WriteWhole(folder.path() / "index.html", page));
  const json seen =
      Watch(folder.path(), fmt::format("await look('page', 'index.html{}', ", address) +
                               R"((note, d) => {
      note.replied = text_(d.querySelector('.turn.replied'));
      note.code = d.querySelectorAll('.turn.replied .code').length;
    });)");
  ASSERT_TRUE(seen.is_object());
  EXPECT_EQ(seen["errors"], json::array());
  const std::string replied = seen["page"]["replied"];
  EXPECT_NE(replied.find("reads its peers directly"), std::string::npos) << replied;
  EXPECT_NE(replied.find("/round-1/source.cu in the run"), std::string::npos) << replied;
  EXPECT_EQ(seen["page"]["code"], 0) << replied;
}

// Ten models, of which one costs nothing; and models that all cost nothing.
TEST(Browser, ChartsHaveFreeModelsAndSayWhichTheyHave) {
  if (!Installed("chromium")) GTEST_SKIP() << "chromium is needed";
  const Folder folder;
  campaign::Run run =
      MakeRun(folder.path() / "run", {.models = 10, .problems = 10, .files = false});
  run.settings.models[5].price_known = true;
  ASSERT_TRUE(WriteReport({run}, Quick(), folder.path(), false));
  for (campaign::ModelFacts& facts : run.settings.models) facts.price_known = true;
  for (campaign::Sample& sample : run.samples)
    for (campaign::Round& round : sample.rounds) round.dollars = 0;
  ASSERT_TRUE(WriteReport({run}, Quick(), folder.path() / "free", false));
  const json seen = Watch(folder.path(), R"(
    const charts = (note, d) => {
      const [cost, fast] = d.querySelectorAll('figure');
      note.cost = [...cost.querySelectorAll('circle title')].map(text_);
      note.ticks = [...cost.querySelectorAll('text[text-anchor=middle]')].map(text_);
      note.says = text_(cost);
      note.sub = text_(fast.querySelector('.sub'));
      note.curves = [...fast.querySelectorAll('.legend i')].map((e) => e.style.background);
    };
    await look('some', 'index.html#/plots', charts, 1440);
    await look('all', 'free/index.html#/plots', charts, 1440);)");
  ASSERT_TRUE(seen.is_object());
  EXPECT_EQ(seen["errors"], json::array());
  const auto free = [](const json& view) {
    return std::count_if(view["cost"].begin(), view["cost"].end(), [](const json& title) {
      return title.get<std::string>().ends_with(" at $0");
    });
  };
  EXPECT_EQ(seen["some"]["cost"].size(), 10);
  EXPECT_EQ(free(seen["some"]), 1);
  EXPECT_GE(seen["some"]["ticks"].size(), 4) << seen["some"]["ticks"];
  EXPECT_EQ(seen["all"]["cost"].size(), 10) << seen["all"]["says"];
  EXPECT_EQ(free(seen["all"]), 10);
  for (const char* view : {"some", "all"}) {
    EXPECT_TRUE(seen[view]["sub"].get<std::string>().ends_with("; first 8 models"));
    std::vector<std::string> colours = seen[view]["curves"];
    std::sort(colours.begin(), colours.end());
    EXPECT_EQ(std::unique(colours.begin(), colours.end()) - colours.begin(), 8) << view;
    EXPECT_EQ(colours.size(), 8u);
  }
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
    await look('transcript', 'index.html#/sample/allreduce_one_shot/' + encodeURIComponent(seen.board.names[0]) + '/0');
    await look('compare', 'index.html#/compare/<img src=x onerror=alert(1)>/b');)");
  ASSERT_TRUE(seen.is_object());
  EXPECT_EQ(seen["errors"], json::array());
  for (const char* view : {"board", "problem", "model", "other", "transcript", "compare"}) {
    EXPECT_TRUE(seen[view]["pwned"].is_null()) << view;
    EXPECT_EQ(seen[view]["scripts"], 0) << view;
    EXPECT_LE(seen[view]["width"], 360) << view;
  }
  EXPECT_EQ(seen["problem"]["title"], kHostile);
}

}  // namespace
}  // namespace allranks::report
