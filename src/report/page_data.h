// The data of the page as JSON: what share/report/*.js shows. Its form is between these two and may
// change with them; summary.json is what others should read.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "campaign/record.h"
#include "report/report.h"
#include "report/summary.h"

namespace allranks::report {

struct Drawing {
  std::string name, svg;
};

// Bytes of texts that a page carries at most. With figures and plots the page of 10 models x 100
// problems x 5 samples stays below 5 MB.
inline constexpr std::size_t kTextBudget = 2'050'000;

// Bytes of files beside the page that it carries too.
inline constexpr std::size_t kFileBudget = 400'000;

// Safe inside <script>: has neither < nor > nor &.
std::string PageData(const Summary& summary, const std::vector<campaign::Run>& runs,
                     const std::vector<Drawing>& drawings, const std::vector<Attachment>& files,
                     std::size_t text_budget = kTextBudget);

}  // namespace allranks::report
