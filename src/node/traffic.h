// What links have carried and who moved it: the words that the fabric (fabric.h), which counts, and
// listeners of the machine (machine.h) share.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "node/time.h"

namespace allranks::node {

// Who moves bytes.
enum class Mover : std::uint8_t { kSm, kTma, kCopyEngine, kMulticast, kNic };
inline constexpr std::size_t kMovers = 5;
const char* NameOf(Mover mover);

// One direction of a link.
struct DirectionRecord {
  std::string from, to;                        // vertices
  std::array<std::uint64_t, kMovers> bytes{};  // payload
  std::uint64_t wire_bytes = 0, packets = 0;   // with what packets cost beside their payload
  std::uint64_t poll_bytes = 0;                // of parked polls, which are counted, not sent
  Time first = 0, last = 0;                    // between these it was used
};

struct LinkRecord {
  int link = 0;      // index into Topology::links
  std::string name;  // "gpu0-nvswitch"
  std::string kind;
  double gbs = 0;  // what one direction can carry, headers included
  std::array<DirectionRecord, 2> directions;
};

// What one mover has sent over links.
struct MoverRecord {
  std::uint64_t bytes = 0;       // payload, once however many links it passes
  std::uint64_t link_bytes = 0;  // payload, once per link
  std::uint64_t wire_bytes = 0;  // per link, with what packets cost
};

}  // namespace allranks::node
