// A campaign: problems x models x samples, each sample a chain of rounds.
//
//   prompt ─▶ reply ─▶ source ─▶ judgement ─▶ feedback ─▶ next round's prompt ...
//
// Chains run side by side in threads that mostly wait; generation is bounded by each model's
// concurrency, judging by the executor's jobs, so the two overlap. What has been written is never
// done again: campaign.cpp has the theory of operation.
#pragma once

#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/stop.h"
#include "campaign/executor.h"
#include "campaign/record.h"
#include "judge/judge.h"
#include "model/entry.h"
#include "problem/problem.h"
#include "problem/prompt.h"

namespace allranks::campaign {

struct Plan {
  std::filesystem::path out;
  std::vector<model::Entry> models;
  std::vector<problem::Problem> problems;
  int samples = 1, rounds = 1;
  problem::PromptTemplate prompt;
  std::filesystem::path prompt_folder;  // share/prompts
  std::string profile;                  // path
  judge::Tools tools;
  std::string version;
  std::optional<double> temperature;  // that the models' entries have; empty: each has its own
  // Solved examples in each prompt, by slug: `few_shot` for each problem.
  int few_shot = 0;
  std::map<std::string, std::vector<problem::Example>> examples;
  std::string seed;  // empty: drawn for a new run, taken from run.json when it goes on
  double budget = std::numeric_limits<double>::infinity();
  int band = 0;
  double target = 0.9;
  bool trace = false;
  std::vector<std::filesystem::path> problem_roots;  // hidden from commands, with all in them
  // For tests. What makes models, if not model::MakeModel; and what is asked before each file is
  // written: a failure is taken for one of the disk.
  std::function<Result<std::unique_ptr<model::Model>>(const model::Entry&, model::Budget,
                                                      model::Listener*)>
      make_model;
  std::function<Status(const std::filesystem::path&)> before_write;
};

// What a run is about to do and may cost, without doing it.
struct Estimate {
  struct Row {
    std::string model;
    int generations = 0;       // still to be asked, if every chain used all its rounds
    double input_tokens = 0;   // about: bytes / 4
    double output_tokens = 0;  // at most: all of the cap
    double dollars = 0;        // at most
    bool price_known = false;
  };
  std::vector<Row> rows;
  int done = 0;  // samples that are finished already
};
Result<Estimate> Foresee(const Plan& plan);

struct Ending {
  int finished = 0, unfinished = 0;
  bool stopped = false, out_of_money = false;
  std::string broken;  // not empty: something could not be written, and everything was ended
  double dollars = 0;
  double refused_dollars = 0;   // the most of a reply that the budget had no room for
  double perhaps_dollars = 0;   // of requests that were cut off: at most, perhaps not charged
  std::vector<Unfinished> why;  // of those that failed
};

// What progress shows. Called from many threads, one call at a time.
struct Observer : model::Listener {
  // `dollars`: spent by earlier processes of the same run.
  virtual void OnBegin(int /*samples*/, int /*already_done*/, double /*dollars*/) {}
  virtual void OnReply(const std::string& /*model*/, const std::string& /*problem*/,
                       const model::Reply& /*reply*/) {}
  virtual void OnAsk(bool /*begins*/) {}
  virtual void OnJudge(bool /*begins*/) {}    // wants a judgement, and has it
  virtual void OnJudging(bool /*begins*/) {}  // in between: its turn has come, and is over
  virtual void OnRepeat(const std::string& /*why*/) {}  // a judgement is done once more
  virtual void OnRound(const Sample& /*so_far*/) {}
  virtual void OnSample(const Sample& /*sample*/) {}
  virtual void OnUnfinished(const Unfinished& /*what*/) {}
};

// Runs or goes on. Fails before anything is sent where run.json says that the folder holds another
// run (which setting differs is in the message), or cannot be written.
Result<Ending> Execute(const Plan& plan, Executor* executor, const Stop& stop, Observer* observer);

}  // namespace allranks::campaign
