// The loop that lets virtual time pass, and what is reported in the end. core.h has the theory;
// sessions.cpp has connections, requests.cpp what comes and goes through them.
#include "server/core.h"

#include <poll.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "node/findings.h"

namespace allranks::server {
namespace {

constexpr std::int64_t kStalled = 500;  // wall ms
constexpr int kMaxDoubts = 20;          // of a poll that is the same again after each
constexpr std::size_t kMaxFaults = 1'000;

node::Hosts::Options HostOptions(const CoreOptions& options, node::Time min_cost) {
  node::Hosts::Options result;
  result.min_cost = min_cost;
  result.patience_ms = options.patience_ms;
  return result;
}

}  // namespace

Core::Core(std::unique_ptr<node::Machine> machine, CoreOptions options)
    : options_(std::move(options)),
      machine_(std::move(machine)),
      checking_(options_.check ? machine_->checking() : nullptr),
      hosts_(HostOptions(options_, kHostCall),
             {[this](Thread thread, Time at) { ThreadEnded(thread, at); },
              [this](std::int32_t rank, Time at) { ProcessEnded(rank, at); }}) {
  if (options_.interrupt != nullptr) machine_->SetInterrupt(options_.interrupt);
  machine_->SetHostCaller([this](const node::HostCall& call, Time at) { HostCallDue(call, at); });
  machine_->SetRankKiller([this](int rank, Time at) { KillRank(rank, at); });
  if (options_.judged) judged_ = std::make_unique<Judged>(*this, *options_.judged);
  if (checking_ != nullptr && judged_ == nullptr) checking_->SetSites(&sites_);
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
    if (ran_natively_ && hosts_.AnyBlocked() &&
        hosts_.Recheck([this](Thread thread) { return Asleep(thread); }))
      continue;
    if ((ran_natively_ || hosts_.AnyDetached()) && PollDescriptors()) continue;
    const std::optional<Time> due = hosts_.Due();
    if (!due || machine_->now() < *due) {
      const bool more = RunMachine(due);
      if (options_.interrupt != nullptr && options_.interrupt->load(std::memory_order_relaxed))
        return Standing::kInterrupted;
      if (hosts_.Due() != due) continue;  // a wait was over
      if (!due) {
        if (more) continue;
        if (judged_ != nullptr && judged_->WaitsForJudge()) return Standing::kIdle;
        if (!hosts_.AllWaitForNode() && !(hosts_.AllWait() && Outside(false) == Reach::kNobody))
          return Standing::kIdle;
        deadlock_ = !Doubt();
        continue;
      }
      if (more && machine_->now() < *due) continue;  // it stopped for nothing
    }
    const bool stuck = DevicesStuck();
    if (stuck && doubting_.empty() && hosts_.NobodyActs()) {
      deadlock_ = !Doubt();
      continue;
    }
    quiet_ = stuck && hosts_.NobodyActs(/*outside=*/true);
    hosts_.Process();
  }
}

// Lets the devices work up to `due`, or as long as there is anything to do. Where it is interrupted
// makes no difference, but a limit would: paths do not run ahead of it. So the limits must not
// depend on when interrupts came. False if nothing is left to happen.
bool Core::RunMachine(std::optional<Time> due) {
  const bool more = machine_->RunUntil(due.value_or(node::kTimeNever));
  hosts_.AdvanceTo(due ? std::min(machine_->now(), *due) : machine_->now());
  for (node::Fault& fault : machine_->TakeFaults())
    if (faults_.size() < kMaxFaults) faults_.push_back(std::move(fault));
  return more;
}

bool Core::FindBlocked() {
  if (judged_ != nullptr || !hosts_.Held() ||
      !hosts_.Block([this](Thread thread) { return Asleep(thread); }))
    return false;
  DropSilentDoubts();
  return true;
}

std::optional<std::uint64_t> Core::Asleep(Thread thread) const {
  const auto process = processes_.find(thread.rank);
  const auto record = threads_.find(thread);
  if (process == processes_.end() || record == threads_.end()) return std::nullopt;
  return WaitsForThread(process->second.pid, record->second.tid);
}

void Core::DropSilentDoubts() {
  for (const node::Hosts::ThreadInfo& thread : hosts_.Threads())
    if (thread.state == node::Hosts::State::kBlocked ||
        thread.state == node::Hosts::State::kDetached)
      doubting_.erase(thread.id);
}

bool Core::Tick(std::int64_t wall_ms) {
  if (judged_ != nullptr) return false;  // the judge has its own clock for what takes too long
  // Ranks that wait for each other through sockets, or that a launcher looks after, while their
  // devices are stuck: no proof, but after so long of nothing but timeouts, no doubt.
  const bool stalled =
      (quiet_ || (hosts_.AllWait() && !descriptor_waits_.empty())) && DevicesStuck();
  if (!stalled) {
    stalled_since_.reset();
  } else if (!stalled_since_ || stalled_acts_ != hosts_.acts()) {
    stalled_since_ = wall_ms;
    stalled_acts_ = hosts_.acts();
  } else if (!deadlock_ && wall_ms - *stalled_since_ >= kStalled &&
             Outside(true) != Reach::kSomebody) {
    deadlock_ = doubting_.empty() && !Doubt();
    return true;
  }
  // A thread that spins on pinned memory in a way that the shim does not recognise waits for
  // devices that stand still because it runs.
  const bool busy = machine_->Busy();
  const bool changed = hosts_.Tick(wall_ms, [&](std::int32_t rank) {
    auto process = processes_.find(rank);
    return busy && process != processes_.end() && process->second.pinned;
  });
  if (changed) DropSilentDoubts();
  return changed;
}

