// Sums and moments are exact. The error of a new parameter: q is off by at most 8 units (root 2,
// sum 1, division 2, doubled where last places are half as large), which counts an eighth; sums and
// products round |param| at most three times and |q| / 8 at most twice.
#include <allranks/oracle.h>

#include <cmath>
#include <vector>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const auto n = static_cast<std::size_t>(call.Param("n"));
  std::vector<float> new_m(n), new_v(n);
  std::vector<double> expected(n), bound(n);
  for (int owner = 0; owner < call.world(); ++owner) {
    std::vector<float> sum(n);
    for (int rank = 0; rank < call.world(); ++rank) {
      const auto grad = call.In<float>(rank, "grad").subspan(owner * n, n);
      for (std::size_t i = 0; i < n; ++i) sum[i] += grad[i];
    }
    const auto param = call.In<float>(owner, "param");
    const auto m = call.In<float>(owner, "m"), v = call.In<float>(owner, "v");
    for (std::size_t i = 0; i < n; ++i) {
      new_m[i] = 0.875f * m[i] + 0.125f * sum[i];
      new_v[i] = 0.984375f * std::abs(v[i]) + 0.015625f * sum[i] * sum[i];
      const double q = new_m[i] / (std::sqrt(double{new_v[i]}) + 0x1p-10);
      expected[i] = param[i] - 0.125 * (q + 0.03125 * param[i]);
      bound[i] = 0x1p-24 * (4 * std::abs(param[i]) + 2 * std::abs(q));
    }
    check.Exact(owner, "new_m", new_m);
    check.Exact(owner, "new_v", new_v);
    for (int rank = 0; rank < call.world(); ++rank) {
      check.ExactAt<float>(rank, "grad_sum", owner * n, sum);
      check.NearAt(rank, "params", owner * n, expected, bound);
    }
  }
}
