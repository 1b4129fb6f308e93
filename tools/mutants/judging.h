// Judges mutants by the `allranks` command, as a user would, one after the other, and keeps what
// was said in a folder by the hash of the source: a second run judges only what is new. Most are
// caught in one small case; only who passes that is judged in the visible ones, and in all.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "mutants/corpus.h"

namespace allranks::mutants {

struct Verdict {
  std::string word;  // as in the judge's JSON; "none": the judge said nothing
  std::string text;
  bool lenient = false;  // outputs matched
  double seconds = 0;    // 0: kept from an earlier run
};

class Judge {
 public:
  // Results of judging with other `options` or by another command lie in other folders.
  Judge(std::filesystem::path folder, std::string command, std::vector<std::string> options);

  // `deep`: who passes in one small case is judged in the others, too.
  Verdict Of(const Mutant& mutant, bool deep = true) const;
  // What is already there; no word: nothing is.
  Verdict Kept(const Mutant& mutant) const;

 private:
  std::filesystem::path PathOf(const Mutant& mutant) const;

  std::filesystem::path folder_;
  std::string command_;
  std::vector<std::string> options_;
};

}  // namespace allranks::mutants
