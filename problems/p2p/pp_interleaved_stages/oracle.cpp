// The pipeline stage by stage, all micro-batches of a stage at once.
#include <allranks/oracle.h>

#include <vector>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const auto micro = static_cast<std::size_t>(call.Param("micro"));
  const auto n = static_cast<std::size_t>(call.Param("n"));
  const auto in = call.In<std::uint32_t>(0, "in");
  std::vector<std::uint32_t> x(in.begin(), in.end());
  for (std::int64_t round = 0; round < call.Param("rounds"); ++round) {
    for (int rank = 0; rank < call.world(); ++rank) {
      const auto table = call.In<std::uint32_t>(rank, "table");
      const auto weights = call.In<std::uint32_t>(rank, "weights").subspan(round * n, n);
      for (std::size_t k = 0; k < micro * n; ++k) {
        const std::uint32_t t = (x[k] + weights[k % n]) * 0x9E3779B1u;
        x[k] = t ^ table[t >> 17];
      }
      check.ExactAt<std::uint32_t>(rank, "acts", round * micro * n, x);
    }
  }
}

// Rank 0 receives nothing for its first stage, the last rank sends nothing from its last.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const double bytes = 4.0 * static_cast<double>(call.Param("micro") * call.Param("n"));
  const auto rounds = static_cast<double>(call.Param("rounds"));
  floor.ingress = bytes * (rank > 0 ? rounds : rounds - 1);
  floor.egress = bytes * (rank + 1 < call.world() ? rounds : rounds - 1);
}
