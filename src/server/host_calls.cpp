// Requests that concern hosts only: threads, processes, and the waits between them.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "server/core.h"

namespace allranks::server {

using node::Hosts;
using node::Status;

namespace {

// What ranks read as time starts here in every run: programs seed generators with it.
constexpr std::int64_t kRealtimeBase = 1'750'000'000'000'000'000;  // ns, June 2025
constexpr std::int64_t kMonotonicBase = 1'000'000'000'000;
constexpr std::size_t kMaxWatches = 256;
constexpr node::Time kShortestLook = node::Us(5);
constexpr node::Time kLongestLook = node::Ms(10);
constexpr int kQuickYields = 4096;
constexpr node::Time kYieldShare = 64;
constexpr node::Time kLongestYield = node::Ns(200'000);

}  // namespace

// --- threads and processes
// --------------------------------------------------------------------------

void Core::Handle(Thread thread, const wire::Hello&, Time) {
  wire::HelloReply reply;
  reply.token = ProcessOf(thread).token;
  reply.thread = thread.number;
  reply.rank = thread.rank;
  reply.host = ProcessOf(thread).host;
  reply.hosts = static_cast<std::int32_t>(machine_->profile().machine.hosts);
  reply.realtime_base_ns = kRealtimeBase;
  reply.monotonic_base_ns = kMonotonicBase;
  reply.stacks = checking_ != nullptr && judged_ == nullptr;
  hosts_.Note(thread, Hosts::Activity::kActs);
  Reply<wire::Hello>(thread, reply);
}

void Core::Handle(Thread thread, const wire::NewThread&, Time) {
  if (hosts_.ThreadCount(thread.rank) >= options_.limits.threads)
    return Fail<wire::NewThread>(thread, Status::kOutOfMemory);
  const Thread child = hosts_.AddThread(thread.rank);
  if (hosts_.Has(child)) threads_[child];
  hosts_.Note(thread, Hosts::Activity::kActs);
  Reply<wire::NewThread>(thread, {.thread = child.number});
}

void Core::Handle(Thread thread, const wire::ThreadExit& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  if (message.thread != 0) {
    const Thread other{thread.rank, static_cast<std::uint32_t>(message.thread)};
    auto record = threads_.find(other);
    const bool announced =
        record != threads_.end() && record->second.link == nullptr && !record->second.asked;
    if (announced && other != thread) hosts_.End(other);
    return Fail<wire::ThreadExit>(thread, announced ? Status::kSuccess : Status::kInvalidValue);
  }
  Reply<wire::ThreadExit>(thread);
  hosts_.End(thread);
}

void Core::Handle(Thread thread, const wire::WaitThread& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  const Thread other{thread.rank, static_cast<std::uint32_t>(message.thread)};
  if (message.thread != other.number || !threads_.contains(other))
    return Reply<wire::WaitThread>(thread);
  joins_.emplace(other, thread);
  hosts_.Wait(thread, fmt::format("pthread_join of thread {}", other.number), false);
}

void Core::Handle(Thread thread, const wire::NewProcess&, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  Process& parent = ProcessOf(thread);
  if (static_cast<int>(processes_.size()) >= options_.limits.processes ||
      parent.children.size() >= options_.limits.children)
    return Fail<wire::NewProcess>(thread, Status::kOutOfMemory);
  const std::int32_t rank = hosts_.AddProcess();
  Process& child = processes_[rank];
  child.rank = rank;
  child.parent = parent.rank;
  child.host = parent.host;
  child.token = NewToken();
  tokens_[child.token] = rank;
  parent.children.push_back({.rank = rank});
  ++processes_seen_;
  threads_[hosts_.AddThread(rank)];
  Reply<wire::NewProcess>(thread, {.token = child.token});
}

void Core::Handle(Thread thread, const wire::ProcessStarted& message, Time at) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  Process& parent = ProcessOf(thread);
  auto token = tokens_.find(message.token);
  auto found = token == tokens_.end() ? processes_.end() : processes_.find(token->second);
  if (found != processes_.end() && found->second.parent == parent.rank) {
    Process& process = found->second;
    const std::int32_t rank = process.rank;
    if (message.pid <= 0) {
      std::erase_if(parent.children, [&](const Child& child) { return child.rank == rank; });
      process.parent = -1;
      hosts_.EndProcess(rank);
    } else if (process.pid == 0) {
      process.pid = message.pid;
      for (Child& child : parent.children)
        if (child.rank == rank) child.pid = message.pid;
      process.watched = options_.watch_process && options_.watch_process(message.pid);
    }
  }
  Reply<wire::ProcessStarted>(thread);
  if (auto again = processes_.find(thread.rank); again != processes_.end())
    WakeParent(again->second, at);
}

void Core::Handle(Thread thread, const wire::Exec& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  Process& process = ProcessOf(thread);
  tokens_.erase(process.exec_token);
  process.exec_token = 0;
  if (message.failed) return Reply<wire::Exec>(thread);
  process.exec_token = NewToken();
  process.exec_thread = thread;
  tokens_[process.exec_token] = process.rank;
  Reply<wire::Exec>(thread, {.token = process.exec_token});
}

// execve has taken everything but the process itself.
void Core::ReplaceImage(Process& process) {
  const Thread thread = process.exec_thread;
  if (!threads_.contains(thread)) return;
  DropMachineProcess(process);
  sites_.Forget(process.pid);
  ThreadRecord& record = threads_.at(thread);
  Release(record, thread);
  while (!record.keys.empty()) Withdraw(thread, wire::Key(record.keys.back().key));
  if (record.link != nullptr)
    if (auto session = sessions_.find(record.link); session != sessions_.end())
      session->second.thread = Thread{};
  record = ThreadRecord{};
  hosts_.Replace(thread);
}

void Core::Handle(Thread thread, const wire::WaitProcess& message, Time at) {
  hosts_.Note(thread, message.no_hang ? Hosts::Activity::kIdles : Hosts::Activity::kActs);
  Process& process = ProcessOf(thread);
  const bool known =
      std::any_of(process.children.begin(), process.children.end(),
                  [&](const Child& c) { return message.pid == -1 || c.pid == message.pid; });
  if (!known) return Fail<wire::WaitProcess>(thread, Status::kNotFound);
  const std::string what = message.pid == -1 ? "wait" : fmt::format("waitpid of a child");
  process_waits_.push_back({thread, message.pid});
  hosts_.Wait(thread, what, false);
  WakeParent(process, at);
  if (!message.no_hang) return;
  auto mine = std::find_if(process_waits_.begin(), process_waits_.end(),
                           [&](const ProcessWait& wait) { return wait.thread == thread; });
  if (mine == process_waits_.end()) return;
  process_waits_.erase(mine);
  Reply<wire::WaitProcess>(thread, {.pid = 0});
}

// Answers those threads of `parent` that wait for a child that has ended, in the order in which
// they began to wait; of several such children, the first to end.
void Core::WakeParent(Process& parent, Time at) {
  for (std::size_t i = 0; i < process_waits_.size();) {
    const ProcessWait wait = process_waits_[i];
    Child* best = nullptr;
    if (wait.thread.rank == parent.rank) {
      for (Child& child : parent.children) {
        if (!child.ended || child.pid == 0 || (wait.pid != -1 && child.pid != wait.pid)) continue;
        if (best == nullptr || child.end_order < best->end_order) best = &child;
      }
    }
    if (best == nullptr) {
      ++i;
      continue;
    }
    const pid_t pid = best->pid;
    const std::int32_t rank = best->rank;
    process_waits_.erase(process_waits_.begin() + static_cast<std::ptrdiff_t>(i));
    std::erase_if(parent.children, [&](const Child& child) { return child.rank == rank; });
    const Thread thread = wait.thread;
    hosts_.WakeAt(thread, at,
                  [this, thread, pid](Time) { Reply<wire::WaitProcess>(thread, {.pid = pid}); });
  }
}

// --- time and descriptors
// ---------------------------------------------------------------------------

void Core::Handle(Thread thread, const wire::Sleep& message, Time at) {
  hosts_.Note(thread, Hosts::Activity::kIdles);
  hosts_.Wait(thread, "sleep", false);
  const Time span = std::clamp<Time>(message.ps, 0, node::kTimeNever / 8);
  hosts_.WakeAt(thread, at + span, [this, thread](Time) { Reply<wire::Sleep>(thread); });
}

// A thread that yields on and on waits for somebody (MPI polls so). A yield takes so little that
// others' timeouts would never come; therefore long waits are polled in growing steps.
void Core::Handle(Thread thread, const wire::Yield&, Time at) {
  hosts_.Note(thread, Hosts::Activity::kIdles);
  const Hosts::Idling idling = hosts_.IdlingOf(thread);
  if (idling.count < kQuickYields) return Reply<wire::Yield>(thread);
  hosts_.Wait(thread, "sched_yield", false);
  const Time step = std::min((at - idling.since) / kYieldShare, kLongestYield);
  hosts_.WakeAt(thread, at + step, [this, thread](Time) { Reply<wire::Yield>(thread); });
}

void Core::Handle(Thread thread, const wire::WaitFd& message, Time at) {
  ThreadRecord& record = threads_.at(thread);
  if (record.fds.size() != message.events.size() || record.fds.empty()) {
    if (message.timeout_ps < 0) return Fail<wire::WaitFd>(thread, Status::kInvalidValue);
    record.fds.clear();
  }
  hosts_.Note(thread, message.timeout_ps < 0 ? Hosts::Activity::kActs : Hosts::Activity::kIdles);
  record.fd_events = message.events;
  hosts_.Wait(thread, "a read or poll of descriptors", !record.fds.empty());
  if (!record.fds.empty()) {
    descriptor_waits_.insert(thread);
    ran_natively_ = true;  // so that they are looked at before anything else happens
  }
  if (message.timeout_ps < 0) return;
  const Time span = std::min<Time>(message.timeout_ps, node::kTimeNever / 8);
  hosts_.WakeAt(thread, at + span,
                [this, thread](Time) { Reply<wire::WaitFd>(thread, {.ready = false}); });
}

// --- barriers and keys
// ------------------------------------------------------------------------------

Core::PlaceKey Core::Place(Thread thread, const wire::Key& key) const {
  return {key.shared ? -1 : thread.rank, key.shared ? key.object : 0, key.where};
}

template <class M>
void Core::ArriveAt(std::vector<Thread>& waiters, Thread thread, std::uint32_t count, Time at) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  if (waiters.size() + 1 < count) {
    waiters.push_back(thread);
    hosts_.Wait(thread, fmt::format("barrier ({} of {} are there)", waiters.size(), count), false);
    return;
  }
  for (Thread other : waiters)
    hosts_.WakeAt(other, at, [this, other](Time) { Reply<M>(other, {.last = false}); });
  waiters.clear();
  Reply<M>(thread, {.last = true});
}

