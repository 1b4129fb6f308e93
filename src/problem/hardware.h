// A problem and a solution as an ordinary CUDA program, for a machine with GPUs. The program's text
// is share/hardware/main.cpp, the same for all problems; tables.h, made here, tells it of one.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "problem/problem.h"

namespace allranks::problem {

// Files by name: main.cpp, tables.h, problem.h, candidate.cu, oracle.cpp, build.sh. The headers in
// include/allranks must lie beside them, in include/. Fails for windows that need the node.
Result<std::map<std::string, std::string>> ExportForHardware(const Problem& problem,
                                                             const std::string& solution);

}  // namespace allranks::problem
