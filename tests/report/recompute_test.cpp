// Scores computed a second time, from the raw files of a run: JSON read as it lies there, loops as
// docs/scores.md states them, and no code of src/report but the summary that is checked.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "base/files.h"
#include "report/summary.h"
#include "synthetic.h"

namespace allranks::report {
namespace {

using nlohmann::json;

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "report.XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// A run with everything that a score must cope with: several samples and rounds, every sort of
// verdict, missing references, missing samples, problems of several families and parallelisms.
campaign::Run RandomRun(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](int bound) {
    return std::uniform_int_distribution<int>(0, bound - 1)(random);
  };
  campaign::Run run = EmptyRun("random");
  run.settings.samples = 1 + below(4);
  run.settings.rounds = 1 + below(3);
  for (int m = 0; m < 3; ++m) {
    AddModel(&run, "model/" + std::to_string(m));
    run.settings.models.back().price_known = m > 0;
  }
  const char* const parallelisms[] = {"tp", "ep", "pp"};
  for (int p = 0; p < 17; ++p) {
    campaign::ProblemFacts facts =
        ProblemNamed("p" + std::to_string(p), "family" + std::to_string(below(6)));
    facts.category = below(2) == 0 ? "p2p" : "collective";
    facts.level = below(2) == 0 ? "easy" : "hard";
    for (const char* name : parallelisms)
      if (below(2) == 0) facts.parallelism.emplace_back(name);
    run.settings.problems.push_back(facts);
  }
  const char* const verdicts[] = {"wrong_result", "race",           "compile_error",
                                  "no_answer",    "internal_error", "unsupported"};
  for (const campaign::ModelFacts& model : run.settings.models) {
    for (const campaign::ProblemFacts& problem : run.settings.problems) {
      for (int k = 0; k < run.settings.samples; ++k) {
        if (below(12) == 0) continue;  // unfinished
        std::vector<campaign::Round> rounds;
        for (int r = 1; r <= run.settings.rounds; ++r) {
          campaign::Round round;
          if (below(2) == 0) {
            round = RoundOf(r, 0.05 * (1 + below(24)), below(5) == 0 ? 0 : 400 + below(900));
            if (round.cases[0].reference_ns == 0) round.speedup_vs_reference.reset();
            campaign::CaseFigures other = round.cases[0];
            other.name = "timed.w8.n8192";
            other.call_ns *= 1.5;
            round.cases.push_back(other);
            other.kind = "visible";
            other.call_ns *= 7;
            round.cases.push_back(other);
            if (below(3) == 0) round.band = {0.97, 1.1, 1.05};
          } else {
            round = RoundWith(r, verdicts[below(6)]);
            round.lenient = round.verdict == "race";
          }
          round.dollars = 0.01 * below(10);
          round.usage.output = static_cast<std::uint64_t>(below(1000));
          rounds.push_back(round);
        }
        AddSample(&run, model.name, problem.slug, k, rounds);
      }
    }
  }
  return run;
}

void Write(const campaign::Run& run, const std::filesystem::path& folder) {
  ASSERT_TRUE(WriteWhole(folder / "run.json", campaign::ToJson(run.settings)));
  for (const campaign::Sample& sample : run.samples)
    ASSERT_TRUE(
        WriteWhole(folder / campaign::SampleFolder(sample.model, sample.problem, sample.sample) /
                       "sample.json",
                   campaign::ToJson(sample)));
}

std::vector<json> SamplesIn(const std::filesystem::path& folder) {
  std::vector<json> samples;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().filename() != "sample.json") continue;
    std::ifstream file(entry.path());
    samples.push_back(json::parse(file));
  }
  return samples;
}

// Those of a model and a set of problems, excluded ones left out: by problem.
std::map<std::string, std::vector<json>> Counted(const std::vector<json>& samples,
                                                 const std::string& model,
                                                 const std::set<std::string>& problems) {
  std::map<std::string, std::vector<json>> counted;
  for (const json& sample : samples) {
    const std::string verdict = sample["rounds"][0]["verdict"];
    if (sample["model"] != model || problems.count(sample["problem"]) == 0) continue;
    if (verdict == "unsupported" || verdict == "internal_error") continue;
    counted[sample["problem"]].push_back(sample);
  }
  return counted;
}

// A mean over problems of means over samples.
template <class Value>
double Mean(const std::map<std::string, std::vector<json>>& counted, const Value& value) {
  double all = 0;
  for (const auto& [problem, samples] : counted) {
    double sum = 0;
    for (const json& sample : samples) sum += value(sample["rounds"]);
    all += sum / static_cast<double>(samples.size());
  }
  return all / static_cast<double>(counted.size());
}

