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
// How many times as long a window takes under the checker (docs/checker.md, Cost).
constexpr double kCheckedWeight = 2.5;

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

const char* StageName(SessionGroup::Stage stage) {
  switch (stage) {
    case SessionGroup::Stage::kFirst:
      break;
    case SessionGroup::Stage::kDrawn:
      return "drawn cases in ";
    case SessionGroup::Stage::kLarge:
      return "large cases in ";
  }
  return "";
}

}  // namespace

SessionRun::SessionRun(const JudgeContext& context, const SessionGroup& group,
                       std::vector<CaseResult> cases, std::size_t number, SessionProgress* progress,
                       bool traced, double cpu_ms)
    : context_(context),
      request_(context.request),
      problem_(context.problem),
      group_(group),
      number_(number),
      progress_(*progress),
      traced_(traced),
      cpu_ms_(cpu_ms) {
  state_.cases = std::move(cases);
  std::vector<WindowTask> tasks;
  bool timed = false;
  for (std::uint32_t place = 0; place < state_.cases.size(); ++place) {
    const bool is_timed = state_.cases[place].what.kind == Case::Kind::kTimed;
    if (is_timed || !timed) traced_place_ = place;
    timed |= is_timed;
    for (const WindowTask& task : PlainTasks(place)) tasks.push_back(task);
  }
  queue_.Fill(std::move(tasks));
}

bool SessionRun::End(Verdict verdict, std::string text, std::string log) {
  state_.outcome.verdict = verdict;
  state_.outcome.text = std::move(text);
  if (!log.empty()) state_.outcome.log = std::move(log);
  return false;
}

Result<std::unique_ptr<Session>> SessionRun::Start(int helper) {
  wire::JudgePlan plan;
  plan.window = WireWindow(problem_.window);
  plan.world = static_cast<std::uint32_t>(group_.world);
  plan.host_threads = static_cast<std::uint32_t>(problem_.host_threads);
  plan.module_hash = context_.module_hash;
  plan.rules = {.setup = problem_.setup,
                .kernels = Allows(problem_, "kernel"),
                .copies = Allows(problem_, "memcpy"),
                .values = Allows(problem_, "values"),
                .multicast = Allows(problem_, "multicast"),
                .library = problem::UsesNccl(problem_),
                .max_ctas = static_cast<std::uint32_t>(problem_.max_ctas)};
  SessionOptions options;
  options.tools = &context_.tools;
  options.profile = request_.profile;
  if (!group_.profile.empty())
    options.profile =
        (std::filesystem::path(request_.profile).parent_path() / (group_.profile + ".toml"))
            .string();
  options.program = context_.program;
  if (plan.rules.library) options.library = context_.tools.nccl;
  options.folder = fmt::format("{}/{}", context_.folder, number_);
  if (helper != 0) options.folder += fmt::format("-{}", helper);
  if (helper != 0) options.abandoned = &queue_.closed();
  if (mkdir(options.folder.c_str(), 0711) != 0 || chmod(options.folder.c_str(), 0711) != 0)
    return Fail("cannot create the folder {}: {}", options.folder, std::strerror(errno));
  if (problem_.window != problem::Window::kQuery) options.calls = problem_.calls;
  options.secret = context_.drawers[0].Secret(
      fmt::format("handles of {}world {}", StageName(group_.stage), group_.world));
  if (traced_ && helper == 0) options.trace_fd = context_.trace.get();
  options.faults = problem_.faults;
  options.check = context_.checks();
  options.cpu = std::chrono::milliseconds(static_cast<std::int64_t>(cpu_ms_) + 1);
  for (const CaseResult& result : state_.cases) {
    const Case& one = result.what;
    plan.cases.push_back(WireCase(problem_, one));
    const int calls = ChoiceFor(result).CallsAtOnce({});
    const Placement most = Place(problem_, one, static_cast<std::uint32_t>(calls));
    options.input_bytes = std::max(options.input_bytes, most.in_bytes);
    options.output_bytes = std::max(options.output_bytes, most.out_bytes);
  }
  return Session::Start(options, plan);
}

Result<std::unique_ptr<Session>> SessionRun::Ready(int helper, Outcome* captured) {
  Result<std::unique_ptr<Session>> session = Start(helper);
  if (!session) return session;
  *captured = (*session)->Capture();
  // From here on secrets are drawn; in a graph window no code of the candidate's lives on a host.
  if (problem_.window == problem::Window::kGraph) (*session)->EndRanks();
  return session;
}

SessionResult SessionRun::Run() {
  const double before = OwnSeconds();
  SessionResult result;
  Outcome captured;
  Result<std::unique_ptr<Session>> session = Ready(0, &captured);
  if (!session) {
    result.good = End(Verdict::kInternalError, session.error().message);
  } else if (captured.verdict != Verdict::kPass) {
    result.good = End(captured.verdict, captured.text, captured.log);
  } else {
    result.good = RunPlain(**session);
  }
  if (!result.good) SessionProgress::Lower(progress_.failed, number_);
  result.plain = state_;
  if (result.good) RunSchedules(**session);
  queue_.Close();
  if (session) {
    (*session)->End();
    result.cost.ranks = (*session)->rank_seconds();
    result.cost.node = (*session)->node_seconds();
  }
  result.whole = std::move(state_);
  result.cost.windows = std::move(windows_);
  result.cost.node += helped_seconds_;
  result.cost.aside = helpers_cost_.ranks + helpers_cost_.node - helped_seconds_;
  result.cost.judge = OwnSeconds() - before + helpers_cost_.judge;
  return result;
}

