// Processes and threads of a run as they come and go: where a new image is placed, what is dropped
// with its owner, and ranks that a planned fault ends. Part of Core; see core.h.
#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "server/core.h"

namespace allranks::server {

void Core::ProcessExited(pid_t pid) {
  std::vector<Thread> threads;
  for (const auto& [thread, record] : threads_)
    if (processes_.at(thread.rank).pid == pid) threads.push_back(thread);
  for (Thread thread : threads) hosts_.Gone(thread);
  ran_natively_ = true;  // its ends of pipes have been closed
}

// All processes that a launcher called so (a shell and what it started), or else the one that the
// node counts as that rank.
void Core::KillRank(std::int32_t rank, Time at) {
  std::vector<pid_t> pids;
  for (const auto& [number, process] : processes_)
    if (process.label == rank && process.pid > 0) pids.push_back(process.pid);
  if (const auto found = processes_.find(rank);
      pids.empty() && found != processes_.end() && found->second.pid > 0)
    pids.push_back(found->second.pid);
  if (pids.empty()) return;
  hosts_.AdvanceTo(at);
  for (const pid_t pid : pids) {
    if (options_.log) options_.log(fmt::format("rank {} (pid {}) is killed by --fault", rank, pid));
    if (options_.kill_process) options_.kill_process(pid);
    ProcessExited(pid);
  }
  machine_->Stop();  // others may have something to do now
}

// On which simulated host a new image is: the one named, else that of its rank, else where it (or
// its parent) was. More ranks than the hosts have room for begin again with the first host.
void Core::PlaceImage(Process& process, const wire::Hello& hello) {
  const auto hosts = static_cast<std::int32_t>(machine_->profile().machine.hosts);
  if (hello.rank >= 0) process.label = hello.rank;
  if (hello.host >= 0) {
    process.host = hello.host % hosts;
  } else if (hello.rank >= 0 && !hello.placed) {
    const auto devices = static_cast<std::int32_t>(machine_->profile().machine.devices_per_host);
    const std::int32_t each = options_.ranks_per_host > 0 ? options_.ranks_per_host : devices;
    process.host = hello.rank / each % hosts;
  }
}

void Core::ThreadEnded(Thread thread, Time at) {
  auto found = threads_.find(thread);
  if (found == threads_.end()) return;
  ThreadRecord& record = found->second;
  Release(record, thread);
  doubting_.erase(thread);
  while (!record.keys.empty()) Withdraw(thread, wire::Key(record.keys.back().key));
  if (record.link != nullptr) {
    // Its connection closes by itself; until then it belongs to nobody.
    if (auto session = sessions_.find(record.link); session != sessions_.end())
      session->second.thread = Thread{};
  }
  threads_.erase(found);
  if (auto process = processes_.find(thread.rank);
      process != processes_.end() && process->second.host_caller == thread)
    process->second.host_caller.reset();
  for (auto& [place, waiters] : barriers_) std::erase(waiters, thread);
  std::erase_if(barriers_, [](const auto& entry) { return entry.second.empty(); });
  for (auto& [name, waiters] : named_barriers_) std::erase(waiters, thread);
  std::erase_if(named_barriers_, [](const auto& entry) { return entry.second.empty(); });
  std::erase_if(process_waits_, [&](const ProcessWait& wait) { return wait.thread == thread; });
  team_waits_.erase(thread);
  std::erase_if(joins_, [&](const auto& join) { return join.second == thread; });
  const auto [first, last] = joins_.equal_range(thread);
  std::vector<Thread> waiters;
  for (auto it = first; it != last; ++it) waiters.push_back(it->second);
  joins_.erase(first, last);
  for (Thread waiter : waiters)
    hosts_.WakeAt(waiter, at, [this, waiter](Time) { Reply<wire::WaitThread>(waiter); });
}

void Core::DropMachineProcess(Process& process) {
  if (!process.machine) return;
  if (checking_ != nullptr) checking_->HostMeets(*process.machine);  // others hear of its end
  machine_->RemoveProcess(*process.machine);
  process.machine.reset();
  process.pinned = false;
  process.images.clear();
  process.image_bytes = process.queued_bytes = 0;
  process.modules.clear();
  process.loaded.clear();
  process.kernels.clear();
  process.streams.clear();
  process.events.clear();
  process.allocations = 0;
  process.host_calls.clear();
}

void Core::ProcessEnded(std::int32_t rank, Time at) {
  auto found = processes_.find(rank);
  if (found == processes_.end()) return;
  if (judged_ != nullptr) found->second.machine.reset();  // what it has made stays
  DropMachineProcess(found->second);
  sites_.Forget(found->second.pid);
  tokens_.erase(found->second.token);
  tokens_.erase(found->second.exec_token);
  const Process process = std::move(found->second);
  processes_.erase(found);
  std::vector<Link*> links;
  for (const auto& [link, session] : sessions_)
    if (session.said_hello && session.thread.rank < 0 &&
        (judged_ != nullptr ? session.judged == rank : session.pid == process.pid))
      links.push_back(link);
  for (Link* link : links) Drop(link);
  for (const Child& child : process.children)
    if (auto it = processes_.find(child.rank); it != processes_.end()) it->second.parent = -1;
  if (auto parent = processes_.find(process.parent); parent != processes_.end()) {
    for (Child& child : parent->second.children) {
      if (child.rank != rank) continue;
      child.ended = true;
      child.end_order = ++ends_;
    }
    WakeParent(parent->second, at);
  }
  if (judged_ != nullptr) judged_->RankEnded(rank, at);
}

node::ProcessId Core::MachineOf(Thread thread) {
  Process& process = ProcessOf(thread);
  if (!process.machine) {
    const std::int32_t rank = process.label >= 0 ? process.label : process.rank;
    process.machine = machine_->AddProcess(rank, process.host);
    machine_ranks_[*process.machine] = rank;
    Meet(thread);
  }
  return *process.machine;
}

std::uint64_t Core::NewToken() {
  std::uint64_t token = 0;
  while (token == 0 || tokens_.contains(token))
    CHECK(getrandom(&token, sizeof token, 0) == sizeof token);
  return token;
}

}  // namespace allranks::server
