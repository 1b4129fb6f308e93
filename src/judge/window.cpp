// One window of a case: inputs are drawn, the node runs the calls, every output of every call and
// rank is compared (Execute); what came of it is held against the floors, and becomes part of the
// judgement (Accept). Part of SessionRun.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "judge/session_run.h"
#include "node/findings.h"
#include "node/schedule_choice.h"

namespace allranks::judge {

using problem::Case;

namespace {

// Numbers of windows' first calls, for drawing.
constexpr std::uint32_t kAloneCall = 1'000'000, kLateCall = 2'000'000;
constexpr std::uint32_t kScheduledCall = 10'000'000, kScheduledCalls = 4'096;
constexpr std::uint32_t kNumbers = 100'000;  // schedules that have calls of their own
constexpr std::uint32_t kDirectedCall = 2'000'000'000;
constexpr std::uint32_t kPlacesOfLevel = 50'000;  // places of a level that have calls of their own
// Of a replay: its disturbances. Its inputs are those of the burst.
constexpr std::uint32_t kReplayCall = 1'000'000'000;
// All kernels of a window together may do so many times the reference's work; the largest only up
// to a bound that the judge can execute in seconds. What work is: Machine::SetFuel.
constexpr std::uint64_t kFuelFactor = 64, kLargeFuelFactor = 8;
constexpr std::uint64_t kLeastFuel = 500'000'000, kLargeFuel = 2'500'000'000;
constexpr std::uint64_t kUnknownFuel = 40'000'000'000;  // of a large case that was never timed

// What costs are listed by: "timed replay".
std::string KindOf(Case::Kind kind, const WindowSpec& spec) {
  static constexpr const char* kCases[] = {"timed", "visible", "drawn"};
  static constexpr const char* kModes[] = {"alone", "burst", "replay", "late", "schedule"};
  return fmt::format("{} {}", kCases[static_cast<int>(kind)],
                     spec.directed() ? "directed" : kModes[static_cast<int>(spec.mode)]);
}

}  // namespace

std::uint64_t SessionRun::FuelOf(const CaseResult& result) const {
  const problem::LockEntry* entry =
      context_.lock ? context_.lock->Find(context_.profile.name, result.what.name) : nullptr;
  if (entry == nullptr && result.what.large) return kUnknownFuel;
  if (!context_.lock) return kLargeFuel;
  // A drawn case has no entry; the costliest of the known ones bounds it.
  const std::uint64_t whole = entry != nullptr
                                  ? entry->reference.thread_instructions
                                  : context_.lock->MostInstructions(context_.profile.name);
  if (whole == 0) return kLargeFuel;
  // Threads of NCCL look for every 8 bytes again and again until they have come.
  const std::uint64_t least = problem::UsesNccl(context_.problem) ? kLargeFuel : kLeastFuel;
  return std::clamp(whole * kFuelFactor, least, std::max(kLargeFuel, whole * kLargeFuelFactor));
}

std::optional<std::uint64_t> SessionRun::SizeOf(const CaseResult& result) const {
  const auto locked = [&](const Case& one) -> std::optional<std::uint64_t> {
    const problem::LockEntry* entry =
        context_.lock ? context_.lock->Find(context_.profile.name, one.name) : nullptr;
    return entry == nullptr ? std::nullopt : std::optional(entry->reference.thread_instructions);
  };
  if (const auto own = locked(result.what)) return own;
  if (!context_.lock)  // a problem under construction
    return result.what.kind == Case::Kind::kVisible ? std::optional<std::uint64_t>(0)
                                                    : std::nullopt;
  // A drawn one is as large as the least known one with as many bytes.
  const auto bytes = [&](const Case& one) {
    std::uint64_t sum = 0;
    for (const problem::Tensor& tensor : problem_.tensors)
      sum += problem::BytesOf(problem_, tensor, one);
    return sum * static_cast<std::uint64_t>(one.world);
  };
  std::optional<std::uint64_t> size;
  for (const Case& one : context_.cases) {
    const auto known = locked(one);
    if (known && bytes(one) >= bytes(result.what) && (!size || *known < *size)) size = known;
  }
  return size;
}

// The window under way shows that this is no pass.
void SessionRun::NoteShown() {
  using Mode = WindowSpec::Mode;
  if (!state_.shown_by.empty()) return;
  state_.shown_by = window_.directed()                ? "directed"
                    : window_.mode == Mode::kSchedule ? "drawn"
                    : window_.mode == Mode::kReplay   ? "replay"
                                                      : "plain";
}

bool SessionRun::Failed(CaseResult& result, Verdict verdict, std::string text, std::string log) {
  result.verdict = verdict;
  NoteShown();
  if (window_.schedule != 0 && verdict != Verdict::kInternalError) {
    const std::string how =
        window_.mode == WindowSpec::Mode::kReplay
            ? fmt::format("when its burst is perturbed from the middle on (replay {})",
                          window_.schedule)
            : fmt::format(
                  "under schedule {1}, which PTX permits (--case {0} --schedule {1} "
                  "repeats it)",
                  result.what.name, window_.schedule);
    result.schedule = window_.schedule;
    result.text = fmt::format("{}: {}: {}", result.what.name, how, text);
    if (live()) return End(verdict, result.text, std::move(log));
    // Not the end: outputs under schedule 0 say whether it is right but for its order.
    state_.perturbed = static_cast<std::size_t>(&result - state_.cases.data());
    SessionProgress::Lower(progress_.found, number_);
    return false;
  }
  result.text = fmt::format("{}: {}", result.what.name, text);
  return End(verdict, result.text, std::move(log));
}

WindowChoice SessionRun::ChoiceFor(const CaseResult& result) const {
  return WindowChoice({.kind = result.what.kind,
                       .size = SizeOf(result),
                       .burst = problem_.burst,
                       .large = result.what.large,
                       .skew = result.what.skew,
                       .live = live(),
                       .checks = context_.checks(),
                       .times_only = request_.times_only});
}

std::size_t SessionRun::ScheduleCount(const CaseResult& result) const {
  if (request_.schedules != 0 && !result.what.large) return request_.schedules;
  return ChoiceFor(result).Schedules(request_.schedule.has_value());
}

std::vector<std::uint64_t> SessionRun::Schedules(const CaseResult& result) const {
  const std::size_t most = ScheduleCount(result);
  if (most == 0) return {};
  // At which places directed ones begin nobody can foresee.
  std::vector<std::uint64_t> schedules = node::ChooseSchedules(
      result.places, most, context_.drawers[0].ScheduleSeed(result.what.name, kDirectedCall));
  if (!request_.schedule) return schedules;
  const auto last = std::find(schedules.begin(), schedules.end(), *request_.schedule);
  schedules.erase(last == schedules.end() ? last : last + 1, schedules.end());
  if (schedules.empty() || schedules.back() != *request_.schedule)
    schedules.push_back(*request_.schedule);
  return schedules;
}

std::vector<WindowSpec> SessionRun::Replays(const CaseResult& result) const {
  return ChoiceFor(result).Replays([&](int i) {
    return context_.drawers[0].Fraction(result.what.name, fmt::format("moment {}", i));
  });
}

// Of a large case: one call is disturbed, the other one's time counts. A candidate that notices a
// disturbance knows which; both are checked alike.
std::uint32_t SessionRun::TimedCall(const CaseResult& result) const {
  return context_.drawers[0].Fraction(result.what.name, "timed call") < 0.5 ? 0 : 1;
}

Status SessionRun::Draw(Session& session, const WindowTask& task, std::uint32_t from,
                        wire::JudgeRun* run, std::vector<CallView>* views) const {
  using Mode = WindowSpec::Mode;
  const CaseResult& result = state_.cases[task.place];
  const WindowSpec& spec = task.spec;
  const Case& one = result.what;
  const auto world = static_cast<std::uint32_t>(one.world);
  const bool timed = one.kind == Case::Kind::kTimed;
  const WindowChoice choice = ChoiceFor(result);
  run->calls = static_cast<std::uint32_t>(choice.CallsAtOnce(spec));
  const Placement placement = Place(problem_, one, run->calls);
  const Drawer& drawer = context_.drawers[static_cast<std::size_t>(spec.seed)];
  const auto number =
      spec.directed()
          ? static_cast<std::uint32_t>(spec.schedule / node::kDirected * kPlacesOfLevel +
                                       spec.schedule % node::kDirected % kPlacesOfLevel)
          : static_cast<std::uint32_t>(spec.schedule % kNumbers);
  // Every window has inputs of its own but for the repetitions of a burst, which nothing but the
  // disturbance may tell from it. Ranks that live would know the inputs again.
  std::uint32_t first = 0;
  if (spec.mode == Mode::kAlone) first = kAloneCall;
  if (spec.mode == Mode::kLate && timed) first = kLateCall;
  if (spec.mode == Mode::kSchedule)
    first = (spec.directed() ? kDirectedCall : kScheduledCall) + number * kScheduledCalls;
  if (spec.mode == Mode::kReplay && live()) first = kReplayCall + number * kScheduledCalls;
  first += from;
  // What disturbs a replay is not drawn with its inputs.
  const std::uint32_t disturbance =
      spec.mode == Mode::kReplay ? kReplayCall + number * kScheduledCalls : first;
  const bool disturbed = one.large ? from != TimedCall(result) : spec.disturbed();
  const bool scheduled = spec.schedule != 0 || (one.large && disturbed && choice.IsChecked(spec));
  run->drain = request_.drain;
  // Under a schedule hosts stop and blocks stall, and others spin meanwhile.
  run->fuel = FuelOf(result) * (scheduled ? 2 : 1);
  run->check = choice.IsChecked(spec);
  run->places = run->check && spec.schedule == 0 && spec.seed == 0 && spec.mode != Mode::kAlone &&
                ScheduleCount(result) != 0;
  if (spec.directed()) {
    run->directed = spec.schedule;
  } else if (scheduled) {
    run->schedule = drawer.ScheduleSeed(one.name, disturbance);
  }
  if (choice.IsSampled(spec)) run->sample = drawer.SampleSeed(one.name, first);
  run->brief = timed;
  run->begin_ps = drawer.BeginPs(one.name, first);
  run->disturbed_from_ps = static_cast<std::int64_t>(spec.moment * task.burst_ns * 1e3);
  views->resize(run->calls);
  for (std::uint32_t call = 0; call < run->calls; ++call) {
    CallView& view = (*views)[call];
    view.poison = drawer.PoisonWord(one.name, first + call);
    view.random = drawer.OracleRandom(one.name, first + call);
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      wire::JudgeCall& made = run->by_rank.emplace_back();
      auto& tensors = view.by_rank.emplace_back(problem_.tensors.size());
      if (disturbed)
        made.delay_ps = drawer.DelayPs(one.name, disturbance + call, static_cast<int>(rank));
      const std::size_t at = call * world + rank;
      for (const Placement::Item& item : placement.in[at]) {
        const std::span<std::byte> bytes = session.inputs().subspan(item.place, item.bytes);
        if (const Status drawn = drawer.Fill(problem_, one, item.tensor, first + call,
                                             static_cast<int>(rank), bytes);
            !drawn)
          return drawn;
        tensors[item.tensor] = bytes;
        made.draw.push_back({item.tensor, item.place, item.bytes});
      }
      for (const Placement::Item& item : placement.out[at]) {
        tensors[item.tensor] = session.outputs().subspan(item.place, item.bytes);
        made.poison.push_back({item.tensor, view.poison});
        made.keep.push_back({item.tensor, item.place, item.bytes});
      }
    }
  }
  return Ok();
}

