// How a machine is wired, as data: vertices (devices, CPUs, switches, NICs, networks) and the links
// between them. Part of a Profile; fabric.h makes ports and routes of it.
//
// In the file vertices have names. `gpu0`, `gpu1`, … are the devices of a host and need no
// declaration; every other name is declared once under its kind. A name may hold a range:
// "nic[0-7]" stands for eight. A wire joins two such names: one to one, all to one, or in equal
// groups ("gpu[0-7]" to "plx[0-3]" puts two devices on each switch). A mesh joins every pair. Names
// are per host, unless listed as machine_wide: then all hosts share the one vertex.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/time.h"

namespace allranks::node {

// A kind of link: its rate is that of one direction, with all lanes of the wire together.
struct LinkKind {
  std::string name;
  double gbs = 0;         // raw, 10^9 bytes per second
  double efficiency = 0;  // what is left beside headers, acknowledgements and replays
  Time latency = 0;       // `latency_ns`: from one end to the other
  // Largest payloads of a packet: of reads, bulk copies and multicast; of an SM's stores; of a copy
  // engine.
  std::int32_t packet_bytes = 0, store_packet_bytes = 0, engine_packet_bytes = 0;
  // What each packet costs beside its payload: a write, a read's answer, a read's request.
  std::int32_t write_bytes = 0, answer_bytes = 0, request_bytes = 0;
};

struct Topology {
  enum class Kind : std::uint8_t { kDevice, kCpu, kNvswitch, kPcieSwitch, kNic, kNetwork };

  struct Vertex {
    Kind kind = Kind::kDevice;
    std::string name;  // "gpu3", or "node1.gpu3" when there are several hosts
    int host = 0;      // -1: shared by all
    int index = 0;     // devices: machine-wide number
  };
  struct Link {
    int a = 0, b = 0;  // vertices
    int kind = 0;      // index into `kinds`
  };

  std::vector<LinkKind> kinds;
  std::vector<Vertex> vertices;  // devices first, in machine-wide order
  std::vector<Link> links;
};

const char* NameOf(Topology::Kind kind);

// What a profile's file says, before hosts are multiplied out.
struct TopologyText {
  struct Wire {
    std::string a, b, kind;  // a mesh has no `b`
  };
  std::vector<std::string> names[6];  // by Topology::Kind; devices need none
  std::vector<std::string> machine_wide;
  std::vector<Wire> wires, meshes;
};

// "nic[0-2]" → nic0, nic1, nic2; "leaf" → leaf. Fails on anything else.
Result<std::vector<std::string>> ExpandRange(std::string_view text);

// Vertices and links of all hosts. `topology->kinds` is there already.
Result<void> BuildTopology(const TopologyText& text, int hosts, int devices_per_host,
                           Topology* topology);

// The same with only the first `keep` devices of each host, and the links of those.
Topology FewerDevices(const Topology& topology, int devices_per_host, int keep);

// Hosts of so many devices, each behind one switch and one CPU, by kinds of link that `kinds` has.
// For machines larger than any profile, and for tests.
Topology OneSwitch(std::vector<LinkKind> kinds, const std::string& to_switch,
                   const std::string& to_cpu, int hosts, int devices_per_host);

// Links at a vertex with that name, or the one link between two ("gpu0-nvswitch"). Empty: none.
std::vector<int> LinksNamed(const Topology& topology, const std::string& name);

}  // namespace allranks::node
