// See table.h.
#include "mutants/table.h"

#include <fmt/format.h>

#include <set>

#include "common/document.h"

namespace allranks::mutants {

namespace {

constexpr char kBegin[] = "<!-- mutants: written by `mutants --write` -->\n";
constexpr char kEnd[] = "<!-- mutants: end -->\n";

std::string Line(const std::string& name, const Row& row) {
  const auto share = [&](int caught, int missing) {
    const std::string text = Share(caught, row.real() - missing);
    return missing == 0 || missing == row.real()
               ? text
               : fmt::format("{} of {}", text, row.real() - missing);
  };
  return fmt::format("| {} | {} | {} | {} | {} |\n", name, row.written, row.equivalent,
                     share(row.outputs, row.no_outputs), share(row.checked, row.no_checked));
}

std::string Names(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names)
    text += fmt::format("{}`{}`", text.empty() ? "" : ",\n", name);
  return text;
}

}  // namespace

bool Compiles(const Case& one) {
  return one.outputs.word != "compile_error" && one.checked.word != "compile_error";
}

bool Survives(const Case& one) { return one.checked.word == "pass" && one.equivalent.empty(); }

bool IsByHand(const Mutant& mutant) { return mutant.op == kByHand; }

Row Sum(const std::vector<Case>& cases, const std::function<bool(const Mutant&)>& wanted) {
  Row row;
  for (const Case& one : cases) {
    if (!wanted(one.mutant) || !Compiles(one)) continue;
    ++row.written;
    if (!one.equivalent.empty()) {
      ++row.equivalent;
      continue;
    }
    row.outputs += Caught(one.outputs);
    row.checked += Caught(one.checked);
    row.no_outputs += !Caught(one.outputs) && one.outputs.word != "pass";
    row.no_checked += !Caught(one.checked) && one.checked.word != "pass";
  }
  return row;
}

Shown ShownBy(const std::vector<Case>& cases) {
  Shown shown;
  for (const Case& one : cases) {
    if (!one.equivalent.empty() || !Compiles(one) || !Caught(one.checked)) continue;
    const std::string& by = one.checked.shown_by;
    ++(one.checked.by_outputs ? shown.alone
       : by == "replay"       ? shown.replay
       : by == "drawn"        ? shown.drawn
       : by == "directed"     ? shown.directed
                              : shown.plain);
  }
  return shown;
}

std::string Share(int part, int whole) {
  return whole == 0 ? "-" : fmt::format("{} ({:.1f} %)", part, 100.0 * part / whole);
}

std::string Table(const std::vector<Case>& cases, const Originals& originals,
                  const std::string& build, const std::string& date) {
  std::set<std::string> ops;
  std::vector<std::string> survivors;
  int other_outputs = 0, other_checked = 0, by_outputs = 0;
  for (const Case& one : cases) {
    if (!Compiles(one)) continue;
    if (!IsByHand(one.mutant)) ops.insert(one.mutant.op);
    if (Survives(one)) survivors.push_back(one.mutant.id);
    other_outputs += one.outputs.other_build;
    other_checked += one.checked.other_build;
    by_outputs += one.checked.by_outputs;
  }
  const Row all = Sum(cases, [](const Mutant&) { return true; });
  std::string text = fmt::format(
      "Made on {} by `build/release/tools/mutants --outputs --checked --by-hand --write` with "
      "build\n"
      "`{}` of `allranks`: {} mutants that compile. Shares are of those that are not equivalent.\n",
      date, build, all.written);
  if (all.no_outputs + all.no_checked != 0)
    text += fmt::format(
        "Not judged: {} by outputs alone, {} with the checker; shares are of the others there.\n",
        all.no_outputs, all.no_checked);
  if (other_outputs + other_checked != 0)
    text += fmt::format("Judged by an earlier build: {} by outputs alone, {} with the checker.\n",
                        other_outputs, other_checked);
  if (by_outputs != 0)
    text += fmt::format(
        "{} that outputs alone catch were not judged again with the checker, which compares the "
        "same\n"
        "outputs of the same runs: they count as caught.\n",
        by_outputs);
  if (originals.seen != 0 && originals.faulty.empty())
    text += fmt::format("All {} originals pass under the same checker.\n", originals.seen);
  if (!originals.faulty.empty())
    text += fmt::format("Of {} originals these do not pass under the same checker: {}.\n",
                        originals.seen, Names(originals.faulty));
  text +=
      "\n| operator | written | equivalent | caught by outputs alone | caught with the checker |\n"
      "|---|---:|---:|---:|---:|\n";
  for (const std::string& op : ops)
    text += Line("`" + op + "`", Sum(cases, [&](const Mutant& one) { return one.op == op; }));
  text += Line("**all operators**", Sum(cases, std::not_fn(IsByHand)));
  text += Line("by hand, of problems",
               Sum(cases, [](const Mutant& one) { return IsByHand(one) && !IsProgram(one); }));
  text += Line("by hand, of programs", Sum(cases, IsProgram));
  text += Line("**all by hand**", Sum(cases, IsByHand));
  const Shown shown = ShownBy(cases);
  text += fmt::format(
      "\nOf those caught with the checker {} show under schedule 0, {} first in a disturbed "
      "repetition\nof a burst, {} first under a drawn schedule, {} first under a directed one{}.\n",
      shown.plain, shown.replay, shown.drawn, shown.directed,
      shown.alone == 0 ? "" : fmt::format(", {} are known by outputs alone", shown.alone));
  text += survivors.empty() ? "\nNone survives the checker.\n"
                            : fmt::format("\nThese survive the checker:\n{}.\n", Names(survivors));
  return text;
}

Result<void> WriteTable(const std::filesystem::path& document, const std::string& table) {
  const Result<bool> written = tools::PutBetween(kBegin, kEnd, table, document, /*write=*/true);
  if (!written) return Fail(written.error());
  return {};
}

}  // namespace allranks::mutants
