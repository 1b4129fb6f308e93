// The fabric while it runs: the ports of all links, each with its capacity, its counters and its
// faults, and the routes between vertices. timing.cpp charges accesses and copies to it.
//
// A link has two ports, one per direction. What is sent passes the ports of its route one after the
// other: it takes capacity of each (payload plus packet headers), waits where others were first,
// and is on its way for each port's latency. So incast queues at the receiver's port, and a switch
// costs nothing but its links. Routes are fixed: the cheapest way, never through another device.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "node/hardware/profile.h"
#include "node/hardware/servers.h"
#include "node/time.h"
#include "node/traffic.h"

namespace allranks::node {

class Listener;

// What a packet is for: it decides how many bytes it costs beside its payload.
enum class Packet : std::uint8_t { kWrite, kAnswer, kRequest };

struct Port {
  int from = 0, to = 0;  // vertices
  int link = 0;          // index into Topology::links
  Time latency = 0;
  std::array<std::uint32_t, 3> header{};  // by Packet
  Server server;
  bool dead = false;
  double rate = 1;                             // fraction of its rate that a fault has left
  double background = 0;                       // fraction that polls of parked warps take
  std::int64_t scale = 1 << 16;                // 2^16 / (rate left)
  std::array<std::uint64_t, kMovers> bytes{};  // payload
  std::uint64_t wire_bytes = 0, packets = 0, poll_bytes = 0;
  Time first = kTimeNever, last = 0;  // of its use
};

struct Route {
  std::vector<std::uint16_t> ports;
  Time latency = kTimeNever;  // of all ports; kTimeNever: there is no way
};

class Fabric {
 public:
  Fabric(const Profile& profile, Time bucket);

  // The vertex of the host memory nearest to a device; -1: its host has no CPU.
  int HostOf(int device) const { return hosts_[static_cast<std::size_t>(device)]; }
  const Route& Way(int from, int to) {
    Source& source = sources_[static_cast<std::size_t>(from)];
    if (source.routes.empty()) FindRoutes(from);
    return source.routes[static_cast<std::size_t>(to)];
  }
  bool Alive(const Route& route) const;
  // How many packets a mover makes of so many contiguous bytes on this way.
  std::uint32_t Packets(const Route& route, Mover mover, std::uint64_t bytes) const;

  // Sends `bytes` in `packets` packets; when the last byte is there. A dead port is passed as if it
  // were not: whether a way is alive is asked before.
  Time Send(const Route& route, Packet packet, std::uint64_t bytes, std::uint32_t packets, Time at,
            Mover mover);
  // The same for what NICs send to each other. They put packets together and cut them again, so
  // every link has them in the size of its own.
  Time SendByNics(const Route& route, std::uint64_t bytes, Time at);

  // A multicast object's way: from a device to its switch and on to every member, or back. Both
  // return when the last byte is there.
  bool SharesSwitch(std::span<const int> devices) const;
  Time Replicate(int device, std::span<const int> members, std::uint64_t bytes,
                 std::uint32_t packets, Time at);
  // `ready` is how long a member's memory takes to answer.
  Time Reduce(int device, std::span<const int> members, std::uint64_t bytes, std::uint32_t packets,
              Time at, Time ready);

  // Polls of a parked warp: `gbs` of answers along the route, until taken back with the same number
  // negative.
  void Background(const Route& route, double gbs);
  // Skipped polls that have happened.
  void CountPolls(const Route& route, std::uint64_t bytes);

  // Faults: both directions of a link. `rate` in (0, 1]; 0: it is dead.
  void SetRate(int link, double rate);

  // Payload that ports carry from now on is also added here, by port; null: nowhere.
  void SetLedger(std::uint64_t* ledger) { ledger_ = ledger; }
  // What one direction of a port's link can carry, headers included.
  double GbsOf(const Port& port) const {
    const LinkKind& kind = KindOf(port);
    return kind.gbs * kind.efficiency;
  }
  // Is told what ports carry; may be null.
  void SetListener(Listener* listener) { listener_ = listener; }

  const std::vector<Port>& ports() const { return ports_; }
  // Links that have carried something, in the topology's order, and totals.
  std::vector<LinkRecord> Records() const;
  const std::array<MoverRecord, kMovers>& moved() const { return moved_; }
  const Topology& topology() const { return profile_.topology; }

 private:
  struct Source {
    std::vector<Route> routes;  // by target; empty: not found yet
  };
  struct Uplink {
    int up = -1, down = -1, vertex = -1;  // ports to and from a device's switch
  };

  void FindRoutes(int from);
  // `packets_on`: how many packets a port has of it.
  template <class F>
  Time SendOn(const Route& route, Packet packet, std::uint64_t bytes, Time at, Mover mover,
              F packets_on);
  Time Pass(Port& port, Packet packet, std::uint64_t bytes, std::uint32_t packets, Time at,
            Mover mover, double stretch);
  void Rescale(Port& port);
  const LinkKind& KindOf(const Port& port) const;

  const Profile& profile_;
  std::vector<Port> ports_;                 // 2 * link, and the way back behind it
  std::vector<std::vector<int>> outgoing_;  // ports by vertex
  std::vector<Source> sources_;
  std::vector<int> hosts_;       // by device
  std::vector<Uplink> uplinks_;  // by device
  std::array<MoverRecord, kMovers> moved_{};
  Listener* listener_ = nullptr;
  std::uint64_t* ledger_ = nullptr;
};

}  // namespace allranks::node
