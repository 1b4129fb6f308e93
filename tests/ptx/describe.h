// A module as lines of text, for the expectations in tests/ptx/data (see data_test.cpp).
#pragma once

#include <string>
#include <vector>

#include "ptx/module.h"

namespace allranks::ptx {

std::vector<std::string> Describe(const Module& module);

}  // namespace allranks::ptx
