// // reply.json: a reply, what it was an answer to and what it cost. It is one file that is written
// first, so a reply is there with its text or not at all, and its request is never sent again;
// reply.txt and request.json are copies of parts of it, for people.
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
  std::string text, request;  // any bytes
};

std::string ToJson(const ReplyRecord& record);
Result<ReplyRecord> ReplyFrom(const std::string& json);

// // What requests have cost, by all processes that worked on them: `known` is the member "dollars"
// of attempts.jsonl's lines, and never less than what reply.json says. `perhaps` is the most that
// attempts may have cost whose end nobody wrote down, because the process was killed.
struct Spent {
  double known = 0, perhaps = 0;
};
Spent SpentInRound(const std::filesystem::path& folder);
Spent SpentInRun(const std::filesystem::path& run);  // over all samples

}  // namespace allranks::campaign
