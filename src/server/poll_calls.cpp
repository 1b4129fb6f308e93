// Descriptors and pinned memory that threads look at. poll_calls.h says who calls what.
#include "server/poll_calls.h"

#include <poll.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace allranks::server {

using node::Hosts;
using node::Status;

namespace {

constexpr std::size_t kMaxWatches = 256;
constexpr node::Time kShortestLook = node::Us(5);
constexpr node::Time kLongestLook = node::Ms(10);
constexpr int kMaxDoubts = 20;  // of a poll that is the same again after each

}  // namespace

// --- descriptors -------------------------------------------------------------------------------

void PollCalls::Handle(Thread thread, const wire::WaitFd& message, Time at) {
  ThreadRecord& record = desk_.RecordOf(thread);
  if (record.fds.size() != message.events.size() || record.fds.empty()) {
    if (message.timeout_ps < 0) return desk_.Fail<wire::WaitFd>(thread, Status::kInvalidValue);
    record.fds.clear();
  }
  hosts_.Note(thread, message.timeout_ps < 0 ? Hosts::Activity::kActs : Hosts::Activity::kIdles);
  record.fd_events = message.events;
  hosts_.Wait(thread, "a read or poll of descriptors", !record.fds.empty());
  if (!record.fds.empty()) {
    waits_.descriptors.insert(thread);
    waits_.ran_natively = true;  // so that they are looked at before anything else happens
  }
  if (message.timeout_ps < 0) return;
  const Time span = std::min<Time>(message.timeout_ps, node::kTimeNever / 8);
  hosts_.WakeAt(thread, at + span,
                [this, thread](Time) { desk_.Reply<wire::WaitFd>(thread, {.ready = false}); });
}

// In one system call for all: while NCCL connects, a dozen threads wait whenever time passes.
bool PollCalls::PollDescriptors() {
  waits_.ran_natively = false;
  polls_.clear();
  for (const Thread thread : waits_.descriptors) {
    const ThreadRecord& record = desk_.RecordOf(thread);
    for (std::size_t i = 0; i < record.fds.size(); ++i)
      polls_.push_back({record.fds[i].get(), record.fd_events[i], 0});
  }
  if (polls_.empty() || poll(polls_.data(), polls_.size(), 0) <= 0) return false;
  bool any = false;
  auto polled = polls_.begin();
  for (auto next = waits_.descriptors.begin(); next != waits_.descriptors.end();) {
    const Thread thread = *next++;
    const auto end = polled + static_cast<std::ptrdiff_t>(desk_.RecordOf(thread).fds.size());
    const bool ready =
        std::any_of(polled, end, [](const pollfd& entry) { return entry.revents != 0; });
    polled = end;
    if (!ready) continue;
    waits_.descriptors.erase(thread);
    any = true;
    hosts_.WakeAt(thread, hosts_.now(),
                  [this, thread](Time) { desk_.Reply<wire::WaitFd>(thread, {.ready = true}); });
  }
  return any;
}

Reach PollCalls::Outside(bool device_users) const {
  const Roster& roster = desk_.roster();
  std::vector<Held> fds;
  std::vector<pid_t> ours;
  for (Thread thread : waits_.descriptors) {
    const Process& process = roster.Of(thread.rank);
    if (device_users && !process.machine) continue;
    for (const wire::Fd& fd : roster.Of(thread).fds) fds.push_back({fd.get(), process.pid});
  }
  for (const auto& [rank, process] : roster.processes()) ours.push_back(process.pid);
  return WhoElseHolds(fds, ours);
}

// --- polled memory ------------------------------------------------------------------------------

