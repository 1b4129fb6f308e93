// Every rank's `out` holds the rows of all ranks one after the other; the rest keeps its poison.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t width = call.Param("width");
  std::vector<std::int32_t> starts = {0};
  for (int source = 0; source < call.world(); ++source) {
    starts.push_back(starts.back() + call.In<std::int32_t>(source, "length")[0]);
  }
  for (int rank = 0; rank < call.world(); ++rank) {
    for (int source = 0; source < call.world(); ++source) {
      const std::int64_t words = (starts[source + 1] - starts[source]) * width;
      check.ExactAt<std::uint32_t>(rank, "out", starts[source] * width,
                                   call.In<std::uint32_t>(source, "in").first(words));
    }
    check.Untouched(rank, "out", starts.back() * width);
    check.Exact<std::int32_t>(rank, "starts", starts);
  }
}

// A rank's own rows need not cross a link. What does not fit into the symmetric memory can come
// only after this rank has said that it has entered.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const double row_bytes = 4.0 * static_cast<double>(call.Param("width"));
  double all = 0;
  for (int source = 0; source < call.world(); ++source) {
    all += call.In<std::int32_t>(source, "length")[0] * row_bytes;
  }
  const double own = call.In<std::int32_t>(rank, "length")[0] * row_bytes;
  floor.ingress = all - own;
  floor.egress = own;
  floor.hbm = all + own;
  floor.hops = all - own > 16384 ? 2 : 1;
}
