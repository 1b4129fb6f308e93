// Records of processes and threads, and their tokens. roster.h says who uses them.
#include "server/roster.h"

#include <sys/random.h>

#include <utility>

#include "base/check.h"

namespace allranks::server {
namespace {

template <class Map, class Key>
auto* FindIn(Map& map, const Key& key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

}  // namespace

Process& Roster::Add(std::int32_t rank) {
  Process& process = processes_[rank];
  process.rank = rank;
  process.token = NewToken(rank);
  ++seen_;
  return process;
}

Process Roster::Remove(std::int32_t rank) {
  auto entry = processes_.extract(rank);
  DropToken(entry.mapped().token);
  DropToken(entry.mapped().exec_token);
  return std::move(entry.mapped());
}

Process* Roster::Find(std::int32_t rank) { return FindIn(processes_, rank); }
const Process* Roster::Find(std::int32_t rank) const { return FindIn(processes_, rank); }
ThreadRecord* Roster::Find(Thread thread) { return FindIn(threads_, thread); }
const ThreadRecord* Roster::Find(Thread thread) const { return FindIn(threads_, thread); }

const Process* Roster::FindMachine(node::ProcessId process) const {
  for (const auto& [rank, record] : processes_)
    if (record.machine == process) return &record;
  return nullptr;
}

std::uint64_t Roster::NewToken(std::int32_t rank) {
  std::uint64_t token = 0;
  while (token == 0 || tokens_.contains(token))
    CHECK(getrandom(&token, sizeof token, 0) == sizeof token);
  tokens_[token] = rank;
  return token;
}

Process* Roster::FindToken(std::uint64_t token) {
  const std::int32_t* rank = FindIn(tokens_, token);
  return rank == nullptr ? nullptr : Find(*rank);
}

std::optional<std::int32_t> Roster::RankOf(node::ProcessId process) const {
  const std::int32_t* rank = FindIn(machine_ranks_, process);
  return rank == nullptr ? std::nullopt : std::optional(*rank);
}

}  // namespace allranks::server
