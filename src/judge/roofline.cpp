// Theory. One call of one rank is taken to need
//
//   start + read + max(min(by flags, by packets), memory, arithmetic)
//
//   by packets  max(2 * wire + hop, hops * hop) + back
//   by flags    max(wire + told, hops * told), told = back + back + fence + hop
//
// start       what the node charges before the first operation of a call begins: a graph's launch
//             and the kernel, copy or memory operation after it, whichever is the cheapest allowed.
//             For Ns, each further entry point starts a kernel of its own, a call of the host
//             window begins with the host's launch, and where no kernel is allowed a transfer is a
//             copy, a value that tells of it and a wait for that.
// wire        payload over the rate of the device's links of the granted kinds to the devices of
//             this world. A payload byte also costs its part of a packet's header, at the best that
//             the profile has: packets of reads and bulk copies, or a copy engine's if copies are
//             allowed. A read's request goes the other way, so where traffic goes both ways the two
//             directions together decide: each byte costs a header, or a smaller one and a request.
//             With multicast allowed, floors count what the switch's reductions and replicas leave,
//             and are charged at its efficiency: such a floor's author sees to it that doing
//             without multicast needs at least 1 / efficiency times as many bytes.
//             `busiest` counts for one direction of one rank, the one with the most to do.
// hop         the least latency between two ends by granted links, and half a trip to the L2 at
//             the target. The last byte needs one hop after it had its turn; `hops` of them stand
//             one behind the other whatever the size.
//             For Ns, the other half of the trip is added: somebody waits for it in the L2.
// read        a trip to the L2: nothing leaves before it was read.
// back        a hop without that half: a kernel ends when its last store is acknowledged, and a
// load comes back from
//             where it went.
// fence       of the system's scope. Data that a flag announces is ordered before it, at every hop:
//             the store's acknowledgement, the fence, the flag's own way. (Or the flag first, and
//             then a load there and back.) A packet that carries its flag beside 4 bytes of data
//             needs none of it and twice the wire. The cheaper of the two counts. A protocol that
//             hides its flags in the data itself may be faster than both, and above 1. Copies and
//             stream memory operations are ordered by their stream.
// memory      own memory at the L2's rate: after the first call of a burst all of it may be there.
// arithmetic  tensor cores at the rate that the node charges for 16-bit factors.
//
// LeastNs gives away all that a burst can hide. Peers that are ahead may fill a rank's links while
// it starts the next call, so a burst takes calls * start or the sum of the transfers, whichever is
// more. Capacity is handed out by buckets of time (node/hardware/servers.h): a port may serve the
// first bucket's worth at once; two ports are passed. Eight-bit factors have twice the rate, and
// small integers may be multiplied as such.
#include "judge/roofline.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "node/hardware/fabric.h"

