// See session_run.h: how a session starts, and in which order its windows are run.
#include "judge/session_run.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <utility>

#include "judge/own_seconds.h"
#include "problem/args.h"

namespace allranks::judge {
namespace {

using problem::Case;
using problem::Problem;
using problem::Tensor;

// How long a burst may take where that is not known beforehand.
constexpr double kUsualCallNs = 50'000;

wire::JudgeWindow WireWindow(problem::Window window) {
  switch (window) {
    case problem::Window::kGraph:
      return wire::JudgeWindow::kGraph;
    case problem::Window::kStream:
      return wire::JudgeWindow::kStream;
    case problem::Window::kHost:
      return wire::JudgeWindow::kHost;
    case problem::Window::kQuery:
      return wire::JudgeWindow::kQuery;
  }
  return wire::JudgeWindow::kGraph;
}

bool Allows(const Problem& problem, const char* what) {
  return std::find(problem.allow.begin(), problem.allow.end(), what) != problem.allow.end();
}

// Args of a case as bytes, and where the node has to write addresses.
wire::JudgeCase WireCase(const Problem& problem, const Case& one) {
  wire::JudgeCase made;
  const problem::ArgsLayout layout = problem::LayOut(problem);
  made.args.resize(layout.bytes);
  const auto put = [&](std::uint32_t offset, const auto& value) {
    std::memcpy(made.args.data() + offset, &value, sizeof value);
  };
  for (const problem::Field& field : layout.fields) {
    using problem::FieldKind;
    switch (field.kind) {
      case FieldKind::kRank:
        break;  // the node's
      case FieldKind::kWorld:
        put(field.offset, static_cast<std::int32_t>(one.world));
        break;
      case FieldKind::kParam:
        put(field.offset, one.params[field.index]);
        break;
      case FieldKind::kOwn:
        made.fields.push_back({wire::JudgeField::Pointer::kOwn, field.offset, field.index, 0});
        break;
      case FieldKind::kPeer:
        if (static_cast<int>(field.peer) < one.world)
          made.fields.push_back(
              {wire::JudgeField::Pointer::kPeer, field.offset, field.index, field.peer});
        break;
      case FieldKind::kMulticast:
        made.fields.push_back(
            {wire::JudgeField::Pointer::kMulticast, field.offset, field.index, 0});
        break;
    }
  }
  for (const Tensor& tensor : problem.tensors) {
    const bool symmetric = tensor.dir == Tensor::Dir::kSymmetric;
    made.tensors.push_back({.bytes = problem::BytesOf(problem, tensor, one),
                            .peers = tensor.peers,
                            .multicast = tensor.multicast,
                            .host = tensor.host,
                            .device = symmetric || !tensor.host});
  }
  return made;
}

}  // namespace

bool SessionRun::End(Verdict verdict, std::string text, std::string log) {
  state_.outcome.verdict = verdict;
  state_.outcome.text = std::move(text);
  if (!log.empty()) state_.outcome.log = std::move(log);
  return false;
}

Result<std::unique_ptr<Session>> SessionRun::Start() {
  wire::JudgePlan plan;
  plan.window = WireWindow(problem_.window);
  plan.world = static_cast<std::uint32_t>(group_.world);
  plan.host_threads = static_cast<std::uint32_t>(problem_.host_threads);
  plan.module_hash = context_.module_hash;
  plan.rules = {.setup = problem_.setup,
                .copies = Allows(problem_, "memcpy"),
                .values = Allows(problem_, "values"),
                .max_ctas = static_cast<std::uint32_t>(problem_.max_ctas)};
  SessionOptions options;
  options.tools = &context_.tools;
  options.profile = request_.profile;
  if (!group_.profile.empty())
    options.profile =
        (std::filesystem::path(request_.profile).parent_path() / (group_.profile + ".toml"))
            .string();
  options.program = context_.program;
  options.folder = fmt::format("{}/{}", context_.folder, number_);
  if (mkdir(options.folder.c_str(), 0711) != 0 || chmod(options.folder.c_str(), 0711) != 0)
    return Fail("cannot create the folder {}: {}", options.folder, std::strerror(errno));
  if (problem_.window != problem::Window::kQuery) options.calls = problem_.calls;
  options.secret = context_.drawers[0].Secret(
      fmt::format("handles of {}world {}", group_.late ? "drawn cases in " : "", group_.world));
  if (traced_) options.trace_fd = context_.trace.get();
  options.check = context_.checks();
  options.cpu = std::chrono::milliseconds(static_cast<std::int64_t>(cpu_ms_) + 1);
  bool timed = false;
  for (const CaseResult& result : state_.cases) {
    const Case& one = result.what;
    plan.cases.push_back(WireCase(problem_, one));
    if (one.kind == Case::Kind::kTimed || !timed) traced_place_ = plan.cases.size() - 1;
    timed |= one.kind == Case::Kind::kTimed;
    const Placement most = Place(problem_, one, static_cast<std::uint32_t>(problem_.burst));
    options.input_bytes = std::max(options.input_bytes, most.in_bytes);
    options.output_bytes = std::max(options.output_bytes, most.out_bytes);
  }
  return Session::Start(options, plan);
}

SessionResult SessionRun::Run() {
  const double before = OwnSeconds();
  SessionResult result;
  Result<std::unique_ptr<Session>> session = Start();
  if (!session) {
    result.good = End(Verdict::kInternalError, session.error().message);
    SessionProgress::Lower(progress_.failed, number_);
    result.plain = state_;
  } else {
    const Outcome captured = (*session)->Capture();
    if (captured.verdict != Verdict::kPass)
      result.good = End(captured.verdict, captured.text, captured.log);
    // From here on secrets are drawn; in a graph window no code of the candidate's lives on a host.
    if (problem_.window == problem::Window::kGraph) (*session)->EndRanks();
    const auto count = static_cast<std::uint32_t>(state_.cases.size());
    for (std::uint32_t place = 0; result.good && place < count && !Overtaken(); ++place)
      result.good = RunCase(**session, place, state_.cases[place]);
    if (!result.good) SessionProgress::Lower(progress_.failed, number_);
    result.plain = state_;
    // Last, since a window that does not end is the last of its session.
    for (std::uint32_t place = 0; result.good && place < count; ++place)
      if (!RunSchedules(**session, place, state_.cases[place])) break;
    (*session)->End();
    result.cost.ranks = (*session)->rank_seconds();
    result.cost.node = (*session)->node_seconds();
  }
  result.whole = std::move(state_);
  result.cost.windows = std::move(windows_);
  result.cost.judge = OwnSeconds() - before;
  return result;
}

bool SessionRun::RunCase(Session& session, std::uint32_t place, CaseResult& result) {
  using Mode = WindowSpec::Mode;
  const bool timed = result.what.kind == Case::Kind::kTimed;
  std::vector<WindowSpec> windows = ChoiceFor(result).Plain();
  if (live() && problem_.window != problem::Window::kQuery) {
    // Ranks count windows: which of them is timed must not be known before.
    for (const WindowSpec& replay : Replays(result)) windows.push_back(replay);
    if (timed)
      context_.drawers[0].Shuffle(
          result.what.name, windows.size(),
          [&](std::size_t a, std::size_t b) { std::swap(windows[a], windows[b]); });
  }
  for (double& known : burst_ns_)
    known = static_cast<double>(problem_.burst) *
            (result.reference_ns != 0 ? result.reference_ns : kUsualCallNs);
  for (const WindowSpec& spec : windows) {
    Seen seen;
    if (!RunWindow(session, place, result, spec, &seen)) return false;
    if (spec.mode == Mode::kAlone) result.isolated_ns = seen.ns;
    if (spec.mode == Mode::kAlone || spec.mode == Mode::kReplay) continue;
    burst_ns_[spec.seed] = seen.ns * problem_.burst;
    if (seen.ns > result.call_ns) {
      result.call_ns = seen.ns;
      result.roofline_ns = seen.roofline_ns;
      result.bytes = seen.ingress;
    }
    if (spec.seed == 0) {
      result.moved = seen.moved;
      result.thread_instructions = seen.thread_instructions;
    }
  }
  result.ran = true;
  return true;
}

// What is wrong already need not be looked at from other sides.
bool SessionRun::RunSchedules(Session& session, std::uint32_t place, CaseResult& result) {
  if (problem_.window == problem::Window::kQuery || state_.found || state_.perturbed ||
      FoundBefore() || Overtaken())
    return false;
  std::vector<WindowSpec> windows;
  if (!live()) windows = Replays(result);
  if (context_.checks())
    for (const std::uint64_t number : Schedules(result))
      windows.push_back({.mode = WindowSpec::Mode::kSchedule, .schedule = number});
  for (int seed = 0; seed < kSeeds; ++seed) burst_ns_[seed] = result.call_ns * problem_.burst;
  for (const WindowSpec& spec : windows) {
    Seen seen;
    const bool good = RunWindow(session, place, result, spec, &seen);
    if (spec.schedule != 0) ++result.schedules;
    if (!good || state_.found || FoundBefore() || Overtaken()) return false;
  }
  return true;
}

}  // namespace allranks::judge
