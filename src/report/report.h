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

struct Attachment {  // a file beside the page
  std::string name, text;
};

// One self-contained page: no request to anywhere. `plots`: where WritePlots has written. `files`
// can be saved from the page; those that make it too large are linked to.
Result<std::string> RenderPage(const Summary& summary, const std::vector<campaign::Run>& runs,
                               const std::filesystem::path& out,
                               const std::vector<std::string>& plots,
                               const std::vector<Attachment>& files = {});

struct Written {
  Summary summary;
  std::filesystem::path page;
  std::string no_plots;  // why there are none; empty: there are
};
// Steps that Options::on_step hears of.
inline constexpr int kSteps = 3;
// summary.json, models.csv, problems.csv, cases.csv, plots/ and index.html. Without gnuplot all but
// the plots.
Result<Written> WriteReport(const std::vector<campaign::Run>& runs, const Options& options,
                            const std::filesystem::path& out, bool plots);

}  // namespace allranks::report
