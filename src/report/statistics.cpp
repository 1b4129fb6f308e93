#include "report/statistics.h"

#include "base/check.h"

namespace allranks::report {

double PassAtK(int n, int c, int k) {
  CHECK(1 <= k && k <= n && 0 <= c && c <= n, "n {}, c {}, k {}", n, c, k);
  if (n - c < k) return 1;
  double none = 1;  // as a product: the binomials themselves overflow
  for (int i = n - c + 1; i <= n; ++i) none *= 1 - static_cast<double>(k) / i;
  return 1 - none;
}

}  // namespace allranks::report
