// The root's `out` holds the rows of all ranks one after the other; all else keeps its poison.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t width = call.Param("width");
  std::vector<std::int32_t> starts = {0};
  for (int source = 0; source < call.world(); ++source) {
    starts.push_back(starts.back() + call.In<std::int32_t>(source, "length")[0]);
  }
  const int root = static_cast<int>(call.Param("root"));
  for (int source = 0; source < call.world(); ++source) {
    const std::int64_t words = (starts[source + 1] - starts[source]) * width;
    check.ExactAt<std::uint32_t>(root, "out", starts[source] * width,
                                 call.In<std::uint32_t>(source, "in").first(words));
  }
  check.Untouched(root, "out", starts.back() * width);
  check.Exact<std::int32_t>(root, "starts", starts);
  for (int rank = 0; rank < call.world(); ++rank) {
    if (rank == root) continue;
    check.Untouched(rank, "out", 0);
    check.Untouched(rank, "starts", 0);
  }
}

// The root's own rows need not cross a link. What does not fit into the symmetric memory can come
// only after the root has said that it has entered.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const double row_bytes = 4.0 * static_cast<double>(call.Param("width"));
  double all = 0;
  for (int source = 0; source < call.world(); ++source) {
    all += call.In<std::int32_t>(source, "length")[0] * row_bytes;
  }
  const double own = call.In<std::int32_t>(rank, "length")[0] * row_bytes;
  const bool root = rank == call.Param("root");
  floor.ingress = root ? all - own : 0;
  floor.egress = root ? 0 : own;
  floor.hbm = root ? all + own : own;
  floor.hops = root && all - own > 16384 ? 2 : 1;
}
