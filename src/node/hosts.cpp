// The state machine of host threads. hosts.h says why it is as it is; here are the transitions.
#include "node/hosts.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace allranks::node {

namespace {

// No item lies beyond this, so that a hostile sleep cannot make time overflow.
constexpr Time kHorizon = Time{1} << 61;

Time Later(Time time, Time by) {
  return std::min(kHorizon, std::min(time, kHorizon) + std::clamp<Time>(by, 0, kHorizon));
}

bool Holds(Hosts::State state) {
  return state == Hosts::State::kAnnounced || state == Hosts::State::kRunning;
}

}  // namespace

Hosts::Hosts(const Options& options, Events events)
    : options_(options), events_(std::move(events)) {}

void Hosts::AdvanceTo(Time time) { now_ = std::max(now_, std::min(time, kHorizon)); }

std::int32_t Hosts::AddProcess() {
  processes_.emplace(next_rank_, HostProcess{});
  return next_rank_++;
}

HostThread Hosts::AddThread(std::int32_t rank) {
  auto process = processes_.find(rank);
  CHECK(process != processes_.end(), "rank {}", rank);
  const HostThread id{rank, process->second.next_thread++};
  Thread& thread = threads_[id];
  thread.clock = now_;
  ++holding_;
  ++process->second.threads;
  // Its creator may have been killed while it asked.
  CountGone(rank);
  DropOrphans(rank);
  return id;
}

int Hosts::ThreadCount(std::int32_t rank) const {
  auto process = processes_.find(rank);
  return process == processes_.end() ? 0 : process->second.threads;
}

Hosts::Thread* Hosts::Find(HostThread id) {
  auto found = threads_.find(id);
  return found == threads_.end() ? nullptr : &found->second;
}

void Hosts::SetState(Thread& thread, State state) {
  holding_ += static_cast<int>(Holds(state)) - static_cast<int>(Holds(thread.state));
  detached_ += static_cast<int>(state == State::kDetached) -
               static_cast<int>(thread.state == State::kDetached);
  blocked_ += static_cast<int>(state == State::kBlocked) -
              static_cast<int>(thread.state == State::kBlocked);
  thread.state = state;
  thread.silent_since.reset();
}

void Hosts::Enqueue(HostThread id, Thread& thread, Time at, Action action) {
  Dequeue(thread);
  const Key key{std::clamp(at, now_, std::max(now_, kHorizon)), id, ++thread.sequence};
  thread.item = key;
  items_.emplace(key, std::move(action));
}

void Hosts::Dequeue(Thread& thread) {
  if (!thread.item) return;
  items_.erase(*thread.item);
  thread.item.reset();
}

bool Hosts::Request(HostThread id, Time cost, std::string what, Action action) {
  Thread* thread = Find(id);
  if (thread == nullptr || thread->gone) return false;
  if (thread->state == State::kPending || thread->state == State::kWaiting) return false;
  // While anybody runs, now() is the clock of all that do; a detached thread has lost its own.
  thread->clock = now_;
  thread->what = std::move(what);
  SetState(*thread, State::kPending);
  Enqueue(id, *thread, Later(now_, cost), std::move(action));
  return true;
}

void Hosts::Resume(HostThread id) {
  Thread* thread = Find(id);
  if (thread == nullptr) return;
  CHECK(thread->state == State::kPending || thread->state == State::kWaiting, "resumed in state {}",
        static_cast<int>(thread->state));
  Dequeue(*thread);
  thread->clock = now_;
  SetState(*thread, State::kRunning);
  if (thread->gone) RequestEnd(id, *thread);
}

void Hosts::Wait(HostThread id, std::string what, bool outside) {
  Thread* thread = Find(id);
  if (thread == nullptr) return;
  CHECK(thread->state == State::kPending || thread->state == State::kWaiting, "waits in state {}",
        static_cast<int>(thread->state));
  thread->what = std::move(what);
  thread->outside = outside;
  SetState(*thread, State::kWaiting);
}

bool Hosts::WakeAt(HostThread id, Time at, Action action) {
  Thread* thread = Find(id);
  if (thread == nullptr || thread->state != State::kWaiting) return false;
  at = std::clamp(at, now_, std::max(now_, kHorizon));
  if (thread->item && thread->item->time <= at) return false;
  Enqueue(id, *thread, at, std::move(action));
  return true;
}

void Hosts::Note(HostThread id, Activity activity) {
  if (activity == Activity::kActs) {
    ++acts_;
    return;
  }
  Thread* thread = Find(id);
  if (thread == nullptr) return;
  if (thread->acts != acts_ || thread->polls + thread->idles == 0) {
    thread->acts = acts_;
    thread->polls = thread->idles = 0;
    thread->idle_since = now_;
  }
  ++(activity == Activity::kPolls ? thread->polls : thread->idles);
}