void Core::Handle(Thread thread, const wire::BarrierWait& message, Time at) {
  auto place = barriers_.try_emplace(Place(thread, message.key)).first;
  ArriveAt<wire::BarrierWait>(place->second, thread, message.count, at);
  if (place->second.empty()) barriers_.erase(place);
}

void Core::Handle(Thread thread, const wire::BootstrapBarrier& message, Time at) {
  if (message.name.size() > 256) return Fail<wire::BootstrapBarrier>(thread, Status::kInvalidValue);
  auto place = named_barriers_.try_emplace(message.name).first;
  ArriveAt<wire::BootstrapBarrier>(place->second, thread, message.count, at);
  if (place->second.empty()) named_barriers_.erase(place);
}

void Core::Withdraw(Thread thread, const wire::Key& key) {
  const PlaceKey place = Place(thread, key);
  if (auto found = registered_.find(place); found != registered_.end()) {
    std::erase(found->second, thread);
    if (found->second.empty()) registered_.erase(found);
  }
  std::erase_if(threads_.at(thread).keys, [&](const Registration& registration) {
    return Place(thread, registration.key) == place;
  });
}

void Core::Handle(Thread thread, const wire::WatchKey& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  ThreadRecord& record = threads_.at(thread);
  if (record.keys.size() >= options_.limits.keys)
    return Fail<wire::WatchKey>(thread, Status::kOutOfMemory);
  Withdraw(thread, message.key);
  record.keys.push_back({message.key, false});
  registered_[Place(thread, message.key)].push_back(thread);
  Reply<wire::WatchKey>(thread);
}

