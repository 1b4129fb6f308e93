// How a browser shows the page of a made-up run, where there is one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "page_fixture.h"

namespace allranks::report {
namespace {

using nlohmann::json;

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
