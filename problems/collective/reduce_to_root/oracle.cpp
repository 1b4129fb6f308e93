// The sum of all votes names the root, whose `out` holds the sum over all ranks, within the error
// of any order of additions. The `out` of other ranks keeps its poison.
#include <allranks/oracle.h>

using namespace allranks::oracle;

namespace {

int RootOf(const Call& call) {
  int votes = 0;
  for (int rank = 0; rank < call.world(); ++rank) votes += call.In<std::int32_t>(rank, "vote")[0];
  return votes % call.world();
}

}  // namespace

extern "C" void Verify(const Call& call, Check& check) {
  const int root = RootOf(call);
  std::vector<Piece> in, out = {{root, "out"}};
  for (int rank = 0; rank < call.world(); ++rank) {
    in.push_back({rank, "in"});
    if (rank != root) check.Untouched(rank, "out", 0);
  }
  check.Sum(in, out, call.Param("n"));
}

// Partial sums may be made on the way: the root need not receive more than one message.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const double bytes = 4.0 * static_cast<double>(call.Param("n"));
  const bool root = rank == RootOf(call);
  floor.ingress = root ? bytes : 0;
  floor.egress = root ? 0 : bytes;
  floor.hbm = root ? 2 * bytes : bytes;
}
