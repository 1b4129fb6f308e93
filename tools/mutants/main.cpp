// `mutants`: sows bugs into references and alternates and judges each of them twice, with the
// checker and by outputs alone. What the first finds and the second does not is the checker's
// worth: --write puts that into docs/checker.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>

#include "mutants/corpus.h"
#include "mutants/judging.h"
#include "mutants/same.h"

namespace allranks::mutants {
namespace {

namespace fs = std::filesystem;

constexpr char kBegin[] = "<!-- mutants: written by `mutants --write` -->\n";
constexpr char kEnd[] = "<!-- mutants: end -->\n";
constexpr double kGoal = 0.99;
const fs::path kSource = ALLRANKS_SOURCE_DIR;

struct Options {
  std::vector<std::string> only;
  std::string folder = ALLRANKS_MUTANTS_FOLDER, command = ALLRANKS_COMMAND;
  std::size_t every = 1, first = 0, at_least = 0;
  bool list = false, show = false, outputs = false, checked = false, by_hand = false, write = false,
       fresh = false;
};

// One mutant and what became of it.
struct Case {
  Mutant mutant;
  std::string equivalent;  // why it does the same as its original; empty: it does not
  Verdict outputs, checked;
};

struct Row {
  int written = 0, equivalent = 0, outputs = 0, checked = 0, missing = 0;
  int real() const { return written - equivalent; }
};

bool Caught(const Verdict& verdict) { return !verdict.word.empty() && verdict.word != "pass"; }

bool Compiles(const Case& one) {
  return one.outputs.word != "compile_error" && one.checked.word != "compile_error";
}

Row Sum(const std::vector<Case>& cases, const std::string& op, bool by_hand) {
  Row row;
  for (const Case& one : cases) {
    if ((one.mutant.op == "by_hand") != by_hand) continue;
    if ((!op.empty() && one.mutant.op != op) || !Compiles(one)) continue;
    ++row.written;
    if (!one.equivalent.empty()) {
      ++row.equivalent;
      continue;
    }
    row.outputs += Caught(one.outputs);
    row.checked += Caught(one.checked);
    row.missing += one.outputs.word.empty() || one.checked.word.empty();
  }
  return row;
}

std::string Share(int part, int whole) {
  return fmt::format("{} ({:.1f} %)", part, whole == 0 ? 100.0 : 100.0 * part / whole);
}

std::string Line(const std::string& name, const Row& row) {
  return fmt::format("| {} | {} | {} | {} | {} |\n", name, row.written, row.equivalent,
                     Share(row.outputs, row.real()), Share(row.checked, row.real()));
}

std::string Table(const std::vector<Case>& cases) {
  std::vector<std::string> ops;
  for (const Case& one : cases) {
    if (one.mutant.op != "by_hand" && std::find(ops.begin(), ops.end(), one.mutant.op) == ops.end())
      ops.push_back(one.mutant.op);
  }
  std::sort(ops.begin(), ops.end());
  char date[16];
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%F", std::gmtime(&now));
  std::string text = fmt::format(
      "Made on {} by `build/release/tools/mutants --outputs --checked --by-hand --write`. Shares "
      "are of those that are not equivalent.\n\n"
      "| operator | written | equivalent | caught by outputs alone | caught with the checker |\n"
      "|---|---:|---:|---:|---:|\n",
      date);
  for (const std::string& op : ops) text += Line("`" + op + "`", Sum(cases, op, false));
  text += Line("**all operators**", Sum(cases, "", false));
  text += Line("**written by hand**", Sum(cases, "", true));
  return text;
}

bool Write(const std::vector<Case>& cases) {
  const fs::path doc = kSource / "docs/checker.md";
  std::ifstream in(doc, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::size_t begin = text.find(kBegin), end = text.find(kEnd);
  if (begin == std::string::npos || end == std::string::npos) {
    std::cerr << "docs/checker.md has no place for the table\n";
    return false;
  }
  text.replace(begin, end - begin, kBegin + Table(cases));
  std::ofstream(doc, std::ios::binary) << text;
  return true;
}

void JudgeAll(const Options& options, std::vector<Case>* cases) {
  const Judge outputs(fs::path(options.folder) / "outputs", options.command, {"--no-check"});
  const Judge checked(fs::path(options.folder) / "checked", options.command, {});
  std::size_t done = 0;
  for (Case& one : *cases) {
    ++done;
    one.outputs = options.outputs ? outputs.Of(one.mutant) : outputs.Kept(one.mutant);
    one.checked = options.checked ? checked.Of(one.mutant) : checked.Kept(one.mutant);
    if (one.outputs.seconds + one.checked.seconds == 0) continue;
    std::cerr << fmt::format("{}/{} {}: {}, by outputs {}\n", done, cases->size(), one.mutant.id,
                             one.checked.word, one.outputs.word);
  }
}

// Who finds fault with an original catches its mutants for nothing. The number of such originals;
// `problems check` judges them in all cases.
int FaultyOriginals(const Options& options, const std::vector<Case>& cases) {
  const Judge judge(fs::path(options.folder) / "originals", options.command, {});
  std::set<fs::path> seen;
  int faults = 0;
  for (const Case& one : cases) {
    if (!seen.insert(one.mutant.original).second) continue;
    Mutant original = one.mutant;
    std::ifstream in(original.original, std::ios::binary);
    original.text.assign(std::istreambuf_iterator<char>(in), {});
    const Verdict verdict = judge.Of(original, false);
    if (verdict.word == "pass") continue;
    std::cout << fmt::format("FAULT: {} itself gets {}: {}\n", original.original.string(),
                             verdict.word, verdict.text);
    ++faults;
  }
  return faults;
}

// Survivors get a last chance to be the same program.
void FindSame(std::vector<Case>* cases) {
  for (Case& one : *cases) {
    if (!one.equivalent.empty() || one.checked.word != "pass") continue;
    const Result<bool> same = SamePtx(one.mutant);
    if (same && *same) one.equivalent = "the same PTX";
  }
}

// 0: at least kGoal of them are caught.
int Report(const std::vector<Case>& cases) {
  int faults = 0;
  for (const Case& one : cases) {
    if (one.checked.word == "pass" && one.equivalent.empty()) {
      std::cout << fmt::format("survives: {}\n", one.mutant.id);
    } else if (Caught(one.checked) && !one.equivalent.empty() && Compiles(one)) {
      std::cout << fmt::format("FAULT: {} is said to be equivalent, but gets {}: {}\n",
                               one.mutant.id, one.checked.word, one.checked.text);
      ++faults;
    } else if (one.checked.word == "none" || one.checked.word == "internal_error") {
      std::cout << fmt::format("FAULT: {}: {} {}\n", one.mutant.id, one.checked.word,
                               one.checked.text);
      ++faults;
    }
  }
  for (const bool by_hand : {false, true}) {
    const Row row = Sum(cases, "", by_hand);
    std::cout << fmt::format(
        "{}: {} written, {} equivalent, {} caught by outputs alone, {} with the checker, {} not "
        "judged\n",
        by_hand ? "by hand" : "operators", row.written, row.equivalent,
        Share(row.outputs, row.real()), Share(row.checked, row.real()), row.missing);
    if (row.checked < kGoal * row.real()) ++faults;
  }
  return faults == 0 ? 0 : 1;
}

Result<std::vector<Case>> Collect(const Options& options) {
  auto mutants = SeedProblems(kSource / "problems");
  if (!mutants) return Fail(mutants.error());
  auto patches = ReadByHand(kSource / "tests/mutants/blind", kSource / "problems");
  if (!patches) return Fail(patches.error());
  const auto reasons = ReadEquivalent(kSource / "tests/mutants/equivalent.tsv");
  if (!reasons) return Fail(reasons.error());
  if (mutants->size() < options.at_least)
    return Fail("only {} mutants are sown, not {}", mutants->size(), options.at_least);

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
    return Fail("tests/mutants/equivalent.tsv names {} mutants that there are not",
                reasons->size() - named);
  if (!options.only.empty() && all.size() != options.only.size())
    return Fail("{} of the names are of no mutant", options.only.size() - all.size());
  if (options.every > 1) {
    std::vector<Case> some;
    for (std::size_t i = options.first; i < all.size(); i += options.every)
      some.push_back(std::move(all[i]));
    all = std::move(some);
  }
  return all;
}

int Main(int argc, char** argv) {
  CLI::App app("Sows bugs into references and alternates, and counts which ones are caught");
  Options options;
  app.add_option("id", options.only, "only these");
  app.add_flag("--list", options.list, "their names, and why some are equivalent; judges nothing");
  app.add_flag("--show", options.show, "their sources; judges nothing");
  app.add_option("--at-least", options.at_least, "fail if fewer are sown");
  app.add_flag("--checked", options.checked, "judge with the checker");
  app.add_flag("--outputs", options.outputs, "judge by outputs alone");
  app.add_flag("--by-hand", options.by_hand, "those of tests/mutants/blind, too");
  app.add_option("--folder", options.folder, "where verdicts are kept from run to run");
  app.add_option("--command", options.command, "the allranks command to judge with");
  app.add_option("--every", options.every, "only every N-th")->check(CLI::PositiveNumber);
  app.add_option("--first", options.first, "of these, the first one's place, from 0");
  app.add_flag("--fresh", options.fresh, "forget what is kept there first");
  app.add_flag("--write", options.write, "write the table of docs/checker.md");
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
  JudgeAll(options, &*cases);
  FindSame(&*cases);
  if (options.write && !Write(*cases)) return 1;
  const int faulty = options.checked ? FaultyOriginals(options, *cases) : 0;
  return Report(*cases) == 0 && faulty == 0 ? 0 : 1;
}

}  // namespace
}  // namespace allranks::mutants

int main(int argc, char** argv) { return allranks::mutants::Main(argc, argv); }
