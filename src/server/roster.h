// Who is there: the records of a run's processes and threads, found by rank, by thread or by token.
// Part of the Desk. Entries come with node::Hosts' processes and threads and go when those end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>

#include "node/hosts.h"
#include "node/ids.h"
#include "server/records.h"

namespace allranks::server {

class Roster {
 public:
  using Thread = node::HostThread;

  // A new process, with a token for its threads' hellos.
  Process& Add(std::int32_t rank);
  void Add(Thread thread) { threads_[thread]; }
  // What was known of it.
  Process Remove(std::int32_t rank);
  void Remove(Thread thread) { threads_.erase(thread); }

  // The process or thread must be there.
  Process& Of(std::int32_t rank) { return processes_.at(rank); }
  const Process& Of(std::int32_t rank) const { return processes_.at(rank); }
  ThreadRecord& Of(Thread thread) { return threads_.at(thread); }
  const ThreadRecord& Of(Thread thread) const { return threads_.at(thread); }
  // Null: it is not there.
  Process* Find(std::int32_t rank);
  const Process* Find(std::int32_t rank) const;
  const Process* FindMachine(node::ProcessId process) const;  // by the machine's number
  ThreadRecord* Find(Thread thread);
  const ThreadRecord* Find(Thread thread) const;
  const std::map<std::int32_t, Process>& processes() const { return processes_; }
  std::map<Thread, ThreadRecord>& threads() { return threads_; }

  // A number that nobody can guess, and that stands for the process until it is dropped.
  std::uint64_t NewToken(std::int32_t rank);
  void DropToken(std::uint64_t token) { tokens_.erase(token); }
  Process* FindToken(std::uint64_t token);

  // The machine's process is known to people by this rank, also after its end.
  void NameMachine(node::ProcessId process, std::int32_t rank) { machine_ranks_[process] = rank; }
  std::optional<std::int32_t> RankOf(node::ProcessId process) const;
  const std::unordered_map<node::ProcessId, std::int32_t>& machine_ranks() const {
    return machine_ranks_;
  }
  // Processes so far, those that have ended included.
  std::int32_t seen() const { return seen_; }

 private:
  std::map<Thread, ThreadRecord> threads_;
  std::map<std::int32_t, Process> processes_;
  std::unordered_map<std::uint64_t, std::int32_t> tokens_;  // to ranks
  std::unordered_map<node::ProcessId, std::int32_t> machine_ranks_;
  std::int32_t seen_ = 0;
};

}  // namespace allranks::server
