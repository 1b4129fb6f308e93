// The PTX in a user's files: PTX text, fat binaries, and host programs or objects that nvcc made.
// What `allranks ptx` looks at.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "ptx/cubin.h"

namespace allranks::cli {

struct PtxImage {
  std::string name;  // the file, and which image of it: "a.out", "a.out#2"
  std::string text;
  // From the cubins beside it, by kernel; empty if there are none.
  std::map<std::string, ptx::KernelResources> resources;
};

// Every PTX image of `path`. A file without any is an error: it says what was found instead.
Result<std::vector<PtxImage>> ReadPtxImages(const std::string& path);

}  // namespace allranks::cli
