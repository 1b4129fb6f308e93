// Which windows a case has, how many calls each of them makes, and in which the checker runs.
//
// All of it follows from the case and from what the reference needs for it, never from the
// candidate, which could make itself too large to be looked at. What each window is for:
//
//   alone     one call of a timed case: its latency
//   burst     timed, undisturbed, on each seed; the first is checked in all calls, so a race shows
//             whatever a candidate does once something disturbs it
//   replay    the timed burst once more, disturbed from a drawn moment on
//   late      a visible or drawn case, disturbed from its beginning
//   schedule  a cheap case under other schedules
//
// A large case has one window: two calls, one after the other, so that the second meets what the
// first has left. One of them is disturbed, the time of the other counts; which is drawn. Inputs
// and outputs of one call are in memory at a time, and the checker looks at a drawn sample of
// memory (IsSampled).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "node/checking.h"
#include "problem/problem.h"

namespace allranks::judge {

inline constexpr int kSeeds = 2;  // the worse of them counts

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

class WindowChoice {
 public:
  struct Facts {
    problem::Case::Kind kind = problem::Case::Kind::kTimed;
    // Thread-instructions that the reference takes for a burst; nullopt: not known.
    std::optional<std::uint64_t> size;
    int burst = 1;       // calls
    bool large = false;  // Case::large
    bool skew = false;
    // Ranks live while inputs exist: they remember what has happened, so that no window can be the
    // same as another.
    bool live = false;
    bool checks = true;       // the judgement looks for races
    bool times_only = false;  // the first seed's burst of a timed case and nothing else
  };
  explicit WindowChoice(const Facts& facts) : facts_(facts) {}

  // Windows that are run first, under schedule 0 and without replays.
  std::vector<WindowSpec> Plain() const;
  // Repetitions of a timed case's bursts. `fraction(i)`: drawn for the i-th one, in [0, 1).
  std::vector<WindowSpec> Replays(const std::function<double(int)>& fraction) const;
  // How many schedules beside 0 it is run under. `wanted`: one was asked for, however much it
  // costs.
  std::size_t Schedules(bool wanted) const;

  int CallsOf(const WindowSpec& spec) const;
  // How many of them are drawn, executed and compared at a time.
  int CallsAtOnce(const WindowSpec& spec) const { return facts_.large ? 1 : CallsOf(spec); }
  bool IsChecked(const WindowSpec& spec) const;
  // Of large memory the checker looks at drawn pages only (node::Schedule::sample).
  bool IsSampled(const WindowSpec& spec) const { return facts_.large && IsChecked(spec); }

 private:
  int Seeds() const;
  bool IsLarge() const;

  Facts facts_;
};

}  // namespace allranks::judge
