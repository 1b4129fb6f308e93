// What is settled before the first request: the settings of run.json, what each problem's prompt
// is, and that what lies in the folder belongs to this run. Prepare only reads.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "campaign/campaign.h"
#include "campaign/record.h"
#include "node/hardware/profile.h"
#include "problem/source.h"

namespace allranks::campaign {

// A problem as this run asks it.
struct Asked {
  const problem::Problem* problem = nullptr;
  ProblemFacts facts;
  problem::Region region;
  problem::PromptContext context;
  problem::Prompt prompt;
  std::string seed;    // of its judgements: the same drawn cases for all models
  std::string judged;  // hash of all that a judgement depends on but the source
};

struct Setup {
  Settings settings;  // as run.json is to be: those of before, and what this plan adds
  bool fresh = true;  // there was no run.json
  node::Profile profile;
  std::vector<Asked> problems;          // as in the plan
  std::vector<std::string> identities;  // of the plan's models
};

// `setup` stays where it is: contexts point into it.
Status Prepare(const Plan& plan, Setup* setup);

// The settings of a run that `wanted` goes on with. Models and problems may be added, samples and
// rounds may become more; whatever else differs is a failure that names it.
Result<Settings> Merge(const Settings& before, const Settings& wanted);

}  // namespace allranks::campaign