double Points(const json& round) {
  return round["strict"].get<bool>() ? std::min(1.0, round["score"].get<double>()) : 0.0;
}

// The chance that k of the samples, drawn at random, have a good one: by going through all draws.
template <class Good>
double AnyOfK(const std::vector<json>& samples, int k, const Good& good) {
  int draws = 0, hits = 0;
  for (unsigned set = 0; set < 1u << samples.size(); ++set) {
    int size = 0;
    bool hit = false;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if ((set >> i & 1u) == 0) continue;
      ++size;
      hit = hit || good(samples[i]["rounds"][0]);
    }
    if (size != k) continue;
    ++draws;
    hits += hit ? 1 : 0;
  }
  return static_cast<double>(hits) / draws;
}

void ExpectFigures(const Figures& figures,
                   const std::map<std::string, std::vector<json>>& counted) {
  constexpr double kNear = 1e-12;
  ASSERT_EQ(figures.problems, static_cast<int>(counted.size()));
  if (counted.empty()) return;
  EXPECT_NEAR(figures.strict_pass.value,
              Mean(counted, [](const json& r) { return r[0]["strict"] ? 1.0 : 0.0; }), kNear);
  EXPECT_NEAR(figures.score.value, Mean(counted, [](const json& r) { return Points(r[0]); }),
              kNear);
  EXPECT_NEAR(figures.lenient_pass.value,
              Mean(counted, [](const json& r) { return r[0]["lenient"] ? 1.0 : 0.0; }), kNear);
  EXPECT_NEAR(figures.pass_within.value,
              Mean(counted,
                   [](const json& rounds) {
                     bool pass = false;
                     for (const json& r : rounds) pass = pass || r["strict"].get<bool>();
                     return pass ? 1.0 : 0.0;
                   }),
              kNear);
  EXPECT_NEAR(figures.score_within.value,
              Mean(counted,
                   [](const json& rounds) {
                     double best = 0;
                     for (const json& r : rounds) best = std::max(best, Points(r));
                     return best;
                   }),
              kNear);
  EXPECT_NEAR(figures.pass_plus_good,
              Mean(counted,
                   [](const json& rounds) {
                     const json& speedup = rounds[0]["speedup_vs_reference"];
                     return rounds[0]["strict"].get<bool>() && speedup.is_number() &&
                                    speedup.get<double>() >= 0.95
                                ? 1.0
                                : 0.0;
                   }),
              kNear);
  double logs = 0;
  int cases = 0;
  std::size_t fewest = 1000;
  for (const auto& [problem, samples] : counted) {
    fewest = std::min(fewest, samples.size());
    for (const json& sample : samples) {
      if (!sample["rounds"][0]["strict"].get<bool>()) continue;
      for (const json& one : sample["rounds"][0]["cases"]) {
        if (one["kind"] != "timed" || one["reference_ns"] == 0.0) continue;
        logs += std::log(one["reference_ns"].get<double>() / one["call_ns"].get<double>());
        ++cases;
      }
    }
  }
  ASSERT_EQ(figures.gm_speedup.has_value(), cases > 0);
  EXPECT_NEAR(figures.gm_speedup.value_or(1), std::exp(cases > 0 ? logs / cases : 0), 1e-9);
  ASSERT_EQ(figures.pass_at.size(), fewest);
  for (int k = 1; k <= static_cast<int>(fewest); ++k) {
    double pass = 0;
    std::map<std::string, double> fast;
    for (const auto& [problem, samples] : counted) {
      pass += AnyOfK(samples, k, [](const json& r) { return r["strict"].get<bool>(); });
      for (const auto& [name, least] :
           std::map<std::string, double>{{"0.5", .5}, {"1", 1}, {"1.5", 1.5}, {"2", 2}})
        fast[name] += AnyOfK(samples, k, [bound = least](const json& r) {
          return r["strict"].get<bool>() && r["speedup_vs_baseline"].is_number() &&
                 r["speedup_vs_baseline"].get<double>() > bound;
        });
    }
    const auto count = static_cast<double>(counted.size());
    EXPECT_NEAR(figures.pass_at.at(k), pass / count, kNear);
    for (const auto& [name, sum] : fast)
      EXPECT_NEAR(figures.fast.at(name).at(k), sum / count, kNear) << name;
  }
  for (const Interval& interval : {figures.strict_pass, figures.score, figures.pass_within}) {
    EXPECT_LE(interval.low, interval.value + kNear);
    EXPECT_GE(interval.high, interval.value - kNear);
    EXPECT_LT(interval.low, interval.high);
  }
}

