// From a candidate's text to the program of a rank: nvcc and the linker in a sandbox that sees the
// toolkit, the generated problem.h, include/allranks and nothing else of ours.
#pragma once

#include <string>

#include "judge/judge.h"
#include "judge/verdict.h"
#include "node/hardware/profile.h"
#include "problem/problem.h"

namespace allranks::judge {

struct Build {
  Verdict verdict = Verdict::kPass;  // or compile_error, forbidden_api, internal_error
  std::string text;                  // why not: the first error
  std::string log;                   // the compiler's words, bounded
  std::string program;               // path of the executable
  std::string module;                // SHA-256 of its device code, in hexadecimal digits
  bool cached = false;
  double cpu_seconds = 0;
};

// What the compiler is told, beside files: also the bare command against which cost is measured.
std::vector<std::string> CompilerFlags(const problem::Problem& problem,
                                       const node::Profile& profile);

// Version of the toolkit, "13.0", as its headers say.
Result<std::string> CudaVersion(const Tools& tools);

// `source` is the assembled file (problem/source.h). `folder`: scratch, writable by sandboxes; what
// is built lies there if the cache is off.
Build BuildCandidate(const Tools& tools, const problem::Problem& problem,
                     const node::Profile& profile, const std::string& source,
                     const std::string& folder);

}  // namespace allranks::judge