// `unsupported` does not count against a candidate, so it must not hide what does: the window is
// run once more without the instruction. Whatever goes wrong then but outputs, which may depend on
// it, is the verdict.
void SessionRun::PassOver(Session& session, wire::JudgeRun run, Executed* executed) const {
  run.pass_over = true;
  run.stays = run.goes_on = false;
  wire::JudgeRunReply again;
  Outcome other = session.Run(run, &again);
  again.cpu_us += executed->reply.cpu_us;
  executed->reply.cpu_us = again.cpu_us;
  if (other.verdict == Verdict::kPass && !VerdictOf(FindingsOf(again))) return;
  if (other.verdict == Verdict::kPass) {
    executed->reply.findings = std::move(again.findings);
    executed->outcome.verdict = *VerdictOf(FindingsOf(executed->reply));
    return;
  }
  executed->outcome = std::move(other);
  executed->reply = std::move(again);
}

Executed SessionRun::Execute(Session& session, const WindowTask& task) const {
  const CaseResult& result = state_.cases[task.place];
  const Case& one = result.what;
  const WindowSpec& spec = task.spec;
  const WindowChoice choice = ChoiceFor(result);
  const auto calls = static_cast<std::uint32_t>(choice.CallsOf(spec));
  const auto at_once = static_cast<std::uint32_t>(choice.CallsAtOnce(spec));
  Executed executed;
  for (std::uint32_t call = 0; call < calls; call += at_once) {
    wire::JudgeRun run;
    std::vector<CallView> views;
    run.case_index = task.place;
    // Of the last timed case the undisturbed burst, of others what there is.
    run.trace = session.traced() && task.place == traced_place_ && spec.seed == 0 &&
                spec.schedule == 0 &&
                (spec.mode == WindowSpec::Mode::kBurst || one.kind != Case::Kind::kTimed);
    run.goes_on = call != 0;
    run.stays = call + at_once < calls;
    if (const Status drawn = Draw(session, task, call, &run, &views); !drawn) {
      executed.outcome = {Verdict::kInternalError, drawn.error().message, ""};
      return executed;
    }
    executed.calls += run.calls;
    wire::JudgeRunReply reply;
    executed.outcome = session.Run(run, &reply);
    Append(std::move(reply), &executed.reply);
    if (executed.outcome.verdict == Verdict::kUnsupported && !live())
      PassOver(session, std::move(run), &executed);
    if (executed.outcome.verdict != Verdict::kPass) return executed;
    Compare(session, one, views, &executed);
    if (at_once < calls) session.ClearOutputs();
  }
  return executed;
}