namespace allranks::judge {
namespace {

using node::LinkKind;
using node::Profile;
using node::Topology;

// Multiply-adds per cycle of a quarter of an SM: node/decode/decode_matrix.cpp, from the H100 white
// paper.
constexpr double kTensorRate = 512;
constexpr double kQuarters = 4;

double Ns(node::Time time) { return static_cast<double>(time) / 1000.0; }

// Bytes on the wire per byte of payload: with the header alone, and with a read's request.
double WireOneWay(const LinkKind& kind, bool copies) {
  const auto cost = [](std::int32_t packet, std::int32_t header) {
    return 1 + static_cast<double>(header) / packet;
  };
  const std::int32_t header = std::min(kind.answer_bytes, kind.write_bytes);
  double least = std::min(cost(kind.packet_bytes, header), cost(kind.store_packet_bytes, header));
  if (copies) least = std::min(least, cost(kind.engine_packet_bytes, header));
  return least;
}
double WireBothWays(const LinkKind& kind, bool copies) {
  const auto cost = [&](std::int32_t packet) {
    return 1 +
           static_cast<double>(std::min(kind.answer_bytes + kind.request_bytes, kind.write_bytes)) /
               packet;
  };
  double least = std::min(cost(kind.packet_bytes), cost(kind.store_packet_bytes));
  if (copies) least = std::min(least, cost(kind.engine_packet_bytes));
  return least;
}

// Before a call's first operation begins. In a burst without a graph, kernels may follow each other
// as quickly as an early launch allows.
double StartNs(const Profile& profile, const problem::Problem& problem, bool burst) {
  const Profile::Launch& launch = profile.launch;
  if (problem.window == problem::Window::kQuery) return 0;
  node::Time first = std::min(launch.kernel, launch.between);
  if (problem.window != problem::Window::kGraph && burst) first = std::min(first, launch.cta);
  if (Allows(problem, "memcpy")) first = std::min(first, profile.copy_engine.startup);
  if (Allows(problem, "values")) first = std::min(first, launch.event);
  return Ns(first + (problem.window == problem::Window::kGraph ? launch.graph : 0));
}

// What Ns adds to it.
double FurtherNs(const Profile& profile, const problem::Problem& problem, bool by_stream) {
  const Profile::Launch& launch = profile.launch;
  node::Time further = 0;
  if (problem.window == problem::Window::kGraph && !problem.calls.empty())
    further += static_cast<node::Time>(problem.calls.size() - 1) * launch.between;
  if (problem.window == problem::Window::kHost)
    further += launch.host_call + launch.kernel - std::min(launch.kernel, launch.between);
  if (by_stream && !Allows(problem, "kernel")) {
    if (Allows(problem, "memcpy")) further += profile.copy_engine.startup;
    if (Allows(problem, "values")) further += launch.event;  // the other one is in the start
  }
  return Ns(further);
}

bool Granted(const Profile& profile, const problem::Problem& problem, int link) {
  const Topology& topology = profile.topology;
  const int kind = topology.links[static_cast<std::size_t>(link)].kind;
  return problem.links.empty() ||
         std::ranges::count(problem.links, topology.kinds[static_cast<std::size_t>(kind)].name) > 0;
}

// Copies and stream memory operations need neither fences nor loads.
bool OrderedByStream(const problem::Problem& problem) {
  return Allows(problem, "memcpy") || Allows(problem, "values");
}

// The least latency between two ends of the world by granted links alone.
double HopNs(const Profile& profile, const problem::Problem& problem, int devices) {
  node::Fabric fabric(profile, profile.CyclesToTime(profile.time.bucket_cycles));
  node::Time least = node::kTimeNever;
  const auto consider = [&](int from, int to) {
    if (from < 0 || to < 0 || from == to) return;
    const node::Route& route = fabric.Way(from, to);
    const bool usable = !route.ports.empty() &&
                        std::all_of(route.ports.begin(), route.ports.end(), [&](std::uint16_t p) {
                          return Granted(profile, problem, fabric.ports()[p].link);
                        });
    if (usable) least = std::min(least, route.latency);
  };
  for (int a = 0; a < devices; ++a) {
    for (int b = 0; b < devices; ++b) consider(a, b);
    consider(a, fabric.HostOf(a));
  }
  if (least == node::kTimeNever) return 0;
  // Host memory has no L2 to reach, and copies are not charged for it.
  const bool direct = problem.window == problem::Window::kHost || OrderedByStream(problem);
  return Ns(least) + (direct ? 0 : Ns(profile.CyclesToTime(profile.latency.l2) / 2));
}

}  // namespace

Result<FloorValues> FloorOf(const problem::Problem& problem, const problem::Case& one) {
  const problem::Values values = problem::ValuesOf(problem, one);
  FloorValues floor;
  const std::pair<const problem::Expression*, double*> fields[] = {
      {&problem.floor.busiest, &floor.busiest}, {&problem.floor.ingress, &floor.ingress},
      {&problem.floor.egress, &floor.egress},   {&problem.floor.hbm, &floor.hbm},
      {&problem.floor.flops, &floor.flops},     {&problem.floor.hops, &floor.hops},
  };
  for (const auto& [expression, value] : fields) {
    const Result<std::int64_t> number = expression->Evaluate(values);
    if (!number) {
      return Fail("{}: floor '{}': {}", one.name, expression->text(), number.error().message);
    }
    *value = static_cast<double>(std::max<std::int64_t>(*number, 0));
  }
  return floor;
}

Roofline::Roofline(const Profile& profile, const problem::Problem& problem, int world) {
  const Topology& topology = profile.topology;
  const bool copies = Allows(problem, "memcpy");
  const bool multicast = Allows(problem, "multicast") && profile.multicast.supported;
  const double share = multicast ? profile.multicast.efficiency : 1;
  const int devices = std::min(world, static_cast<int>(profile.DeviceCount()));
  const auto in_world = [&](int vertex) {
    const Topology::Vertex& v = topology.vertices[static_cast<std::size_t>(vertex)];
    return v.kind != Topology::Kind::kDevice || v.index < world;
  };
  // The best of all devices of the world.
  for (int d = 0; d < devices; ++d) {
    double one_way = 0, both_ways = 0;
    for (std::size_t l = 0; l < topology.links.size(); ++l) {
      const Topology::Link& link = topology.links[l];
      if (link.a != d && link.b != d) continue;
      if (!in_world(link.a == d ? link.b : link.a)) continue;
      if (!Granted(profile, problem, static_cast<int>(l))) continue;
      const LinkKind& kind = topology.kinds[static_cast<std::size_t>(link.kind)];
      const double rate = kind.gbs * kind.efficiency * share;  // GB/s are bytes per ns
      one_way += rate / WireOneWay(kind, copies);
      both_ways += 2 * rate / WireBothWays(kind, copies);
    }
    one_way_ = std::max(one_way_, one_way);
    both_ways_ = std::max(both_ways_, both_ways);
  }
  memory_ = std::max(profile.bandwidth.l2_gbs, profile.bandwidth.hbm_gbs);
  flops_ = 2 * kTensorRate * kQuarters * profile.device.sms *
           static_cast<double>(profile.device.clock_mhz) / 1000.0;
  hop_ns_ = HopNs(profile, problem, devices);
  by_stream_ = OrderedByStream(problem);
  host_ = problem.window == problem::Window::kHost;
  if (!by_stream_) {
    read_ns_ = judge::Ns(profile.CyclesToTime(profile.latency.l2));
    fence_ns_ = judge::Ns(profile.CyclesToTime(profile.latency.fence_sys));
  }
  start_ns_ = StartNs(profile, problem, false);
  further_ns_ = FurtherNs(profile, problem, by_stream_);
  next_ns_ = StartNs(profile, problem, true);
  const auto width = static_cast<std::uint64_t>(profile.CyclesToTime(profile.time.bucket_cycles));
  bucket_ns_ = static_cast<double>(std::bit_ceil(std::max<std::uint64_t>(width, 2))) / 1e3;
}

double Roofline::WireNs(const FloorValues& floor) const {
  const double most = std::max({floor.ingress, floor.egress, floor.busiest});
  if (most <= 0 || one_way_ <= 0) return 0;
  return std::max(most / one_way_, (floor.ingress + floor.egress) / both_ways_);
}

double Roofline::MemoryNs(const FloorValues& floor) const { return floor.hbm / memory_; }

double Roofline::Ns(const FloorValues& floor) const {
  const double wire = WireNs(floor);
  const double one = std::min(floor.hops, 1.0);
  const double hop = hop_ns_ + (host_ ? 0 : read_ns_ / 2);
  double transfers = std::max(wire + one * hop, floor.hops * hop);
  if (!by_stream_) {
    const double told = hop + 2 * hop_ns_ + fence_ns_;
    const double packets = std::max(2 * wire + one * hop, floor.hops * hop) + one * hop_ns_;
    const double flags = std::max(wire + one * told, floor.hops * told);
    transfers = std::min(packets, flags);
  }
  const double read = wire > 0 || floor.hbm > 0 ? read_ns_ : 0;
  return start_ns_ + further_ns_ + read +
         std::max({transfers, MemoryNs(floor), floor.flops / flops_});
}

double Roofline::LeastNs(const FloorValues& floor, int calls) const {
  const auto count = static_cast<double>(std::max(calls, 1));
  const double start = calls > 1 ? next_ns_ : start_ns_;
  const double work =
      count * std::max({WireNs(floor), MemoryNs(floor), floor.flops / (2 * flops_)});
  // Of the latencies behind each other one may lie in the call before, since what it brings may
  // have been fetched there; the others are paid in every call.
  const double hops = calls > 1 ? std::max(floor.hops - 1, 0.0) : floor.hops;
  const double starts = count * (start + hops * hop_ns_);
  const double transfers =
      start + std::max(0.0, work - 2 * bucket_ns_) + std::min(floor.hops, 1.0) * hop_ns_;
  return std::max(starts, transfers) / count;
}

}  // namespace allranks::judge
