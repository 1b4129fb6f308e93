// What reading the images of a large library has found out, kept on disk: where the bodies of its
// functions are and what its kernels need. A run that finds it decompresses only the texts of which
// it executes functions.
//
// An index belongs to the contents of the images and to this very program (its build id), so it is
// never out of date. One that is damaged is ignored and made again. It is not evidence of anything:
// judged runs have no folder for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/link_set.h"
#include "ptx/cubin.h"
#include "ptx/outline.h"

namespace allranks::node {

struct ModuleIndex {
  struct Text {
    std::uint64_t image = 0;  // its number
    std::string name;
    ptx::Outline outline;
  };
  std::vector<Text> texts;
  std::map<std::string, ptx::KernelResources> resources;
};

// The name of the file of what a device of `arch` takes from these images; empty: this program has
// no build id, and keeps nothing.
std::string IndexName(const std::vector<LinkSetImage>& images, std::uint32_t arch);

// nullopt: there is none, or it is damaged.
std::optional<ModuleIndex> LoadIndex(const std::string& folder, const std::string& name);

// A folder that cannot be written to keeps nothing. The oldest go when there are many.
void StoreIndex(const std::string& folder, const std::string& name, const ModuleIndex& index);

}  // namespace allranks::node
