// reply.json: that a reply has come, what it was an answer to and what it cost. Once it is there,
// its request is never sent again.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "model/model.h"

namespace allranks::campaign {

struct ReplyRecord {
  std::string key;  // of the generation
  model::Finish finish = model::Finish::kStop;
  model::Usage usage;
  bool usage_known = false;
  double dollars = 0, wasted_dollars = 0;
  std::string served_by;
  int attempts = 1;
};

std::string ToJson(const ReplyRecord& record);
Result<ReplyRecord> ReplyFrom(const std::string& json);

// What the requests of one round have cost, by all processes that worked on it: the member
// "dollars" of attempts.jsonl's lines, and never less than what reply.json says.
double DollarsOfRound(const std::filesystem::path& folder);

// The same over all samples of a run.
double DollarsOfRun(const std::filesystem::path& run);

}  // namespace allranks::campaign