void Core::Handle(Thread thread, const wire::UnwatchKey& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  const PlaceKey place = Place(thread, message.key);
  bool woken = false;
  for (const Registration& registration : threads_.at(thread).keys)
    if (Place(thread, registration.key) == place) woken |= registration.woken;
  Withdraw(thread, message.key);
  Reply<wire::UnwatchKey>(thread, {.woken = woken});
}

void Core::Handle(Thread thread, const wire::WaitKey& message, Time at) {
  hosts_.Note(thread, message.timeout_ps < 0 ? Hosts::Activity::kActs : Hosts::Activity::kIdles);
  ThreadRecord& record = threads_.at(thread);
  const PlaceKey place = Place(thread, message.key);
  auto mine = std::find_if(record.keys.begin(), record.keys.end(),
                           [&](const Registration& r) { return Place(thread, r.key) == place; });
  if (mine == record.keys.end()) {
    if (record.keys.size() >= options_.limits.keys)
      return Fail<wire::WaitKey>(thread, Status::kOutOfMemory);
    record.keys.push_back({message.key, false});
    registered_[place].push_back(thread);
  } else if (mine->woken) {
    Withdraw(thread, message.key);
    return Reply<wire::WaitKey>(thread, {.woken = true});
  }
  record.in_wait_key = true;
  record.wait_key = message.key;
  hosts_.Wait(thread, "a lock, condition or semaphore", false);
  if (message.timeout_ps < 0) return;
  const Time span = std::min<Time>(message.timeout_ps, node::kTimeNever / 8);
  hosts_.WakeAt(thread, at + span, [this, thread, key = message.key](Time) {
    bool woken = false;  // by somebody else at this very time
    for (const Registration& registration : threads_.at(thread).keys)
      if (Place(thread, registration.key) == Place(thread, key)) woken |= registration.woken;
    Withdraw(thread, key);
    Reply<wire::WaitKey>(thread, {.woken = woken});
  });
}