// Its times go on from where the calls before it have ended.
void SessionRun::Append(wire::JudgeRunReply next, wire::JudgeRunReply* whole) {
  if (whole->opened_ps.empty()) {
    *whole = std::move(next);
    return;
  }
  const std::int64_t end =
      *std::max_element(whole->closed_ps.begin(), whole->closed_ps.end()) -
      (next.opened_ps.empty() ? 0
                              : *std::min_element(next.opened_ps.begin(), next.opened_ps.end()));
  const auto later = [&](std::vector<std::int64_t>& times) {
    for (std::int64_t& time : times)
      if (time >= 0) time += end;
  };
  later(next.opened_ps);
  later(next.closed_ps);
  const auto join = [](auto& before, auto& after) {
    after.insert(after.begin(), std::make_move_iterator(before.begin()),
                 std::make_move_iterator(before.end()));
  };
  join(whole->opened_ps, next.opened_ps);
  join(whole->closed_ps, next.closed_ps);
  join(whole->changed, next.changed);
  join(whole->links, next.links);
  join(whole->findings, next.findings);
  for (std::size_t i = 0; i < whole->moved.size() && i < next.moved.size(); ++i)
    next.moved[i] += whole->moved[i];
  next.thread_instructions += whole->thread_instructions;
  next.cpu_us += whole->cpu_us;
  *whole = std::move(next);
}

