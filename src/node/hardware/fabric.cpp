// Ports, routes and what passes them. See fabric.h.
#include "node/hardware/fabric.h"

#include <algorithm>
#include <limits>
#include <queue>

#include "base/check.h"
#include "node/listener.h"

namespace allranks::node {
namespace {

constexpr double kMostBackground = 0.9;  // polling never stops a link altogether
// What routes are compared by: latency, and how long this many bytes take. Large enough that a wide
// link wins over a short one.
constexpr double kTypicalBytes = 1024 * 1024;

std::uint64_t WireBytes(const Port& port, Packet packet, std::uint64_t bytes,
                        std::uint32_t packets) {
  return bytes + std::uint64_t{packets} * port.header[static_cast<std::size_t>(packet)];
}

}  // namespace

const char* NameOf(Mover mover) {
  static constexpr const char* kNames[] = {"sm", "tma", "copy_engine", "multicast", "nic"};
  return kNames[static_cast<std::size_t>(mover)];
}

Fabric::Fabric(const Profile& profile, Time bucket) : profile_(profile) {
  const Topology& topology = profile.topology;
  const auto devices = static_cast<std::size_t>(profile.DeviceCount());
  CHECK(topology.vertices.size() >= devices);
  CHECK(devices == 0 || topology.vertices[devices - 1].kind == Topology::Kind::kDevice);
  outgoing_.resize(topology.vertices.size());
  sources_.resize(topology.vertices.size());
  for (std::size_t l = 0; l < topology.links.size(); ++l) {
    const Topology::Link& link = topology.links[l];
    const LinkKind& kind = topology.kinds[static_cast<std::size_t>(link.kind)];
    for (int way = 0; way < 2; ++way) {
      Port port;
      port.from = way == 0 ? link.a : link.b;
      port.to = way == 0 ? link.b : link.a;
      port.link = static_cast<int>(l);
      port.latency = kind.latency;
      port.header = {static_cast<std::uint32_t>(kind.write_bytes),
                     static_cast<std::uint32_t>(kind.answer_bytes),
                     static_cast<std::uint32_t>(kind.request_bytes)};
      // GB/s are bytes per ns.
      port.server =
          Server(bucket, kind.gbs * kind.efficiency * static_cast<double>(bucket) / 1000.0);
      outgoing_[static_cast<std::size_t>(port.from)].push_back(static_cast<int>(ports_.size()));
      ports_.push_back(std::move(port));
    }
  }
  hosts_.resize(devices, -1);
  uplinks_.resize(devices);
  for (std::size_t d = 0; d < devices; ++d) {
    for (const int p : outgoing_[d]) {
      const int to = ports_[static_cast<std::size_t>(p)].to;
      if (topology.vertices[static_cast<std::size_t>(to)].kind == Topology::Kind::kNvswitch &&
          uplinks_[d].up < 0) {
        uplinks_[d] = {p, p ^ 1, to};
      }
    }
    Time nearest = kTimeNever;
    for (std::size_t v = 0; v < topology.vertices.size(); ++v) {
      if (topology.vertices[v].kind != Topology::Kind::kCpu ||
          topology.vertices[v].host != topology.vertices[d].host) {
        continue;
      }
      const Route& route = Way(static_cast<int>(d), static_cast<int>(v));
      if (route.latency >= nearest) continue;
      nearest = route.latency;
      hosts_[d] = static_cast<int>(v);
    }
  }
}

void Fabric::FindRoutes(int from) {
  const Topology& topology = profile_.topology;
  const std::size_t count = topology.vertices.size();
  std::vector<double> cost(count, std::numeric_limits<double>::infinity());
  std::vector<int> by(count, -1);  // the port through which a vertex is reached
  using Entry = std::pair<double, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  cost[static_cast<std::size_t>(from)] = 0;
  queue.push({0, from});
  while (!queue.empty()) {
    const auto [so_far, vertex] = queue.top();
    queue.pop();
    if (so_far > cost[static_cast<std::size_t>(vertex)]) continue;
    // Devices and NICs are ends of a way, except NICs between their host and the network.
    const Topology::Kind kind = topology.vertices[static_cast<std::size_t>(vertex)].kind;
    if (kind == Topology::Kind::kDevice && vertex != from) continue;
    for (const int p : outgoing_[static_cast<std::size_t>(vertex)]) {
      const Port& port = ports_[static_cast<std::size_t>(p)];
      const LinkKind& link = KindOf(port);
      const double next = so_far + static_cast<double>(link.latency) +
                          kTypicalBytes / (link.gbs * link.efficiency) * 1000.0;
      if (next >= cost[static_cast<std::size_t>(port.to)]) continue;
      cost[static_cast<std::size_t>(port.to)] = next;
      by[static_cast<std::size_t>(port.to)] = p;
      queue.push({next, port.to});
    }
  }
  std::vector<Route> routes(count);
  for (std::size_t to = 0; to < count; ++to) {
    Route& route = routes[to];
    if (static_cast<int>(to) == from) route.latency = 0;
    if (by[to] < 0) continue;
    route.latency = 0;
    for (int at = static_cast<int>(to); at != from;) {
      const int p = by[static_cast<std::size_t>(at)];
      route.ports.push_back(static_cast<std::uint16_t>(p));
      route.latency += ports_[static_cast<std::size_t>(p)].latency;
      at = ports_[static_cast<std::size_t>(p)].from;
    }
    std::reverse(route.ports.begin(), route.ports.end());
  }
  sources_[static_cast<std::size_t>(from)].routes = std::move(routes);
}

bool Fabric::Alive(const Route& route) const {
  return std::none_of(route.ports.begin(), route.ports.end(),
                      [&](std::uint16_t p) { return ports_[p].dead; });
}

std::uint32_t Fabric::Packets(const Route& route, Mover mover, std::uint64_t bytes) const {
  std::int32_t least = std::numeric_limits<std::int32_t>::max();
  for (const std::uint16_t p : route.ports) {
    const LinkKind& kind = KindOf(ports_[p]);
    least = std::min(least, mover == Mover::kSm           ? kind.store_packet_bytes
                            : mover == Mover::kCopyEngine ? kind.engine_packet_bytes
                                                          : kind.packet_bytes);
  }
  const auto largest = static_cast<std::uint64_t>(least);
  return static_cast<std::uint32_t>((bytes + largest - 1) / largest);
}

const LinkKind& Fabric::KindOf(const Port& port) const {
  const Topology& topology = profile_.topology;
  return topology
      .kinds[static_cast<std::size_t>(topology.links[static_cast<std::size_t>(port.link)].kind)];
}

Time Fabric::Pass(Port& port, Packet packet, std::uint64_t bytes, std::uint32_t packets, Time at,
                  Mover mover, double stretch) {
  const std::uint64_t wire = WireBytes(port, packet, bytes, packets);
  port.bytes[static_cast<std::size_t>(mover)] += bytes;
  port.wire_bytes += wire;
  port.packets += packets;
  auto units = static_cast<std::int64_t>(wire);
  if (stretch != 1) units = static_cast<std::int64_t>(static_cast<double>(units) * stretch);
  units = units * port.scale >> 16;
  const Time served = port.server.Take(at, units);
  // Capacity is given out by buckets: it may have begun a little before `at`.
  const Time began = served - port.server.Span(units);
  port.first = std::min({port.first, at, began});
  port.last = std::max(port.last, served);
  if (listener_ != nullptr)
    listener_->OnPort(static_cast<std::size_t>(&port - ports_.data()), began, served, wire);
  if (ledger_ != nullptr) ledger_[&port - ports_.data()] += bytes;
  MoverRecord& moved = moved_[static_cast<std::size_t>(mover)];
  moved.link_bytes += bytes;
  moved.wire_bytes += wire;
  return served;
}

template <class F>
Time Fabric::SendOn(const Route& route, Packet packet, std::uint64_t bytes, Time at, Mover mover,
                    F packets_on) {
  // The head goes on when its first byte has left a port: long transfers fill all ports of the way
  // at once.
  Time head = at, last = at;
  for (const std::uint16_t p : route.ports) {
    Port& port = ports_[p];
    const std::uint32_t packets = packets_on(port);
    const Time served = Pass(port, packet, bytes, packets, head, mover, 1);
    const auto wire = static_cast<std::int64_t>(WireBytes(port, packet, bytes, packets));
    head = std::max(head, served - port.server.Span(wire * port.scale >> 16)) + port.latency;
    last = std::max(last, served) + port.latency;
  }
  if (!route.ports.empty()) moved_[static_cast<std::size_t>(mover)].bytes += bytes;
  return last;
}

Time Fabric::Send(const Route& route, Packet packet, std::uint64_t bytes, std::uint32_t packets,
                  Time at, Mover mover) {
  return SendOn(route, packet, bytes, at, mover, [&](const Port&) { return packets; });
}

Time Fabric::SendByNics(const Route& route, std::uint64_t bytes, Time at) {
  return SendOn(route, Packet::kWrite, bytes, at, Mover::kNic, [&](const Port& port) {
    const auto largest = static_cast<std::uint64_t>(KindOf(port).packet_bytes);
    return static_cast<std::uint32_t>((bytes + largest - 1) / largest);
  });
}

bool Fabric::SharesSwitch(std::span<const int> devices) const {
  return std::all_of(devices.begin(), devices.end(), [&](int d) {
    const Uplink& uplink = uplinks_[static_cast<std::size_t>(d)];
    return uplink.vertex >= 0 &&
           uplink.vertex == uplinks_[static_cast<std::size_t>(devices.front())].vertex;
  });
}

Time Fabric::Replicate(int device, std::span<const int> members, std::uint64_t bytes,
                       std::uint32_t packets, Time at) {
  const double stretch = 1 / profile_.multicast.efficiency;
  const Uplink& uplink = uplinks_[static_cast<std::size_t>(device)];
  if (uplink.up < 0) return at;
  Port& up = ports_[static_cast<std::size_t>(uplink.up)];
  const Time there =
      Pass(up, Packet::kWrite, bytes, packets, at, Mover::kMulticast, stretch) + up.latency;
  moved_[static_cast<std::size_t>(Mover::kMulticast)].bytes += bytes;
  Time last = there;
  for (const int member : members) {
    Port& down = ports_[static_cast<std::size_t>(uplinks_[static_cast<std::size_t>(member)].down)];
    last = std::max(last,
                    Pass(down, Packet::kWrite, bytes, packets, there, Mover::kMulticast, stretch) +
                        down.latency);
  }
  return last;
}

Time Fabric::Reduce(int device, std::span<const int> members, std::uint64_t bytes,
                    std::uint32_t packets, Time at, Time ready) {
  const double stretch = 1 / profile_.multicast.efficiency;
  const Uplink& uplink = uplinks_[static_cast<std::size_t>(device)];
  if (uplink.up < 0) return at;
  Port& out = ports_[static_cast<std::size_t>(uplink.up)];
  const Time asked =
      Pass(out, Packet::kRequest, 0, packets, at, Mover::kMulticast, stretch) + out.latency;
  Time gathered = asked;
  for (const int member : members) {
    const Uplink& theirs = uplinks_[static_cast<std::size_t>(member)];
    Port& down = ports_[static_cast<std::size_t>(theirs.down)];
    Port& up = ports_[static_cast<std::size_t>(theirs.up)];
    const Time request =
        Pass(down, Packet::kRequest, 0, packets, asked, Mover::kMulticast, stretch) + down.latency;
    const Time answer =
        Pass(up, Packet::kAnswer, bytes, packets, request + ready, Mover::kMulticast, stretch);
    gathered = std::max(gathered, answer + up.latency);
  }
  Port& in = ports_[static_cast<std::size_t>(uplink.down)];
  moved_[static_cast<std::size_t>(Mover::kMulticast)].bytes += bytes;
  return Pass(in, Packet::kAnswer, bytes, packets, gathered + profile_.multicast.reduce,
              Mover::kMulticast, stretch) +
         in.latency;
}

void Fabric::Rescale(Port& port) {
  const double left = port.rate * (1 - std::clamp(port.background, 0.0, kMostBackground));
  port.scale = static_cast<std::int64_t>(65536.0 / std::max(left, 1e-3));
}

void Fabric::Background(const Route& route, double gbs) {
  for (const std::uint16_t p : route.ports) {
    Port& port = ports_[p];
    const LinkKind& kind = KindOf(port);
    port.background += gbs / (kind.gbs * kind.efficiency);
    Rescale(port);
  }
}

void Fabric::CountPolls(const Route& route, std::uint64_t bytes) {
  for (const std::uint16_t p : route.ports) ports_[p].poll_bytes += bytes;
}

void Fabric::SetRate(int link, double rate) {
  for (std::size_t p = static_cast<std::size_t>(link) * 2;
       p < static_cast<std::size_t>(link) * 2 + 2; ++p) {
    ports_[p].rate = rate > 0 ? rate : 1;
    ports_[p].dead = rate <= 0;
    Rescale(ports_[p]);
  }
}

std::vector<LinkRecord> Fabric::Records() const {
  const Topology& topology = profile_.topology;
  std::vector<LinkRecord> records;
  for (std::size_t l = 0; l < topology.links.size(); ++l) {
    const Port* ports = &ports_[2 * l];
    if (ports[0].wire_bytes + ports[1].wire_bytes + ports[0].poll_bytes + ports[1].poll_bytes == 0)
      continue;
    const LinkKind& kind = KindOf(ports[0]);
    LinkRecord record;
    record.link = static_cast<int>(l);
    record.kind = kind.name;
    record.gbs = kind.gbs * kind.efficiency;
    for (std::size_t way = 0; way < 2; ++way) {
      const Port& port = ports[way];
      record.directions[way] = {
          .from = topology.vertices[static_cast<std::size_t>(port.from)].name,
          .to = topology.vertices[static_cast<std::size_t>(port.to)].name,
          .bytes = port.bytes,
          .wire_bytes = port.wire_bytes,
          .packets = port.packets,
          .poll_bytes = port.poll_bytes,
          .first = std::min(port.first, port.last),
          .last = port.last,
      };
    }
    record.name = record.directions[0].from + "-" + record.directions[0].to;
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace allranks::node
