// The flow of one judgement: prepare, choose cases, one session for each group of them, conclude.
// Sessions go by world, small worlds first; in each, visible cases come before timed and drawn
// ones, or drawn ones of all worlds come after everything else. The first failure ends it: what is
// wrong once need not be timed.
#include "judge/trial.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>

#include "judge/build.h"
#include "judge/conclude.h"
#include "judge/means.h"
#include "judge/own_seconds.h"
#include "judge/sandbox.h"
#include "judge/score.h"
#include "judge/trusted.h"
#include "problem/machine.h"
#include "problem/source.h"

namespace allranks::judge {
namespace {

using problem::Case;

// What may pass between two looks at what a sandbox has used.
constexpr double kCpuMargin = 500;  // ms

bool IsLarge(const SessionGroup& group) { return group.stage == SessionGroup::Stage::kLarge; }

}  // namespace

bool Trial::End(Verdict verdict, std::string text, std::string log) {
  judgement_.verdict = verdict;
  judgement_.text = std::move(text);
  if (!log.empty()) judgement_.log = std::move(log);
  return false;
}

bool Trial::Prepare() {
  if (!tools_.trusted && !Means().missing.empty())
    return End(Verdict::kInternalError, Means().missing + TrustedRemedy());
  SweepLeftovers();
  SweepScratch();
  Result<node::Profile> profile = node::LoadProfile(request_.profile);
  if (!profile) return End(Verdict::kInternalError, profile.error().message);
  Result<problem::Problem> there = problem::On(std::move(problem_), *profile);
  if (!there) return End(Verdict::kInternalError, there.error().message);
  problem_ = std::move(*there);
  judgement_.profile = profile->name;
  judgement_.profile_version = profile->version;

  const Result<problem::Region> region = problem::RegionOf(problem_);
  if (!region) return End(Verdict::kInternalError, region.error().message);
  const Result<std::string> source = problem::Assemble(*region, request_.source);
  if (!source) return End(Verdict::kEditViolation, source.error().message);
  judgement_.source_hash = HashOf({*source});
  const Result<std::string> toml = problem::ReadFile(problem_.folder / "problem.toml");
  const Result<std::string> oracle = problem::ReadFile(problem_.folder / "oracle.cpp");
  if (!toml) return End(Verdict::kInternalError, toml.error().message);
  if (!oracle) return End(Verdict::kInternalError, oracle.error().message);
  judgement_.problem_hash =
      HashOf({*toml, region->before + region->inside + region->after, *oracle});

  Result<Scratch> scratch = Scratch::Make();
  if (!scratch) return End(Verdict::kInternalError, scratch.error().message);
  scratch_ = std::move(*scratch);
  Build build = BuildCandidate(tools_, problem_, *profile, *source, scratch_->path());
  judgement_.cost.compile = build.cpu_seconds;
  judgement_.cost.cached_build = build.cached;
  judgement_.log = build.log;
  if (build.verdict != Verdict::kPass) return End(build.verdict, build.text);

  Result<Oracle> loaded = Oracle::Load(tools_, problem_);
  if (!loaded) return End(Verdict::kInternalError, loaded.error().message);
  context_.emplace(JudgeContext{.tools = tools_,
                                .request = request_,
                                .problem = problem_,
                                .profile = std::move(*profile),
                                .oracle = std::move(*loaded),
                                .lock = {},
                                .drawers = {},
                                .folder = scratch_->path(),
                                .program = build.program,
                                .module_hash = {},
                                .trace = {},
                                .cases = {}});
  for (int seed = 0; seed < kSeeds; ++seed)
    context_->drawers.emplace_back(KeyOf(request_.seed, fmt::format("seed {}", seed)));
  for (std::size_t i = 0; i + 1 < build.module.size(); i += 2)
    context_->module_hash.push_back(
        static_cast<std::byte>(std::stoi(build.module.substr(i, 2), nullptr, 16)));
  // A problem under construction has none: then there is nothing to compare with.
  if (Result<problem::Lock> lock = problem::LoadLock(problem_)) context_->lock = std::move(*lock);
  if (!request_.trace.empty()) {
    context_->trace =
        wire::Fd(open(request_.trace.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (context_->trace.get() < 0)
      return End(Verdict::kInternalError,
                 fmt::format("cannot write {}: {}", request_.trace, std::strerror(errno)));
  }
  return true;
}

void Trial::ChooseCases() {
  std::vector<Case> cases;
  for (const Case& one : problem_.cases) {
    const bool visible = one.kind == Case::Kind::kVisible;
    if (visible ? !request_.times_only : !request_.visible_only) cases.push_back(one);
  }
  if (!request_.visible_only && !request_.times_only) {
    for (Case& one : context_->drawers[0].DrawCases(problem_)) cases.push_back(std::move(one));
  }
  const auto order = [](Case::Kind kind) {
    return kind == Case::Kind::kVisible ? 0 : kind == Case::Kind::kTimed ? 1 : 2;
  };
  // Names break ties, so that the order is the same everywhere.
  std::vector<std::size_t> by(cases.size());
  for (std::size_t i = 0; i < by.size(); ++i) by[i] = i;
  std::sort(by.begin(), by.end(), [&](std::size_t a, std::size_t b) {
    const auto key = [&](std::size_t i) {
      return std::tuple(GroupOf(cases[i]).stage, cases[i].world, order(cases[i].kind), i);
    };
    return key(a) < key(b);
  });
  for (const std::size_t i : by) {
    if (!request_.only_case.empty() && cases[i].name != request_.only_case) continue;
    CaseResult result;
    result.what = cases[i];
    // Elsewhere times are those of drawn delays, too.
    if (context_->lock && cases[i].kind == Case::Kind::kTimed) {
      if (const problem::LockEntry* entry =
              context_->lock->Find(context_->profile.name, cases[i].name)) {
        result.reference_ns = entry->reference.call_ns;
        result.baseline_ns = entry->baseline.call_ns;
        if (entry->nccl) result.nccl_ns = entry->nccl->call_ns;
      }
    }
    judgement_.cases.push_back(std::move(result));
  }
  context_->cases = std::move(cases);
}

SessionGroup Trial::GroupOf(const Case& one) const {
  using Stage = SessionGroup::Stage;
  return {.stage = one.large                                               ? Stage::kLarge
                   : request_.drawn_last && one.kind == Case::Kind::kDrawn ? Stage::kDrawn
                                                                           : Stage::kFirst,
          .world = one.world,
          .profile = one.profile};
}

// Their results, in order. Those behind one that is not good may be missing.
std::vector<SessionResult> Trial::RunSessions(
    const std::map<SessionGroup, std::vector<std::size_t>>& groups) {
  // The largest world's; not of drawn cases, if they are alone in it: nobody looks at their times.
  const SessionGroup* traced = nullptr;
  for (const auto& [group, indices] : groups)
    if (traced == nullptr || group.stage == SessionGroup::Stage::kFirst) traced = &group;
  std::vector<const std::pair<const SessionGroup, std::vector<std::size_t>>*> order;
  for (const auto& group : groups) order.push_back(&group);
  std::vector<SessionResult> results(order.size());
  SessionProgress progress;
  std::mutex mutex;
  std::vector<double> seconds(order.size());         // that ended sessions have used; with `mutex`
  std::vector<std::shared_ptr<SessionRun>> running;  // largest worlds first; with `mutex`
  const auto run = [&](std::size_t number) {
    if (progress.failed < number) return;
    const auto& [group, indices] = *order[number];
    if (IsLarge(group) && progress.found < number) return;
    // Sessions after it do not count, and those before it that still run are not known yet:
    // PutTogether adds up again.
    double used = judgement_.cost.compile + judgement_.cost.judge;
    {
      const std::lock_guard lock(mutex);
      for (std::size_t i = 0; i < number; ++i) used += seconds[i];
    }
    const double left = LeftMs(used);
    if (left <= 0) {
      results[number].good = false;
      results[number].whole.outcome = results[number].plain.outcome = TooLong();
      return SessionProgress::Lower(progress.failed, number);
    }
    std::vector<CaseResult> cases;
    for (const std::size_t i : indices) cases.push_back(judgement_.cases[i]);
    const auto session = std::make_shared<SessionRun>(*context_, group, std::move(cases), number,
                                                      &progress, &group == traced, left);
    {
      const std::lock_guard lock(mutex);
      running.push_back(session);
    }
    results[number] = session->Run();
    const std::lock_guard lock(mutex);
    std::erase(running, session);
    seconds[number] = results[number].cost.RunSeconds();
  };
  // Large cases come last, and one after the other: they take memory, and who is wrong elsewhere
  // need not run them.
  const auto large = static_cast<std::size_t>(std::count_if(
      order.begin(), order.end(), [](const auto* one) { return IsLarge(one->first); }));
  const std::size_t usual = order.size() - large;
  const std::size_t jobs = Jobs();
  if (jobs == 1) {
    for (std::size_t number = 0; number < order.size(); ++number) run(number);
    return results;
  }
  // Whether there was one to help.
  const auto help = [&] {
    std::vector<std::shared_ptr<SessionRun>> known;
    {
      const std::lock_guard lock(mutex);
      known = running;
    }
    return std::any_of(known.begin(), known.end(), [](const auto& one) { return one->Help(); });
  };
  // Large worlds take longest, so they start first. Who finds none to start helps those that run.
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < usual; i = next++) run(usual - 1 - i);
    while (help()) {
    }
  };
  std::vector<std::jthread> threads;
  for (std::size_t i = 1; i < jobs; ++i) threads.emplace_back(work);
  work();
  threads.clear();
  for (std::size_t number = usual; number < order.size(); ++number) run(number);
  return results;
}

// A trace is of what one judgement does in order. More threads than cores only wait for each other.
std::size_t Trial::Jobs() const {
  if (!request_.trace.empty()) return 1;
  const unsigned cores = std::max(std::thread::hardware_concurrency(), 1u);
  return std::min(static_cast<std::size_t>(std::max(request_.jobs, 1)), std::size_t{cores});
}

double Trial::LeftMs(double used) const { return tools_.cpu_ms - kCpuMargin - 1e3 * used; }

Outcome Trial::TooLong() const {
  return {Verdict::kTimeout,
          fmt::format("the candidate exceeds the {} s of CPU time of a judgement",
                      tools_.cpu_ms / 1000),
          ""};
}

void Trial::EndTooLong() {
  const Outcome late = TooLong();
  End(late.verdict, late.text);
}

// What each has shown, as if one had been run after the other: other schedules of a session do not
// count if something was found before it.
void Trial::PutTogether(const std::map<SessionGroup, std::vector<std::size_t>>& groups,
                        std::vector<SessionResult> results) {
  double used = judgement_.cost.compile + judgement_.cost.judge;
  std::uint64_t work = 0;
  for (const SessionResult& result : results) {
    judgement_.cost.ranks += result.cost.ranks;
    judgement_.cost.node += result.cost.node + result.cost.aside;
    judgement_.cost.judge += result.cost.judge;
    for (const auto& [kind, seconds] : result.cost.windows)
      judgement_.cost.windows[kind] += seconds;
  }
  std::optional<std::size_t> perturbed;
  bool found = false;
  std::size_t number = 0;
  for (const auto& [group, indices] : groups) {
    SessionResult& result = results[number++];
    if (LeftMs(used) <= 0) {
      EndTooLong();
      break;
    }
    used += result.cost.RunSeconds();
    SessionState& state = found ? result.plain : result.whole;
    for (std::size_t i = 0; i < state.cases.size(); ++i)
      judgement_.cases[indices[i]] = std::move(state.cases[i]);
    if (judgement_.shown_by.empty()) judgement_.shown_by = state.shown_by;
    if (state.perturbed && !perturbed) perturbed = indices[*state.perturbed];
    if (state.outcome.verdict != Verdict::kPass &&
        (!result.good || judgement_.verdict == Verdict::kPass))
      End(state.outcome.verdict, state.outcome.text, state.outcome.log);
    found = found || state.found || state.perturbed.has_value();
    work += state.work;
    if (!result.good) break;
    // It had more work and more time than it would have had behind the others.
    if (work > tools_.work) {
      const Outcome late = TooMuchWork(tools_);
      End(late.verdict, late.text);
      break;
    }
    if (1e3 * used > tools_.cpu_ms) {
      EndTooLong();
      break;
    }
  }
  judgement_.cost.work = work;
  judgement_.checked = context_->checks();
  Conclude(perturbed ? &judgement_.cases[*perturbed] : nullptr, &judgement_);
  if (judgement_.verdict == Verdict::kPass)
    judgement_.score = Score(context_->problem, judgement_.cases);
}

Judgement Trial::Run() {
  const auto start = std::chrono::steady_clock::now();
  judgement_.seed = request_.seed;
  judgement_.trusted = tools_.trusted;
  const double own = OwnSeconds();
  const bool prepared = Prepare();
  judgement_.cost.judge = OwnSeconds() - own;
  if (prepared) {
    ChooseCases();
    if (request_.listener != nullptr)
      request_.listener->OnCases(static_cast<int>(judgement_.cases.size()));
    std::map<SessionGroup, std::vector<std::size_t>> groups;
    for (std::size_t i = 0; i < judgement_.cases.size(); ++i)
      groups[GroupOf(judgement_.cases[i].what)].push_back(i);
    if (groups.empty()) {
      End(Verdict::kInternalError,
          fmt::format("{} has no case '{}'", problem_.slug, request_.only_case));
    } else {
      PutTogether(groups, RunSessions(groups));
    }
  }
  if (tools_.trusted) {
    judgement_.text = AsInSandbox(std::move(judgement_.text));
    judgement_.log = AsInSandbox(std::move(judgement_.log));
    for (CaseResult& result : judgement_.cases) result.text = AsInSandbox(std::move(result.text));
  }
  judgement_.cost.wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return std::move(judgement_);
}

}  // namespace allranks::judge
