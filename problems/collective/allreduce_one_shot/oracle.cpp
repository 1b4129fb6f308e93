// Expected values of an all-reduce: the sum over ranks, within the error of any order of additions.
#include <allranks/oracle.h>

#include <cmath>
#include <vector>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::size_t n = call.Param("n");
  std::vector<double> sum(n, 0.0), size(n, 0.0);
  for (int rank = 0; rank < call.world(); ++rank) {
    const std::vector<double> in = call.InAsDouble(rank, "in");
    for (std::size_t i = 0; i < n; ++i) {
      sum[i] += in[i];
      size[i] += std::abs(in[i]);
    }
  }
  std::vector<double> bound(n);
  for (std::size_t i = 0; i < n; ++i) {
    bound[i] = SumBound(Type::kF32, Type::kF32, Type::kF32, call.world(), size[i]);
  }
  for (int rank = 0; rank < call.world(); ++rank) check.Near(rank, "out", sum, bound);
}
