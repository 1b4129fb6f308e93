// Rows of every source in the order of ranks, cut where the destination's room ends; whatever lies
// behind them keeps its poison.
#include <allranks/oracle.h>
#include <algorithm>
#include <vector>

using namespace allranks::oracle;

namespace {

// Rows of `source` that reach `destination`: where they begin in `in` and `out`, and how many.
struct Segment {
  std::int64_t from = 0, to = 0, rows = 0;
};

std::vector<Segment> SegmentsTo(const Call& call, int destination) {
  std::vector<Segment> segments;
  std::int64_t to = 0;
  for (int source = 0; source < call.world(); ++source) {
    const auto counts = call.In<std::int32_t>(source, "counts");
    Segment segment;
    for (int i = 0; i < destination; ++i) segment.from += counts[i];
    segment.to = to;
    segment.rows = std::min<std::int64_t>(counts[destination], call.Param("room") - to);
    to += segment.rows;
    segments.push_back(segment);
  }
  return segments;
}

}  // namespace

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t width = 4 * call.Param("quads");
  for (int rank = 0; rank < call.world(); ++rank) {
    std::vector<std::int32_t> arrived;
    std::int64_t valid = 0;
    const auto segments = SegmentsTo(call, rank);
    for (int source = 0; source < call.world(); ++source) {
      const Segment& segment = segments[source];
      const auto rows =
          call.In<std::uint32_t>(source, "in").subspan(segment.from * width, segment.rows * width);
      check.ExactAt<std::uint32_t>(rank, "out", segment.to * width, rows);
      arrived.push_back(static_cast<std::int32_t>(segment.rows));
      valid += segment.rows;
    }
    check.Untouched(rank, "out", valid * width);
    check.Exact<std::int32_t>(rank, "arrived", arrived);
  }
}

// Every row crosses a link once, unless it stays or is lost for want of room.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  std::int64_t came = 0, sent = 0;
  for (int destination = 0; destination < call.world(); ++destination) {
    const auto segments = SegmentsTo(call, destination);
    for (int source = 0; source < call.world(); ++source) {
      if (source == destination) continue;
      if (destination == rank) came += segments[source].rows;
      if (source == rank) sent += segments[source].rows;
    }
  }
  const double row_bytes = 16.0 * static_cast<double>(call.Param("quads"));
  floor.ingress = static_cast<double>(came) * row_bytes;
  floor.egress = static_cast<double>(sent) * row_bytes;
}
