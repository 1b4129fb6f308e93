// One judgement under way. Judge() (judge.h) makes a Trial and runs it; its methods are in
// trial.cpp (candidate, sessions, score) and window.cpp (one window: draw, run, verify, floors).
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
#include "node/hardware/profile.h"
#include "problem/lock.h"
#include "problem/problem.h"

namespace allranks::judge {

// How one window of a case is run.
struct WindowSpec {
  enum class Mode : std::uint8_t {
    kAlone,     // one call
    kBurst,     // of a timed case: undisturbed, its time counts
    kReplay,    // the same burst once more, disturbed from a drawn moment on
    kLate,      // ranks enter late, waits end late
    kSchedule,  // under another schedule, on inputs of its own
  };
  Mode mode = Mode::kBurst;
  int seed = 0;                // which drawer
  std::uint64_t schedule = 0;  // kSchedule: its number (node::ScheduleOf); kReplay: from 1 on
  double moment = 0;           // kReplay: where in the burst, 0 (all of it is disturbed) to 1

  bool directed() const { return mode == Mode::kSchedule && schedule >= node::kDirected; }
  // Whether ranks are late. Under a directed schedule nothing is but what it names.
  bool disturbed() const { return mode != Mode::kAlone && mode != Mode::kBurst && !directed(); }
};

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
  // The same case under other schedules; false if there are to be no more of them.
  bool RunSchedules(Session& session, std::uint32_t place, CaseResult& result);
  // The repetitions of a timed case's bursts.
  std::vector<WindowSpec> Replays(const CaseResult& result) const;
  // How many schedules a case is run under beside 0, and their numbers.
  std::size_t ScheduleCount(const CaseResult& result) const;
  std::vector<std::uint64_t> Schedules(const CaseResult& result) const;
  bool IsLarge(const CaseResult& result) const;
  // Ranks live while inputs exist: they remember what has happened, so that no window can be the
  // same as another.
  bool live() const { return problem_.window != problem::Window::kGraph; }
  // One window; false if the judgement is over.
  bool RunWindow(Session& session, std::uint32_t place, CaseResult& result, const WindowSpec& spec,
                 Seen* seen);
  // A window as the node is asked for it: what is drawn, where outputs go.
  Status Draw(Session& session, const CaseResult& result, const WindowSpec& spec,
              wire::JudgeRun* run, std::vector<CallView>* views);
  void PassOver(Session& session, wire::JudgeRun run, Outcome* outcome,
                wire::JudgeRunReply* reply) const;
  bool CheckOutputs(CaseResult& result, const WindowSpec& spec, const std::vector<CallView>& views,
                    const wire::JudgeRunReply& reply);
  bool CheckTraffic(CaseResult& result, const std::vector<FloorValues>& floors,
                    const wire::JudgeRunReply& reply);
  bool Failed(CaseResult& result, Verdict verdict, std::string text, std::string log = "");
  void NoteShown();
  std::uint64_t FuelOf(const CaseResult& result) const;
  // Thread-instructions that the reference takes for a burst of this case, or of one that is at
  // least as large; nullopt: not known.
  std::optional<std::uint64_t> SizeOf(const CaseResult& result) const;
  bool checks() const { return request_.check && !request_.times_only && !request_.drain; }

  const Tools& tools_;
  const Request& request_;
  const problem::Problem& problem_;
  Judgement judgement_;
  std::optional<Scratch> scratch_;
  std::optional<node::Profile> profile_;
  std::optional<Oracle> oracle_;
  std::optional<problem::Lock> lock_;
  std::vector<Drawer> drawers_;  // by seed
  // A case that failed under another schedule than 0 only.
  const CaseResult* perturbed_ = nullptr;
  bool found_ = false;            // something that counts
  double burst_ns_[kSeeds] = {};  // how long the burst of the case under way took, by seed
  WindowSpec window_;             // that is run
  std::size_t traced_place_ = 0;  // of the case whose window a trace shows
  std::string program_;
  wire::Blob module_hash_;
  double own_before_ = 0;  // CPU seconds of this thread before the judgement
  wire::Fd trace_;
};

}  // namespace allranks::judge
