// The words beside a Summary's figures: what kind of times they are, and what forbids a naive
// reading of the ranks.
#pragma once

#include <string>
#include <vector>

#include "report/summary.h"

namespace allranks::report {

// In what else than their models runs differ, a sentence each. `profiles` says what different
// profiles mean to the reader.
std::vector<std::string> Mixtures(const std::vector<campaign::Settings>& runs,
                                  const std::string& profiles);

// One sentence or two per profile.
std::vector<std::string> TimesOf(const Summary& summary);
// Mixed profiles, prompts, problems; what is excluded or missing; too few problems.
std::vector<std::string> NotesOf(const Summary& summary);

}  // namespace allranks::report
