// `allranks ptx`: what the node makes of PTX, without running it.
#pragma once

#include <string>
#include <vector>

namespace allranks::cli {

struct PtxOptions {
  std::vector<std::string> files;
  bool coverage = false;
  bool json = false;
  double min_executable = 0;  // percent; below it the exit code is 1
};

// The exit code: 0; 1 if a file could not be read or parsed, or less is executable than asked for.
int Ptx(const PtxOptions& options);

}  // namespace allranks::cli
