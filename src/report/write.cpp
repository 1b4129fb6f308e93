// The files of a report.
#include <utility>

#include "base/files.h"
#include "report/report.h"

namespace allranks::report {

Result<Written> WriteReport(const std::vector<campaign::Run>& runs, const Options& options,
                            const std::filesystem::path& out, bool plots) {
  const auto step = [&](const char* what) {
    if (options.on_step) options.on_step(what);
  };
  step("computing scores");
  Result<Summary> summary = Summarise(runs, options);
  if (!summary) return Fail(summary.error());
  const std::vector<Attachment> files = {{"summary.json", ToJson(*summary)},
                                         {"models.csv", ModelsCsv(*summary)},
                                         {"problems.csv", ProblemsCsv(*summary)},
                                         {"cases.csv", CasesCsv(runs)}};
  for (const auto& [name, text] : files)
    if (Status status = WriteWhole(out / name, text); !status) return Fail(status.error());

  step("drawing plots");
  // Plots of an earlier report would be taken for those of this one.
  RemovePlots(out);
  Written written;
  std::vector<std::string> drawn;
  if (plots) {
    Result<std::vector<std::string>> names = WritePlots(*summary, runs, out);
    if (names)
      drawn = std::move(*names);
    else
      written.no_plots = names.error().message;
  } else {
    written.no_plots = "not asked for";
  }
  step("making the page");
  Result<std::string> page = RenderPage(*summary, runs, out, drawn, files);
  if (!page) return Fail(page.error());
  written.page = out / "index.html";
  if (Status status = WriteWhole(written.page, *page); !status) return Fail(status.error());
  written.summary = std::move(*summary);
  return written;
}

}  // namespace allranks::report
