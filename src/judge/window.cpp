// One window of a case: inputs are drawn, the node runs the calls, every output of every call and
// rank is compared, and what links carried is held against the floors. Part of Trial.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "judge/trial.h"
#include "node/findings.h"

namespace allranks::judge {

using problem::Case;

namespace {

// Numbers of their first calls, for drawing.
constexpr std::uint32_t kIsolatedCall = 1'000'000, kDisturbedCall = 2'000'000;
constexpr std::uint32_t kScheduledCall = 3'000'000;
// Cases that take no more than this are run under schedules 1 to kSchedules, too, and tiny ones
// under more: values that are old show in one schedule and not in the next.
constexpr std::uint64_t kSchedules = 3, kMoreSchedules = 12;
constexpr std::uint64_t kCheapInstructions = 1'000'000, kTinyInstructions = 200'000;
// Of timed cases, only windows of so few instructions are checked.
constexpr std::uint64_t kCheckedInstructions = 10'000'000;
// A kernel may use so many times the instructions that the reference uses for its whole share.
constexpr std::uint64_t kFuelFactor = 64;
constexpr std::uint64_t kLeastFuel = 20'000'000;
constexpr std::uint64_t kDefaultFuel = 5'000'000'000;

}  // namespace

std::uint64_t Trial::FuelOf(const CaseResult& result) const {
  if (!lock_) return kDefaultFuel;
  const problem::LockEntry* entry = lock_->Find(profile_->name, result.what.name);
  // A drawn case has no entry; the costliest of the known ones bounds it.
  const std::uint64_t whole = entry != nullptr ? entry->reference.thread_instructions
                                               : lock_->MostInstructions(profile_->name);
  if (whole == 0) return kDefaultFuel;
  const auto shares = static_cast<std::uint64_t>(problem_.burst * result.what.world);
  return std::max(kLeastFuel, whole / shares * kFuelFactor);
}

std::optional<std::uint64_t> Trial::SizeOf(const CaseResult& result) const {
  const auto locked = [&](const CaseResult& one) -> std::optional<std::uint64_t> {
    const problem::LockEntry* entry = lock_ ? lock_->Find(profile_->name, one.what.name) : nullptr;
    return entry == nullptr ? std::nullopt : std::optional(entry->reference.thread_instructions);
  };
  if (const auto own = locked(result)) return own;
  if (!lock_)  // a problem under construction
    return result.what.kind == Case::Kind::kVisible ? std::optional<std::uint64_t>(0)
                                                    : std::nullopt;
  // A drawn one is as large as the least known one that has to move as much.
  const auto moves = [](const CaseResult& one) { return one.bytes * one.what.world; };
  std::optional<std::uint64_t> size;
  for (const CaseResult& one : judgement_.cases) {
    const auto known = locked(one);
    if (known && one.ran && moves(one) >= moves(result) && (!size || *known < *size)) size = known;
  }
  return size;
}

bool Trial::IsCheap(const CaseResult& result, std::uint32_t calls) const {
  const problem::LockEntry* entry = lock_ ? lock_->Find(profile_->name, result.what.name) : nullptr;
  if (entry == nullptr) return true;
  const auto burst = static_cast<std::uint64_t>(problem_.burst);
  return entry->reference.thread_instructions / burst * calls <= kCheckedInstructions;
}

bool Trial::Failed(CaseResult& result, Verdict verdict, std::string text, std::string log) {
  result.verdict = verdict;
  if (schedule_ != 0 && verdict != Verdict::kInternalError) {
    // Not the end: outputs under schedule 0 say whether it is right but for its order.
    result.schedule = schedule_;
    result.text = fmt::format(
        "{0}: under schedule {1}, one of the orders that PTX permits (--case {0} --schedule {1} "
        "shows it again): {2}",
        result.what.name, schedule_, text);
    perturbed_ = &result;
    return false;
  }
  result.text = fmt::format("{}: {}", result.what.name, text);
  return End(verdict, result.text, std::move(log));
}

bool Trial::RunCase(Session& session, std::uint32_t place, CaseResult& result) {
  // Only what is timed goes undisturbed: elsewhere ranks enter late and their warps stumble.
  const bool timed = result.what.kind == Case::Kind::kTimed;
  // Visible cases are for finding out what is wrong: one seed does.
  const int seeds = result.what.kind == Case::Kind::kVisible || request_.times_only ? 1 : kSeeds;
  for (int seed = 0; seed < seeds; ++seed) {
    Seen disturbed, alone, burst;
    const auto calls = static_cast<std::uint32_t>(problem_.burst);
    // What passes only while nothing disturbs it must not be timed: a candidate knows these sizes.
    if (timed && !request_.times_only) {
      const WindowSpec late = {
          .calls = calls, .skew = true, .check = checks() && IsCheap(result, calls)};
      if (seed == 0 && !RunWindow(session, place, result, late, &disturbed)) return false;
      const WindowSpec single = {.seed = seed, .check = checks() && seed == 0};
      if (!RunWindow(session, place, result, single, &alone)) return false;
    }
    const WindowSpec whole = {.seed = seed,
                              .calls = calls,
                              .skew = result.what.skew || !timed,
                              .check = checks() && seed == 0 && !timed};
    if (!RunWindow(session, place, result, whole, &burst)) return false;
    result.isolated_ns = std::max(result.isolated_ns, alone.ns);
    if (burst.ns > result.call_ns) {
      result.call_ns = burst.ns;
      result.roofline_ns = burst.roofline_ns;
      result.bytes = burst.ingress;
    }
    if (seed == 0) {
      result.moved = burst.moved;
      result.thread_instructions = burst.thread_instructions;
    }
  }
  result.ran = true;
  return true;
}

// What is wrong already need not be looked at from other sides.
bool Trial::RunSchedules(Session& session, std::uint32_t place, CaseResult& result) {
  if (!checks() || problem_.window == problem::Window::kQuery || found_ || perturbed_ != nullptr)
    return false;
  std::vector<std::uint64_t> schedules;
  // By the reference, and never by the candidate, which could make itself too large for this.
  const std::optional<std::uint64_t> size = SizeOf(result);
  const bool tiny = size && *size <= kTinyInstructions;
  const std::uint64_t most = request_.schedules != 0 ? request_.schedules
                             : tiny                  ? kMoreSchedules
                                                     : kSchedules;
  const std::uint64_t last = request_.schedule.value_or(most);
  for (std::uint64_t seed = 1; seed <= std::min(last, most); ++seed) schedules.push_back(seed);
  if (last > most) schedules.push_back(last);
  if (!request_.schedule && request_.schedules == 0 && (!size || *size > kCheapInstructions))
    return true;
  for (const std::uint64_t schedule : schedules) {
    Seen seen;
    schedule_ = schedule;
    const WindowSpec spec = {.calls = static_cast<std::uint32_t>(problem_.burst),
                             .skew = true,
                             .check = true,
                             .schedule = schedule};
    const bool good = RunWindow(session, place, result, spec, &seen);
    schedule_ = 0;
    ++result.schedules;
    if (!good || found_) return false;
  }
  return true;
}

bool Trial::RunWindow(Session& session, std::uint32_t place, CaseResult& result,
                      const WindowSpec& spec, Seen* seen) {
  const Case& one = result.what;
  const std::uint32_t calls = spec.calls;
  const auto world = static_cast<std::uint32_t>(one.world);
  const Placement placement = Place(problem_, one, calls);
  const Drawer& drawer = drawers_[static_cast<std::size_t>(spec.seed)];
  // Every window has inputs of its own.
  const bool timed = one.kind == Case::Kind::kTimed;
  const std::uint32_t first = spec.schedule != 0   ? kScheduledCall
                              : calls == 1         ? kIsolatedCall
                              : timed && spec.skew ? kDisturbedCall
                                                   : 0;
  wire::JudgeRun run;
  run.case_index = place;
  run.drain = request_.drain;
  // Under a schedule hosts stop and blocks stall, and others spin meanwhile.
  run.fuel = FuelOf(result) * (spec.schedule != 0 ? 8 : 1);
  run.calls = calls;
  run.check = spec.check;
  run.schedule = spec.schedule;
  std::vector<CallView> views(calls);
  for (std::uint32_t call = 0; call < calls; ++call) {
    CallView& view = views[call];
    view.poison = drawer.PoisonWord(one.name, first + call);
    view.random = drawer.OracleRandom(one.name, first + call);
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      wire::JudgeCall& made = run.by_rank.emplace_back();
      auto& tensors = view.by_rank.emplace_back(problem_.tensors.size());
      if (spec.skew) made.delay_ps = drawer.DelayPs(one.name, first + call, static_cast<int>(rank));
      const std::size_t at = call * world + rank;
      for (const Placement::Item& item : placement.in[at]) {
        const std::span<std::byte> bytes = session.inputs().subspan(item.place, item.bytes);
        if (const Status drawn = drawer.Fill(problem_, one, item.tensor, first + call,
                                             static_cast<int>(rank), bytes);
            !drawn)
          return Failed(result, Verdict::kInternalError, drawn.error().message);
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
  wire::JudgeRunReply reply;
  const Outcome outcome = session.Run(run, &reply);
  const std::vector<node::Finding> findings = FindingsOf(reply);
  node::Fold(findings, &result.findings);
  found_ |= VerdictOf(findings).has_value();
  if (outcome.verdict != Verdict::kPass) {
    std::string text = outcome.text;
    while (!text.empty() && text.back() == '\n') text.pop_back();
    if (VerdictOf(findings)) text += "\n" + TextOf(findings);
    return Failed(result, outcome.verdict, std::move(text), outcome.log);
  }
  if (problem_.window == problem::Window::kQuery && !placement.out[0].empty()) {
    // The answer is rank 0's first output; what it leaves out stays poison.
    const Placement::Item& item = placement.out[0][0];
    const std::span<std::byte> bytes =
        session.outputs_for_answers().subspan(item.place, item.bytes);
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = i < reply.answer.size()
                     ? reply.answer[i]
                     : static_cast<std::byte>(views[0].poison >> (i % 4 * 8) & 0xff);
  }
  const std::size_t count = std::size_t{calls} * world;
  if (reply.opened_ps.size() != count || reply.closed_ps.size() != count ||
      reply.changed.size() != count)
    return Failed(result, Verdict::kInternalError, "the node's report on a run is incomplete");
  if (!CheckOutputs(result, spec, views, reply)) return false;

  // What each rank had to do in all calls of the window.
  std::vector<FloorValues> floors(world);
  for (const CallView& view : views) {
    const Result<std::vector<FloorValues>> one_call = oracle_->Floors(problem_, one, view);
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
  double least_ns = 0;
  for (FloorValues values : floors) {
    for (double* value : {&values.ingress, &values.egress, &values.busiest, &values.hbm,
                          &values.flops, &values.hops})
      *value /= calls;
    seen->roofline_ns =
        std::max(seen->roofline_ns, RooflineNs(*profile_, problem_, one.world, values));
    least_ns = std::max(least_ns,
                        LeastNs(*profile_, problem_, one.world, values, static_cast<int>(calls)));
    seen->ingress = std::max(seen->ingress, values.ingress);
  }
  const auto last = *std::max_element(reply.closed_ps.begin(), reply.closed_ps.end());
  const auto begin = *std::min_element(reply.opened_ps.begin(), reply.opened_ps.end());
  seen->ns = static_cast<double>(last - begin) / 1e3 / calls;
  seen->moved = reply.moved;
  seen->thread_instructions = reply.thread_instructions;
  if (seen->ns < least_ns * (1 - 1e-9)) {
    return Failed(result, Verdict::kImpossible,
                  fmt::format("{:.0f} ns per call, but no algorithm needs less than {:.0f} ns",
                              seen->ns, least_ns));
  }
  return true;
}

bool Trial::CheckOutputs(CaseResult& result, const WindowSpec& spec,
                         const std::vector<CallView>& views, const wire::JudgeRunReply& reply) {
  const auto world = static_cast<std::size_t>(result.what.world);
  std::string first_text;
  for (std::size_t call = 0; call < views.size(); ++call) {
    for (std::size_t rank = 0; rank < world; ++rank) {
      const std::size_t at = call * world + rank;
      if (reply.closed_ps[at] < 0 || reply.opened_ps[at] < 0)
        return Failed(result, Verdict::kWrongResult,
                      fmt::format("rank {} did not end call {}", rank, call));
      if (reply.changed[at] != 0)
        return Failed(result, Verdict::kMemoryError,
                      fmt::format("an input of rank {} was overwritten in call {}", rank, call));
    }
    const Verified verified = oracle_->Verify(problem_, result.what, views[call]);
    if (!verified.failure.empty()) return Failed(result, Verdict::kInternalError, verified.failure);
    ++result.calls;
    if (verified.wrong == 0) continue;
    ++result.wrong_calls;
    if (first_text.empty())
      first_text = fmt::format("seed {}, call {}: {}", spec.seed, call, verified.text);
  }
  if (first_text.empty()) return true;
  const bool first = judgement_.verdict == Verdict::kPass;
  if (!request_.keep_going || spec.schedule != 0)
    return Failed(result, Verdict::kWrongResult, first_text);
  if (first) Failed(result, Verdict::kWrongResult, first_text);
  result.verdict = Verdict::kWrongResult;
  return true;
}

bool Trial::CheckTraffic(CaseResult& result, const std::vector<FloorValues>& floors,
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
    const std::string vertex = fmt::format("gpu{}", rank);
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
