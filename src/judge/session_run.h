// One session of a judgement: its cases, one after the other, each in several windows. Trial
// (trial.h) makes the sessions and puts their results together; session_run.cpp has the order of
// windows, window.cpp one window (draw, run, verify, floors).
#pragma once

#include <atomic>
#include <compare>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "judge/draw.h"
#include "judge/judge.h"
#include "judge/roofline.h"
#include "judge/session.h"
#include "judge/verify.h"
#include "judge/window_choice.h"
#include "node/hardware/profile.h"
#include "problem/lock.h"
#include "problem/problem.h"

namespace allranks::judge {

// What all sessions of a judgement read and none changes.
struct JudgeContext {
  const Tools& tools;
  const Request& request;
  const problem::Problem& problem;
  node::Profile profile;
  Oracle oracle;
  std::optional<problem::Lock> lock;
  std::vector<Drawer> drawers;  // by seed
  std::string folder;           // scratch
  std::string program;
  wire::Blob module_hash;
  wire::Fd trace;
  std::vector<problem::Case> cases;  // of all sessions

  bool checks() const { return request.check && !request.times_only && !request.drain; }
};

// What one session runs: the cases of one world size, and of one profile, if they name one. Where
// drawn cases come last they have sessions of their own.
struct SessionGroup {
  bool late = false;
  int world = 0;
  std::string profile;
  auto operator<=>(const SessionGroup&) const = default;
};

// What one window showed, beside its outputs being right.
struct Seen {
  double ns = 0;           // (last close - first open) / calls
  double roofline_ns = 0;  // least time of a call with these inputs
  double ingress = 0;      // bytes that had to reach the rank that needs most, per call
  std::vector<std::uint64_t> moved;
  std::uint64_t thread_instructions = 0;
};

// Where a session stands.
struct SessionState {
  Outcome outcome;  // not a pass: what the judgement ends with, unless another session has ended it
  std::vector<CaseResult> cases;
  std::string shown_by;                  // as in Judgement
  bool found = false;                    // something that counts
  std::optional<std::size_t> perturbed;  // the case that failed under another schedule than 0 only
};

struct SessionResult {
  SessionState plain;  // before other schedules were run
  SessionState whole;
  bool good = true;  // false: sessions behind it do not count
  Cost cost;
};

// How far sessions that run side by side have come. What is wrong in one lets those after it, in
// the order in which their results are put together, skip their windows.
struct SessionProgress {
  std::atomic<std::size_t> failed{~std::size_t{0}};  // the first that is not good
  std::atomic<std::size_t> found{~std::size_t{0}};   // the first with a finding that counts
  static void Lower(std::atomic<std::size_t>& first, std::size_t number) {
    std::size_t known = first;
    while (number < known && !first.compare_exchange_weak(known, number)) {
    }
  }
};

class SessionRun {
 public:
  // `number`: its place among all. `cpu_ms`: what it may use.
  SessionRun(const JudgeContext& context, const SessionGroup& group, std::vector<CaseResult> cases,
             std::size_t number, SessionProgress* progress, bool traced, double cpu_ms)
      : context_(context),
        request_(context.request),
        problem_(context.problem),
        group_(group),
        number_(number),
        progress_(*progress),
        traced_(traced),
        cpu_ms_(cpu_ms) {
    state_.cases = std::move(cases);
  }

  SessionResult Run();

 private:
  bool End(Verdict verdict, std::string text, std::string log = "");
  // Whether what this session shows will be discarded.
  bool Overtaken() const { return progress_.failed < number_; }
  bool FoundBefore() const { return progress_.found < number_; }
  Result<std::unique_ptr<Session>> Start();
  bool RunCase(Session& session, std::uint32_t place, CaseResult& result);
  // The same case under other schedules; false if there are to be no more of them.
  bool RunSchedules(Session& session, std::uint32_t place, CaseResult& result);
  // The repetitions of a timed case's bursts.
  std::vector<WindowSpec> Replays(const CaseResult& result) const;
  // How many schedules a case is run under beside 0, and their numbers.
  std::size_t ScheduleCount(const CaseResult& result) const;
  std::vector<std::uint64_t> Schedules(const CaseResult& result) const;
  WindowChoice ChoiceFor(const CaseResult& result) const;
  // Ranks live while inputs exist: they remember what has happened, so that no window can be the
  // same as another.
  bool live() const { return problem_.window != problem::Window::kGraph; }
  // One window; false if the judgement is over.
  bool RunWindow(Session& session, std::uint32_t place, CaseResult& result, const WindowSpec& spec,
                 Seen* seen);
  // A window as the node is asked for it: what is drawn, where outputs go.
  Status Draw(Session& session, const CaseResult& result, const WindowSpec& spec,
              wire::JudgeRun* run, std::vector<CallView>* views);
  // Runs a window and counts what the node used for it.
  Outcome Ask(Session& session, const std::string& kind, const wire::JudgeRun& run,
              wire::JudgeRunReply* reply);
  void PassOver(Session& session, const std::string& kind, wire::JudgeRun run, Outcome* outcome,
                wire::JudgeRunReply* reply);
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

  const JudgeContext& context_;
  const Request& request_;
  const problem::Problem& problem_;
  const SessionGroup group_;
  const std::size_t number_;
  SessionProgress& progress_;
  const bool traced_;
  const double cpu_ms_;
  SessionState state_;
  std::map<std::string, double> windows_;  // CPU seconds of the node
  double burst_ns_[kSeeds] = {};           // how long the burst of the case under way took, by seed
  WindowSpec window_;                      // that is run
  std::size_t traced_place_ = 0;           // of the case whose window a trace shows
};

}  // namespace allranks::judge