// What the oracle says of each call, while its inputs and outputs are there.
void SessionRun::Compare(Session& session, const Case& one, const std::vector<CallView>& views,
                         Executed* executed) const {
  const Placement placement = Place(problem_, one, static_cast<std::uint32_t>(views.size()));
  if (problem_.window == problem::Window::kQuery && !placement.out[0].empty()) {
    // The answer is rank 0's first output; what it leaves out stays poison.
    const Placement::Item& item = placement.out[0][0];
    const std::span<std::byte> bytes =
        session.outputs_for_answers().subspan(item.place, item.bytes);
    const wire::Blob& answer = executed->reply.answer;
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = i < answer.size() ? answer[i]
                                   : static_cast<std::byte>(views[0].poison >> (i % 4 * 8) & 0xff);
  }
  for (const CallView& view : views) {
    executed->verified.push_back(context_.oracle.Verify(problem_, one, view));
    executed->floors.push_back(context_.oracle.Floors(problem_, one, view));
  }
}

Outcome TooMuchWork(const Tools& tools) {
  return {Verdict::kTimeout,
          fmt::format("the windows of the judgement execute more than {} thread-instructions",
                      tools.work),
          ""};
}

bool SessionRun::Accept(CaseResult& result, const WindowSpec& spec, const Executed& executed,
                        Seen* seen) {
  const Case& one = result.what;
  const auto world = static_cast<std::uint32_t>(one.world);
  const std::uint32_t calls = executed.calls;
  const wire::JudgeRunReply& reply = executed.reply;
  const Outcome& outcome = executed.outcome;
  window_ = spec;
  const double seconds = static_cast<double>(reply.cpu_us) * 1e-6;
  windows_[KindOf(one.kind, spec)] += seconds;
  if (executed.helped) helped_seconds_ += seconds;
  state_.work += reply.thread_instructions;
  std::vector<node::Finding> findings = FindingsOf(reply);
  for (node::Finding& finding : findings) finding.schedule = spec.schedule;
  node::Fold(findings, &result.findings);
  if (VerdictOf(findings)) {
    state_.found = true;
    SessionProgress::Lower(progress_.found, number_);
    NoteShown();
  }
  for (std::size_t i = 0; i < result.places.size() && i < reply.places.size(); ++i)
    result.places[i] = reply.places[i];
  if (outcome.verdict != Verdict::kPass) {
    std::string text = outcome.text;
    while (!text.empty() && text.back() == '\n') text.pop_back();
    if (VerdictOf(findings)) text += "\n" + TextOf(findings);
    return Failed(result, outcome.verdict, std::move(text), outcome.log);
  }
  if (state_.work > context_.tools.work) {
    const Outcome late = TooMuchWork(context_.tools);
    return Failed(result, late.verdict, late.text);
  }
  const std::size_t count = std::size_t{calls} * world;
  if (reply.opened_ps.size() != count || reply.closed_ps.size() != count ||
      reply.changed.size() != count)
    return Failed(result, Verdict::kInternalError, "the node's report on a run is incomplete");
  if (!CheckOutputs(result, spec, executed)) return false;

  // What each rank had to do in all calls of the window.
  std::vector<FloorValues> floors(world);
  for (const Result<std::vector<FloorValues>>& one_call : executed.floors) {
    if (!one_call) return Failed(result, Verdict::kInternalError, one_call.error().message);
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      floors[rank].ingress += (*one_call)[rank].ingress;
      floors[rank].egress += (*one_call)[rank].egress;
      floors[rank].busiest += (*one_call)[rank].busiest;
      floors[rank].hbm += (*one_call)[rank].hbm;
      floors[rank].flops += (*one_call)[rank].flops;
      floors[rank].hops += (*one_call)[rank].hops;
    }
  }
  if (!CheckTraffic(result, floors, reply)) return false;
  // Whose time counts: of a large case one call.
  const std::uint32_t timed_calls = one.large ? 1 : calls;
  if (one.large) floors = *executed.floors[TimedCall(result)];
  double least_ns = 0;
  for (FloorValues values : floors) {
    for (double* value : {&values.ingress, &values.egress, &values.busiest, &values.hbm,
                          &values.flops, &values.hops})
      *value /= timed_calls;
    seen->roofline_ns =
        std::max(seen->roofline_ns, RooflineNs(context_.profile, problem_, one.world, values));
    least_ns = std::max(least_ns, LeastNs(context_.profile, problem_, one.world, values,
                                          static_cast<int>(timed_calls)));
    seen->ingress = std::max(seen->ingress, values.ingress);
  }
  const std::size_t from = one.large ? TimedCall(result) * world : 0;
  const std::size_t to = one.large ? from + world : count;
  const auto at = [](const std::vector<std::int64_t>& times, std::size_t i) {
    return times.begin() + static_cast<std::ptrdiff_t>(i);
  };
  const auto last = *std::max_element(at(reply.closed_ps, from), at(reply.closed_ps, to));
  const auto begin = *std::min_element(at(reply.opened_ps, from), at(reply.opened_ps, to));
  seen->ns = static_cast<double>(last - begin) / 1e3 / timed_calls;
  seen->moved = reply.moved;
  seen->thread_instructions = reply.thread_instructions;
  if (seen->ns < least_ns * (1 - 1e-9)) {
    return Failed(result, Verdict::kImpossible,
                  fmt::format("{:.0f} ns per call, but no algorithm needs less than {:.0f} ns",
                              seen->ns, least_ns));
  }
  return true;
}

