// Whether a mutant compiles to the same PTX as its original: then it does the same.
#pragma once

#include "base/result.h"
#include "mutants/corpus.h"

namespace allranks::mutants {

// Compares what nvcc writes without comments and line numbers. Never true of a problem with a
// part for the host, whose code is elsewhere.
Result<bool> SamePtx(const Mutant& mutant);

}  // namespace allranks::mutants
