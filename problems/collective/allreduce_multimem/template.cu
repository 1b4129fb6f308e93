// All-reduce in the switch: every rank's `out` is the sum of all ranks' `in`.
// Fill the region below; statement.md says what holds and what is asked for.
#include "problem.h"

// >>> edit
extern "C" void launch(const Args& args, cudaStream_t stream) {
  // Enqueue the work of one call on `stream`.
}
// <<< edit
