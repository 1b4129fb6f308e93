// The flow of one judgement: prepare, choose cases, one session for each group of them, conclude.
// Sessions go by world, small worlds first; in each, visible cases come before timed and drawn
// ones, or drawn ones of all worlds come after everything else. The first failure ends it: what is
// wrong once need not be timed.
#include "judge/trial.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "judge/build.h"
#include "judge/conclude.h"
#include "judge/sandbox.h"
#include "judge/score.h"
#include "problem/args.h"
#include "problem/source.h"

namespace allranks::judge {
namespace {

using problem::Case;
using problem::Problem;
using problem::Tensor;

// What may pass between two looks at what a sandbox has used.
constexpr double kCpuMargin = 500;  // ms

double OwnSeconds() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);  // a judgement is one thread, and there may be several
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

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

bool Trial::End(Verdict verdict, std::string text, std::string log) {
  judgement_.verdict = verdict;
  judgement_.text = std::move(text);
  if (!log.empty()) judgement_.log = std::move(log);
  return false;
}

bool Trial::Prepare() {
  if (!Means().missing.empty()) return End(Verdict::kInternalError, Means().missing);
  SweepLeftovers();
  SweepScratch();
  Result<node::Profile> profile = node::LoadProfile(request_.profile);
  if (!profile) return End(Verdict::kInternalError, profile.error().message);
  profile_ = std::move(*profile);
  judgement_.profile = profile_->name;
  judgement_.profile_version = profile_->version;
  for (int seed = 0; seed < kSeeds; ++seed)
    drawers_.emplace_back(KeyOf(request_.seed, fmt::format("seed {}", seed)));

  const Result<std::string> text = problem::ReadFile(problem_.folder / "template.cu");
  if (!text) return End(Verdict::kInternalError, text.error().message);
  const Result<problem::Region> region = problem::SplitTemplate(*text);
  if (!region) return End(Verdict::kInternalError, region.error().message);
  const Result<std::string> source = problem::Assemble(*region, request_.source);
  if (!source) return End(Verdict::kEditViolation, source.error().message);
  judgement_.source_hash = HashOf({*source});
  const Result<std::string> toml = problem::ReadFile(problem_.folder / "problem.toml");
  const Result<std::string> oracle = problem::ReadFile(problem_.folder / "oracle.cpp");
  if (!toml) return End(Verdict::kInternalError, toml.error().message);
  if (!oracle) return End(Verdict::kInternalError, oracle.error().message);
  judgement_.problem_hash = HashOf({*toml, *text, *oracle});

  Result<Scratch> scratch = Scratch::Make();
  if (!scratch) return End(Verdict::kInternalError, scratch.error().message);
  scratch_ = std::move(*scratch);
  Build build = BuildCandidate(tools_, problem_, *profile_, *source, scratch_->path());
  judgement_.cost.compile = build.cpu_seconds;
  judgement_.cost.cached_build = build.cached;
  judgement_.log = build.log;
  if (build.verdict != Verdict::kPass) return End(build.verdict, build.text);
  program_ = build.program;
  for (std::size_t i = 0; i + 1 < build.module.size(); i += 2)
    module_hash_.push_back(
        static_cast<std::byte>(std::stoi(build.module.substr(i, 2), nullptr, 16)));

  Result<Oracle> loaded = Oracle::Load(tools_, problem_);
  if (!loaded) return End(Verdict::kInternalError, loaded.error().message);
  oracle_.emplace(std::move(*loaded));
  // A problem under construction has none: then there is nothing to compare with.
  if (Result<problem::Lock> lock = problem::LoadLock(problem_.folder)) lock_ = std::move(*lock);
  if (!request_.trace.empty()) {
    trace_ = wire::Fd(open(request_.trace.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (trace_.get() < 0)
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
    for (Case& one : drawers_[0].DrawCases(problem_)) cases.push_back(std::move(one));
  }
  const auto order = [](Case::Kind kind) {
    return kind == Case::Kind::kVisible ? 0 : kind == Case::Kind::kTimed ? 1 : 2;
  };
  // Names break ties, so that the order is the same everywhere.
  std::vector<std::size_t> by(cases.size());
  for (std::size_t i = 0; i < by.size(); ++i) by[i] = i;
  std::sort(by.begin(), by.end(), [&](std::size_t a, std::size_t b) {
    const auto key = [&](std::size_t i) {
      return std::tuple(GroupOf(cases[i]).late, cases[i].world, order(cases[i].kind), i);
    };
    return key(a) < key(b);
  });
  for (const std::size_t i : by) {
    if (!request_.only_case.empty() && cases[i].name != request_.only_case) continue;
    CaseResult result;
    result.what = cases[i];
    // Elsewhere times are those of drawn delays, too.
    if (lock_ && cases[i].kind == Case::Kind::kTimed) {
      if (const problem::LockEntry* entry = lock_->Find(profile_->name, cases[i].name)) {
        result.reference_ns = entry->reference.call_ns;
        result.baseline_ns = entry->baseline.call_ns;
      }
    }
    judgement_.cases.push_back(std::move(result));
  }
}

Trial::Group Trial::GroupOf(const Case& one) const {
  return {.late = request_.drawn_last && one.kind == Case::Kind::kDrawn,
          .world = one.world,
          .profile = one.profile};
}

Judgement Trial::Run() {
  const auto start = std::chrono::steady_clock::now();
  own_before_ = OwnSeconds();
  judgement_.seed = request_.seed;
  if (Prepare()) {
    ChooseCases();
    std::map<Group, std::vector<std::size_t>> groups;
    for (std::size_t i = 0; i < judgement_.cases.size(); ++i)
      groups[GroupOf(judgement_.cases[i].what)].push_back(i);
    // The largest world's; not of drawn cases, if they are alone in it: nobody looks at their
    // times.
    const Group* traced = nullptr;
    for (const auto& [group, indices] : groups)
      if (traced == nullptr || !group.late) traced = &group;
    if (groups.empty())
      End(Verdict::kInternalError,
          fmt::format("{} has no case '{}'", problem_.slug, request_.only_case));
    for (const auto& [group, indices] : groups)
      if (!RunGroup(group, indices, &group == traced)) break;
    judgement_.checked = checks();
    Conclude(perturbed_, &judgement_);
    if (judgement_.verdict == Verdict::kPass) judgement_.score = Score(judgement_.cases);
  }
  judgement_.cost.judge = OwnSeconds() - own_before_;
  judgement_.cost.wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return std::move(judgement_);
}

bool Trial::RunGroup(const Group& group, const std::vector<std::size_t>& indices, bool traced) {
  wire::JudgePlan plan;
  plan.window = WireWindow(problem_.window);
  plan.world = static_cast<std::uint32_t>(group.world);
  plan.host_threads = static_cast<std::uint32_t>(problem_.host_threads);
  plan.module_hash = module_hash_;
  plan.rules = {.setup = problem_.setup,
                .copies = Allows(problem_, "memcpy"),
                .values = Allows(problem_, "values"),
                .max_ctas = static_cast<std::uint32_t>(problem_.max_ctas)};
  SessionOptions options;
  options.tools = &tools_;
  options.profile = request_.profile;
  if (!group.profile.empty())
    options.profile =
        (std::filesystem::path(request_.profile).parent_path() / (group.profile + ".toml"))
            .string();
  options.program = program_;
  options.folder = scratch_->path();
  if (problem_.window != problem::Window::kQuery) options.calls = problem_.calls;
  options.secret = drawers_[0].Secret(
      fmt::format("handles of {}world {}", group.late ? "drawn cases in " : "", group.world));
  if (traced) options.trace_fd = trace_.get();
  options.check = checks();
  const double left =
      tools_.cpu_ms - kCpuMargin - 1e3 * (judgement_.cpu_seconds() + OwnSeconds() - own_before_);
  if (left <= 0)
    return End(Verdict::kTimeout,
               fmt::format("the candidate exceeds the {} s of CPU time of a judgement",
                           tools_.cpu_ms / 1000));
  options.cpu = std::chrono::milliseconds(static_cast<std::int64_t>(left) + 1);
  bool timed = false;
  for (const std::size_t i : indices) {
    const Case& one = judgement_.cases[i].what;
    plan.cases.push_back(WireCase(problem_, one));
    if (one.kind == Case::Kind::kTimed || !timed) traced_place_ = plan.cases.size() - 1;
    timed |= one.kind == Case::Kind::kTimed;
    const Placement most = Place(problem_, one, static_cast<std::uint32_t>(problem_.burst));
    options.input_bytes = std::max(options.input_bytes, most.in_bytes);
    options.output_bytes = std::max(options.output_bytes, most.out_bytes);
  }
  Result<std::unique_ptr<Session>> session = Session::Start(options, plan);
  if (!session) return End(Verdict::kInternalError, session.error().message);
  Outcome outcome = (*session)->Capture();
  bool good = outcome.verdict == Verdict::kPass;
  if (!good) End(outcome.verdict, outcome.text, outcome.log);
  // From here on secrets are drawn; in a graph window no code of the candidate's lives on a host.
  if (problem_.window == problem::Window::kGraph) (*session)->EndRanks();
  for (std::uint32_t place = 0; good && place < indices.size(); ++place)
    good = RunCase(**session, place, judgement_.cases[indices[place]]);
  // Last, since a window that does not end is the last of its session.
  for (std::uint32_t place = 0; good && place < indices.size(); ++place)
    if (!RunSchedules(**session, place, judgement_.cases[indices[place]])) break;
  (*session)->End();
  judgement_.cost.ranks += (*session)->rank_seconds();
  judgement_.cost.node += (*session)->node_seconds();
  return good;
}

}  // namespace allranks::judge
