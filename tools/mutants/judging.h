// Judges mutants by the `allranks` command, as a user would. Candidates: most are caught in one
// small case; only who passes that is judged in all. Programs judge themselves: they are compiled
// as tests/programs are and run by `exec`, with the checker under a few schedules.
#pragma once

#include <filesystem>
#include <string>

#include "mutants/store.h"

namespace allranks::mutants {

class Judge {
 public:
  Judge(Store* store, std::string command) : store_(store), command_(std::move(command)) {}

  // Kept, or judged now and kept. kOriginal: with the checker, a candidate in one small case only.
  // May be called by several threads.
  Verdict Of(const Mutant& mutant, Kind kind) const;

 private:
  std::string Candidate(const Mutant& mutant, Kind kind, const std::filesystem::path& folder) const;
  std::string Program(const Mutant& mutant, Kind kind, const std::filesystem::path& folder) const;

  Store* store_;
  std::string command_;
};

}  // namespace allranks::mutants
