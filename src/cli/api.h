// `allranks api`: which functions of CUDA's runtime and driver work on the virtual node.
#pragma once

#include <string>

namespace allranks::cli {

struct ApiOptions {
  bool json = false;
  bool missing = false;  // list only those that do not work
  std::string filter;    // only names that contain it
};

// The exit code: 0, or 1 if the shim cannot be found or read.
int Api(const ApiOptions& options);

}  // namespace allranks::cli