bool SessionRun::CheckOutputs(CaseResult& result, const WindowSpec& spec,
                              const Executed& executed) {
  const wire::JudgeRunReply& reply = executed.reply;
  const auto world = static_cast<std::size_t>(result.what.world);
  std::string first_text;
  for (std::size_t call = 0; call < executed.verified.size(); ++call) {
    for (std::size_t rank = 0; rank < world; ++rank) {
      const std::size_t at = call * world + rank;
      if (reply.closed_ps[at] < 0 || reply.opened_ps[at] < 0)
        return Failed(result, Verdict::kWrongResult,
                      fmt::format("rank {} did not complete call {}", rank, call));
      if (reply.changed[at] != 0)
        return Failed(result, Verdict::kMemoryError,
                      fmt::format("an input of rank {} was overwritten in call {}", rank, call));
    }
    const Verified& verified = executed.verified[call];
    if (!verified.failure.empty()) return Failed(result, Verdict::kInternalError, verified.failure);
    ++result.calls;
    if (verified.wrong == 0) continue;
    ++result.wrong_calls;
    if (first_text.empty())
      first_text = fmt::format("seed {}, call {}: {}", spec.seed, call, verified.text);
  }
  if (first_text.empty()) return true;
  if (!request_.keep_going || spec.schedule != 0)
    return Failed(result, Verdict::kWrongResult, first_text);
  // Each case has a text of its own, whichever was run before it.
  if (result.verdict == Verdict::kWrongResult) return true;
  const Outcome before = state_.outcome;
  Failed(result, Verdict::kWrongResult, first_text);
  if (before.verdict != Verdict::kPass) state_.outcome = before;
  return true;
}

