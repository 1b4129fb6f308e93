// Every rank's `out` is the sum of its row of all ranks, added up in fp32 in any order.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::uint64_t n = call.Param("n");
  for (int rank = 0; rank < call.world(); ++rank) {
    std::vector<Piece> from;
    for (int source = 0; source < call.world(); ++source) from.push_back({source, "in", rank * n});
    const Piece to = {rank, "out"};
    check.Sum(from, {&to, 1}, n);
  }
}
