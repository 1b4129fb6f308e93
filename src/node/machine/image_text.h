// The PTX of a module's images, and what their machine code says of its kernels. Part of Machine;
// machine_modules.cpp makes modules of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/link_set.h"
#include "base/result.h"
#include "ptx/cubin.h"
#include "ptx/module.h"

namespace allranks::node {

// No image for the device, but machine code.
bool IsElf(const LinkSetImage& image);

struct PtxText {
  std::string name, text;
};

// The PTX of one image that a device of `arch` takes, empty if it has none.
Result<PtxText> TextOf(const LinkSetImage& image, std::uint32_t arch);

// How many bytes that is, without decompressing it; 0 also for what cannot be read.
std::uint64_t TextBytes(const LinkSetImage& image, std::uint32_t arch);

// What the machine code of these images says of the kernels of the module that they make.
std::map<std::string, ptx::KernelResources> ResourcesOf(const std::vector<LinkSetImage>& images,
                                                        std::uint32_t arch,
                                                        const ptx::Module& module);

}  // namespace allranks::node
