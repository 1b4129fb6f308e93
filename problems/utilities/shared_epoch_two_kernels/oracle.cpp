// The gathered rows, and the sums modulo 2^32.
#include <allranks/oracle.h>

#include <vector>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const auto n = static_cast<std::uint64_t>(call.Param("n"));
  std::vector<Piece> b, sum;
  for (int rank = 0; rank < call.world(); ++rank) {
    for (int from = 0; from < call.world(); ++from) {
      check.ExactAt<std::uint32_t>(rank, "all", static_cast<std::uint64_t>(from) * n,
                                   call.In<std::uint32_t>(from, "a"));
    }
    b.push_back({rank, "b"});
    sum.push_back({rank, "sum"});
  }
  check.Sum(b, sum, static_cast<std::uint64_t>(call.Param("m")));
}
