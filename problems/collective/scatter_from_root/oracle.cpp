// Every rank's `out` begins with its part of the root's rows; the rest keeps its poison.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t width = call.Param("width");
  const int root = static_cast<int>(call.Param("root"));
  const auto counts = call.In<std::int32_t>(root, "counts");
  std::int64_t begin = 0;
  for (int rank = 0; rank < call.world(); ++rank) {
    const auto part =
        call.In<std::uint32_t>(root, "in").subspan(begin * width, counts[rank] * width);
    check.Exact<std::uint32_t>(rank, "out", part);
    check.Exact<std::int32_t>(rank, "length", counts.subspan(rank, 1));
    begin += counts[rank];
  }
}

// The root's own part need not cross a link. What does not fit into the symmetric memory can come
// only after its receiver has said that it has entered.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const double row_bytes = 4.0 * static_cast<double>(call.Param("width"));
  const int root = static_cast<int>(call.Param("root"));
  const auto counts = call.In<std::int32_t>(root, "counts");
  double all = 0;
  for (const std::int32_t count : counts) all += count * row_bytes;
  const double own = counts[rank] * row_bytes, others = all - counts[root] * row_bytes;
  floor.ingress = rank == root ? 0 : own;
  floor.egress = rank == root ? others : 0;
  floor.hbm = rank == root ? all + own : own;
  floor.hops = rank != root && own > 16384 ? 2 : 1;
}
