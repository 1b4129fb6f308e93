// Estimators over samples and problems. docs/scores.md says why these; tests/report checks them
// against closed forms and by simulation.
#pragma once

namespace allranks::report {

// The chance that at least one of k samples drawn without replacement from n, of which c are good,
// is good: 1 - C(n-c, k) / C(n, k). Unbiased for the chance of k fresh samples. 1 <= k <= n.
double PassAtK(int n, int c, int k);

}  // namespace allranks::report
