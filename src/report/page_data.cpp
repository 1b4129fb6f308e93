// Every problem has the list of its samples, each with its rounds. All rounds carry verdict and
// score; cases, words and sources only those of the best and the worst sample of each model and
// problem ("detailed"), unless the run is small enough for all. Texts are numbers into one list
// that PageTexts fills within its budget, so that the page's size is bounded whatever models wrote.
#include "report/page_data.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <utility>

#include "report/dates.h"
#include "report/page_texts.h"

namespace allranks::report {
namespace {

using Json = nlohmann::ordered_json;
using campaign::Round;
using campaign::Run;
using campaign::Sample;

constexpr std::size_t kSmallRun = 20'000;  // cases over all rounds: then all samples are detailed
constexpr std::size_t kSourceLimit = 24'000, kProblemLimit = 16'000, kWordsLimit = 3'000;

// Six digits are more than anything here means, and half the bytes.
Json Number(double value, int digits = 6) {
  if (!std::isfinite(value)) return nullptr;
  if (value == std::floor(value) && std::abs(value) < 1e15) return static_cast<std::int64_t>(value);
  if (value == 0) return 0;
  const double scale = std::pow(10, digits - 1 - std::floor(std::log10(std::abs(value))));
  return scale > 0 && std::isfinite(scale) ? std::round(value * scale) / scale : value;
}

Json Optional(const std::optional<double>& value) { return value ? Number(*value) : Json(nullptr); }

Json From(const Interval& interval) {
  return Json::array({Number(interval.value), Number(interval.low), Number(interval.high)});
}

Json From(const std::vector<Interval>& intervals) {
  Json json = Json::array();
  for (const Interval& interval : intervals) json.push_back(From(interval));
  return json;
}

Json Rounded(const std::vector<double>& values) {
  Json json = Json::array();
  for (const double value : values) json.push_back(Number(value, 4));
  return json;
}

Json ByNumber(const std::map<int, double>& values) {
  Json json = Json::object();
  for (const auto& [k, value] : values) json[std::to_string(k)] = Number(value);
  return json;
}

Json From(const Figures& figures, bool whole) {
  Json json = {{"problems", figures.problems},
               {"samples", figures.samples},
               {"strict", From(figures.strict_pass)},
               {"score", From(figures.score)},
               {"lenient", From(figures.lenient_pass)},
               {"within", From(figures.pass_within)},
               {"score_within", From(figures.score_within)},
               {"good", Number(figures.pass_plus_good)},
               {"gm", Optional(figures.gm_speedup)},
               {"pass_x_gm", Number(figures.pass_x_gm)}};
  if (whole) {
    json["pass_at"] = ByNumber(figures.pass_at);
    json["fast"] = Json::object();
    for (const auto& [p, values] : figures.fast) json["fast"][p] = ByNumber(values);
  }
  return json;
}

Json From(const ModelSummary& model) {
  Json by = Json::object();
  for (const auto& [dimension, values] : model.by) {
    if (dimension == "family") continue;  // problems are listed one by one anyway
    for (const auto& [value, figures] : values) by[dimension][value] = From(figures, false);
  }
  Json moved = Json::object();
  for (const auto& [mover, bytes] : model.moved) moved[mover] = Number(bytes);
  const campaign::ModelFacts& facts = model.facts;
  return {{"name", model.label},
          {"run", model.run},
          {"protocol", facts.protocol},
          {"model", facts.model},
          {"open", facts.open_weights},
          {"price", facts.price_known ? Json::array({facts.input_price, facts.cached_input_price,
                                                     facts.output_price})
                                      : Json(nullptr)},
          {"group", model.rank_group},
          {"all", From(model.all, true)},
          {"by", by},
          {"verdicts", model.verdicts},
          {"verdicts_by_round", model.verdicts_by_round},
          {"pass_rounds", From(model.pass_within_round)},
          {"score_rounds", From(model.score_within_round)},
          {"fast_reference", Rounded(model.fast_reference)},
          {"classes", model.classes},
          {"moved", moved},
          {"dollars", Number(model.dollars)},
          {"per_problem", Optional(model.dollars_per_problem)},
          {"per_pass", Optional(model.dollars_per_pass)},
          {"tokens", Json::array({model.usage.input, model.usage.cached_input, model.usage.output,
                                  model.usage.reasoning})},
          {"unsupported", Number(model.unsupported_rate)},
          {"score_if_unsupported_fails", Number(model.score_if_unsupported_fails)},
          {"internal_errors", model.internal_errors},
          {"finished", model.finished},
          {"planned", model.planned}};
}

// How good a round is; of equals the earlier counts.
std::tuple<bool, double, bool> Worth(const Round& round) {
  return {round.strict, round.score, round.lenient};
}

const Round* BestRound(const Sample& sample) {
  const Round* best = nullptr;
  for (const Round& round : sample.rounds)
    if (best == nullptr || Worth(*best) < Worth(round)) best = &round;
  // None is right: the last words are the ones that say what is left to do.
  return best != nullptr && !best->strict && !best->lenient ? &sample.rounds.back() : best;
}

struct Entry {  // a sample, with where it is from
  const Run* run;
  const Sample* sample;
  int model;
  bool best = false, worst = false;  // of its model
  bool top = false, bottom = false;  // of the problem
  bool withheld = false;             // the problem is not public: no texts
};

bool Better(const Entry& a, const Entry& b) {
  return Worth(*BestRound(*a.sample)) > Worth(*BestRound(*b.sample));
}

// The problem's cases once, with what does not depend on the solution.
class CaseList {
 public:
  int Find(const campaign::CaseFigures& figures) {
    const auto [at, fresh] = numbers_.emplace(figures.name, static_cast<int>(json_.size()));
    if (fresh)
      json_.push_back({{"name", figures.name},
                       {"kind", figures.kind},
                       {"world", figures.world},
                       {"params", figures.params}});
    Json& json = json_[static_cast<std::size_t>(at->second)];
    const auto fill = [&](const char* key, double value) {
      if (value > 0 && !json.contains(key)) json[key] = Number(value);
    };
    fill("bytes", figures.bytes);
    fill("roofline", figures.roofline_ns);
    fill("reference", figures.reference_ns);
    fill("baseline", figures.baseline_ns);
    fill("nccl", figures.nccl_ns);
    return at->second;
  }
  Json Take() { return std::move(json_); }

