// Tables for spreadsheets and data frames, quoted as RFC 4180 says.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include "report/figures.h"
#include "report/summary.h"

namespace allranks::report {
namespace {

class Csv {
 public:
  // Names come from files and from providers. A spreadsheet takes a cell that begins like this for
  // a formula and runs it; the apostrophe makes it text.
  Csv& Text(std::string_view text) {
    std::string safe;
    if (!text.empty() && std::string_view("=+-@\t\r\n").find(text[0]) != std::string_view::npos)
      safe = "'";
    safe += text;
    if (safe.find_first_of(",\"\r\n") == std::string::npos) return Cell(safe);
    std::string quoted = "\"";
    for (const char c : safe) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    return Cell(quoted + '"');
  }
  Csv& Number(double value) { return Cell(std::isfinite(value) ? fmt::format("{}", value) : ""); }
  Csv& Count(std::int64_t value) { return Cell(fmt::format("{}", value)); }
  Csv& Number(const std::optional<double>& value) { return value ? Number(*value) : Cell(""); }
  Csv& Of(const Interval& interval) {
    return Number(interval.value).Number(interval.low).Number(interval.high);
  }
  Csv& End() {
    out_ += "\r\n";
    first_ = true;
    return *this;
  }
  Csv& Head(std::string_view names) {  // separated by blanks
    while (!names.empty()) {
      const std::size_t end = std::min(names.find(' '), names.size());
      Cell(names.substr(0, end));
      names.remove_prefix(std::min(end + 1, names.size()));
    }
    return End();
  }
  std::string Take() { return std::move(out_); }

 private:
  Csv& Cell(std::string_view text) {
    if (!first_) out_ += ',';
    first_ = false;
    out_ += text;
    return *this;
  }
  std::string out_;
  bool first_ = true;
};

void AddRow(const ModelSummary& model, const char* dimension, const std::string& value,
            const Figures& figures, Csv* csv) {
  csv->Text(model.label).Text(model.run).Text(dimension).Text(value);
  csv->Count(model.rank_group).Count(figures.problems).Count(figures.families);
  csv->Count(figures.samples);
  csv->Of(figures.strict_pass).Of(figures.score).Of(figures.lenient_pass);
  csv->Of(figures.pass_within).Of(figures.score_within);
  csv->Number(figures.pass_plus_good).Number(figures.gm_speedup).Number(figures.pass_x_gm);
  const bool all = value == "all" && std::string_view(dimension) == "all";
  if (all) {
    csv->Number(model.dollars).Number(model.dollars_per_problem).Number(model.dollars_per_pass);
    csv->Count(model.unfinished).Count(model.unsupported).Count(model.internal_errors);
    csv->Number(model.score_if_unsupported_fails);
  } else {
    for (int i = 0; i < 7; ++i) csv->Text("");
  }
  csv->End();
}

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ";") + word;
  return text;
}

}  // namespace

std::string ModelsCsv(const Summary& summary) {
  Csv csv;
  csv.Head(
      "model run dimension value rank_group problems families samples "
      "strict_pass strict_pass_low strict_pass_high score score_low score_high "
      "lenient_pass lenient_pass_low lenient_pass_high "
      "pass_within pass_within_low pass_within_high "
      "score_within score_within_low score_within_high "
      "pass_plus_good gm_speedup pass_x_gm "
      "dollars dollars_per_problem dollars_per_pass unfinished unsupported internal_errors "
      "score_if_unsupported_fails");
  for (const ModelSummary& model : summary.models) {
    AddRow(model, "all", "all", model.all, &csv);
    for (const auto& [dimension, values] : model.by)
      for (const auto& [value, figures] : values)
        AddRow(model, dimension.c_str(), value, figures, &csv);
  }
  return csv.Take();
}

std::string ProblemsCsv(const Summary& summary) {
  Csv csv;
  csv.Head(
      "problem category level library family split parallelism difficulty model samples "
      "strict_pass score pass_within score_within");
  for (const ProblemSummary& problem : summary.problems) {
    for (const auto& [label, cell] : problem.models) {
      const campaign::ProblemFacts& facts = problem.facts;
      csv.Text(facts.slug).Text(facts.category).Text(facts.level).Text(facts.library);
      csv.Text(facts.family).Text(facts.split).Text(Joined(facts.parallelism));
      csv.Number(problem.difficulty).Text(label).Count(cell.samples);
      csv.Number(cell.strict_pass).Number(cell.score);
      csv.Number(cell.pass_within).Number(cell.score_within).End();
    }
  }
  return csv.Take();
}

std::string CasesCsv(const std::vector<campaign::Run>& runs) {
  Csv csv;
  csv.Head(
      "run profile model problem sample round kind verdict strict lenient score "
      "case case_kind case_verdict world call_ns isolated_ns bytes roofline_ns reference_ns "
      "baseline_ns nccl_ns");
  const auto time = [](double ns) { return ns > 0 ? std::optional<double>(ns) : std::nullopt; };
  for (const campaign::Run& run : runs) {
    for (const campaign::Sample& sample : run.samples) {
      for (const campaign::Round& round : sample.rounds) {
        const auto begin = [&] {
          csv.Text(run.settings.name).Text(run.settings.profile).Text(sample.model);
          csv.Text(sample.problem).Count(sample.sample).Count(round.round).Text(round.kind);
          csv.Text(round.verdict).Count(round.strict ? 1 : 0).Count(round.lenient ? 1 : 0);
          csv.Number(RoundScore(round));
        };
        if (round.cases.empty()) {  // it did not come to that: the round is shown all the same
          begin();
          for (int i = 0; i < 11; ++i) csv.Text("");
          csv.End();
        }
        for (const campaign::CaseFigures& one : round.cases) {
          begin();
          csv.Text(one.name).Text(one.kind).Text(one.verdict).Count(one.world);
          csv.Number(time(one.call_ns)).Number(time(one.isolated_ns)).Number(time(one.bytes));
          csv.Number(time(one.roofline_ns)).Number(time(one.reference_ns));
          csv.Number(time(one.baseline_ns)).Number(time(one.nccl_ns)).End();
        }
      }
    }
  }
  return csv.Take();
}

}  // namespace allranks::report
