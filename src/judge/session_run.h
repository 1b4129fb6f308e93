// One session of a judgement: its cases, one after the other, each in several windows. Trial
// (trial.h) makes the sessions and puts their results together; session_run.cpp has the order of
// windows, window.cpp one window (draw, run, verify, floors). Other threads may execute windows
// ahead of this order (window_queue.h).
#pragma once

#include <atomic>
#include <compare>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "judge/draw.h"
#include "judge/judge.h"
#include "judge/roofline.h"
#include "judge/session.h"
#include "judge/verify.h"
#include "judge/window_choice.h"
#include "judge/window_queue.h"
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

// What one session runs: the cases of one stage and world size, and of one profile, if they name
// one.
struct SessionGroup {
  enum class Stage : std::uint8_t {
    kFirst,
    kDrawn,  // where drawn cases come last
    kLarge,  // of a candidate that is right in all others
  };
  Stage stage = Stage::kFirst;
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

// One window to be executed.
struct WindowTask {
  std::uint32_t place = 0;  // of its case in the session
  WindowSpec spec;
  double burst_ns = 0;  // of a replay: how long the burst took that it repeats
  double weight = 0;    // how long it takes, compared with others
};

// What came of it.
struct Executed {
  Outcome outcome;
  wire::JudgeRunReply reply;
  std::uint32_t calls = 0;
  bool helped = false;  // by a further session
  // By call; of windows that have ended as they should.
  std::vector<Verified> verified;
  std::vector<Result<std::vector<FloorValues>>> floors;
};

// More than Tools::work.
Outcome TooMuchWork(const Tools& tools);

// Where a session stands.
struct SessionState {
  Outcome outcome;  // not a pass: what the judgement ends with, unless another session has ended it
  std::vector<CaseResult> cases;
  std::string shown_by;                  // as in Judgement
  bool found = false;                    // something that counts
  std::optional<std::size_t> perturbed;  // the case that failed under another schedule than 0 only
  std::uint64_t work = 0;                // thread-instructions of its accepted windows
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
             std::size_t number, SessionProgress* progress, bool traced, double cpu_ms);

  SessionResult Run();
  // For a thread that has nothing else to do: executes windows of this session in another one of
  // the same kind until there are none. False, at once, if there are none, or if windows depend on
  // each other.
  bool Help();

 private:
  bool End(Verdict verdict, std::string text, std::string log = "");
  // Whether what this session shows will be discarded.
  bool Overtaken() const { return progress_.failed < number_; }
  bool FoundBefore() const { return progress_.found < number_; }
  Result<std::unique_ptr<Session>> Start(int helper);
  // Node and ranks, ready for windows. `helper`: 0 for the session's own, else a number.
  Result<std::unique_ptr<Session>> Ready(int helper, Outcome* captured);
  // All windows under schedule 0; false if the judgement is over.
  bool RunPlain(Session& session);
  // Replays and other schedules, until something is found.
  void RunSchedules(Session& session);
  WindowTask TaskOf(std::uint32_t place, const WindowSpec& spec) const;
  std::vector<WindowTask> PlainTasks(std::uint32_t place) const;
  std::vector<WindowTask> ScheduledTasks() const;
  Executed Obtain(Session& session, std::size_t index);
  void NoteTimes(CaseResult& result, const WindowSpec& spec, const Seen& seen);
  // The repetitions of a timed case's bursts.
  std::vector<WindowSpec> Replays(const CaseResult& result) const;
  // How many schedules a case is run under beside 0, and their numbers.
  std::size_t ScheduleCount(const CaseResult& result) const;
  std::vector<std::uint64_t> Schedules(const CaseResult& result) const;
  WindowChoice ChoiceFor(const CaseResult& result) const;
  // Ranks live while inputs exist: they remember what has happened, so that no window can be the
  // same as another.
  bool live() const { return problem_.window != problem::Window::kGraph; }
  std::uint32_t TimedCall(const CaseResult& result) const;
  // Calls of a window, from the `from`-th on, as the node is asked for them: what is drawn, where
  // outputs go.
  Status Draw(Session& session, const WindowTask& task, std::uint32_t from, wire::JudgeRun* run,
              std::vector<CallView>* views) const;
  // Runs one window and compares its outputs. Changes nothing here: several threads may do so, each
  // with a session of its own.
  Executed Execute(Session& session, const WindowTask& task) const;
  void PassOver(Session& session, wire::JudgeRun run, Executed* executed) const;
  // Calls that follow each other one by one are one window.
  static void Append(wire::JudgeRunReply next, wire::JudgeRunReply* whole);
  void Compare(Session& session, const problem::Case& one, const std::vector<CallView>& views,
               Executed* executed) const;
  // What a window showed becomes part of the judgement; false if that is over.
  bool Accept(CaseResult& result, const WindowSpec& spec, const Executed& executed, Seen* seen);
  bool CheckOutputs(CaseResult& result, const WindowSpec& spec, const Executed& executed);
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
  double burst_ns_[kSeeds] = {};  // where ranks live: how long the last burst took, by seed
  WindowQueue<WindowTask, Executed> queue_;
  std::mutex helpers_mutex_;
  int helpers_ = 0;  // that came; guarded, as is what they cost
  Cost helpers_cost_;
  double helped_seconds_ = 0;     // the node's, for windows of helpers that were accepted
  WindowSpec window_;             // that is run
  std::size_t traced_place_ = 0;  // of the case whose window a trace shows
};

}  // namespace allranks::judge
