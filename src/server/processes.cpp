// Processes and threads of a run as they come and go: where a new image is placed, what is dropped
// with its owner, and ranks that a planned fault ends. Part of Core; see core.h.
#include <fmt/format.h>

#include <utility>
#include <vector>

#include "server/calls.h"
#include "server/core.h"
#include "server/judged.h"

namespace allranks::server {

void Core::ProcessExited(pid_t pid) {
  std::vector<Thread> threads;
  for (const auto& [thread, record] : roster_.threads())
    if (desk_.ProcessOf(thread).pid == pid) threads.push_back(thread);
  for (Thread thread : threads) hosts_.Gone(thread);
  desk_.polls().ran_natively = true;  // its ends of pipes have been closed
}

// All processes that a launcher called so (a shell and what it started), or else the one that the
// node counts as that rank.
void Core::KillRank(std::int32_t rank, Time at) {
  std::vector<pid_t> pids;
  for (const auto& [number, process] : roster_.processes())
    if (process.label == rank && process.pid > 0) pids.push_back(process.pid);
  if (const Process* found = roster_.Find(rank); pids.empty() && found != nullptr && found->pid > 0)
    pids.push_back(found->pid);
  if (pids.empty()) return;
  hosts_.AdvanceTo(at);
  for (const pid_t pid : pids) {
    if (options_.log) options_.log(fmt::format("--fault kills rank {} (pid {})", rank, pid));
    if (options_.kill_process) options_.kill_process(pid);
    ProcessExited(pid);
  }
  machine_.Stop();  // others may have something to do now
}

// On which simulated host a new image is: the one named, else that of its rank, else where it (or
// its parent) was. More ranks than the hosts have room for begin again with the first host.
void Core::PlaceImage(Process& process, const wire::Hello& hello) {
  const auto hosts = static_cast<std::int32_t>(machine_.profile().machine.hosts);
  if (hello.rank >= 0) process.label = hello.rank;
  if (hello.host >= 0) {
    process.host = hello.host % hosts;
  } else if (hello.rank >= 0 && !hello.placed) {
    const auto devices = static_cast<std::int32_t>(machine_.profile().machine.devices_per_host);
    const std::int32_t each = options_.ranks_per_host > 0 ? options_.ranks_per_host : devices;
    process.host = hello.rank / each % hosts;
  }
}

void Core::ReplaceImage(Process& process) {
  const Thread thread = process.exec_thread;
  if (roster_.Find(thread) == nullptr) return;
  DropMachineProcess(process);
  desk_.sites().Forget(process.pid);
  desk_.Release(thread);
  calls_->host().WithdrawKeys(thread);
  ThreadRecord& record = desk_.RecordOf(thread);
  LeaveSession(record);
  record = ThreadRecord{};
  hosts_.Replace(thread);
}

void Core::LeaveSession(const ThreadRecord& record) {
  if (record.link == nullptr) return;
  if (auto session = sessions_.find(record.link); session != sessions_.end())
    session->second.thread = Thread{};
}

void Core::ThreadEnded(Thread thread, Time at) {
  const ThreadRecord* record = roster_.Find(thread);
  if (record == nullptr) return;
  desk_.Release(thread);
  calls_->poll().EndDoubt(thread);
  calls_->host().WithdrawKeys(thread);
  LeaveSession(*record);
  roster_.Remove(thread);
  ranges_.ThreadEnded(thread, at);
  calls_->stream().ThreadEnded(thread);
  calls_->share().ThreadEnded(thread);
  calls_->host().ThreadEnded(thread, at);
}

void Core::DropMachineProcess(Process& process) {
  if (!process.machine) return;
  if (desk_.checking() != nullptr)
    desk_.checking()->HostMeets(*process.machine);  // others hear of its end
  machine_.RemoveProcess(*process.machine);
  process.machine.reset();
  process.pinned = false;
  process.shares_host_memory = false;
  process.images.clear();
  process.image_bytes = process.queued_bytes = 0;
  process.modules.clear();
  process.loaded.clear();
  process.kernels.clear();
  process.streams.clear();
  process.events.clear();
  process.allocations = 0;
  calls_->stream().DropHostFunctions(process.rank);
}

void Core::ProcessEnded(std::int32_t rank, Time at) {
  Process* found = roster_.Find(rank);
  if (found == nullptr) return;
  if (judged_ != nullptr) found->machine.reset();  // what it has made stays
  DropMachineProcess(*found);
  desk_.sites().Forget(found->pid);
  const Process process = roster_.Remove(rank);
  ranges_.ProcessEnded(rank, at);
  calls_->stream().ProcessEnded(rank);
  calls_->network().ProcessEnded(rank);
  std::vector<Link*> links;
  for (const auto& [link, session] : sessions_)
    if (session.said_hello && session.thread.rank < 0 &&
        (judged_ != nullptr ? session.judged == rank : session.pid == process.pid))
      links.push_back(link);
  for (Link* link : links) Drop(link);
  calls_->host().ProcessEnded(process, at);
  if (judged_ != nullptr) judged_->RankEnded(rank, at);
}

}  // namespace allranks::server
