#include "judge/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "judge/score.h"
#include "node/findings.h"
#include "node/traffic.h"

namespace allranks::judge {
namespace {

using Json = nlohmann::ordered_json;
using problem::Case;

const char* NameOf(Case::Kind kind) {
  switch (kind) {
    case Case::Kind::kTimed:
      return "timed";
    case Case::Kind::kVisible:
      return "visible";
    case Case::Kind::kDrawn:
      return "drawn";
  }
  return "?";
}

double Ratio(double a, double b) { return b > 0 ? a / b : 0; }

// GB/s at which what must reach a rank does so.
double Bandwidth(const CaseResult& result) { return Ratio(result.bytes, result.call_ns); }

Json OptionalNumber(double value) { return value > 0 ? Json(value) : Json(nullptr); }
Json OptionalNumber(std::optional<double> value) { return OptionalNumber(value.value_or(0)); }

Json BandOf(const Judgement& judgement) {
  if (!judgement.band) return nullptr;
  return {{"profiles", judgement.band->size()}, {"speedup_vs_reference", *judgement.band}};
}

// For a terminal: what a candidate got into a message must not move its cursor.
std::string Printable(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 ? c != '\n' && c != '\t' : c == 0x7f) c = '?';
  return text;
}

Json FindingsOf(const Judgement& judgement) {
  std::vector<node::Finding> findings;
  for (const CaseFinding& found : judgement.findings) findings.push_back(found.finding);
  Json all = Json::parse(node::ToJson(findings));
  for (std::size_t i = 0; i < all.size(); ++i) all[i]["cases"] = judgement.findings[i].cases;
  return all;
}

// What was found beside that which made the verdict.
std::string Remarks(const Judgement& judgement) {
  std::string out;
  if (judgement.lenient && judgement.verdict != Verdict::kPass)
    out += "outputs match in all cases: by chance, or only on this machine\n";
  std::vector<node::Finding> others;
  for (const CaseFinding& found : judgement.findings)
    if (!node::Counts(found.finding)) others.push_back(found.finding);
  if (others.empty()) return out;
  out += fmt::format("not counted: {}\n", node::Summary(others));
  for (const node::Finding& finding : others) out += Printable(node::Describe(finding));
  return out;
}

std::string Us(double ns) { return ns > 0 ? fmt::format("{:.2f}", ns / 1e3) : "-"; }

std::string Times(double ratio) { return ratio > 0 ? fmt::format("{:.2f}x", ratio) : "-"; }

std::string Bytes(std::uint64_t bytes) {
  if (bytes < 10'000) return fmt::format("{} B", bytes);
  if (bytes < 10'000'000) return fmt::format("{:.1f} kB", static_cast<double>(bytes) / 1e3);
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

std::string Movers(const CaseResult& result) {
  std::string text;
  for (std::size_t i = 0; i < result.moved.size() && i < node::kMovers; ++i) {
    if (result.moved[i] == 0) continue;
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {}", node::NameOf(static_cast<node::Mover>(i)), Bytes(result.moved[i]));
  }
  return text.empty() ? "-" : text;
}

// A table whose columns are as wide as they need to be.
class Table {
 public:
  void Row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string Print() const {
    std::vector<std::size_t> widths;
    for (const auto& row : rows_) {
      widths.resize(std::max(widths.size(), row.size()));
      for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    std::string out;
    for (const auto& row : rows_) {
      std::string line;
      for (std::size_t i = 0; i < row.size(); ++i) {
        const bool words = i == 0 || i + 1 == row.size();
        line += words ? fmt::format("{:<{}}", row[i], widths[i])
                      : fmt::format("{:>{}}", row[i], widths[i]);
        if (i + 1 < row.size()) line += "  ";
      }
      line.erase(line.find_last_not_of(' ') + 1);
      out += line + "\n";
    }
    return out;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

std::string Headline(const problem::Problem& problem, const Judgement& judgement) {
  std::string line = fmt::format("{}: {}", problem.slug, NameOf(judgement.verdict));
  if (judgement.verdict == Verdict::kPass && judgement.score > 0)
    line += fmt::format(", {:.1f} % of the roofline", judgement.score * 100);
  return line + fmt::format(" (times are modelled: {}, version {}; seed {}{})\n", judgement.profile,
                            judgement.profile_version, judgement.seed,
                            judgement.trusted ? "; judged without a sandbox" : "");
}

}  // namespace

std::string ToJson(const problem::Problem& problem, const Judgement& judgement) {
  Json cases = Json::array();
  for (const CaseResult& result : judgement.cases) {
    Json params = Json::object();
    for (std::size_t i = 0; i < problem.params.size(); ++i)
      params[problem.params[i]] = result.what.params[i];
    Json moved = Json::object();
    for (std::size_t i = 0; i < result.moved.size() && i < node::kMovers; ++i)
      moved[node::NameOf(static_cast<node::Mover>(i))] = result.moved[i];
    cases.push_back({
        {"name", result.what.name},
        {"kind", NameOf(result.what.kind)},
        {"world", result.what.world},
        {"params", params},
        {"ran", result.ran},
        {"verdict", result.ran || result.verdict != Verdict::kPass ? Json(NameOf(result.verdict))
                                                                   : Json(nullptr)},
        {"text", result.text},
        {"isolated_ns", OptionalNumber(result.isolated_ns)},
        {"call_ns", OptionalNumber(result.call_ns)},
        {"bytes", result.bytes},
        {"bandwidth_gbs", OptionalNumber(Bandwidth(result))},
        {"roofline_ns", OptionalNumber(result.roofline_ns)},
        {"roofline_fraction", OptionalNumber(Ratio(result.roofline_ns, result.call_ns))},
        {"reference_ns", OptionalNumber(result.reference_ns)},
        {"speedup_vs_reference", OptionalNumber(Ratio(result.reference_ns, result.call_ns))},
        {"baseline_ns", OptionalNumber(result.baseline_ns)},
        {"speedup_vs_baseline", OptionalNumber(Ratio(result.baseline_ns, result.call_ns))},
        {"nccl_ns", OptionalNumber(result.nccl_ns)},
        {"speedup_vs_nccl", OptionalNumber(Ratio(result.nccl_ns, result.call_ns))},
        {"moved_bytes", moved},
        {"thread_instructions", result.thread_instructions},
        {"calls", result.calls},
        {"wrong_calls", result.wrong_calls},
        {"schedules", result.schedules},
        {"schedule", result.verdict == Verdict::kPass ? Json(nullptr) : Json(result.schedule)},
    });
  }
  const Cost& cost = judgement.cost;
  const bool pass = judgement.verdict == Verdict::kPass;
  // Of the cases that were reached before a failure: no figure of the candidate.
  const auto if_pass = [&](std::optional<double> figure) {
    return OptionalNumber(pass ? figure : std::nullopt);
  };
  const Json json = {
      {"schema", kReportSchema},
      {"problem",
       {{"slug", problem.slug},
        {"category", problem.category},
        {"level", problem.level},
        {"hash", judgement.problem_hash}}},
      {"candidate_hash", judgement.source_hash},
      {"profile", {{"name", judgement.profile}, {"version", judgement.profile_version}}},
      {"times", "modelled"},
      {"seed", judgement.seed},
      {"verdict", NameOf(judgement.verdict)},
      {"pass", pass},
      {"strict", pass},
      {"lenient", judgement.lenient},
      {"checked", judgement.checked},
      {"trusted", judgement.trusted},
      {"shown_by", judgement.shown_by.empty() ? Json(nullptr) : Json(judgement.shown_by)},
      {"score", pass ? judgement.score : 0.0},
      {"speedup_vs_reference", if_pass(SpeedupOverReference(judgement.cases))},
      {"speedup_vs_baseline", if_pass(SpeedupOverBaseline(judgement.cases))},
      {"speedup_vs_nccl", if_pass(SpeedupOverNccl(judgement.cases))},
      {"band", BandOf(judgement)},
      {"text", judgement.text},
      {"log", judgement.log},
      {"cases", cases},
      {"findings", FindingsOf(judgement)},
      {"cost",
       {{"wall_s", cost.wall},
        {"cpu_s", judgement.cpu_seconds()},
        {"compile_cpu_s", cost.compile},
        {"ranks_cpu_s", cost.ranks},
        {"node_cpu_s", cost.node},
        {"node_cpu_s_by_window", cost.windows},
        {"judge_cpu_s", cost.judge},
        {"band_cpu_s", cost.band},
        {"thread_instructions", cost.work},
        {"build_cached", cost.cached_build}}},
  };
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string ToTable(const problem::Problem& problem, const Judgement& judgement) {
  std::string out = Headline(problem, judgement);
  Table table;
  table.Row({"case", "bytes in", "alone us", "call us", "GB/s", "roofline", "reference", "baseline",
             "NCCL", "moved"});
  bool any = false;
  for (const CaseResult& result : judgement.cases) {
    if (!result.ran && result.verdict == Verdict::kPass) continue;
    any = true;
    if (!result.ran) {
      table.Row({result.what.name, NameOf(result.verdict)});
      continue;
    }
    if (result.what.kind != Case::Kind::kTimed) {  // ranks entered late: its time says nothing
      table.Row({result.what.name, Bytes(static_cast<std::uint64_t>(result.bytes)), "-", "-", "-",
                 "-", "-", "-", "-", Movers(result)});
      continue;
    }
    table.Row({result.what.name, Bytes(static_cast<std::uint64_t>(result.bytes)),
               Us(result.isolated_ns), Us(result.call_ns), fmt::format("{:.1f}", Bandwidth(result)),
               fmt::format("{:.1f} %", Ratio(result.roofline_ns, result.call_ns) * 100),
               Times(Ratio(result.reference_ns, result.call_ns)),
               Times(Ratio(result.baseline_ns, result.call_ns)),
               Times(Ratio(result.nccl_ns, result.call_ns)), Movers(result)});
  }
  if (any) out += table.Print();
  if (judgement.verdict != Verdict::kPass) out += Printable(judgement.text) + "\n";
  out += Remarks(judgement);
  if (judgement.verdict == Verdict::kCompileError && !judgement.log.empty())
    out += "\n" + Printable(judgement.log);
  const Cost& cost = judgement.cost;
  if (judgement.band && !judgement.band->empty()) {
    std::vector<double> band = *judgement.band;
    std::sort(band.begin(), band.end());
    out += fmt::format("on {} perturbed profiles: {:.3f}x to {:.3f}x the reference's speed\n",
                       band.size(), band.front(), band.back());
  }
  out += fmt::format("{:.2f} CPU s: compiler {:.2f}{}, ranks {:.2f}, node {:.2f}, judge {:.2f}{}\n",
                     judgement.cpu_seconds(), cost.compile, cost.cached_build ? " (cached)" : "",
                     cost.ranks, cost.node, cost.judge,
                     cost.band > 0 ? fmt::format(", perturbed profiles {:.2f}", cost.band) : "");
  return out;
}

std::string ToComparison(const problem::Problem& problem, const std::string& a,
                         const Judgement& judgement_a, const std::string& b,
                         const Judgement& judgement_b) {
  std::string out = "A " + a + "\n  " + Headline(problem, judgement_a);
  if (judgement_a.verdict != Verdict::kPass) out += "  " + Printable(judgement_a.text) + "\n";
  out += "B " + b + "\n  " + Headline(problem, judgement_b);
  if (judgement_b.verdict != Verdict::kPass) out += "  " + Printable(judgement_b.text) + "\n";
  Table table;
  table.Row({"case", "A us", "B us", "A roofline", "B roofline", "B is faster by"});
  for (const CaseResult& first : judgement_a.cases) {
    for (const CaseResult& second : judgement_b.cases) {
      if (first.what.name != second.what.name || !first.ran || !second.ran) continue;
      const auto percent = [](const CaseResult& result) {
        return fmt::format("{:.1f} %", Ratio(result.roofline_ns, result.call_ns) * 100);
      };
      table.Row({first.what.name, Us(first.call_ns), Us(second.call_ns), percent(first),
                 percent(second), Times(Ratio(first.call_ns, second.call_ns))});
    }
  }
  return out + table.Print();
}

}  // namespace allranks::judge
