// `exec --check --schedules N`: the same program under N further schedules, several at a time.
//
// Two of three are directed (node/check/delays.h) while there are places at which nobody has been
// delayed yet; the run under schedule 0 has counted them. The others are drawn.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/exec.h"
#include "cli/finding_list.h"
#include "node/checking.h"

namespace allranks::cli {

struct SchedulesRun {
  std::vector<std::uint64_t> schedules;  // that were run
  std::vector<FindingList::Failure> failures;
};

// The first `count` schedules after 0 for a program that has come to so many places.
std::vector<std::uint64_t> ChooseSchedules(const node::PlaceCounts& places, int count);

// `plain`: the run under schedule 0. What the program prints is shown only where it fails.
SchedulesRun RunSchedules(const ExecOptions& options, const RunOutcome& plain, FindingList* list);

}  // namespace allranks::cli
