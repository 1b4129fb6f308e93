// See window_choice.h.
#include "judge/window_choice.h"

#include <algorithm>

namespace allranks::judge {
namespace {

using Kind = problem::Case::Kind;
using Mode = WindowSpec::Mode;

// Cases that take no more than this are run under so many schedules, too, and tiny ones under more:
// values that are old show in one schedule and not in the next. A problem has several such cases,
// whose directed schedules begin at different places; of 269 seeded bugs the five that only
// schedules show are found by these as they were by twice as many.
constexpr std::size_t kSchedules = 3, kMoreSchedules = 6;
constexpr std::uint64_t kCheapInstructions = 1'000'000, kTinyInstructions = 200'000;
// Replays of a timed case beside the one that is disturbed from its beginning on: three, or one
// where the reference needs more instructions for a burst than this.
constexpr std::uint64_t kManyReplays = 1'000'000;
// Beyond this a case is large. A timed one has only the one replay, and its single call, which
// cannot be told from the first one of a burst, is not checked.
constexpr std::uint64_t kLarge = 5'000'000;
// Calls of a drawn case that is large: what a call leaves behind is met by the next one, and where
// two buffers take turns by the one after it. Timed and small cases have all calls: a candidate
// that counts calls must not know of any that nobody looks at.
constexpr int kFewCalls = 3;
constexpr int kLargeCalls = 2;  // of Case::large

}  // namespace

bool WindowChoice::IsLarge() const { return facts_.size.value_or(0) > kLarge; }

// Visible cases are for finding out what is wrong: one seed does. So it does for drawn ones that
// are checked; a second window beside it would compare outputs alone.
int WindowChoice::Seeds() const {
  const bool once = facts_.kind == Kind::kVisible || facts_.times_only || facts_.large ||
                    (facts_.kind == Kind::kDrawn && facts_.checks && !facts_.live);
  return once ? 1 : kSeeds;
}

std::vector<WindowSpec> WindowChoice::Plain() const {
  const bool timed = facts_.kind == Kind::kTimed;
  std::vector<WindowSpec> windows;
  if (timed && !facts_.times_only && !facts_.large) windows.push_back({.mode = Mode::kAlone});
  for (int seed = 0; seed < Seeds(); ++seed)
    windows.push_back({.mode = timed && !facts_.skew ? Mode::kBurst : Mode::kLate, .seed = seed});
  return windows;
}

// The first one is disturbed from its beginning on. The others begin exactly as the burst that is
// timed does, and go on so until a moment that is drawn, in equal parts of the burst: whatever a
// candidate leaves out there because nothing disturbs it, it leaves out here as well.
std::vector<WindowSpec> WindowChoice::Replays(const std::function<double(int)>& fraction) const {
  if (facts_.kind != Kind::kTimed || facts_.times_only || facts_.large) return {};
  if (!facts_.checks) return {{.mode = Mode::kLate}};
  const int parts = facts_.size.value_or(kManyReplays + 1) <= kManyReplays ? 3 : 1;
  std::vector<WindowSpec> replays;
  for (int i = IsLarge() && !facts_.live ? 1 : 0; i <= parts; ++i)
    replays.push_back({.mode = Mode::kReplay,
                       .seed = i % kSeeds,
                       .schedule = static_cast<std::uint64_t>(i) + 1,
                       .moment = i == 0 ? 0 : (i - 1 + fraction(i)) / parts});
  return replays;
}

std::size_t WindowChoice::Schedules(bool wanted) const {
  if (facts_.large) return 0;
  if (!wanted && (!facts_.size || *facts_.size > kCheapInstructions)) return 0;
  return facts_.size && *facts_.size <= kTinyInstructions ? kMoreSchedules : kSchedules;
}

int WindowChoice::CallsOf(const WindowSpec& spec) const {
  if (facts_.large) return kLargeCalls;
  if (spec.mode == Mode::kAlone) return 1;
  const bool few = facts_.kind == Kind::kDrawn && facts_.checks && !facts_.live && IsLarge();
  return few ? std::min(facts_.burst, kFewCalls) : facts_.burst;
}

// Which of two seeds is checked nobody can tell from inside, and the slower burst counts. A replay
// needs the checker: loads return older values, and blocks stall, only under it.
bool WindowChoice::IsChecked(const WindowSpec& spec) const {
  if (!facts_.checks) return false;
  if (facts_.large) return true;
  if (facts_.live || spec.schedule != 0) return true;
  return spec.seed == 0 && !(spec.mode == Mode::kAlone && IsLarge());
}

}  // namespace allranks::judge
