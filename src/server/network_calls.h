// Handlers of what connections between simulated hosts carry (wire/host_messages.h).
//
// The bytes go over the real machine's loopback and are there at once; simulated is only when they
// arrive. A sender says how many have gone in, which takes capacity of the NICs from then on, and a
// receiver how many have come out: it may go on when the last of them has arrived. Neither buffers
// nor windows are simulated: a sender waits only where the real machine's sockets are full. Where
// the receiver is ahead of the sender's message it waits for that a moment.
//
// Both ends of a connection open it, in any order. Until both have, nobody knows which hosts it is
// between: what is sent before is carried when the second end opens. A connection that leaves the
// run has one end only, and costs nothing.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>

#include "node/hosts.h"
#include "node/time.h"
#include "server/desk.h"
#include "wire/messages.h"

namespace allranks::server {

class NetworkCalls {
 public:
  using Thread = node::HostThread;
  using Time = node::Time;

  explicit NetworkCalls(Desk& desk) : desk_(desk), hosts_(desk.hosts()) {}

  void Handle(Thread thread, const wire::NetworkOpen& message, Time at);
  void Handle(Thread thread, const wire::NetworkSend& message, Time at);
  void Handle(Thread thread, const wire::NetworkReceive& message, Time at);
  void Handle(Thread thread, const wire::NetworkFull& message, Time at);

  // Connections whose ends' processes are all gone are forgotten.
  void ProcessEnded(std::int32_t rank);

 private:
  // One direction of a connection.
  struct Flow {
    std::uint64_t sent = 0, received = 0;  // bytes since it began
    std::uint64_t unplaced = 0;            // of those sent: before both ends were open
    // What has not been received: `sent` after a segment, and when that much has arrived.
    std::deque<std::pair<std::uint64_t, Time>> under_way;
  };
  struct End {
    std::int32_t rank = -1;  // -1: not open
    int host = -1;
    std::uint64_t socket = 0;  // the kernel's number of it
    bool gone = false;         // its process has ended
    bool open() const { return rank >= 0; }
  };
  struct Connection {
    std::array<End, 2> ends;    // in the order of their names
    std::array<Flow, 2> flows;  // from that end to the other
    bool carries() const {
      return ends[0].open() && ends[1].open() && ends[0].host != ends[1].host;
    }
  };
  using Names = std::pair<wire::Endpoint, wire::Endpoint>;  // the smaller one first

  static Names NamesOf(const wire::Endpoint& mine, const wire::Endpoint& theirs, std::size_t* own);
  // Null: it is not known, or the caller is not on the host of its end.
  Connection* Find(Thread thread, const wire::Endpoint& mine, const wire::Endpoint& theirs,
                   std::size_t* own);
  void Carry(const Connection& connection, std::size_t from, std::uint64_t bytes, Time at,
             Flow* flow);
  // Answers when the first `bytes` bytes to the end `own` have arrived. `last`: who has not said by
  // now that they have been sent will not.
  void Await(Thread thread, const Names& names, std::size_t own, std::uint64_t bytes, bool last,
             Time at);

  Desk& desk_;
  node::Hosts& hosts_;
  std::map<Names, Connection> connections_;
  std::map<std::int32_t, int> opened_;  // by process
  bool refused_ = false;
};

}  // namespace allranks::server
