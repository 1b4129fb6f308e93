// Expected sums: fp32 additions in the order of the ring, which leave one result for each element.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t n = call.Param("n");
  const int world = call.world();
  const std::int64_t half = 4 * ((n + 8 * world - 1) / (8 * world));
  std::vector<float> sum(n);
  for (std::int64_t begin = 0, part = 0; begin < n; begin += half, ++part) {
    const auto owner = static_cast<int>(part / 2);
    const int turn = part % 2 == 0 ? 1 : world - 1;
    const std::int64_t end = std::min(n, begin + half);
    for (int step = 1; step <= world; ++step) {
      const auto in = call.In<float>((owner + step * turn) % world, "in");
      for (std::int64_t i = begin; i < end; ++i) sum[i] = step == 1 ? in[i] : sum[i] + in[i];
    }
  }
  for (int rank = 0; rank < world; ++rank) check.Exact(rank, "out", sum);
}
