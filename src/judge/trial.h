// One judgement under way: what judge.cpp (candidate, sessions, score) and window.cpp (one window:
// draw, run, verify, floors) share.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "judge/draw.h"
#include "judge/judge.h"
#include "judge/roofline.h"
#include "judge/scratch.h"
#include "judge/session.h"
#include "judge/verify.h"
#include "node/profile.h"
#include "problem/lock.h"
#include "problem/problem.h"

namespace allranks::judge {

// What one window showed, beside its outputs being right.
struct Seen {
  double ns = 0;           // (last close - first open) / calls
  double roofline_ns = 0;  // least time of a call with these inputs
  double ingress = 0;      // bytes that had to reach the rank that needs most, per call
  std::vector<std::uint64_t> moved;
  std::uint64_t thread_instructions = 0;
};

// One judgement under way.
class Trial {
 public:
  static constexpr int kSeeds = 2;  // the worse of them counts

  Trial(const Tools& tools, const Request& request)
      : tools_(tools), request_(request), problem_(*request.problem) {}

  Judgement Run();

 private:
  bool Prepare();
  bool End(Verdict verdict, std::string text, std::string log = "");
  void ChooseCases();
  // What one session runs: the cases of one world size, and of one profile, if they name one. Where
  // drawn cases come last they have sessions of their own.
  struct Group {
    bool late = false;
    int world = 0;
    std::string profile;
    auto operator<=>(const Group&) const = default;
  };
  Group GroupOf(const problem::Case& one) const;
  bool RunGroup(const Group& group, const std::vector<std::size_t>& indices, bool traced);
  bool RunCase(Session& session, std::uint32_t place, CaseResult& result);
  // One window; false if the judgement is over.
  bool RunWindow(Session& session, std::uint32_t place, CaseResult& result, int seed,
                 std::uint32_t calls, bool skew, Seen* seen);
  bool CheckOutputs(CaseResult& result, int seed, const std::vector<CallView>& views,
                    const wire::JudgeRunReply& reply);
  bool CheckTraffic(CaseResult& result, const std::vector<FloorValues>& floors,
                    const wire::JudgeRunReply& reply);
  bool Failed(CaseResult& result, Verdict verdict, std::string text, std::string log = "");
  std::uint64_t FuelOf(const CaseResult& result) const;

  const Tools& tools_;
  const Request& request_;
  const problem::Problem& problem_;
  Judgement judgement_;
  std::optional<Scratch> scratch_;
  std::optional<node::Profile> profile_;
  std::optional<Oracle> oracle_;
  std::optional<problem::Lock> lock_;
  std::vector<Drawer> drawers_;  // by seed
  std::string program_;
  wire::Fd trace_;
};

}  // namespace allranks::judge