bool SessionRun::Help() {
  // Two large cases at a time would need twice the memory.
  if (live() || group_.stage == SessionGroup::Stage::kLarge || !queue_.Enter()) return false;
  const double before = OwnSeconds();
  int helper = 0;
  {
    const std::lock_guard lock(helpers_mutex_);
    helper = ++helpers_;
  }
  Outcome captured;
  Result<std::unique_ptr<Session>> session = Ready(helper, &captured);
  // What is wrong with it the session itself finds out, too.
  const bool ready = session && captured.verdict == Verdict::kPass;
  const auto execute = [&](const WindowTask& task) {
    Executed executed = Execute(**session, task);
    executed.helped = true;
    return executed;
  };
  if (ready) queue_.Help(helper, execute, [&] { return !(*session)->ended(); });
  if (session) (*session)->End();
  {
    const std::lock_guard lock(helpers_mutex_);
    if (session) helpers_cost_.ranks += (*session)->rank_seconds();
    if (session) helpers_cost_.node += (*session)->node_seconds();
    helpers_cost_.judge += OwnSeconds() - before;
  }
  queue_.Leave();
  return ready;
}

WindowTask SessionRun::TaskOf(std::uint32_t place, const WindowSpec& spec) const {
  const CaseResult& result = state_.cases[place];
  const WindowChoice choice = ChoiceFor(result);
  const double calls = static_cast<double>(choice.CallsOf(spec)) / problem_.burst;
  return {.place = place,
          .spec = spec,
          .burst_ns = result.call_ns * problem_.burst,
          .weight = static_cast<double>(SizeOf(result).value_or(0)) * calls *
                    (choice.IsChecked(spec) ? kCheckedWeight : 1)};
}

std::vector<WindowTask> SessionRun::PlainTasks(std::uint32_t place) const {
  const CaseResult& result = state_.cases[place];
  std::vector<WindowSpec> windows = ChoiceFor(result).Plain();
  if (live() && problem_.window != problem::Window::kQuery) {
    // Ranks count windows: which of them is timed must not be known before.
    for (const WindowSpec& replay : Replays(result)) windows.push_back(replay);
    if (result.what.kind == Case::Kind::kTimed)
      context_.drawers[0].Shuffle(
          result.what.name, windows.size(),
          [&](std::size_t a, std::size_t b) { std::swap(windows[a], windows[b]); });
  }
  std::vector<WindowTask> tasks;
  for (const WindowSpec& spec : windows) tasks.push_back(TaskOf(place, spec));
  return tasks;
}

// Where ranks live a replay has to know what came before it.
Executed SessionRun::Obtain(Session& session, std::size_t index) {
  return queue_.Obtain(index, [&](WindowTask task) {
    if (live()) task.burst_ns = burst_ns_[task.spec.seed];
    return Execute(session, task);
  });
}

void SessionRun::NoteTimes(CaseResult& result, const WindowSpec& spec, const Seen& seen) {
  using Mode = WindowSpec::Mode;
  if (spec.mode == Mode::kAlone) result.isolated_ns = seen.ns;
  if (result.what.large) result.isolated_ns = seen.ns;
  if (spec.mode == Mode::kAlone || spec.mode == Mode::kReplay) return;
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

bool SessionRun::RunPlain(Session& session) {
  std::size_t index = 0;
  for (std::uint32_t place = 0; place < state_.cases.size() && !Overtaken(); ++place) {
    CaseResult& result = state_.cases[place];
    for (double& known : burst_ns_)
      known = static_cast<double>(problem_.burst) *
              (result.reference_ns != 0 ? result.reference_ns : kUsualCallNs);
    for (const WindowTask& task : PlainTasks(place)) {
      Seen seen;
      const bool good = Accept(result, task.spec, Obtain(session, index++), &seen);
      if (!good && request_.listener != nullptr) request_.listener->OnCase(result);
      if (!good) return false;
      NoteTimes(result, task.spec, seen);
    }
    result.ran = true;
    if (request_.listener != nullptr) request_.listener->OnCase(result);
  }
  return true;
}

std::vector<WindowTask> SessionRun::ScheduledTasks() const {
  std::vector<WindowTask> tasks;
  if (problem_.window == problem::Window::kQuery) return tasks;
  for (std::uint32_t place = 0; place < state_.cases.size(); ++place) {
    const CaseResult& result = state_.cases[place];
    const auto add = [&](const WindowSpec& spec) { tasks.push_back(TaskOf(place, spec)); };
    if (!live())
      for (const WindowSpec& spec : Replays(result)) add(spec);
    if (!context_.checks()) continue;
    for (const std::uint64_t number : Schedules(result))
      add({.mode = WindowSpec::Mode::kSchedule, .schedule = number});
  }
  return tasks;
}

// Last, since a window that does not end is the last of its session. What is wrong already need not
// be looked at from other sides.
void SessionRun::RunSchedules(Session& session) {
  const auto over = [&] {
    return state_.found || state_.perturbed || FoundBefore() || Overtaken();
  };
  if (over()) return;
  const std::vector<WindowTask> tasks = ScheduledTasks();
  queue_.Fill(tasks);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    CaseResult& result = state_.cases[tasks[i].place];
    Seen seen;
    const bool good = Accept(result, tasks[i].spec, Obtain(session, i), &seen);
    if (tasks[i].spec.schedule != 0) ++result.schedules;
    if (request_.listener != nullptr)
      request_.listener->OnSchedule(static_cast<int>(i) + 1, static_cast<int>(tasks.size()));
    if (!good || over()) return;
  }
}

}  // namespace allranks::judge
