// Threads, processes, and the waits between them. host_calls.h has what is here.
#include "server/host_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace allranks::server {

using node::Hosts;
using node::Status;

namespace {

// What ranks read as time starts here in every run: programs seed generators with it.
constexpr std::int64_t kRealtimeBase = 1'750'000'000'000'000'000;  // ns, June 2025
constexpr std::int64_t kMonotonicBase = 1'000'000'000'000;
constexpr int kQuickYields = 4096;
constexpr node::Time kYieldShare = 64;
constexpr node::Time kLongestYield = node::Ns(200'000);

}  // namespace

// --- threads and processes ----------------------------------------------------------------------

void HostCalls::Handle(Thread thread, const wire::Hello&, Time) {
  wire::HelloReply reply;
  reply.token = desk_.ProcessOf(thread).token;
  reply.thread = thread.number;
  reply.rank = thread.rank;
  reply.host = desk_.ProcessOf(thread).host;
  reply.hosts = static_cast<std::int32_t>(desk_.machine().profile().machine.hosts);
  reply.sockets = desk_.judged() == nullptr;
  reply.realtime_base_ns = kRealtimeBase;
  reply.monotonic_base_ns = kMonotonicBase;
  reply.stacks = desk_.checking() != nullptr && desk_.judged() == nullptr;
  reply.call_stacks = desk_.options().trace != nullptr && desk_.judged() == nullptr;
  hosts_.Note(thread, Hosts::Activity::kActs);
  desk_.Reply<wire::Hello>(thread, reply);
}

void HostCalls::Handle(Thread thread, const wire::Ranges&, Time) {
  desk_.Reply<wire::Ranges>(thread);
}

void HostCalls::Handle(Thread thread, const wire::NewThread&, Time) {
  if (hosts_.ThreadCount(thread.rank) >= desk_.limits().threads)
    return desk_.Fail<wire::NewThread>(thread, Status::kOutOfMemory);
  const Thread child = hosts_.AddThread(thread.rank);
  if (hosts_.Has(child)) roster_.Add(child);
  hosts_.Note(thread, Hosts::Activity::kActs);
  desk_.Reply<wire::NewThread>(thread, {.thread = child.number});
}

void HostCalls::Handle(Thread thread, const wire::ThreadExit& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  if (message.thread != 0) {
    const Thread other{thread.rank, static_cast<std::uint32_t>(message.thread)};
    const ThreadRecord* record = roster_.Find(other);
    const bool announced = record != nullptr && record->link == nullptr && !record->asked;
    if (announced && other != thread) hosts_.End(other);
    return desk_.Fail<wire::ThreadExit>(thread,
                                        announced ? Status::kSuccess : Status::kInvalidValue);
  }
  desk_.Reply<wire::ThreadExit>(thread);
  hosts_.End(thread);
}

void HostCalls::Handle(Thread thread, const wire::WaitThread& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  const Thread other{thread.rank, static_cast<std::uint32_t>(message.thread)};
  if (message.thread != other.number || roster_.Find(other) == nullptr)
    return desk_.Reply<wire::WaitThread>(thread);
  joins_.emplace(other, thread);
  hosts_.Wait(thread, fmt::format("pthread_join of thread {}", other.number), false);
}

void HostCalls::Handle(Thread thread, const wire::NewProcess&, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  Process& parent = desk_.ProcessOf(thread);
  if (static_cast<int>(roster_.processes().size()) >= desk_.limits().processes ||
      parent.children.size() >= desk_.limits().children)
    return desk_.Fail<wire::NewProcess>(thread, Status::kOutOfMemory);
  Process& child = desk_.AddProcess();
  child.parent = parent.rank;
  child.host = parent.host;
  parent.children.push_back({.rank = child.rank});
  desk_.Reply<wire::NewProcess>(thread, {.token = child.token});
}

void HostCalls::Handle(Thread thread, const wire::ProcessStarted& message, Time at) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  Process& parent = desk_.ProcessOf(thread);
  Process* process = roster_.FindToken(message.token);
  if (process != nullptr && process->parent == parent.rank) {
    const std::int32_t rank = process->rank;
    if (message.pid <= 0) {
      std::erase_if(parent.children, [&](const Child& child) { return child.rank == rank; });
      process->parent = -1;
      hosts_.EndProcess(rank);
    } else if (process->pid == 0) {
      process->pid = message.pid;
      for (Child& child : parent.children)
        if (child.rank == rank) child.pid = message.pid;
      const auto& watch = desk_.options().watch_process;
      process->watched = watch && watch(message.pid);
    }
  }
  desk_.Reply<wire::ProcessStarted>(thread);
  if (Process* again = roster_.Find(thread.rank)) WakeParent(*again, at);
}

