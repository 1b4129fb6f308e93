// `mutants`: sows bugs into references and alternates, takes those written by hand, and judges each
// of them twice, with the checker and by outputs alone. What the first finds and the second does
// not is the checker's worth: --write puts that into docs/checker.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <iostream>
#include <mutex>
#include <set>

#include "common/document.h"
#include "common/run.h"
#include "common/spread.h"
#include "mutants/corpus.h"
#include "mutants/judging.h"
#include "mutants/same.h"
#include "mutants/store.h"
#include "mutants/table.h"

namespace allranks::mutants {
namespace {

namespace fs = std::filesystem;

constexpr double kGoal = 0.99;
constexpr char kFooter[] =
    "--folder keeps every verdict as soon as it is known, by build, source and files of the\n"
    "problem. An interrupted run continues where it stopped, and changed files are judged again.\n"
    "A build is the bytes of the allranks command and of its libraries. A new build judges\n"
    "everything again unless --reuse permits verdicts of other builds: `outputs` permits those by\n"
    "outputs alone, `all` also those with the checker. The table states how many verdicts are\n"
    "reused and which mutants are not judged.\n\n"
    "A judgement with the checker compares the same outputs of the same runs. --once skips it for\n"
    "mutants that outputs alone detect. They count as found.\n\n"
    "Complete run: mutants --outputs --checked --by-hand --write -j 2\n\n"
    "Exit codes: 0; 1 if less than 99 % are found, an original has a finding, or a judge fails.";
const fs::path kSource = ALLRANKS_SOURCE_DIR;

struct Options {
  std::vector<std::string> only;
  std::string folder = ALLRANKS_MUTANTS_FOLDER, command = ALLRANKS_COMMAND, reuse;
  std::size_t every = 1, first = 0, at_least = 0;
  int jobs = 1;
  bool list = false, show = false, outputs = false, checked = false, by_hand = false, write = false,
       once = false, fresh = false;
};

void JudgeAll(const Options& options, Store* store, std::vector<Case>* cases) {
  const Judge judge(store, options.command);
  // Those by hand first; last those that must pass, which takes a whole judgement.
  std::vector<Case*> order;
  for (Case& one : *cases) order.push_back(&one);
  std::stable_sort(order.begin(), order.end(), [](const Case* a, const Case* b) {
    const auto rank = [](const Case& one) {
      return !one.equivalent.empty() ? 2 : IsByHand(one.mutant) ? 0 : 1;
    };
    return rank(*a) < rank(*b);
  });
  std::mutex mutex;
  std::size_t done = 0;
  tools::Spread(options.jobs, order.size(), [&](std::size_t at) {
    Case& one = *order[at];
    const auto verdict = [&](bool wanted, Kind kind) {
      return wanted ? judge.Of(one.mutant, kind) : store->Find(one.mutant, kind);
    };
    // Of those that are said to be equivalent nothing is counted: the checker must let them pass.
    one.outputs = verdict(options.outputs && one.equivalent.empty(), Kind::kOutputs);
    const bool again = Compiles(one) && !(options.once && Caught(one.outputs));
    one.checked = verdict(options.checked && again, Kind::kChecked);
    if (!again && one.checked.word.empty()) {
      one.checked.word = one.outputs.word;
      one.checked.by_outputs = true;
    }
    const std::scoped_lock lock(mutex);
    ++done;
    if (one.outputs.seconds + one.checked.seconds == 0) return;
    std::cerr << fmt::format("{}/{} {}: {} ({:.1f} s), by outputs {} ({:.1f} s)\n", done,
                             cases->size(), one.mutant.id, one.checked.word, one.checked.seconds,
                             one.outputs.word, one.outputs.seconds);
  });
}

// Who finds fault with an original catches its mutants for nothing. `problems check` judges
// originals in all cases.
Originals JudgeOriginals(const Options& options, Store* store, const std::vector<Case>& cases) {
  std::vector<Mutant> all;
  std::set<std::pair<fs::path, std::vector<std::string>>> seen;
  for (const Case& one : cases) {
    if (!seen.emplace(one.mutant.original, one.mutant.arguments).second) continue;
    if (Result<Mutant> original = OriginalOf(one.mutant)) all.push_back(std::move(*original));
  }
  const Judge judge(store, options.command);
  Originals originals;
  std::mutex mutex;
  tools::Spread(options.jobs, all.size(), [&](std::size_t at) {
    const Verdict verdict = judge.Of(all[at], Kind::kOriginal);
    const std::scoped_lock lock(mutex);
    ++originals.seen;
    if (verdict.word == "pass") return;
    const std::string name = all[at].original.lexically_relative(kSource).string();
    originals.faulty.push_back(name);
    std::cout << fmt::format("FAULT: {} itself gets {}: {}\n", name, verdict.word, verdict.text);
  });
  std::sort(originals.faulty.begin(), originals.faulty.end());
  return originals;
}

// Survivors get a last chance to be the same program.
void FindSame(const Options& options, Store* store, std::vector<Case>* cases) {
  tools::Spread(options.jobs, cases->size(), [&](std::size_t at) {
    Case& one = (*cases)[at];
    if (!Survives(one) || IsProgram(one.mutant)) return;
    const fs::path kept = store->PathOf(one.mutant, "same");
    std::string word = tools::ReadText(kept);
    if (word.empty()) {
      const Result<bool> same = SamePtx(one.mutant);
      if (!same) return;
      word = *same ? "same" : "other";
      std::ofstream(kept) << word;
    }
    if (word == "same") one.equivalent = "the same PTX";
  });
}

// Faults: words of judges that should not be, and shares below the goal.
int Report(const std::vector<Case>& cases) {
  int faults = 0;
  for (const Case& one : cases) {
    const auto& expected = one.mutant.expected;
    if (Survives(one)) {
      std::cout << fmt::format("survives: {}\n", one.mutant.id);
    } else if (Caught(one.checked) && !one.equivalent.empty() && Compiles(one)) {
      std::cout << fmt::format("FAULT: {} is said to be equivalent, but gets {}: {}\n",
                               one.mutant.id, one.checked.word, one.checked.text);
      ++faults;
    } else if (Failed(one.checked) || Failed(one.outputs)) {
      const Verdict& verdict = Failed(one.checked) ? one.checked : one.outputs;
      std::cout << fmt::format("FAULT: {}: {} {}\n", one.mutant.id, verdict.word, verdict.text);
      ++faults;
    } else if (Caught(one.checked) && !expected.empty() &&
               std::find(expected.begin(), expected.end(), one.checked.word) == expected.end()) {
      std::cout << fmt::format("{} gets {}, its author expects {}\n", one.mutant.id,
                               one.checked.word, fmt::join(expected, " or "));
    }
  }
  for (const bool by_hand : {false, true}) {
    const Row row = Sum(cases, [&](const Mutant& one) { return IsByHand(one) == by_hand; });
    std::cout << fmt::format(
        "{}: {} written, {} equivalent, {} caught by outputs alone, {} with the checker, {} and {} "
        "not judged\n",
        by_hand ? "by hand" : "operators", row.written, row.equivalent,
        Share(row.outputs, row.real() - row.no_outputs),
        Share(row.checked, row.real() - row.no_checked), row.no_outputs, row.no_checked);
    if (row.checked < kGoal * (row.real() - row.no_checked)) ++faults;
  }
  const Shown shown = ShownBy(cases);
  std::cout << fmt::format(
      "first shown: {} by schedule 0, {} by a replay, {} by a drawn schedule, {} by a directed "
      "one\n",
      shown.plain, shown.replay, shown.drawn, shown.directed);
  return faults;
}

Result<std::vector<Case>> Collect(const Options& options) {
  auto mutants = SeedProblems(kSource / "problems", kSource / "tests/mutants/blind");
  if (!mutants) return Fail(mutants.error());
  auto patches =
      ReadByHand(kSource / "tests/mutants/blind", kSource / "problems", kSource / "tests/programs");
  if (!patches) return Fail(patches.error());
  const auto reasons = ReadEquivalent(kSource / "tests/mutants/equivalent.tsv");
  if (!reasons) return Fail(reasons.error());
  if (mutants->size() < options.at_least)
    return Fail("only {} mutants, not {}", mutants->size(), options.at_least);

  std::vector<Case> all;
  std::size_t named = 0;
  const auto take = [&](std::vector<Mutant>& from, bool wanted) {
    for (Mutant& mutant : from) {
      const auto reason = reasons->find(mutant.id);
      named += reason != reasons->end();
      const bool asked = options.only.empty() || std::find(options.only.begin(), options.only.end(),
                                                           mutant.id) != options.only.end();
      if (!asked || (options.only.empty() && !wanted)) continue;
      all.push_back({std::move(mutant), reason == reasons->end() ? "" : reason->second, {}, {}});
    }
  };
  take(*mutants, true);
  take(*patches, options.by_hand);
  if (named != reasons->size())
    return Fail("tests/mutants/equivalent.tsv names {} mutants that do not exist",
                reasons->size() - named);
  if (!options.only.empty() && all.size() != options.only.size())
    return Fail("{} of the names match no mutant", options.only.size() - all.size());
  if (options.every > 1) {
    std::vector<Case> some;
    for (std::size_t i = options.first; i < all.size(); i += options.every)
      some.push_back(std::move(all[i]));
    all = std::move(some);
  }
  return all;
}

int Main(int argc, char** argv) {
  CLI::App app("Seeds bugs into references and alternates, and counts how many are found");
  Options options;
  app.add_option("id", options.only, "use only these mutants");
  app.add_flag("--list", options.list,
               "print the names, and why some are equivalent; judges nothing");
  app.add_flag("--show", options.show, "print the sources; judges nothing");
  app.add_option("--at-least", options.at_least, "fail if there are fewer mutants");
  app.add_flag("--checked", options.checked, "judge with the checker");
  app.add_flag("--outputs", options.outputs, "judge by outputs alone");
  app.add_flag("--once", options.once, "do not judge again what outputs alone detect (see below)");
  app.add_flag("--by-hand", options.by_hand, "include tests/mutants/blind");
  app.add_option("-j", options.jobs, "number of concurrent judgements")->check(CLI::Range(1, 64));
  app.add_option("--folder", options.folder, "folder that keeps verdicts between runs");
  app.add_option("--reuse", options.reuse, "also use verdicts of other builds (see below)")
      ->check(CLI::IsMember({"outputs", "all"}));
  app.add_option("--command", options.command, "the allranks command to judge with");
  app.add_option("--every", options.every, "use only every N-th mutant")
      ->check(CLI::PositiveNumber);
  app.add_option("--first", options.first, "with --every: index of the first mutant, from 0");
  app.add_flag("--fresh", options.fresh, "delete the kept verdicts first");
  app.add_flag("--write", options.write, "write the table of docs/checker.md");
  app.footer(kFooter);
  CLI11_PARSE(app, argc, argv);
  auto cases = Collect(options);
  if (!cases) {
    std::cerr << cases.error().message << "\n";
    return 1;
  }
  if (options.list || options.show) {
    for (const Case& one : *cases) {
      std::cout << (options.list ? one.mutant.id : one.mutant.text);
      if (options.list && !one.equivalent.empty()) std::cout << "\t" << one.equivalent;
      std::cout << "\n";
    }
    return 0;
  }
  if (options.fresh) fs::remove_all(options.folder);
  Store store(fs::absolute(options.folder), options.command, !options.reuse.empty(),
              options.reuse == "all");
  JudgeAll(options, &store, &*cases);
  FindSame(options, &store, &*cases);
  Originals originals;
  if (options.checked) originals = JudgeOriginals(options, &store, *cases);
  if (options.write) {
    const std::string table = Table(*cases, originals, store.build(), tools::Today());
    if (const Result<void> written = WriteTable(kSource / "docs/checker.md", table); !written) {
      std::cerr << written.error().message << "\n";
      return 1;
    }
  }
  return Report(*cases) == 0 && originals.faulty.empty() ? 0 : 1;
}

}  // namespace
}  // namespace allranks::mutants

int main(int argc, char** argv) { return allranks::mutants::Main(argc, argv); }
