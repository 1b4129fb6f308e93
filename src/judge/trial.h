// One judgement under way. Judge() (judge.h) makes a Trial and runs it: the candidate is built,
// cases are chosen and put into sessions (session_run.h), which run one after the other or side by
// side, and what they show makes the verdict.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "judge/judge.h"
#include "judge/scratch.h"
#include "judge/session_run.h"

namespace allranks::judge {

class Trial {
 public:
  Trial(const Tools& tools, const Request& request)
      : tools_(tools), request_(request), problem_(*request.problem) {}

  Judgement Run();

 private:
  bool Prepare();
  bool End(Verdict verdict, std::string text, std::string log = "");
  void ChooseCases();
  SessionGroup GroupOf(const problem::Case& one) const;
  std::vector<SessionResult> RunSessions(
      const std::map<SessionGroup, std::vector<std::size_t>>& groups);
  // CPU time that is left once so many seconds are used.
  double LeftMs(double used) const;
  Outcome TooLong() const;
  void EndTooLong();
  // How many threads execute windows.
  std::size_t Jobs() const;
  void PutTogether(const std::map<SessionGroup, std::vector<std::size_t>>& groups,
                   std::vector<SessionResult> results);

  const Tools& tools_;
  const Request& request_;
  problem::Problem problem_;  // as it is on the profile, once that is loaded
  Judgement judgement_;
  std::optional<Scratch> scratch_;
  std::optional<JudgeContext> context_;
};

}  // namespace allranks::judge
