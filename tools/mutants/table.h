// What became of mutants, counted, and the part of docs/checker.md that says so. All of its
// sentences come from what was judged: nothing of it is written by hand.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "mutants/corpus.h"
#include "mutants/store.h"

namespace allranks::mutants {

// One mutant and what became of it.
struct Case {
  Mutant mutant;
  std::string equivalent;  // why it does the same as its original; empty: it does not
  Verdict outputs, checked;
};

// In which kind of window or run they were first caught with the checker: schedule 0, a disturbed
// repetition of a burst, a drawn schedule, a directed one; `alone`: by outputs, and not judged
// again.
struct Shown {
  int plain = 0, replay = 0, drawn = 0, directed = 0, alone = 0;
};

struct Row {
  int written = 0, equivalent = 0, outputs = 0, checked = 0;
  int no_outputs = 0, no_checked = 0;  // of the real ones, not judged
  int real() const { return written - equivalent; }
};

// The originals, under the same checker.
struct Originals {
  int seen = 0;
  std::vector<std::string> faulty;
};

// Neither judge says that it does not.
bool Compiles(const Case& one);
bool Survives(const Case& one);

// Those that compile and are `wanted`.
Row Sum(const std::vector<Case>& cases, const std::function<bool(const Mutant&)>& wanted);
Shown ShownBy(const std::vector<Case>& cases);
bool IsByHand(const Mutant& mutant);
// "12 (80.0 %)", or "-" of nothing
std::string Share(int part, int whole);

std::string Table(const std::vector<Case>& cases, const Originals& originals,
                  const std::string& build, const std::string& date);
// Puts it between the marks of a document.
Result<void> WriteTable(const std::filesystem::path& document, const std::string& table);

}  // namespace allranks::mutants