 private:
  std::map<std::string, int> numbers_;
  Json json_ = Json::array();
};

std::vector<std::filesystem::path> FoldersOf(const std::vector<campaign::Run>& runs) {
  std::vector<std::filesystem::path> folders;
  for (const campaign::Run& run : runs) folders.push_back(run.folder);
  return folders;
}

class DataMaker {
 public:
  DataMaker(const Summary& summary, const std::vector<Run>& runs, std::size_t text_budget)
      : summary_(summary), runs_(runs), texts_(text_budget, FoldersOf(runs)) {}
  Json Make(const std::vector<Drawing>& drawings, const std::vector<Attachment>& files);

 private:
  int ModelOf(std::size_t run, const std::string& name) const;
  std::vector<Entry> EntriesOf(const std::string& slug) const;
  Json Problem(const ProblemSummary& problem);
  bool Withheld(const std::string& slug) const;
  Json OfSample(const Entry& entry, CaseList* cases);
  Json OfRound(const Entry& entry, const Round& round, CaseList* cases);
  Json Texts() const;

  const Summary& summary_;
  const std::vector<Run>& runs_;
  PageTexts texts_;
  bool small_ = false;
};

int DataMaker::ModelOf(std::size_t run, const std::string& name) const {
  for (std::size_t i = 0; i < summary_.models.size(); ++i)
    if (summary_.models[i].run_index == run && summary_.models[i].facts.name == name)
      return static_cast<int>(i);
  return -1;
}

// A page is handed around: what may not become known stays out of it unless it was asked for.
bool DataMaker::Withheld(const std::string& slug) const {
  if (summary_.options.private_texts) return false;
  for (const Run& run : runs_)
    for (const campaign::ProblemFacts& facts : run.settings.problems)
      if (facts.slug == slug && facts.split != "public") return true;
  return false;
}

std::vector<Entry> DataMaker::EntriesOf(const std::string& slug) const {
  std::vector<Entry> entries;
  for (std::size_t run = 0; run < runs_.size(); ++run)
    for (const Sample& sample : runs_[run].samples) {
      if (sample.problem != slug || sample.rounds.empty()) continue;
      if (const int model = ModelOf(run, sample.model); model >= 0)
        entries.push_back({&runs_[run], &sample, model});
    }
  std::map<int, std::pair<Entry*, Entry*>> of_model;
  Entry *top = nullptr, *bottom = nullptr;
  for (Entry& entry : entries) {
    auto& [best, worst] = of_model[entry.model];
    if (best == nullptr || Better(entry, *best)) best = &entry;
    if (worst == nullptr || Better(*worst, entry)) worst = &entry;
    if (top == nullptr || Better(entry, *top)) top = &entry;
    if (bottom == nullptr || Better(*bottom, entry)) bottom = &entry;
  }
  for (const auto& [model, both] : of_model) both.first->best = both.second->worst = true;
  if (top != nullptr) top->top = bottom->bottom = true;
  const bool withheld = Withheld(slug);
  for (Entry& entry : entries) entry.withheld = withheld;
  return entries;
}

Json DataMaker::OfRound(const Entry& entry, const Round& round, CaseList* cases) {
  Json json = {{"verdict", round.verdict}};
  if (round.strict) json["strict"] = true;
  if (round.lenient) json["lenient"] = true;
  if (round.score > 0) json["score"] = Number(round.score, 5);
  if (!small_ && !entry.best && !entry.worst) return json;
  json["kind"] = round.kind;
  if (round.dollars > 0) json["dollars"] = Number(round.dollars, 3);

  // What is usual is left unsaid.
  if (round.speedup_vs_reference) json["reference"] = Number(*round.speedup_vs_reference, 4);
  if (round.speedup_vs_baseline) json["baseline"] = Number(*round.speedup_vs_baseline, 4);
  if (round.speedup_vs_nccl) json["nccl"] = Number(*round.speedup_vs_nccl, 4);
  if (round.answer != "source") json["answer"] = round.answer;
  if (round.finish != "stop") json["finish"] = round.finish;
  if (!round.band.empty()) {
    const auto [low, high] = std::minmax_element(round.band.begin(), round.band.end());
    json["band"] = Json::array({Number(*low, 4), Number(*high, 4)});
  }
  const Sample& sample = *entry.sample;
  const bool chosen = &round == BestRound(sample);
  Json rows = Json::array();
  for (const campaign::CaseFigures& figures : round.cases) {
    if (figures.verdict.empty()) continue;
    const bool pass = figures.verdict == "pass", timed = figures.kind == "timed";
    if (!small_ && (!chosen || (pass && !timed))) continue;
    Json row = Json::array({cases->Find(figures), pass ? Json(0) : Json(figures.verdict),
                            Number(figures.call_ns, 5), Number(figures.isolated_ns, 5)});
    if (timed) {
      Json moved = Json::object();
      for (const auto& [mover, bytes] : figures.moved)
        if (bytes > 0) moved[mover] = bytes;
      row.push_back(moved);
    }
    rows.push_back(std::move(row));
  }
  if (!rows.empty()) json["cases"] = std::move(rows);

  if (entry.withheld) return json;
  const std::filesystem::path folder =
      entry.run->folder /
      campaign::RoundFolder(sample.model, sample.problem, sample.sample, round.round);
  const bool extreme = entry.top || entry.bottom;
  const bool shown = entry.best || entry.worst;
  Weight source = Weight::kOther, words = Weight::kOther;
  if (shown) {
    source = !chosen      ? Weight::kRound
             : extreme    ? Weight::kExtreme
             : entry.best ? Weight::kBest
                          : Weight::kWorst;
    words = chosen && extreme ? Weight::kExtreme : Weight::kWords;
  }
  if (!round.text.empty()) json["text"] = texts_.WantText(words, round.text, kWordsLimit);
  json["reply"] =
      texts_.WantFile(shown ? Weight::kRound : Weight::kOther, folder / "reply.txt", kSourceLimit);
  if (!round.source_hash.empty())
    json["source"] = texts_.WantFile(source, folder / "source.cu", kSourceLimit);
  if (!round.strict) json["log"] = texts_.WantFile(words, folder / "compiler.log", kWordsLimit);
  if (&round != &sample.rounds.back())
    json["feedback"] = texts_.WantFile(words, folder / "feedback.md", kWordsLimit);
  return json;
}

Json DataMaker::OfSample(const Entry& entry, CaseList* cases) {
  const Sample& sample = *entry.sample;
  Json rounds = Json::array();
  for (const Round& round : sample.rounds) rounds.push_back(OfRound(entry, round, cases));
  Json json = {{"model", entry.model},
               {"sample", sample.sample},
               {"best_round", BestRound(sample) - sample.rounds.data()},
               {"rounds", std::move(rounds)}};
  if (small_ || entry.best || entry.worst) {
    json["folder"] =
        campaign::SampleFolder(sample.model, sample.problem, sample.sample).generic_string();
    json["stopped"] = sample.stopped;
  }
  if (entry.best) json["best"] = true;
  if (entry.worst) json["worst"] = true;
  if (entry.top) json["top"] = true;
  if (entry.bottom) json["bottom"] = true;
  return json;
}

Json DataMaker::Problem(const ProblemSummary& problem) {
  const campaign::ProblemFacts& facts = problem.facts;
  const std::vector<Entry> entries = EntriesOf(facts.slug);
  Json cells = Json::array();
  for (const ModelSummary& model : summary_.models) {
    const auto cell = problem.models.find(model.label);
    cells.push_back(cell == problem.models.end()
                        ? Json(nullptr)
                        : Json::array({Number(cell->second.strict_pass), Number(cell->second.score),
                                       Number(cell->second.pass_within),
                                       Number(cell->second.score_within), cell->second.samples}));
  }
  Json json = campaign::FactsJson<Json>(facts);
  json.erase("hash");
  json["difficulty"] = Optional(problem.difficulty);
  json["cells"] = std::move(cells);
  const bool withheld = Withheld(facts.slug);
  if (withheld) json["withheld"] = true;
  // As it was asked in the first run that has it; a slug that is no folder's name has no files.
  const auto run = std::find_if(runs_.begin(), runs_.end(), [&](const Run& candidate) {
    return std::any_of(candidate.settings.problems.begin(), candidate.settings.problems.end(),
                       [&](const campaign::ProblemFacts& own) { return own.slug == facts.slug; });
  });
  if (run != runs_.end() && !withheld) {
    const std::filesystem::path folder =
        run->folder / "problems" /
        campaign::SampleFolder("m", facts.slug, 0).parent_path().filename();
    json["statement"] = texts_.WantFile(Weight::kProblem, folder / "statement.md", kProblemLimit);
    json["template"] = texts_.WantFile(Weight::kProblem, folder / "template.cu", kProblemLimit);
  }
  if (!entries.empty() && !withheld) {
    const Sample& first = *entries.front().sample;
    json["prompt"] = texts_.WantFile(
        Weight::kPrompt,
        entries.front().run->folder /
            campaign::RoundFolder(first.model, first.problem, first.sample, 1) / "prompt.json",
        kProblemLimit);
  }
  CaseList cases;
  Json samples = Json::array();
  for (const Entry& entry : entries) samples.push_back(OfSample(entry, &cases));
  json["cases"] = cases.Take();
  json["samples"] = std::move(samples);
  return json;
}

Json DataMaker::Texts() const {
  Json json = Json::array();
  for (PageTexts::Text& text : texts_.Take()) {
    switch (text.kind) {
      case PageTexts::Text::Kind::kText:
        json.push_back(std::move(text.text));
        break;
      case PageTexts::Text::Kind::kSame:
        json.push_back(text.same);
        break;
      case PageTexts::Text::Kind::kLeftOut:
        json.push_back(nullptr);
        break;
    }
  }
  return json;
}

Json DataMaker::Make(const std::vector<Drawing>& drawings, const std::vector<Attachment>& files) {
  std::size_t cases = 0;
  for (const Run& run : runs_)
    for (const Sample& sample : run.samples)
      for (const Round& round : sample.rounds) cases += round.cases.size() + 1;
  small_ = cases <= kSmallRun;

  Json json = {{"title", summary_.options.title},
               {"times", summary_.times},
               {"notes", summary_.notes},
               {"dollars", Number(summary_.dollars)}};
  json["runs"] = Json::array();
  for (const Run& run : runs_) {
    const campaign::Settings& settings = run.settings;
    const Dates dates = DatesOf(run.folder);
    json["runs"].push_back({{"name", settings.name},
                            {"version", settings.version},
                            {"begun", dates.first},
                            {"ended", dates.last},
                            {"profile", settings.profile},
                            {"profile_version", settings.profile_version},
                            {"prompt", settings.prompt},
                            {"samples", settings.samples},
                            {"rounds", settings.rounds},
                            {"target", Number(settings.target)},
                            {"problems", settings.problems.size()},
                            {"finished", run.samples.size()},
                            {"unfinished", run.unfinished.size()},
                            {"dollars", Number(run.dollars)}});
  }
  json["models"] = Json::array();
  for (const ModelSummary& model : summary_.models) json["models"].push_back(From(model));
  json["pairs"] = Json::array();
  for (const Pair& pair : summary_.pairs)
    json["pairs"].push_back({{"a", pair.a},
                             {"b", pair.b},
                             {"problems", pair.problems},
                             {"strict", From(pair.strict_pass)},
                             {"score", From(pair.score)}});
  json["problems"] = Json::array();
  for (const ProblemSummary& problem : summary_.problems)
    json["problems"].push_back(Problem(problem));
  json["texts"] = Texts();
  json["plots"] = Json::array();
  for (const Drawing& drawing : drawings)
    json["plots"].push_back({{"name", drawing.name}, {"svg", drawing.svg}});
  // Small files go along, so that the page has them wherever it is sent; else it links to them.
  json["files"] = Json::array();
  std::size_t left = kFileBudget;
  for (const Attachment& file : files) {
    const bool fits = file.text.size() <= left;
    if (fits) left -= file.text.size();
    json["files"].push_back({{"name", file.name}, {"text", fits ? Json(file.text) : Json()}});
  }
  return json;
}

}  // namespace

std::string PageData(const Summary& summary, const std::vector<Run>& runs,
                     const std::vector<Drawing>& drawings, const std::vector<Attachment>& files,
                     std::size_t text_budget) {
  const std::string plain = DataMaker(summary, runs, text_budget)
                                .Make(drawings, files)
                                .dump(-1, ' ', false, Json::error_handler_t::replace);
  // In JSON these stand in strings only, so that an escape means the same.
  std::string safe;
  safe.reserve(plain.size() + plain.size() / 16);
  for (const char c : plain) {
    if (c == '<')
      safe += "\\u003c";
    else if (c == '>')
      safe += "\\u003e";
    else if (c == '&')
      safe += "\\u0026";
    else
      safe += c;
  }
  return safe;
}

}  // namespace allranks::report
