// Verdicts, kept from run to run in FOLDER/BUILD/KIND/PROBLEM-CONTEXT/SOURCE.json. BUILD is a hash
// of the command that judges, CONTEXT one of what a judgement takes from the tree beside the
// source (the problem's files, headers), SOURCE one of the mutant: whatever changes is judged
// again, and a run that was cut goes on where it was.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <string>

#include "mutants/corpus.h"

namespace allranks::mutants {

struct Verdict {
  std::string word;  // as in the judge's JSON; empty: not judged; "none": the judge said nothing
  std::string text;
  std::string shown_by = {};  // as in the judge's JSON: "plain", "replay", "drawn", "directed"
  double seconds = 0;         // 0: kept from an earlier run
  bool other_build = false;   // kept from a run with another build
  bool by_outputs = false;    // with the checker: not judged, because outputs alone have caught it
};

// kOriginal: the original, with the checker.
enum class Kind { kOutputs, kChecked, kOriginal };

bool Caught(const Verdict& verdict);
// The judge has said something that is neither a pass nor about the bug.
bool Failed(const Verdict& verdict);

// What `judge --json` has printed, or we have written in the same form.
Verdict ParseVerdict(const std::string& json);

class Store {
 public:
  // Verdicts of another build of `command` count only if they are `reused`.
  Store(std::filesystem::path folder, const std::filesystem::path& command, bool reuse_outputs,
        bool reuse_all);

  // The newest one that counts.
  Verdict Find(const Mutant& mutant, Kind kind);
  // False: the command is being built anew, and nobody knows which one has said this.
  [[nodiscard]] bool Keep(const Mutant& mutant, Kind kind, const std::string& json);
  // For what depends on no build: SUBJECT/PROBLEM-CONTEXT/SOURCE.
  std::filesystem::path PathOf(const Mutant& mutant, const std::string& subject);
  // A new folder for one judgement's files.
  std::filesystem::path Scratch();
  // The first digits of its hash.
  const std::string& build() const { return build_; }

 private:
  std::filesystem::path Tail(const Mutant& mutant);

  std::filesystem::path folder_, command_;
  std::string build_, dates_;
  bool reuse_outputs_, reuse_all_;
  std::mutex mutex_;
  std::map<std::string, std::string> contexts_;  // by problem
  int scratches_ = 0;
};

}  // namespace allranks::mutants
