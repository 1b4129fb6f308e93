// Every view under the rules of axe-core, in both colours, on a desktop and on a phone; and what
// the rules do not see of keyboard use. axe-core comes from npm, at this version and of this hash,
// into the build tree.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/files.h"
#include "base/sha256.h"
#include "browser.h"
#include "page_fixture.h"

namespace allranks::report {
namespace {

using nlohmann::json;

constexpr char kAxeVersion[] = "4.10.3";
constexpr char kAxeSha256[] = "880970c081707360e64f34cea25ff91892f5bc95675b0776925b9709dd8a68bb";

// The text of axe-core; empty if npm cannot bring it. A file of another hash is never used: npm
// installs into a folder of this process, and only what was checked gets its name in the build
// tree.
std::string Axe() {
  const std::filesystem::path file =
      std::filesystem::path(ALLRANKS_BINARY_DIR) / fmt::format("axe-{}.min.js", kAxeVersion);
  const auto checked = [](const std::string& text) { return Hex(Sha256(text)) == kAxeSha256; };
  if (std::string text = ReadWhole(file).value_or(""); checked(text)) return text;
  const Folder folder;
  const std::string command = fmt::format(
      "timeout 100 npm install --prefix '{0}' --no-save --ignore-scripts --no-audit "
      "--no-fund axe-core@{1} >'{0}/npm.log' 2>&1",
      folder.path().string(), kAxeVersion);
  if (std::system(command.c_str()) != 0) return "";
  std::string text = ReadWhole(folder.path() / "node_modules/axe-core/axe.min.js").value_or("");
  EXPECT_TRUE(checked(text)) << "axe-core " << kAxeVersion << " has the hash " << Hex(Sha256(text));
  if (!checked(text)) return "";
  const std::string fresh = fmt::format("{}.{}", file.string(), getpid());
  if (WriteWhole(fresh, text)) std::filesystem::rename(fresh, file);
  return text;
}

// Each view in a frame: open what is closed, ask axe, and focus everything that can be focused.
constexpr char kWatcher[] = R"(<!doctype html><pre id="seen"></pre><script>
const seen = {errors: [], violations: [], checked: 0, focused: 0, unseen: [], passes: 0};
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
async function look(address, width, theme) {
  const name = `${address} ${width} ${theme}`;
  const frame = document.createElement('iframe');
  frame.width = width; frame.height = 800; frame.style.border = 0;
  frame.src = `page.html?theme=${theme}#${address}`;
  document.body.append(frame);
  await new Promise((done) => { frame.onload = done; });
  const w = frame.contentWindow, d = frame.contentDocument;
  w.addEventListener('error', (e) => seen.errors.push(name + ': ' + e.message));
  await wait(20);
  d.querySelectorAll('details').forEach((e) => { e.open = true; });
  d.querySelectorAll('.fold').forEach((e) => e.click());
  await wait(20);
  const found = await w.axe.run(d, {resultTypes: ['violations']});
  seen.passes += found.passes.length;
  for (const one of found.violations)
    seen.violations.push({view: name, rule: one.id, count: one.nodes.length,
      first: one.nodes.slice(0, 3).map((n) => `${n.target.join(' ')}: ${n.failureSummary}`)});
  for (const e of d.querySelectorAll('a[href], button, select, input, summary, [tabindex="0"]')) {
    if (!e.getClientRects().length) continue;
    if (e.tabIndex < 0) continue;
    e.focus({focusVisible: true});
    ++seen.focused;
    if (d.activeElement !== e || (w.getComputedStyle(e).outlineStyle === 'none'))
      seen.unseen.push(`${name}: ${e.outerHTML.slice(0, 120)}`);
  }
  ++seen.checked;
  frame.remove();
}
// A view that is reached by a link takes the focus with it.
async function follow() {
  const frame = document.createElement('iframe');
  frame.src = 'page.html#/';
  document.body.append(frame);
  await new Promise((done) => { frame.onload = done; });
  await wait(20);
  const d = frame.contentDocument;
  seen.start = d.activeElement.tagName;
  d.querySelector('td .name a').click();
  await wait(50);
  seen.after = d.activeElement.id;
  seen.followed = frame.contentWindow.location.hash;
}
(async () => {
  try {
    for (const address of ADDRESSES)
      for (const width of [1440, 390]) for (const theme of ['light', 'dark']) await look(address, width, theme);
    await follow();
  } catch (e) { seen.errors.push(String(e)); }
  document.getElementById('seen').textContent = 'SEEN' + JSON.stringify(seen) + 'NEES';
})();
</script>)";

TEST(Accessibility, EveryViewPassesAxe) {
  if (!Installed("chromium")) GTEST_SKIP() << "chromium is needed";
  if (!Installed("npm")) GTEST_SKIP() << "npm is needed, which brings axe-core";
  const std::string axe = Axe();
  if (axe.empty()) GTEST_SKIP() << "axe-core cannot be installed by npm here";
  const Folder folder;
  const campaign::Run run = MakeRun(folder.path() / "run", {.problems = 10, .samples = 2});
  const Result<Written> written = WriteReport({run}, Quick(), folder.path(), Installed("gnuplot"));
  ASSERT_TRUE(written) << written.error().message;
  // The page's policy runs no script but its own: here axe is to run beside it.
  std::string page = ReadWhole(folder.path() / "index.html").value();
  const std::size_t policy = page.find("<meta http-equiv=\"Content-Security-Policy\"");
  ASSERT_NE(policy, std::string::npos);
  page.replace(policy, page.find('>', policy) + 1 - policy, "<script src=\"axe.js\"></script>");
  std::ofstream(folder.path() / "page.html") << page;
  std::ofstream(folder.path() / "axe.js") << axe;
  const json addresses = {"/",
                          "/problems",
                          "/plots",
                          "/compare/atlas-5/fjord-32b",
                          "/model/cedar-r2",
                          "/problem/allreduce_one_shot",
                          "/sample/allreduce_one_shot/ember-mini/0",
                          "/problem/nothing"};
  std::string watcher = kWatcher;
  watcher.replace(watcher.find("ADDRESSES"), 9, addresses.dump());
  const json seen = SeenBy(folder.path(), watcher, 120'000);
  ASSERT_TRUE(seen.is_object());
  EXPECT_EQ(seen["errors"], json::array());
  EXPECT_EQ(seen["checked"], 4 * addresses.size());
  EXPECT_GT(seen["passes"], 15 * 4 * static_cast<int>(addresses.size()));  // axe has worked
  for (const json& violation : seen["violations"]) ADD_FAILURE() << violation.dump(2);
  EXPECT_GT(seen["focused"], 200);
  EXPECT_EQ(seen["unseen"], json::array());
  EXPECT_EQ(seen["start"], "BODY");
  EXPECT_EQ(seen["after"], "main");
  EXPECT_EQ(seen["followed"].get<std::string>().find("#/model/"), 0u);
}

}  // namespace
}  // namespace allranks::report
