// What `ptxas -v` prints about kernels, to hold ReadCubin against.
#pragma once

#include <map>
#include <string>

#include "ptx/cubin.h"

namespace allranks::ptx {

// Registers, barriers, static shared memory and stack per kernel; the other fields stay 0.
std::map<std::string, KernelResources> ParsePtxasReport(const std::string& report);

// Fails the current test where the two differ in one of these fields, or in the kernels.
void ExpectSameResources(const std::map<std::string, KernelResources>& cubin,
                         const std::map<std::string, KernelResources>& report);

}  // namespace allranks::ptx
