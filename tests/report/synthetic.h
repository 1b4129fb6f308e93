// Runs made up for tests: no folder, no judge.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "campaign/record.h"

namespace allranks::report {

inline campaign::ProblemFacts ProblemNamed(const std::string& slug, const std::string& family) {
  campaign::ProblemFacts facts;
  facts.slug = slug;
  facts.title = "Title of " + slug;
  facts.category = "collective";
  facts.level = "easy";
  facts.library = "cuda";
  facts.family = family;
  facts.split = "public";
  facts.hash = "hash of " + slug;
  return facts;
}

inline campaign::Run EmptyRun(const std::string& name) {
  campaign::Run run;
  campaign::Settings& settings = run.settings;
  settings.version = "0.0.0";
  settings.judge = "judge";
  settings.name = name;
  settings.seed = "seed";
  settings.profile = "h100x8";
  settings.profile_version = 2;
  settings.profile_hash = "0123456789abcdef";
  settings.prompt = "default";
  settings.prompt_hash = "fedcba9876543210";
  return run;
}

inline void AddModel(campaign::Run* run, const std::string& name) {
  campaign::ModelFacts facts;
  facts.name = name;
  facts.protocol = "replay";
  run->settings.models.push_back(facts);
}

// A pass at `fraction` of the roofline with one timed case; a negative fraction is wrong_result.
inline campaign::Round RoundOf(int number, double fraction, double reference_ns = 1000) {
  campaign::Round round;
  round.round = number;
  round.kind = number == 1 ? "first" : "repair";
  round.finish = "stop";
  round.answer = "source";
  round.verdict = fraction < 0 ? "wrong_result" : "pass";
  round.strict = round.lenient = fraction >= 0;
  if (!round.strict) return round;
  round.score = fraction;
  campaign::CaseFigures one;
  one.name = "timed.w8.n4096";
  one.kind = "timed";
  one.world = 8;
  one.verdict = "pass";
  one.roofline_ns = 500;
  one.call_ns = fraction > 0 ? 500 / fraction : 1e6;
  one.reference_ns = reference_ns;
  one.baseline_ns = 2000;
  round.speedup_vs_reference = one.reference_ns / one.call_ns;
  round.speedup_vs_baseline = one.baseline_ns / one.call_ns;
  round.cases.push_back(one);
  return round;
}

inline campaign::Round RoundWith(int number, const std::string& verdict) {
  campaign::Round round = RoundOf(number, -1);
  round.verdict = verdict;
  return round;
}

inline void AddSample(campaign::Run* run, const std::string& model, const std::string& problem,
                      int number, std::vector<campaign::Round> rounds) {
  run->samples.push_back({model, problem, number, std::move(rounds), "rounds"});
}

}  // namespace allranks::report