TEST(Recompute, ScoresFromRawFiles) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const Folder folder;
    const campaign::Run made = RandomRun(seed);
    Write(made, folder.path());
    const Result<campaign::Run> run = campaign::LoadRun(folder.path());
    ASSERT_TRUE(run) << run.error().message;
    Options options;
    options.resamples = 100;
    const Result<Summary> summary = Summarise({*run}, options);
    ASSERT_TRUE(summary);

    std::ifstream file(folder.path() / "run.json");
    const json plan = json::parse(file);
    const std::vector<json> samples = SamplesIn(folder.path());
    std::set<std::string> all;
    std::map<std::string, std::map<std::string, std::set<std::string>>> by;
    for (const json& problem : plan["problems"]) {
      const std::string slug = problem["slug"];
      all.insert(slug);
      for (const char* name : {"category", "level", "library", "family", "split"})
        by[name][problem[name]].insert(slug);
      for (const json& name : problem["parallelism"]) by["parallelism"][name].insert(slug);
      if (problem["parallelism"].empty()) by["parallelism"]["none"].insert(slug);
    }
    ASSERT_EQ(summary->models.size(), 3u);
    for (const ModelSummary& model : summary->models) {
      ExpectFigures(model.all, Counted(samples, model.label, all));
      for (const auto& [dimension, values] : model.by)
        for (const auto& [value, figures] : values)
          ExpectFigures(figures, Counted(samples, model.label, by[dimension][value]));
      std::map<std::string, int> verdicts;
      int finished = 0, passes = 0;
      double dollars = 0;
      for (const json& sample : samples) {
        if (sample["model"] != model.label) continue;
        ++finished;
        ++verdicts[sample["rounds"][0]["verdict"]];
        bool pass = false;
        for (const json& round : sample["rounds"]) {
          dollars += round["dollars"].get<double>();
          pass = pass || round["strict"].get<bool>();
        }
        passes += pass ? 1 : 0;
      }
      EXPECT_EQ(model.verdicts, verdicts);
      EXPECT_EQ(model.unfinished, model.planned - finished);
      EXPECT_EQ(model.planned, static_cast<int>(all.size()) * plan["samples"].get<int>());
      EXPECT_NEAR(model.dollars, dollars, 1e-9);
      EXPECT_EQ(model.dollars_per_pass.has_value(), model.facts.price_known);
      EXPECT_NEAR(model.dollars_per_pass.value_or(dollars / passes), dollars / passes, 1e-9);
      // By number of rounds: the last is all of them, the first is round 1.
      const int rounds = plan["rounds"].get<int>();
      ASSERT_EQ(static_cast<int>(model.pass_within_round.size()), rounds);
      const auto counted = Counted(samples, model.label, all);
      for (int r = 1; r <= rounds; ++r) {
        const double within = Mean(counted, [r](const json& list) {
          bool pass = false;
          for (const json& round : list)
            pass = pass || (round["round"].get<int>() <= r && round["strict"].get<bool>());
          return pass ? 1.0 : 0.0;
        });
        EXPECT_NEAR(model.pass_within_round[static_cast<std::size_t>(r - 1)].value, within, 1e-12);
      }
    }
    for (const Pair& pair : summary->pairs) {
      const auto a = Counted(samples, pair.a, all), b = Counted(samples, pair.b, all);
      double sum = 0;
      int common = 0;
      for (const auto& [problem, list] : a) {
        if (b.count(problem) == 0) continue;
        ++common;
        const auto score = [](const json& rounds) { return Points(rounds[0]); };
        sum += Mean({{problem, list}}, score) - Mean({{problem, b.at(problem)}}, score);
      }
      EXPECT_EQ(pair.problems, common);
      EXPECT_NEAR(pair.score.value, sum / common, 1e-12);
    }
    // What is written is what was computed.
    const json written = json::parse(ToJson(*summary));
    EXPECT_EQ(written["schema"], kSummarySchema);
    for (std::size_t m = 0; m < summary->models.size(); ++m) {
      EXPECT_EQ(written["models"][m]["label"], summary->models[m].label);
      EXPECT_EQ(written["models"][m]["all"]["score"]["value"].get<double>(),
                summary->models[m].all.score.value);
    }
  }
}

}  // namespace
}  // namespace allranks::report
