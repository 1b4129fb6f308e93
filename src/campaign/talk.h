// What is said to a model in each round: messages out of attempts, feedback out of judgements.
//
// Here it is decided what a model may know of a judgement. Of visible cases: everything. Of timed
// cases: verdict, name, and times. Of drawn cases: nothing, not even that one failed; a model whose
// open cases pass is told just that.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "campaign/record.h"
#include "model/model.h"
#include "problem/answer.h"
#include "problem/prompt.h"

namespace allranks::campaign {

// One round as later ones see it.
struct Attempt {
  Round round;
  std::string said;      // SaidOf
  std::string feedback;  // empty after the last
};

inline constexpr std::size_t kAttemptsShown = 3;      // the last ones
inline constexpr std::size_t kLongestSaid = 1 << 16;  // bytes of one attempt

// The model's own words as they are shown to it again: the source if there was one.
std::string SaidOf(const problem::Answer& answer, const std::string& reply);

std::vector<model::Message> MessagesOf(const problem::Prompt& prompt,
                                       const std::vector<Attempt>& attempts);

std::string ToJson(const std::vector<model::Message>& messages);  // prompt.json

// What follows from a round.
struct Assessment {
  enum class Next {
    kRepair,    // an open case fails, or there was no source
    kImprove,   // open cases pass, slower than the target
    kFast,      // open cases pass, and fast enough
    kInternal,  // our own fault: nothing can be told
  };
  Next next = Next::kRepair;
  problem::Feedback feedback;  // of kRepair and kImprove; `round` and `rounds` are the caller's
};

Result<Assessment> Assess(const std::string& judge_json, double target);
Assessment NoAnswer(const problem::Answer& answer);

// The member "log" of a judgement.
std::string LogOf(const std::string& judge_json);
// That its verdict is internal_error.
bool IsInternal(const std::string& judge_json);

}  // namespace allranks::campaign
