// Connections between simulated hosts, and their bytes under way. network_calls.h has the theory.
#include "server/network_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace allranks::server {

using node::Hosts;
using node::Status;

namespace {

// More than the kernel takes in one call.
constexpr std::uint64_t kMaxBytes = 1ull << 31;
// Bytes that arrive together: what a NIC cuts into packets by itself; more of a large message.
constexpr std::uint64_t kSegment = 64 << 10;
constexpr std::uint64_t kSegments = 64;
// Messages are handled in the order of their times, and a thread's reads of the clock delay its
// own. A receiver that was quicker than the sender's message waits so long for it.
constexpr node::Time kSooner = node::Us(25);
// Of one direction; then two neighbours become one, which has arrived when both have.
constexpr std::size_t kMaxUnderWay = 256;
constexpr int kMaxConnections = 4'096;  // that a process opens

}  // namespace

NetworkCalls::Names NetworkCalls::NamesOf(const wire::Endpoint& mine, const wire::Endpoint& theirs,
                                          std::size_t* own) {
  *own = mine <= theirs ? 0 : 1;
  return *own == 0 ? Names{mine, theirs} : Names{theirs, mine};
}

NetworkCalls::Connection* NetworkCalls::Find(Thread thread, const wire::Endpoint& mine,
                                             const wire::Endpoint& theirs, std::size_t* own) {
  const auto found = connections_.find(NamesOf(mine, theirs, own));
  if (found == connections_.end()) return nullptr;
  const End& end = found->second.ends[*own];
  // A descriptor may have been passed to another process, but not to another host.
  return end.open() && end.host == desk_.ProcessOf(thread).host ? &found->second : nullptr;
}

void NetworkCalls::Handle(Thread thread, const wire::NetworkOpen& message, Time at) {
  std::size_t own = 0;
  const Names names = NamesOf(message.mine, message.theirs, &own);
  auto found = connections_.find(names);
  // The ends have been used again.
  if (found != connections_.end() && found->second.ends[own].open() &&
      found->second.ends[own].socket != message.socket) {
    connections_.erase(found);
    found = connections_.end();
  }
  if (found == connections_.end() || !found->second.ends[own].open()) {
    if (opened_[thread.rank] == kMaxConnections) {
      if (!std::exchange(refused_, true) && desk_.options().log)
        desk_.options().log(
            fmt::format("rank {} has opened {} connections: the bytes of further ones take no time",
                        thread.rank, kMaxConnections));
      return desk_.Reply<wire::NetworkOpen>(thread);
    }
    ++opened_[thread.rank];
    Connection& connection = connections_[names];
    connection.ends[own] = {thread.rank, desk_.ProcessOf(thread).host, message.socket};
    if (connection.carries()) {
      for (const std::size_t from : {0, 1}) {
        Flow& flow = connection.flows[from];
        const std::uint64_t bytes = std::exchange(flow.unplaced, 0);
        flow.sent -= bytes;
        Carry(connection, from, bytes, at, &flow);
      }
    }
  }
  desk_.Reply<wire::NetworkOpen>(thread);
}

void NetworkCalls::Carry(const Connection& connection, std::size_t from, std::uint64_t bytes,
                         Time at, Flow* flow) {
  const int source = connection.ends[from].host, target = connection.ends[1 - from].host;
  const std::uint64_t segment = std::max(kSegment, bytes / kSegments);
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t part = std::min(segment, bytes - done);
    const Time there = desk_.machine().SendBetweenHosts(source, target, part, at);
    done += part;
    flow->sent += part;
    auto& under_way = flow->under_way;
    const Time before = under_way.empty() ? 0 : under_way.back().second;
    under_way.emplace_back(flow->sent, std::max(before, there));
    if (under_way.size() < kMaxUnderWay) continue;
    std::size_t kept = 0;
    for (std::size_t i = 1; i < under_way.size(); i += 2) under_way[kept++] = under_way[i];
    if (under_way.size() % 2 != 0) under_way[kept++] = under_way.back();
    under_way.resize(kept);
  }
}

void NetworkCalls::Handle(Thread thread, const wire::NetworkSend& message, Time at) {
  if (message.bytes > kMaxBytes)
    return desk_.Fail<wire::NetworkSend>(thread, Status::kInvalidValue);
  hosts_.Note(thread, Hosts::Activity::kActs);
  std::size_t own = 0;
  if (Connection* connection = Find(thread, message.mine, message.theirs, &own)) {
    Flow& flow = connection->flows[own];
    if (connection->carries()) {
      Carry(*connection, own, message.bytes, at, &flow);
    } else if (!connection->ends[1 - own].open()) {
      flow.sent += message.bytes;
      flow.unplaced += message.bytes;
    }
  }
  desk_.Reply<wire::NetworkSend>(thread);
}

void NetworkCalls::Handle(Thread thread, const wire::NetworkReceive& message, Time at) {
  if (message.bytes > kMaxBytes)
    return desk_.Fail<wire::NetworkReceive>(thread, Status::kInvalidValue);
  hosts_.Note(thread, Hosts::Activity::kActs);
  std::size_t own = 0;
  Connection* connection = Find(thread, message.mine, message.theirs, &own);
  if (connection == nullptr) return desk_.Reply<wire::NetworkReceive>(thread);
  Flow& flow = connection->flows[1 - own];
  flow.received += message.bytes;
  Await(thread, NamesOf(message.mine, message.theirs, &own), own, flow.received, false, at);
}

void NetworkCalls::Handle(Thread thread, const wire::NetworkFull&, Time) {
  hosts_.LoseDeterminism("a call that sends waited for room in a TCP socket of the real machine");
  desk_.Reply<wire::NetworkFull>(thread);
}

void NetworkCalls::Await(Thread thread, const Names& names, std::size_t own, std::uint64_t bytes,
                         bool last, Time at) {
  Time there = at;
  const auto found = connections_.find(names);
  if (found != connections_.end() && found->second.carries()) {
    Flow& flow = found->second.flows[1 - own];
    if (flow.sent < bytes && !last) {
      hosts_.Wait(thread, "bytes from another simulated host", false);
      hosts_.WakeAt(thread, at + kSooner, [this, thread, names, own, bytes](Time now) {
        Await(thread, names, own, bytes, true, now);
      });
      return;
    }
    // Else they went by a call that is not seen, and have arrived.
    flow.sent = std::max(flow.sent, bytes);
    while (!flow.under_way.empty() && flow.under_way.front().first < bytes)
      flow.under_way.pop_front();
    if (!flow.under_way.empty()) there = flow.under_way.front().second;
  }
  if (there <= at) return desk_.Reply<wire::NetworkReceive>(thread);
  hosts_.Wait(thread, "bytes from another simulated host", false);
  if (there == node::kTimeNever) return;  // by a link that is dead
  hosts_.WakeAt(thread, there, [this, thread](Time) { desk_.Reply<wire::NetworkReceive>(thread); });
}

void NetworkCalls::ProcessEnded(std::int32_t rank) {
  if (opened_.erase(rank) == 0) return;
  for (auto at = connections_.begin(); at != connections_.end();) {
    bool all_gone = true;
    for (End& end : at->second.ends) {
      end.gone |= end.rank == rank;
      all_gone &= end.gone || !end.open();
    }
    at = all_gone ? connections_.erase(at) : std::next(at);
  }
}

}  // namespace allranks::server
