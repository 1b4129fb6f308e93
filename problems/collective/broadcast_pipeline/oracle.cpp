// Every rank's `out` holds the root's words.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const auto words = call.In<std::uint32_t>(static_cast<int>(call.Param("root")), "in");
  for (int rank = 0; rank < call.world(); ++rank) {
    check.Exact<std::uint32_t>(rank, "out", words);
  }
}

extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const double bytes = 4.0 * static_cast<double>(call.Param("n"));
  const bool root = rank == call.Param("root");
  floor.ingress = root ? 0 : bytes;
  floor.egress = root ? bytes : 0;
  floor.hbm = root ? 2 * bytes : bytes;
}