void PollCalls::Handle(Thread thread, const wire::HostPoll& message, Time at) {
  std::vector<node::MemoryApi::HostWatch> watches;
  for (const wire::HostPoll::Watch& watch : message.watches) {
    if (watch.size != 1 && watch.size != 2 && watch.size != 4 && watch.size != 8)
      return desk_.Fail<wire::HostPoll>(thread, Status::kInvalidValue);
    watches.push_back({watch.address, watch.size, watch.seen});
  }
  if (watches.empty() || watches.size() > kMaxWatches || !desk_.ProcessOf(thread).pinned)
    return desk_.Fail<wire::HostPoll>(thread, Status::kInvalidValue);
  ThreadRecord::Parked& parked = desk_.RecordOf(thread).parked;
  decltype(parked.watches) sorted;
  for (const auto& watch : watches) sorted.emplace_back(watch.address, watch.size, watch.seen);
  std::sort(sorted.begin(), sorted.end());
  const bool timed = message.timeout_ps >= 0;
  // It was woken to look, and nothing has come of that.
  const bool again = timed == parked.timed && sorted == parked.watches;
  if (!again) parked = {.watches = std::move(sorted), .timed = timed, .since = at};
  parked.at = at;
  waits_.memory.insert(thread);
  hosts_.Note(thread, timed   ? Hosts::Activity::kIdles
                      : again ? Hosts::Activity::kPolls
                              : Hosts::Activity::kActs);
  hosts_.Wait(thread, "a loop on pinned memory", false);
  if (!again) LookAgain(thread, false, at);
  if (timed) {
    const Time span = std::min<Time>(message.timeout_ps, node::kTimeNever / 8);
    hosts_.WakeAt(thread, at + span, [this, thread](Time) {
      desk_.Reply<wire::HostPoll>(thread, {.changed = false});
    });
  }
  const Time period = std::max<Time>(desk_.machine().profile().host.poll, node::Ns(1));
  const std::uint64_t watch = desk_.machine().WatchHost(
      desk_.MachineOf(thread), watches, at, [this, thread, at, period](Time changed) {
        if (ThreadRecord* record = desk_.roster().Find(thread)) record->watch = 0;
        // The loop looks every `period`; the first look at or after the change sees it.
        const Time looks = changed <= at ? 1 : (changed - at + period - 1) / period;
        hosts_.WakeAt(thread, at + looks * period, [this, thread](Time) {
          desk_.Reply<wire::HostPoll>(thread, {.changed = true});
        });
        desk_.machine().Stop();
      });
  // It may have fired already; Machine::Unwatch of a watch that has is nothing.
  desk_.RecordOf(thread).watch = watch;
}

// A long poll looks more seldom, so that threads that yield or query on and on do not wake it each
// time. A thread that joins has often just told the other to end.
void PollCalls::LookAgain(Thread thread, bool at_once, Time at) {
  if (desk_.Instrumented()) return;  // times of windows come from instrumented steps alone
  for (auto it = waits_.memory.lower_bound({thread.rank, 0});
       it != waits_.memory.end() && it->rank == thread.rank; ++it) {
    const Thread other = *it;
    const ThreadRecord::Parked& parked = desk_.RecordOf(other).parked;
    if (parked.timed || other == thread) continue;
    const Time step = std::clamp((parked.at - parked.since) / 8, kShortestLook, kLongestLook);
    hosts_.WakeAt(other, at_once ? at : std::max(at, parked.at + step), [this, other](Time) {
      desk_.Reply<wire::HostPoll>(other, {.changed = false, .doubt = false});
    });
  }
}

bool PollCalls::Doubt() {
  if (desk_.Instrumented()) return false;  // instrumented loops are what they say, none parks
  for (Thread thread : waits_.memory) {
    ThreadRecord::Parked& parked = desk_.RecordOf(thread).parked;
    if (parked.doubts == kMaxDoubts || (parked.doubts != 0 && parked.doubted_acts == hosts_.acts()))
      continue;
    doubting_.insert(thread);
    const bool woken = hosts_.WakeAt(thread, hosts_.now(), [this, thread](Time) {
      desk_.Reply<wire::HostPoll>(thread, {.changed = false, .doubt = true});
    });
    if (!woken) continue;  // it is about to look anyway
    ++parked.doubts;
    parked.doubted_acts = hosts_.acts();
  }
  return !doubting_.empty();
}

void PollCalls::DropSilentDoubts() {
  for (const Hosts::ThreadInfo& thread : hosts_.Threads())
    if (thread.state == Hosts::State::kBlocked || thread.state == Hosts::State::kDetached)
      doubting_.erase(thread.id);
}

}  // namespace allranks::server
