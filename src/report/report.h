// The files of `allranks report`: what is drawn and written from a Summary and its runs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "report/summary.h"

namespace allranks::report {

// Plots as OUT/plots/NAME.svg and NAME.png, by gnuplot; the names that were written. A plot that
// has nothing to show is left out.
Result<std::vector<std::string>> WritePlots(const Summary& summary,
                                            const std::vector<campaign::Run>& runs,
                                            const std::filesystem::path& out);

// Removes what WritePlots has written there before, and nothing else.
void RemovePlots(const std::filesystem::path& out);

// One self-contained page: no request to anywhere. `plots`: where WritePlots has written.
Result<std::string> RenderPage(const Summary& summary, const std::vector<campaign::Run>& runs,
                               const std::filesystem::path& out,
                               const std::vector<std::string>& plots);

struct Written {
  Summary summary;
  std::filesystem::path page;
  std::string no_plots;  // why there are none; empty: there are
};
// summary.json, models.csv, problems.csv, cases.csv, plots/ and index.html. Without gnuplot all but
// the plots.
Result<Written> WriteReport(const std::vector<campaign::Run>& runs, const Options& options,
                            const std::filesystem::path& out, bool plots);

}  // namespace allranks::report