void Core::Handle(Thread thread, const wire::WakeKey& message, Time at) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  const PlaceKey place = Place(thread, message.key);
  std::uint32_t woken = 0;
  while (woken < message.count) {
    auto found = registered_.find(place);
    if (found == registered_.end()) break;
    const Thread other = found->second.front();
    found->second.erase(found->second.begin());
    if (found->second.empty()) registered_.erase(found);
    ++woken;
    ThreadRecord& record = threads_.at(other);
    for (Registration& registration : record.keys)
      if (Place(other, registration.key) == place) registration.woken = true;
    if (!record.in_wait_key || Place(other, record.wait_key) != place) continue;
    hosts_.WakeAt(other, at, [this, other, key = record.wait_key](Time) {
      Withdraw(other, key);
      Reply<wire::WaitKey>(other, {.woken = true});
    });
  }
  Reply<wire::WakeKey>(thread, {.woken = woken});
}

// --- polled memory
// ----------------------------------------------------------------------------------

void Core::Handle(Thread thread, const wire::HostPoll& message, Time at) {
  std::vector<node::Machine::HostWatch> watches;
  for (const wire::HostPoll::Watch& watch : message.watches) {
    if (watch.size != 1 && watch.size != 2 && watch.size != 4 && watch.size != 8)
      return Fail<wire::HostPoll>(thread, Status::kInvalidValue);
    watches.push_back({watch.address, watch.size, watch.seen});
  }
  if (watches.empty() || watches.size() > kMaxWatches || !ProcessOf(thread).pinned)
    return Fail<wire::HostPoll>(thread, Status::kInvalidValue);
  ThreadRecord::Parked& parked = threads_.at(thread).parked;
  decltype(parked.watches) sorted;
  for (const auto& watch : watches) sorted.emplace_back(watch.address, watch.size, watch.seen);
  std::sort(sorted.begin(), sorted.end());
  const bool timed = message.timeout_ps >= 0;
  // It was woken to look, and nothing has come of that.
  const bool again = timed == parked.timed && sorted == parked.watches;
  if (!again) parked = {.watches = std::move(sorted), .timed = timed, .since = at};
  parked.at = at;
  parked_.insert(thread);
  hosts_.Note(thread, timed   ? Hosts::Activity::kIdles
                      : again ? Hosts::Activity::kPolls
                              : Hosts::Activity::kActs);
  hosts_.Wait(thread, "a loop on pinned memory", false);
  if (!again) LookAgain(thread, false, at);
  if (timed) {
    const Time span = std::min<Time>(message.timeout_ps, node::kTimeNever / 8);
    hosts_.WakeAt(thread, at + span,
                  [this, thread](Time) { Reply<wire::HostPoll>(thread, {.changed = false}); });
  }
  const Time period = std::max<Time>(machine_->profile().host.poll, node::Ns(1));
  const std::uint64_t watch =
      machine_->WatchHost(MachineOf(thread), watches, at, [this, thread, at, period](Time changed) {
        if (auto record = threads_.find(thread); record != threads_.end()) record->second.watch = 0;
        // The loop looks every `period`; the first look at or after the change sees it.
        const Time looks = changed <= at ? 1 : (changed - at + period - 1) / period;
        hosts_.WakeAt(thread, at + looks * period,
                      [this, thread](Time) { Reply<wire::HostPoll>(thread, {.changed = true}); });
        machine_->Stop();
      });
  // It may have fired already; Machine::Unwatch of a watch that has is nothing.
  threads_.at(thread).watch = watch;
}

// A long poll looks more seldom, so that threads that yield or query on and on do not wake it each
// time. A thread that joins has often just told the other to end.
void Core::LookAgain(Thread thread, bool at_once, Time at) {
  if (judged_ != nullptr) return;  // times of windows come from instrumented steps alone
  for (auto it = parked_.lower_bound({thread.rank, 0});
       it != parked_.end() && it->rank == thread.rank; ++it) {
    const Thread other = *it;
    const ThreadRecord::Parked& parked = threads_.at(other).parked;
    if (parked.timed || other == thread) continue;
    const Time step = std::clamp((parked.at - parked.since) / 8, kShortestLook, kLongestLook);
    hosts_.WakeAt(other, at_once ? at : std::max(at, parked.at + step), [this, other](Time) {
      Reply<wire::HostPoll>(other, {.changed = false, .doubt = false});
    });
  }
}

}  // namespace allranks::server