bool SessionRun::CheckTraffic(CaseResult& result, const std::vector<FloorValues>& floors,
                              const wire::JudgeRunReply& reply) {
  std::map<std::string, double> in, out;  // bytes by vertex
  for (const wire::JudgeLink& link : reply.links) {
    double bytes = 0;
    for (const std::uint64_t moved : link.bytes) bytes += static_cast<double>(moved);
    if (bytes == 0) continue;
    if (std::find(problem_.links.begin(), problem_.links.end(), link.kind) == problem_.links.end())
      return Failed(
          result, Verdict::kForbiddenApi,
          fmt::format("{} bytes went over {} from {} to {}; this problem allows {} only", bytes,
                      link.kind, link.from, link.to, fmt::join(problem_.links, ", ")));
    in[link.to] += bytes;
    out[link.from] += bytes;
  }
  for (std::size_t rank = 0; rank < floors.size(); ++rank) {
    const std::string& vertex = context_.profile.topology.vertices[rank].name;
    const bool starved = in[vertex] < floors[rank].ingress;
    if (!starved && out[vertex] >= floors[rank].egress) continue;
    return Failed(result, Verdict::kNoCommunication,
                  fmt::format("{} bytes {} rank {}; any algorithm needs {}",
                              starved ? in[vertex] : out[vertex], starved ? "reached" : "left",
                              rank, starved ? floors[rank].ingress : floors[rank].egress));
  }
  return true;
}

}  // namespace allranks::judge