void HostCalls::Handle(Thread thread, const wire::Exec& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  Process& process = desk_.ProcessOf(thread);
  roster_.DropToken(process.exec_token);
  process.exec_token = 0;
  if (message.failed) return desk_.Reply<wire::Exec>(thread);
  process.exec_token = roster_.NewToken(process.rank);
  process.exec_thread = thread;
  desk_.Reply<wire::Exec>(thread, {.token = process.exec_token});
}

void HostCalls::Handle(Thread thread, const wire::WaitProcess& message, Time at) {
  hosts_.Note(thread, message.no_hang ? Hosts::Activity::kIdles : Hosts::Activity::kActs);
  Process& process = desk_.ProcessOf(thread);
  const bool known =
      std::any_of(process.children.begin(), process.children.end(),
                  [&](const Child& c) { return message.pid == -1 || c.pid == message.pid; });
  if (!known) return desk_.Fail<wire::WaitProcess>(thread, Status::kNotFound);
  const std::string what = message.pid == -1 ? "wait" : "waitpid of a child";
  process_waits_.push_back({thread, message.pid});
  hosts_.Wait(thread, what, false);
  WakeParent(process, at);
  if (!message.no_hang) return;
  auto mine = std::find_if(process_waits_.begin(), process_waits_.end(),
                           [&](const ProcessWait& wait) { return wait.thread == thread; });
  if (mine == process_waits_.end()) return;
  process_waits_.erase(mine);
  desk_.Reply<wire::WaitProcess>(thread, {.pid = 0});
}

void HostCalls::ProcessEnded(const Process& process, Time at) {
  for (const Child& child : process.children)
    if (Process* orphan = roster_.Find(child.rank)) orphan->parent = -1;
  Process* parent = roster_.Find(process.parent);
  if (parent == nullptr) return;
  for (Child& child : parent->children) {
    if (child.rank != process.rank) continue;
    child.ended = true;
    child.end_order = ++ends_;
  }
  WakeParent(*parent, at);
}

void HostCalls::ThreadEnded(Thread thread, Time at) {
  for (auto& [place, waiters] : barriers_) std::erase(waiters, thread);
  std::erase_if(barriers_, [](const auto& entry) { return entry.second.empty(); });
  for (auto& [name, waiters] : named_barriers_) std::erase(waiters, thread);
  std::erase_if(named_barriers_, [](const auto& entry) { return entry.second.empty(); });
  std::erase_if(process_waits_, [&](const ProcessWait& wait) { return wait.thread == thread; });
  std::erase_if(joins_, [&](const auto& join) { return join.second == thread; });
  const auto [first, last] = joins_.equal_range(thread);
  std::vector<Thread> waiters;
  for (auto it = first; it != last; ++it) waiters.push_back(it->second);
  joins_.erase(first, last);
  for (Thread waiter : waiters)
    hosts_.WakeAt(waiter, at, [this, waiter](Time) { desk_.Reply<wire::WaitThread>(waiter); });
}

// Answers those threads of `parent` that wait for a child that has ended, in the order in which
// they began to wait; of several such children, the first to end.
void HostCalls::WakeParent(Process& parent, Time at) {
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
    hosts_.WakeAt(thread, at, [this, thread, pid](Time) {
      desk_.Reply<wire::WaitProcess>(thread, {.pid = pid});
    });
  }
}

// --- time ---------------------------------------------------------------------------------------

void HostCalls::Handle(Thread thread, const wire::Sleep& message, Time at) {
  hosts_.Note(thread, Hosts::Activity::kIdles);
  hosts_.Wait(thread, "sleep", false);
  const Time span = std::clamp<Time>(message.ps, 0, node::kTimeNever / 8);
  hosts_.WakeAt(thread, at + span, [this, thread](Time) { desk_.Reply<wire::Sleep>(thread); });
}

// A thread that yields on and on waits for somebody (MPI polls so). A yield takes so little that
// others' timeouts would never come; therefore long waits are polled in growing steps.
void HostCalls::Handle(Thread thread, const wire::Yield&, Time at) {
  hosts_.Note(thread, Hosts::Activity::kIdles);
  const Hosts::Idling idling = hosts_.IdlingOf(thread);
  if (idling.count < kQuickYields) return desk_.Reply<wire::Yield>(thread);
  hosts_.Wait(thread, "sched_yield", false);
  const Time step = std::min((at - idling.since) / kYieldShare, kLongestYield);
  hosts_.WakeAt(thread, at + step, [this, thread](Time) { desk_.Reply<wire::Yield>(thread); });
}

// --- barriers and keys --------------------------------------------------------------------------

HostCalls::PlaceKey HostCalls::Place(Thread thread, const wire::Key& key) {
  return {key.shared ? -1 : thread.rank, key.shared ? key.object : 0, key.where};
}

template <class M>
void HostCalls::ArriveAt(std::vector<Thread>& waiters, Thread thread, std::uint32_t count,
                         Time at) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  if (waiters.size() + 1 < count) {
    waiters.push_back(thread);
    hosts_.Wait(thread, fmt::format("barrier ({} of {} have arrived)", waiters.size(), count),
                false);
    return;
  }
  for (Thread other : waiters)
    hosts_.WakeAt(other, at, [this, other](Time) { desk_.Reply<M>(other, {.last = false}); });
  waiters.clear();
  desk_.Reply<M>(thread, {.last = true});
}