void Hosts::RequestEnd(HostThread id, Thread& thread) {
  thread.what = "exit";
  SetState(thread, State::kPending);
  Enqueue(id, thread, Later(now_, options_.min_cost), [this, id](Time) { End(id); });
}

void Hosts::Erase(HostThread id) {
  auto found = threads_.find(id);
  CHECK(found != threads_.end());
  Thread& thread = found->second;
  Dequeue(thread);
  SetState(thread, State::kPending);
  HostProcess& process = processes_.at(id.rank);
  --process.threads;
  if (thread.gone) --process.gone;
  if (thread.closed) --process.closed;
  threads_.erase(found);
  CountGone(id.rank);
  ++acts_;
  if (events_.thread_ended) events_.thread_ended(id, now_);
}

void Hosts::CountGone(std::int32_t rank) {
  HostProcess& process = processes_.at(rank);
  const bool dying = process.closed != 0 || (process.gone != 0 && process.gone != process.threads);
  dying_ += static_cast<int>(dying) - static_cast<int>(process.dying);
  process.dying = dying;
}

void Hosts::End(HostThread id) {
  if (Find(id) == nullptr) return;
  Erase(id);
  EndProcessIfOver(id.rank);
}

void Hosts::Closing(HostThread id) {
  Thread* thread = Find(id);
  if (thread == nullptr || thread->gone || thread->closed) return;
  thread->closed = true;
  ++processes_.at(id.rank).closed;
  CountGone(id.rank);
}

void Hosts::Gone(HostThread id) {
  Thread* thread = Find(id);
  if (thread == nullptr || thread->gone) return;
  if (std::exchange(thread->closed, false)) --processes_.at(id.rank).closed;
  thread->gone = true;
  ++processes_.at(id.rank).gone;
  CountGone(id.rank);
  if (thread->state == State::kDetached || thread->state == State::kBlocked) {
    End(id);
  } else if (Holds(thread->state)) {
    RequestEnd(id, *thread);
  }
  if (processes_.contains(id.rank)) DropOrphans(id.rank);
  EndProcessIfOver(id.rank);
}

// Nobody is left to create the threads that were announced.
void Hosts::DropOrphans(std::int32_t rank) {
  if (processes_.at(rank).gone == 0) return;
  std::vector<HostThread> orphans;
  for (auto it = threads_.lower_bound({rank, 0}); it != threads_.end() && it->first.rank == rank;
       ++it) {
    if (it->second.gone) continue;
    if (it->second.state != State::kAnnounced) return;
    orphans.push_back(it->first);
  }
  for (HostThread orphan : orphans) Erase(orphan);
}

// A process is over when no thread is left, or when all are gone and none of them has anything left
// to do: those that were killed in a wait will never be woken for themselves.
void Hosts::EndProcessIfOver(std::int32_t rank) {
  auto process = processes_.find(rank);
  if (process == processes_.end()) return;
  if (process->second.gone != process->second.threads) return;
  for (auto it = threads_.lower_bound({rank, 0}); it != threads_.end() && it->first.rank == rank;
       ++it)
    if (it->second.state != State::kWaiting) return;
  EndProcess(rank);
}

void Hosts::EndProcess(std::int32_t rank) {
  if (!processes_.contains(rank)) return;
  for (auto it = threads_.lower_bound({rank, 0}); it != threads_.end() && it->first.rank == rank;
       it = threads_.lower_bound({rank, 0}))
    Erase(it->first);
  if (processes_.erase(rank) != 0 && events_.process_ended) events_.process_ended(rank, now_);
}

void Hosts::Replace(HostThread id) {
  std::vector<HostThread> others;
  for (auto it = threads_.lower_bound({id.rank, 0});
       it != threads_.end() && it->first.rank == id.rank; ++it)
    if (it->first != id) others.push_back(it->first);
  for (HostThread other : others) Erase(other);
  Thread* thread = Find(id);
  CHECK(thread != nullptr);
  Dequeue(*thread);
  thread->gone = thread->closed = false;
  processes_.at(id.rank).gone = processes_.at(id.rank).closed = 0;
  CountGone(id.rank);
  thread->what = "execve";
  SetState(*thread, State::kAnnounced);
}

bool Hosts::Held() const { return holding_ != 0 || dying_ != 0; }

std::optional<Time> Hosts::Due() const {
  if (items_.empty()) return std::nullopt;
  return items_.begin()->first.time;
}

void Hosts::Process() {
  CHECK(!Held() && !items_.empty());
  auto first = items_.begin();
  const Key key = first->first;
  Action action = std::move(first->second);
  items_.erase(first);
  threads_.at(key.thread).item.reset();
  AdvanceTo(key.time);
  action(now_);
  // Forgetting a thread in a handler would stop time for ever, without anybody to name.
  Thread* thread = Find(key.thread);
  CHECK(thread == nullptr || thread->state != State::kPending || thread->item,
        "nothing became of '{}'", thread->what);
  // Not in Wait(): a handler may still have things to do with a thread that it leaves waiting.
  if (thread != nullptr && thread->gone) EndProcessIfOver(key.thread.rank);
}

