// Expected sums: the tree over all micro-batches, which leaves one result for each element.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t n = call.Param("n"), parts = call.Param("parts");
  const std::int64_t batch = call.world() * parts;
  std::vector<std::vector<float>> x;  // by micro-batch; x[a] becomes the sum of a node from a on
  for (std::int64_t m = 0; m < batch; ++m) {
    const auto row = call.In<float>(static_cast<int>(m / parts), "in").subspan(m % parts * n, n);
    x.emplace_back(row.begin(), row.end());
  }
  // Nodes of one level after the other; one without a neighbour goes up as it is.
  for (std::int64_t size = 1; size < batch; size *= 2) {
    for (std::int64_t a = 0; a + size < batch; a += 2 * size) {
      for (std::int64_t i = 0; i < n; ++i) x[a][i] += x[a + size][i];
    }
  }
  for (int rank = 0; rank < call.world(); ++rank) check.Exact(rank, "out", x[0]);
}