bool Core::DevicesStuck() const {
  // Instrumented host code that polls for what idle devices will never do waits for ever, too.
  if (!machine_->Busy()) return judged_ != nullptr && judged_->host_window();
  return machine_->Stuck();
}

bool Core::Doubt() {
  if (judged_ != nullptr) return false;  // instrumented loops are what they say, and none parks
  for (Thread thread : parked_) {
    ThreadRecord::Parked& parked = threads_.at(thread).parked;
    if (parked.doubts == kMaxDoubts || (parked.doubts != 0 && parked.doubted_acts == hosts_.acts()))
      continue;
    doubting_.insert(thread);
    const bool woken = hosts_.WakeAt(thread, hosts_.now(), [this, thread](Time) {
      Reply<wire::HostPoll>(thread, {.changed = false, .doubt = true});
    });
    if (!woken) continue;  // it is about to look anyway
    ++parked.doubts;
    parked.doubted_acts = hosts_.acts();
  }
  return !doubting_.empty();
}

bool Core::PollDescriptors() {
  ran_natively_ = false;
  bool any = false;
  for (auto next = descriptor_waits_.begin(); next != descriptor_waits_.end();) {
    const Thread thread = *next++;
    ThreadRecord& record = threads_.at(thread);
    std::vector<pollfd> polls;
    for (std::size_t i = 0; i < record.fds.size(); ++i)
      polls.push_back({record.fds[i].get(), record.fd_events[i], 0});
    if (poll(polls.data(), polls.size(), 0) <= 0) continue;
    descriptor_waits_.erase(thread);
    any = true;
    hosts_.WakeAt(thread, hosts_.now(),
                  [this, thread](Time) { Reply<wire::WaitFd>(thread, {.ready = true}); });
  }
  return any;
}

Reach Core::Outside(bool device_users) const {
  std::vector<Held> fds;
  std::vector<pid_t> ours;
  for (Thread thread : descriptor_waits_) {
    const Process& process = processes_.at(thread.rank);
    if (device_users && !process.machine) continue;
    for (const wire::Fd& fd : threads_.at(thread).fds) fds.push_back({fd.get(), process.pid});
  }
  for (const auto& [rank, process] : processes_) ours.push_back(process.pid);
  return WhoElseHolds(fds, ours);
}

void Core::FinishTrace() {
  if (options_.trace == nullptr) return;
  for (auto& [thread, record] : threads_) {
    if (!record.since) continue;
    options_.trace->OnCall(thread, wire::OpName(record.op), *record.since, hosts_.now());
    record.since.reset();
  }
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

}  // namespace

std::vector<node::Finding> Core::TakeFindings() {
  std::vector<node::Finding> findings;
  if (checking_ == nullptr) return findings;
  findings = checking_->TakeFindings();
  std::error_code error;
  std::string folder = std::filesystem::current_path(error).string();
  if (!folder.ends_with('/')) folder += '/';
  for (node::Finding& finding : findings) {
    if (folder != "/") node::ReplacePaths(folder, "", &finding);
    for (node::FindingAccess& access : finding.accesses) access.kernel = Demangle(access.kernel);
    for (node::Edit& edit : finding.edits) {
      for (auto* places : {&edit.at, &edit.to})
        for (node::Edit::Place& place : *places) NameFunction(&finding, &place);
    }
  }
  return findings;
}

RunReport Core::Report() {
  RunReport report;
  report.profile = machine_->profile().name;
  report.virtual_time = hosts_.now();
  report.deterministic = hosts_.deterministic();
  report.reasons = hosts_.reasons();
  report.processes = processes_seen_;
  report.stats = &machine_->stats();
  for (node::Fault& fault : machine_->TakeFaults())
    if (faults_.size() < kMaxFaults) faults_.push_back(std::move(fault));
  report.faults = faults_;
  report.ranks.insert(machine_ranks_.begin(), machine_ranks_.end());
  report.checked = checking_ != nullptr;
  if (report.checked) report.places = checking_->Places();
  node::Fold(TakeFindings(), &findings_);
  report.findings = findings_;
  report.deadlock = deadlock_;
  if (deadlock_) {
    report.livelock = machine_->Livelocked();
    report.waiters = machine_->Waiters();
    report.hosts = hosts_.Threads();
    const bool launched = std::any_of(processes_.begin(), processes_.end(),
                                      [](const auto& entry) { return entry.second.label >= 0; });
    for (node::Hosts::ThreadInfo& thread : report.hosts)
      if (auto process = processes_.find(thread.id.rank); launched && process != processes_.end())
        thread.id.rank = process->second.label;
  }
  return report;
}

}  // namespace allranks::server
