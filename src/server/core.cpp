// The loop that lets virtual time pass, and what is reported in the end. core.h has the theory;
// sessions.cpp has connections, requests.cpp what comes and goes through them.
#include "server/core.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "node/findings.h"
#include "server/calls.h"
#include "server/judged.h"
#include "server/outside.h"
#include "server/trace.h"

namespace allranks::server {
namespace {

constexpr std::int64_t kStalled = 500;  // wall ms
constexpr std::size_t kMaxFaults = 1'000;

}  // namespace

Core::Core(std::unique_ptr<node::Machine> machine, CoreOptions options)
    : options_(std::move(options)),
      desk_(std::move(machine), options_,
            {[this](Thread thread, Time at) { ThreadEnded(thread, at); },
             [this](std::int32_t rank, Time at) { ProcessEnded(rank, at); }}),
      hosts_(desk_.hosts()),
      machine_(desk_.machine()),
      roster_(desk_.roster()),
      calls_(std::make_unique<Calls>(desk_)),
      ranges_(options_.trace) {
  if (options_.interrupt != nullptr) machine_.SetInterrupt(options_.interrupt);
  machine_.SetRankKiller([this](int rank, Time at) { KillRank(rank, at); });
  if (options_.judged) {
    judged_ = std::make_unique<Judged>(desk_, static_cast<RunControl&>(*this), *options_.judged);
    desk_.SetJudged(judged_.get());
  }
  if (desk_.checking() != nullptr && judged_ == nullptr) desk_.checking()->SetSites(&desk_.sites());
}

Core::~Core() = default;

Core::Standing Core::Run() {
  for (;;) {
    if (deadlock_) return Standing::kDeadlock;
    if (judged_ != nullptr && !judged_->planned()) return Standing::kIdle;
    if (judged_ != nullptr && judged_->RunsGraphs()) {
      const bool more = RunMachine(std::nullopt);
      if (!more) {
        judged_->GraphsOver();
      } else if (options_.interrupt != nullptr &&
                 options_.interrupt->load(std::memory_order_relaxed)) {
        return Standing::kInterrupted;
      }
      continue;
    }
    if (hosts_.Empty()) return Standing::kIdle;
    if (hosts_.Held()) return Standing::kHeld;
    if (desk_.polls().ran_natively && hosts_.AnyBlocked() &&
        hosts_.Recheck([this](Thread thread) { return Asleep(thread); }))
      continue;
    if ((desk_.polls().ran_natively || hosts_.AnyDetached()) && calls_->poll().PollDescriptors())
      continue;
    const std::optional<Time> due = hosts_.Due();
    if (!due || machine_.now() < *due) {
      const bool more = RunMachine(due);
      if (options_.interrupt != nullptr && options_.interrupt->load(std::memory_order_relaxed))
        return Standing::kInterrupted;
      if (hosts_.Due() != due) continue;  // a wait was over
      if (!due) {
        if (more) continue;
        if (judged_ != nullptr && judged_->WaitsForJudge()) return Standing::kIdle;
        if (!hosts_.AllWaitForNode() &&
            !(hosts_.AllWait() && calls_->poll().Outside(false) == Reach::kNobody))
          return Standing::kIdle;
        deadlock_ = !LooksAgain();
        continue;
      }
      if (more && machine_.now() < *due) continue;  // it stopped for nothing
    }
    const bool stuck = DevicesStuck();
    if (stuck && !calls_->poll().doubting() && hosts_.NobodyActs()) {
      deadlock_ = !LooksAgain();
      continue;
    }
    quiet_ = (stuck || !machine_.Busy()) && hosts_.NobodyActs(/*outside=*/true);
    ++handled_;
    hosts_.Process();
  }
}

// Before a deadlock is declared: whether a blocked thread runs after all, or a parked one is asked
// to look for itself.
bool Core::LooksAgain() {
  if (hosts_.AnyBlocked() && hosts_.Recheck([this](Thread thread) { return Asleep(thread); }))
    return true;
  return calls_->poll().Doubt();
}

// Lets the devices work up to `due`, or as long as there is anything to do. Where it is interrupted
// makes no difference, but a limit would: paths do not run ahead of it. So the limits must not
// depend on when interrupts came. False if nothing is left to happen.
bool Core::RunMachine(std::optional<Time> due) {
  const bool more = machine_.RunUntil(due.value_or(node::kTimeNever));
  hosts_.AdvanceTo(due ? std::min(machine_.now(), *due) : machine_.now());
  TakeFaults();
  return more;
}

void Core::TakeFaults() {
  for (node::Fault& fault : machine_.TakeFaults())
    if (faults_.size() < kMaxFaults) faults_.push_back(std::move(fault));
}

bool Core::FindBlocked() {
  if (judged_ != nullptr || !hosts_.Held() ||
      !hosts_.Block([this](Thread thread) { return Asleep(thread); }))
    return false;
  calls_->poll().DropSilentDoubts();
  return true;
}

std::optional<std::uint64_t> Core::Asleep(Thread thread) const {
  const Process* process = roster_.Find(thread.rank);
  const ThreadRecord* record = roster_.Find(thread);
  if (process == nullptr || record == nullptr) return std::nullopt;
  return WaitsForThread(process->pid, record->tid);
}

bool Core::Tick(std::int64_t wall_ms) {
  if (judged_ != nullptr) return false;  // the judge has its own clock for what takes too long
  // Who runs without a word has more to do than to ask again.
  const bool computes = hosts_.Held() && ticked_ == handled_;
  ticked_ = handled_;
  // Ranks that wait for each other through sockets, or that a launcher looks after.
  const bool waits =
      !computes && (quiet_ || (hosts_.AllWait() && !desk_.polls().descriptors.empty()));
  const bool stuck = DevicesStuck();
  if (!waits || (machine_.Busy() && !stuck)) {
    stalled_since_.reset();
  } else if (!stalled_since_ || stalled_acts_ != hosts_.acts()) {
    stalled_since_ = wall_ms;
    stalled_acts_ = hosts_.acts();
  } else if (stuck) {
    // No proof, but after so long of nothing but timeouts, no doubt.
    if (!deadlock_ && wall_ms - *stalled_since_ >= kStalled &&
        calls_->poll().Outside(true) != Reach::kSomebody) {
      deadlock_ = !calls_->poll().doubting() && !calls_->poll().Doubt();
      return true;
    }
  } else if (wall_ms - *stalled_since_ >= options_.patience_ms) {
    stalled_since_ = wall_ms;  // looking costs milliseconds
    TellIdle();
  }
  // A thread that spins on pinned memory in a way that the shim does not recognise waits for
  // devices that stand still because it runs.
  const bool busy = machine_.Busy();
  const bool changed = hosts_.Tick(wall_ms, [&](std::int32_t rank) {
    const Process* process = roster_.Find(rank);
    return busy && process != nullptr && process->pinned;
  });
  if (changed) calls_->poll().DropSilentDoubts();
  return changed;
}

// Without device work there is no telling a missing rank from a server that waits for its clients.
void Core::TellIdle() {
  const auto& processes = roster_.processes();
  if (idle_told_ || !options_.log ||
      std::none_of(processes.begin(), processes.end(),
                   [](const auto& entry) { return entry.second.machine.has_value(); }) ||
      calls_->poll().Outside(false) == Reach::kSomebody)
    return;
  idle_told_ = true;
  std::string text = fmt::format(
      "for {:g} s everybody has only waited, or asked and waited again; if a rank is "
      "missing, this will not end\n{}",
      static_cast<double>(options_.patience_ms) / 1000,
      HostsText(HostThreads(), roster_.seen() > 1));
  text.pop_back();  // the line's end
  options_.log(text);
}

bool Core::PollOutside() { return calls_->poll().PollDescriptors(); }

bool Core::DevicesStuck() const {
  // Instrumented host code that polls for what idle devices will never do waits for ever, too.
  if (!machine_.Busy()) return judged_ != nullptr && judged_->host_window();
  return machine_.Stuck();
}

void Core::FinishTrace() {
  if (options_.trace == nullptr) return;
  for (auto& [thread, record] : roster_.threads()) desk_.EndTraced(thread, record);
  ranges_.Finish(hosts_.now());
  options_.trace->Finish(hosts_.now());
}

namespace {

// In the place, and where the sentences name it.
void NameFunction(node::Finding* finding, node::Edit::Place* place) {
  const std::string mangled = std::exchange(place->function, Demangle(place->function));
  if (mangled == place->function) return;
  for (std::string* text : {&finding->missing, &finding->advice}) {
    if (const std::size_t at = text->find(mangled); at != std::string::npos)
      text->replace(at, mangled.size(), place->function);
  }
}

// Files below the current folder as paths from there.
std::vector<node::Finding> LocalPaths(std::vector<node::Finding> findings) {
  std::error_code error;
  std::string folder = std::filesystem::current_path(error).string();
  if (!folder.ends_with('/')) folder += '/';
  if (folder == "/") return findings;
  for (node::Finding& finding : findings) node::ReplacePaths(folder, "", &finding);
  return findings;
}

}  // namespace

std::vector<node::Finding> Core::TakeFindings() {
  if (desk_.checking() == nullptr) return {};
  std::vector<node::Finding> findings = LocalPaths(desk_.checking()->TakeFindings());
  for (node::Finding& finding : findings) {
    for (node::FindingAccess& access : finding.accesses) access.kernel = Demangle(access.kernel);
    for (node::Edit& edit : finding.edits) {
      if (edit.form.starts_with("_Z")) edit.form = Demangle(edit.form);  // a kernel
      for (auto* places : {&edit.at, &edit.to})
        for (node::Edit::Place& place : *places) NameFunction(&finding, &place);
    }
  }
  return findings;
}

RunReport Core::Report() {
  RunReport report;
  report.profile = machine_.profile().name;
  report.virtual_time = hosts_.now();
  report.deterministic = hosts_.deterministic();
  report.reasons = hosts_.reasons();
  report.processes = roster_.seen();
  report.stats = &machine_.stats();
  TakeFaults();
  report.faults = faults_;
  report.refused_images = desk_.refused_images();
  report.ranges = ranges_.Totals(hosts_.now());
  const auto& ranks = roster_.machine_ranks();
  report.ranks.insert(ranks.begin(), ranks.end());
  report.checked = desk_.checking() != nullptr;
  if (report.checked) report.places = desk_.checking()->Places();
  node::Fold(TakeFindings(), &findings_);
  report.findings = findings_;
  if (judged_ == nullptr) {
    const bool explained = !faults_.empty() && node::CountedOf(findings_) != 0;
    node::Fold(LocalPaths(calls_->errors().Findings(explained)), &report.findings);
  }
  report.deadlock = deadlock_;
  if (deadlock_) {
    report.livelock = machine_.Livelocked();
    AddStanding(&report);
  }
  return report;
}

void Core::AddStanding(RunReport* report) const {
  report->waiters = machine_.Waiters();
  report->hosts = HostThreads();
}

std::string Core::Where() {
  // Nothing that looks at the checker: it would take what merely waits for the host for stuck.
  RunReport report;
  report.virtual_time = hosts_.now();
  report.processes = roster_.seen();
  report.deadlock = deadlock_;
  const auto& ranks = roster_.machine_ranks();
  report.ranks.insert(ranks.begin(), ranks.end());
  AddStanding(&report);
  report.queued = machine_.Queued();
  return WhereText(report);
}

// By the ranks that a launcher gave, if there is one.
std::vector<node::Hosts::ThreadInfo> Core::HostThreads() const {
  std::vector<node::Hosts::ThreadInfo> threads = hosts_.Threads();
  const auto& processes = roster_.processes();
  const bool launched = std::any_of(processes.begin(), processes.end(),
                                    [](const auto& entry) { return entry.second.label >= 0; });
  for (node::Hosts::ThreadInfo& thread : threads)
    if (const Process* process = roster_.Find(thread.id.rank); launched && process != nullptr)
      thread.id.rank = process->label;
  return threads;
}

}  // namespace allranks::server
