// The sum of all votes names the root, whose words every rank's `out` holds.
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
  const auto words = call.In<std::uint32_t>(RootOf(call), "in");
  for (int rank = 0; rank < call.world(); ++rank) {
    check.Exact<std::uint32_t>(rank, "out", words);
  }
}

// What does not fit into the symmetric memory can come only after its receiver has said that it has
// entered.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const double bytes = 4.0 * static_cast<double>(call.Param("n"));
  const bool root = rank == RootOf(call);
  floor.ingress = root ? 0 : bytes;
  floor.egress = root ? bytes : 0;
  floor.hbm = root ? 2 * bytes : bytes;
  floor.hops = bytes > 16384 ? 2 : 1;
}