void HostCalls::Handle(Thread thread, const wire::BarrierWait& message, Time at) {
  auto place = barriers_.try_emplace(Place(thread, message.key)).first;
  ArriveAt<wire::BarrierWait>(place->second, thread, message.count, at);
  if (place->second.empty()) barriers_.erase(place);
}

void HostCalls::Handle(Thread thread, const wire::BootstrapBarrier& message, Time at) {
  if (message.name.size() > 256)
    return desk_.Fail<wire::BootstrapBarrier>(thread, Status::kInvalidValue);
  auto place = named_barriers_.try_emplace(message.name).first;
  ArriveAt<wire::BootstrapBarrier>(place->second, thread, message.count, at);
  if (place->second.empty()) named_barriers_.erase(place);
}

void HostCalls::Withdraw(Thread thread, const wire::Key& key) {
  const PlaceKey place = Place(thread, key);
  if (auto found = registered_.find(place); found != registered_.end()) {
    std::erase(found->second, thread);
    if (found->second.empty()) registered_.erase(found);
  }
  std::erase_if(desk_.RecordOf(thread).keys, [&](const Registration& registration) {
    return Place(thread, registration.key) == place;
  });
}

void HostCalls::WithdrawKeys(Thread thread) {
  const std::vector<Registration>& keys = desk_.RecordOf(thread).keys;
  while (!keys.empty()) Withdraw(thread, wire::Key(keys.back().key));
}

bool HostCalls::IsWoken(Thread thread, const wire::Key& key) const {
  const std::vector<Registration>& keys = desk_.RecordOf(thread).keys;
  return std::any_of(keys.begin(), keys.end(), [&](const Registration& registration) {
    return registration.woken && Place(thread, registration.key) == Place(thread, key);
  });
}

void HostCalls::Handle(Thread thread, const wire::WatchKey& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  ThreadRecord& record = desk_.RecordOf(thread);
  if (record.keys.size() >= desk_.limits().keys)
    return desk_.Fail<wire::WatchKey>(thread, Status::kOutOfMemory);
  Withdraw(thread, message.key);
  record.keys.push_back({message.key, false});
  registered_[Place(thread, message.key)].push_back(thread);
  desk_.Reply<wire::WatchKey>(thread);
}

void HostCalls::Handle(Thread thread, const wire::UnwatchKey& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  const bool woken = IsWoken(thread, message.key);
  Withdraw(thread, message.key);
  desk_.Reply<wire::UnwatchKey>(thread, {.woken = woken});
}

void HostCalls::Handle(Thread thread, const wire::WaitKey& message, Time at) {
  hosts_.Note(thread, message.timeout_ps < 0 ? Hosts::Activity::kActs : Hosts::Activity::kIdles);
  ThreadRecord& record = desk_.RecordOf(thread);
  const PlaceKey place = Place(thread, message.key);
  auto mine = std::find_if(record.keys.begin(), record.keys.end(),
                           [&](const Registration& r) { return Place(thread, r.key) == place; });
  if (mine == record.keys.end()) {
    if (record.keys.size() >= desk_.limits().keys)
      return desk_.Fail<wire::WaitKey>(thread, Status::kOutOfMemory);
    record.keys.push_back({message.key, false});
    registered_[place].push_back(thread);
  } else if (mine->woken) {
    Withdraw(thread, message.key);
    return desk_.Reply<wire::WaitKey>(thread, {.woken = true});
  }
  record.in_wait_key = true;
  record.wait_key = message.key;
  hosts_.Wait(thread, "a lock, condition or semaphore", false);
  if (message.timeout_ps < 0) return;
  const Time span = std::min<Time>(message.timeout_ps, node::kTimeNever / 8);
  hosts_.WakeAt(thread, at + span, [this, thread, key = message.key](Time) {
    const bool woken = IsWoken(thread, key);  // by somebody else at this very time
    Withdraw(thread, key);
    desk_.Reply<wire::WaitKey>(thread, {.woken = woken});
  });
}

void HostCalls::Handle(Thread thread, const wire::WakeKey& message, Time at) {
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
    ThreadRecord& record = desk_.RecordOf(other);
    for (Registration& registration : record.keys)
      if (Place(other, registration.key) == place) registration.woken = true;
    if (!record.in_wait_key || Place(other, record.wait_key) != place) continue;
    hosts_.WakeAt(other, at, [this, other, key = record.wait_key](Time) {
      Withdraw(other, key);
      desk_.Reply<wire::WaitKey>(other, {.woken = true});
    });
  }
  desk_.Reply<wire::WakeKey>(thread, {.woken = woken});
}

}  // namespace allranks::server
