// `checking exact`: what is said of wrong solutions is the same in every run, alone and beside
// load. Each is judged in one case; its whole JSON but for what it cost must be equal, byte for
// byte.
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <vector>

#include "checking/alarms.h"
#include "checking/items.h"
#include "checking/kept.h"
#include "common/document.h"
#include "common/run.h"

namespace allranks::checking {

namespace fs = std::filesystem;

namespace {

constexpr int kJudgeSeconds = 1200, kBusy = 3;

struct Judged {
  std::string said;  // what must be the same; empty: the judge said nothing
  std::size_t findings = 0;
};

Judged JudgeOnce(const std::vector<std::string>& command, const fs::path& scratch) {
  Json json = Json::parse(tools::Run(command, scratch, kJudgeSeconds).out, nullptr, false);
  if (!json.is_object() || json["verdict"] == "internal_error") return {};
  json.erase("cost");
  return {json.dump(), json["findings"].size()};
}

// Runs that differ from the first one, of `runs` alone and of `runs` beside load.
Json Repeat(const Item& item, const fs::path& scratch, const Choice& choice, int runs) {
  const auto command = JudgeCommand(item, choice.command, "exact", choice.all_cases);
  const Judged first = JudgeOnce(command, scratch);
  Json result = {{"findings", first.findings}};
  for (const bool loaded : {false, true}) {
    const tools::Load load(loaded ? kBusy : 0);
    int different = 0;
    for (int run = 0; run < runs; ++run) {
      const Judged again = JudgeOnce(command, scratch);
      different += first.said.empty() || again.said != first.said ? 1 : 0;
    }
    result[loaded ? "loaded" : "alone"] = different;
  }
  return result;
}

}  // namespace

int Exact(const fs::path& scratch, const Choice& choice, int runs) {
  if (choice.write && !choice.only.empty()) {
    fmt::print(stderr, "--write is for all of them\n");
    return 2;
  }
  Kept kept(choice.folder, choice.command, choice.resume);
  std::string table = fmt::format(
      "As of {}, build `{}`: `checking exact --runs {} --write`.\n\n| wrong solution | case | "
      "findings | differ, of {} alone | differ, of {} beside load |\n|---|---|---:|---:|---:|\n",
      tools::Today(), kept.build(), runs, runs, runs);
  int wrong = 0, judged = 0;
  for (const Item& item : WrongSolutions()) {
    if (!IsNamed(item, choice.only)) continue;
    const std::string chosen = choice.all_cases ? "all visible" : item.one_case;
    const std::string key =
        fmt::format("exact {} {} {} {}", item.name, ContentOf(item), chosen, runs);
    const auto before = kept.Find(key);
    const Json result = before ? *before : Repeat(item, scratch, choice, runs);
    if (!before && !kept.Add(key, result)) {
      fmt::print(stderr, "the command was built anew meanwhile\n");
      return 1;
    }
    ++judged;
    const int findings = result["findings"], alone = result["alone"], loaded = result["loaded"];
    wrong += alone + loaded + (findings == 0 ? 1 : 0);  // where nothing is found nothing is shown
    fmt::print(
        "{}, {}: {} findings; {} of {} runs alone and {} of {} beside {} busy processes differ\n",
        item.name, chosen, findings, alone, runs, loaded, runs, kBusy);
    std::fflush(stdout);
    table += fmt::format(
        "| `{}` | `{}` | {} | {} | {} |\n",
        fs::path(item.name).parent_path().filename().string() + "/" + item.source.stem().string(),
        chosen, findings, alone, loaded);
  }
  if (choice.write && !WriteInto("exact", table)) return 1;
  return wrong == 0 && judged > 0 ? 0 : 1;
}

}  // namespace allranks::checking