bool Hosts::AllWait() const {
  return !threads_.empty() && !Held() && items_.empty() && detached_ == 0;
}

bool Hosts::AllWaitForNode() const {
  return AllWait() && std::none_of(threads_.begin(), threads_.end(),
                                   [](const auto& entry) { return entry.second.outside; });
}

Hosts::Idling Hosts::IdlingOf(HostThread id) const {
  const auto found = threads_.find(id);
  if (found == threads_.end() || found->second.acts != acts_) return {};
  return {found->second.idles, found->second.idle_since};
}

bool Hosts::NobodyActs(bool outside) const {
  if (threads_.empty() || Held() || detached_ != 0) return false;
  for (const auto& [id, thread] : threads_) {
    if (thread.state == State::kBlocked) continue;
    if (thread.state == State::kWaiting && (!thread.item || (outside && thread.outside))) {
      if (thread.outside && !outside) return false;
      continue;
    }
    if (thread.acts != acts_) return false;
    const bool polled = thread.polls >= options_.polls;
    const bool idled = thread.polls + thread.idles >= options_.idles &&
                       now_ - thread.idle_since >= options_.idle_span;
    if (!polled && !idled) return false;
  }
  return true;
}

bool Hosts::Tick(std::int64_t wall_ms,
                 const std::function<bool(std::int32_t)>& may_wait_for_devices) {
  bool changed = false;
  std::vector<HostThread> lost;
  for (auto& [rank, process] : processes_) {
    if (!process.dying) {
      process.dying_since.reset();
      continue;
    }
    if (!process.dying_since) process.dying_since = wall_ms;
    if (wall_ms - *process.dying_since < options_.patience_ms) continue;
    for (auto& [id, thread] : threads_)
      if (id.rank == rank && (thread.gone || thread.closed)) lost.push_back(id);
  }
  for (HostThread id : lost) {
    LoseDeterminism(fmt::format("thread {} of rank {} ended without notice", id.number, id.rank));
    End(id);
    changed = true;
  }
  const bool holds_up = std::any_of(threads_.begin(), threads_.end(), [](const auto& entry) {
    return entry.second.state == State::kPending || entry.second.state == State::kWaiting;
  });
  for (auto& [id, thread] : threads_) {
    if (!Holds(thread.state)) continue;
    if (!holds_up && !(may_wait_for_devices && may_wait_for_devices(id.rank))) {
      thread.silent_since.reset();
      continue;
    }
    if (!thread.silent_since) thread.silent_since = wall_ms;
    const std::int64_t patience =
        thread.was_detached ? options_.second_patience_ms : options_.patience_ms;
    if (wall_ms - *thread.silent_since < patience) continue;
    LoseDeterminism(
        fmt::format("thread {} of rank {} was silent for {} ms", id.number, id.rank, patience));
    thread.was_detached = true;
    SetState(thread, State::kDetached);
    changed = true;
  }
  return changed;
}

bool Hosts::Block(const Asleep& asleep) {
  // Only if nobody runs any more is it certain that nobody is about to wake one of them.
  std::vector<std::pair<HostThread, std::uint64_t>> found;
  for (auto& [id, thread] : threads_) {
    if (!Holds(thread.state)) continue;
    if (thread.gone || thread.state == State::kAnnounced) return false;
    const std::optional<std::uint64_t> count = asleep(id);
    if (!count) return false;
    found.emplace_back(id, *count);
  }
  for (const auto& [id, count] : found)
    if (asleep(id) != count) return false;
  for (const auto& [id, count] : found) {
    Thread* thread = Find(id);
    thread->what = "another thread";
    thread->outside = false;
    SetState(*thread, State::kBlocked);
  }
  return !found.empty();
}

bool Hosts::Recheck(const Asleep& asleep) {
  std::vector<std::pair<HostThread, std::optional<std::uint64_t>>> blocked;
  for (auto& [id, thread] : threads_)
    if (thread.state == State::kBlocked) blocked.emplace_back(id, asleep(id));
  bool any = false;
  for (const auto& [id, count] : blocked) {
    if (count && asleep(id) == count) continue;
    Thread& thread = *Find(id);
    thread.clock = now_;
    SetState(thread, State::kRunning);
    any = true;
  }
  return any;
}

void Hosts::LoseDeterminism(std::string reason) {
  // A thread that is detached over and over fills no memory.
  if (reasons_.size() < 16) reasons_.push_back(std::move(reason));
}

std::vector<Hosts::ThreadInfo> Hosts::Threads() const {
  std::vector<ThreadInfo> all;
  for (const auto& [id, thread] : threads_)
    all.push_back({id, thread.state, thread.item ? thread.item->time : thread.clock, thread.what});
  return all;
}

}  // namespace allranks::node
