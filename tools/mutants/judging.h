// Judges mutants by the `allranks` command, as a user would. Candidates: most are caught in one
// small case; only who passes that is judged in all. Programs judge themselves: they are compiled
// as tests/programs are and run by `exec`, with the checker under a few schedules.
#pragma once

#include <filesystem>
#include <string>

#include "mutants/store.h"

namespace allranks::mutants {

// What a judged candidate's source is called, also in findings.
inline constexpr char kCandidateFile[] = "candidate.cu";

// With the checker, nothing kept: the judge's JSON, or for a program one of the same form, with
// `findings` if there are any. `folder` is for files.
std::string JudgeOnce(const Mutant& mutant, const std::string& command,
                      const std::filesystem::path& folder);

class Judge {
 public:
  Judge(Store* store, std::string command) : store_(store), command_(std::move(command)) {}

  // Kept, or judged now and kept. kOriginal: with the checker, a candidate in one small case only.
  // May be called by several threads.
  Verdict Of(const Mutant& mutant, Kind kind) const;

 private:
  Store* store_;
  std::string command_;
};

}  // namespace allranks::mutants
