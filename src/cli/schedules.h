// `exec --check --schedules N`: the same program under N further schedules, several at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/exec.h"
#include "cli/finding_list.h"

namespace allranks::cli {

struct SchedulesRun {
  std::vector<std::uint64_t> schedules;  // that were run
  std::vector<FindingRun::Failure> failures;
};

// `plain`: the run under schedule 0. What the program prints is shown only where it fails.
SchedulesRun RunSchedules(const ExecOptions& options, const RunOutcome& plain, FindingList* list);

}  // namespace allranks::cli
