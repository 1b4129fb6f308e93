// What a run leaves on the disk, and how it is read again. The truth is these files; everything
// else (progress, scores, pages) is made from them.
//
//   RUN/run.json                         the plan: Settings
//   RUN/problems/SLUG/{problem.json,statement.md,template.cu}   as they were asked
//   RUN/samples/MODEL/SLUG/K/sample.json       a Sample, written when its last round has ended
//   RUN/samples/MODEL/SLUG/K/round-N/
//     prompt.json      the messages: [{role, text}]
//     attempts.jsonl   each attempt, when it began and when it ended
//     reply.json       words, finish, usage, dollars, the body that was sent, key of the
//     generation;
//                      copies: reply.txt, the words; request.json, the body. reply.raw: as received
//                      (missing if the process was killed right then)
//     source.cu        what was taken out of them
//     verdict.json     as `allranks judge --json` printed it; compiler.log; trace.json if asked for
//     feedback.md      what the model is told in the next round
//     round.json       a Round, written last: its presence says that the round is over
//   RUN/samples/MODEL/SLUG/K/unfinished.txt    why there is no sample.json, if a chain gave up
//   RUN/judged/HASH.json                 judgements by content: the same source is judged once
//   RUN/log.txt                          what happened when, for people
//   RUN/lock                             held by the process that works on it
//
// run.json, sample.json, round.json, prompt.json, request.json, reply.txt, source.cu and
// feedback.md are the same in every repetition of a run with the same replies; times of day,
// attempts and CPU seconds are in other files (verdict.json: in its member "cost").
//
// Every file with a schema is refused if its number is not known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/model.h"
#include "problem/problem.h"

namespace allranks::campaign {

inline constexpr int kRunSchema = 3;
inline constexpr int kMostSamples = 10'000, kMostRounds = 100;  // that a run.json may have
inline constexpr std::size_t kMostChains = 1'000'000;           // models x problems x samples

struct ProblemFacts {
  std::string slug, title, category, level, library, family, split;
  std::vector<std::string> parallelism;
  std::string hash;  // of statement, template, problem.toml, oracle and lock
};
ProblemFacts FactsOf(const problem::Problem& problem);
// Every fact with its name in JSON, for writers and readers of all files that hold them.
template <class Facts, class Fn>
void ForEachFact(Facts& facts, Fn&& fn) {
  fn("slug", facts.slug);
  fn("title", facts.title);
  fn("category", facts.category);
  fn("level", facts.level);
  fn("library", facts.library);
  fn("family", facts.family);
  fn("split", facts.split);
  fn("parallelism", facts.parallelism);
  fn("hash", facts.hash);
}
template <class Json>
Json FactsJson(const ProblemFacts& facts) {
  Json json;
  ForEachFact(facts, [&](const char* name, const auto& fact) { json[name] = fact; });
  return json;
}

struct ModelFacts {
  std::string name;      // in folders (FolderOf) and tables
  std::string protocol;  // model::NameOf(Protocol)
  std::string model;     // the provider's name, or what stands after material:, replay:, command:
  std::string identity;  // model::IdentityOf
  bool open_weights = false;
  bool price_known = false;
  double input_price = 0, cached_input_price = 0, output_price = 0;  // dollars per million
};

struct Settings {
  int schema = kRunSchema;
  std::string version;  // of allranks
  std::string judge;    // hash of the program and libraries that judge
  std::string name;     // the folder's
  std::string seed;     // what secrets are drawn from: told to nobody before the run is over
  std::string profile;  // name
  std::int64_t profile_version = 0;
  std::string profile_hash;
  std::string prompt;  // name of the template
  std::string prompt_hash;
  std::optional<double> temperature;  // of all models that take one; empty: each entry's own
  int few_shot = 0;                   // solved examples in each prompt
  int samples = 1, rounds = 1;
  int band = 0;         // perturbed profiles per passing candidate
  double target = 0.9;  // fraction of the roofline at which improvement ends
  bool trace = false;   // each judgement leaves a trace.json
  std::vector<ModelFacts> models;
  std::vector<ProblemFacts> problems;
};

struct CaseFigures {
  std::string name, kind;  // "timed.w8.n4096", timed | visible | drawn
  int world = 0;
  std::map<std::string, std::int64_t> params;
  std::string verdict;  // empty: it did not run
  double call_ns = 0, isolated_ns = 0, bytes = 0, roofline_ns = 0, reference_ns = 0,
         baseline_ns = 0, nccl_ns = 0;         // 0: none
  std::map<std::string, std::uint64_t> moved;  // bytes by mover
};

// "no_answer" joins the judge's verdicts: a reply without a source.
inline constexpr const char* kNoAnswer = "no_answer";

struct Round {
  int round = 1;
  std::string key;     // hash of all that this round is made from: generation and judgement
  std::string kind;    // first | repair | improve
  std::string finish;  // model::NameOf(Finish)
  std::string answer;  // problem::NameOf(Answer::Kind)
  model::Usage usage;
  bool usage_known = false;
  double dollars = 0;
  std::string source_hash;  // SHA-256 of source.cu; empty: none
  std::string verdict;      // the judge's word or kNoAnswer
  bool strict = false;      // pass without a finding but portability
  bool lenient = false;     // outputs match
  double score = 0;         // strict: fraction of the roofline; else 0
  // Geometric means over timed cases.
  std::optional<double> speedup_vs_reference, speedup_vs_baseline, speedup_vs_nccl;
  std::string text;          // the judge's paragraph, shortened
  std::vector<double> band;  // speedup over the reference on perturbed profiles; empty: not run
  std::vector<CaseFigures> cases;
};

struct Sample {
  std::string model, problem;
  int sample = 0;
  std::vector<Round> rounds;
  std::string stopped;  // why there is no further round: rounds | fast | request
};

// A sample that has no sample.json: why, as far as it is known.
struct Unfinished {
  std::string model, problem;
  int sample = 0;
  std::string why;
};

struct Run {
  std::filesystem::path folder;
  Settings settings;
  std::vector<Sample> samples;  // by model and problem as in the settings, then by number
  std::vector<Unfinished> unfinished;
  double dollars = 0;  // of all replies, and of attempts that failed where known
};

// Everything that is there; a sample whose file cannot be read is unfinished and says so.
Result<Run> LoadRun(const std::filesystem::path& folder);

// Where a sample lies below the run's folder. Names with other characters than A-Z a-z 0-9 . _ -
// are escaped with %XX; long ones end in a hash.
std::filesystem::path SampleFolder(const std::string& model, const std::string& problem,
                                   int sample);
std::filesystem::path RoundFolder(const std::string& model, const std::string& problem, int sample,
                                  int round);

// JSON of one record, and back; ToJson ends with a newline. Members are in a fixed order.
std::string ToJson(const Settings& settings);
std::string ToJson(const Round& round);
std::string ToJson(const Sample& sample);
Result<Settings> SettingsFrom(const std::string& json);
Result<Round> RoundFrom(const std::string& json);
Result<Sample> SampleFrom(const std::string& json);

// A Round's figures from what the judge printed (`allranks judge --json`).
Status TakeVerdict(const std::string& judge_json, Round* round);

}  // namespace allranks::campaign
